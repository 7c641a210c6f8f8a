package com.lixiang.rabbitmq;

import com.google.gson.Gson;
import com.lixiang.rabbitmq.entity.SMS;
import com.lixiang.rabbitmq.utils.RabbitConstant;
import com.lixiang.rabbitmq.utils.RabbitUtils;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import lombok.extern.slf4j.Slf4j;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeoutException;

@Slf4j
public class OrderSystem {
    public static void main(String[] args) throws IOException, TimeoutException, InterruptedException {
        try (Connection connection = RabbitUtils.getConnection();
            Channel channel = connection.createChannel();) {
            Map<String, Object> quArgs = new HashMap<>();
            quArgs.put("x-message-ttl", 10000);
            channel.queueDeclare(RabbitConstant.QUEUE_SMS_TTL, true, false, false, quArgs);

            for (int i = 100; i < 200; i++) {
                SMS sms = new SMS("乘客" + i, "13900000" + i, "您的车票已预订成功");
                String jsonSMS = new Gson().toJson(sms);
                channel.basicPublish("", RabbitConstant.QUEUE_SMS_TTL, null, jsonSMS.getBytes());
            }

            log.info("订单信息已投递至Broker");
        }
    }
}
