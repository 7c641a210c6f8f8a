package com.lixiang.rabbitmq.utils;

import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import java.io.IOException;
import java.util.concurrent.TimeoutException;

/** Connections to the broker named by the system properties rabbitmq.host and rabbitmq.port. */
public class RabbitUtils {
    public static Connection getConnection() throws IOException {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setHost(System.getProperty("rabbitmq.host", "localhost"));
        factory.setPort(Integer.getInteger("rabbitmq.port", 5672));
        try {
            return factory.newConnection();
        } catch (TimeoutException timeout) {
            throw new IOException(timeout);
        }
    }
}
