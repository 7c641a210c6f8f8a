package interop;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Messages and queues that live for a while. */
final class Expiry {
    private static final int MESSAGE_TTL_MS = 1000;
    private static final int EXPIRES_MS = 300;

    private Expiry() {}

    static void queueTtl() throws Exception {
        try (Connection connection = Broker.connect()) {
            try (Channel channel = connection.createChannel()) {
                String queue = Broker.unique();
                channel.queueDeclare(queue, false, true, false, Map.of("x-message-ttl", MESSAGE_TTL_MS));
                for (int i = 0; i < 3; i++) {
                    channel.basicPublish("", queue, null, Checks.octets("short-lived"));
                }
                Checks.eventually(() -> Checks.ready(channel, queue) == 3, "the messages are there");
                Checks.eventually(() -> Checks.ready(channel, queue) == 0, "the messages have expired");
            }
            unusedQueueIsGone(connection);
        }
    }

    /** To ask for the queue is to use it: whoever looks must not look more often than it would expire. */
    private static void unusedQueueIsGone(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = Broker.unique();
        channel.queueDeclare(queue, true, false, false, Map.of("x-expires", EXPIRES_MS));
        Checks.equal(0, Checks.ready(channel, queue), "messages in the new queue");
        try {
            Checks.eventually(() -> {
                TimeUnit.MILLISECONDS.sleep(2 * EXPIRES_MS);
                Checks.ready(channel, queue);
                return false;
            }, "the queue has expired");
        } catch (IOException error) {
            Checks.closedChannel((ShutdownSignalException) error.getCause(), AMQP.NOT_FOUND,
                    "NOT_FOUND - no queue '" + queue + "' in vhost '/'");
        }
    }

    static void messageTtl() throws Exception {
        try (Connection connection = Broker.connect(); Channel channel = connection.createChannel()) {
            String queue = channel.queueDeclare().getQueue();
            publish(channel, queue, "1000");
            publish(channel, queue, "60000");
            Checks.eventually(() -> Checks.ready(channel, queue) == 2, "both messages are there");
            Checks.eventually(() -> Checks.ready(channel, queue) == 1, "the first message has expired");
            GetResponse second = Checks.get(channel, queue);
            Checks.equal("lives for 60000", Checks.text(second.getBody()), "the message that is left");
            Checks.equal("60000", second.getProps().getExpiration(), "its expiration");

            publish(channel, queue, "0");
            Checks.equal(null, channel.basicGet(queue, true), "a message that expires at once");
        }
    }

    private static void publish(Channel channel, String queue, String expiration) throws IOException {
        AMQP.BasicProperties properties = new AMQP.BasicProperties.Builder().expiration(expiration).build();
        channel.basicPublish("", queue, properties, Checks.octets("lives for " + expiration));
    }
}
