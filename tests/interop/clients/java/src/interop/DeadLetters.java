package interop;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.BuiltinExchangeType;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.LongString;
import java.io.IOException;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Dead letters, and what their headers tell of their deaths. */
final class DeadLetters {
    private static final String PUBLISHED_TO = "amq.direct";
    private static final String DEAD_LETTERS = "dead letters";
    private static final long CLOCKS_DIFFER_MS = 60_000;

    private DeadLetters() {}

    static void deadLetter() throws Exception {
        try (Connection connection = Broker.connect(); Channel channel = connection.createChannel()) {
            String exchange = Broker.unique();
            channel.exchangeDeclare(exchange, BuiltinExchangeType.DIRECT);
            try {
                everyReason(channel, exchange);
            } finally {
                channel.exchangeDelete(exchange);
            }
            retry(channel);
        }
    }

    private static void everyReason(Channel channel, String exchange) throws Exception {
        String dead = channel.queueDeclare().getQueue();
        channel.queueBind(dead, exchange, DEAD_LETTERS);
        Map<String, Object> arguments =
                Map.of("x-dead-letter-exchange", exchange, "x-dead-letter-routing-key", DEAD_LETTERS);
        String queue = declare(channel, arguments);
        String shortQueue = declare(channel, and(arguments, "x-max-length", 1));

        AMQP.BasicProperties shortLived = new AMQP.BasicProperties.Builder().expiration("100").build();
        channel.basicPublish(PUBLISHED_TO, queue, shortLived, Checks.octets("to expire"));
        GetResponse expired = await(channel, dead);
        checkDeath(expired, "to expire", "expired", queue);
        Checks.equal("100", deaths(expired).get(0).get("original-expiration").toString(), "original-expiration");
        Checks.equal(null, expired.getProps().getExpiration(), "expiration of a dead letter");

        channel.basicPublish(PUBLISHED_TO, queue, null, Checks.octets("to be rejected"));
        channel.basicReject(channel.basicGet(queue, false).getEnvelope().getDeliveryTag(), false);
        checkDeath(await(channel, dead), "to be rejected", "rejected", queue);

        channel.basicPublish(PUBLISHED_TO, shortQueue, null, Checks.octets("to be pushed out"));
        channel.basicPublish(PUBLISHED_TO, shortQueue, null, Checks.octets("to push"));
        checkDeath(await(channel, dead), "to be pushed out", "maxlen", shortQueue);
    }

    /** A queue that is bound with its own name. */
    private static String declare(Channel channel, Map<String, Object> arguments) throws IOException {
        String queue = channel.queueDeclare(Broker.unique(), false, true, false, arguments).getQueue();
        channel.queueBind(queue, PUBLISHED_TO, queue);
        return queue;
    }

    private static Map<String, Object> and(Map<String, Object> arguments, String name, Object value) {
        Map<String, Object> more = new HashMap<>(arguments);
        more.put(name, value);
        return more;
    }

    private static GetResponse await(Channel channel, String queue) throws Exception {
        Checks.eventually(() -> Checks.ready(channel, queue) == 1, "the dead letter has arrived");
        return Checks.get(channel, queue);
    }

    @SuppressWarnings("unchecked")
    private static List<Map<String, Object>> deaths(Map<String, Object> headers) {
        return (List<Map<String, Object>>) headers.get("x-death");
    }

    private static List<Map<String, Object>> deaths(GetResponse message) {
        return deaths(message.getProps().getHeaders());
    }

    private static void checkDeath(GetResponse message, String body, String reason, String queue) {
        Checks.equal(body, Checks.text(message.getBody()), "the body");
        Checks.equal(DEAD_LETTERS, message.getEnvelope().getRoutingKey(), "the dead letter's routing key");
        Checks.equal(1, deaths(message).size(), "deaths");
        Map<String, Object> death = deaths(message).get(0);
        Checks.equal(1L, death.get("count"), "count");
        Checks.equal(reason, ((LongString) death.get("reason")).toString(), "reason");
        Checks.equal(queue, ((LongString) death.get("queue")).toString(), "queue");
        Checks.equal(PUBLISHED_TO, ((LongString) death.get("exchange")).toString(), "exchange");
        List<?> keys = (List<?>) death.get("routing-keys");
        Checks.equal(1, keys.size(), "routing keys");
        Checks.equal(queue, ((LongString) keys.get(0)).toString(), "the routing key");
        long age = System.currentTimeMillis() - ((Date) death.get("time")).getTime();
        Checks.that(Math.abs(age) <= CLOCKS_DIFFER_MS, "it died " + age + " ms ago");

        Map<String, Object> headers = message.getProps().getHeaders();
        Checks.equal(reason, headers.get("x-first-death-reason").toString(), "x-first-death-reason");
        Checks.equal(queue, headers.get("x-first-death-queue").toString(), "x-first-death-queue");
        Checks.equal(PUBLISHED_TO, headers.get("x-first-death-exchange").toString(), "x-first-death-exchange");
    }

    /** What is rejected from the work queue comes back by the wait queue. */
    private static void retry(Channel channel) throws Exception {
        String work = Broker.unique();
        String wait = Broker.unique();
        channel.queueDeclare(work, false, true, false,
                Map.of("x-dead-letter-exchange", "", "x-dead-letter-routing-key", wait));
        channel.queueDeclare(wait, false, true, false,
                Map.of("x-dead-letter-exchange", "", "x-dead-letter-routing-key", work, "x-message-ttl", 100));
        Inbox inbox = new Inbox(channel);
        channel.basicConsume(work, false, inbox);
        channel.basicPublish("", work, null, Checks.octets("difficult"));
        for (int i = 0; i < 2; i++) {
            channel.basicReject(inbox.take("difficult").getEnvelope().getDeliveryTag(), false);
        }
        Delivery third = inbox.take("difficult");
        channel.basicAck(third.getEnvelope().getDeliveryTag(), false);

        Map<String, Object> counts = new HashMap<>();
        for (Map<String, Object> death : deaths(third.getProperties().getHeaders())) {
            counts.put(death.get("reason") + " from " + death.get("queue"), death.get("count"));
        }
        Checks.equal(Map.of("rejected from " + work, 2L, "expired from " + wait, 2L), counts, "deaths");
    }
}
