package interop;

import com.rabbitmq.client.BuiltinExchangeType;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.MessageProperties;
import java.util.concurrent.TimeUnit;

/** The broker is killed, and the client recovers connection, channel, queues, bindings and consumers by itself. */
final class Restart {
    private static final long RECOVERY_INTERVAL_MS = 100;

    private Restart() {}

    static void restart() throws Exception {
        ConnectionFactory factory = Broker.factory();
        factory.setNetworkRecoveryInterval(RECOVERY_INTERVAL_MS);
        String exchange = Broker.unique();
        String queue = Broker.unique();
        try (Connection connection = factory.newConnection(); Channel channel = connection.createChannel()) {
            channel.exchangeDeclare(exchange, BuiltinExchangeType.FANOUT, true);
            channel.queueDeclare(queue, true, false, false, null);
            channel.queueBind(queue, exchange, "");
            channel.confirmSelect();
            publish(channel, exchange, "before anybody consumes");

            channel.basicQos(1);
            Inbox inbox = new Inbox(channel);
            channel.basicConsume(queue, false, inbox);
            inbox.take("before anybody consumes"); // and it is not acknowledged before the broker dies
            publish(channel, exchange, "while the consumer is busy");
            Inbox temporary = new Inbox(channel); // of a queue that does not outlive the broker
            String lost = channel.queueDeclare().getQueue();
            channel.queueBind(lost, exchange, "");
            channel.basicConsume(lost, true, temporary);

            Broker.restart();

            Delivery first = inbox.take("before anybody consumes");
            Checks.that(first.getEnvelope().isRedeliver(), "what was delivered before is not marked as redelivered");
            channel.basicAck(first.getEnvelope().getDeliveryTag(), false);
            channel.basicAck(inbox.take("while the consumer is busy").getEnvelope().getDeliveryTag(), false);
            publish(channel, exchange, "after the restart");
            channel.basicAck(inbox.take("after the restart").getEnvelope().getDeliveryTag(), false);
            temporary.take("after the restart");
            channel.queueDelete(queue);
            channel.exchangeDelete(exchange);
        }
    }

    private static void publish(Channel channel, String exchange, String message) throws Exception {
        channel.basicPublish(exchange, "", MessageProperties.PERSISTENT_BASIC, Checks.octets(message));
        channel.waitForConfirmsOrDie(TimeUnit.SECONDS.toMillis(Checks.DEADLINE_S));
    }
}
