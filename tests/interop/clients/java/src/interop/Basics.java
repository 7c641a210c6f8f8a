package interop;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.LongString;
import com.rabbitmq.client.MessageProperties;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.Map;

/** A message goes to the broker and comes back. */
final class Basics {
    private static final int LARGE_OCTETS = 20_000_000;
    private static final long LARGE_CONFIRMED_WITHIN_MS = 120_000;

    private Basics() {}

    static void connect() throws Exception {
        thereAndBack(Broker.connect());
    }

    static void tls() throws Exception {
        thereAndBack(Broker.connectOverTls());
    }

    /** Newer versions and their tests go by the product and its version. */
    static void identity() throws Exception {
        try (Connection connection = Broker.connect()) {
            Map<String, Object> properties = connection.getServerProperties();
            Checks.equal("RabbitMQ", String.valueOf(properties.get("product")), "the product");
            String version = String.valueOf(properties.get("version"));
            Checks.that(version.startsWith("4.3."), "the version is " + version);
            Checks.that(properties.containsKey("leveret_version"), "no leveret_version");
        }
    }

    private static void thereAndBack(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = channel.queueDeclare().getQueue();
        Date now = new Date(System.currentTimeMillis() / 1000 * 1000); // AMQP's timestamps are whole seconds
        AMQP.BasicProperties sent = new AMQP.BasicProperties.Builder()
                .contentType("text/plain")
                .headers(Map.of("text", "d\u00e9j\u00e0 vu", "integer", 42, "long", 1L << 40, "boolean", true,
                        "time", now, "table", Map.of("inner", 7), "list", List.of("a", 2, false)))
                .correlationId("correlation-1")
                .messageId("message-1")
                .type("greeting")
                .timestamp(now)
                .deliveryMode(2)
                .build();
        channel.basicPublish("", queue, sent, Checks.octets("hello"));

        GetResponse message = Checks.get(channel, queue);
        Checks.equal("hello", Checks.text(message.getBody()), "the body");
        Checks.equal("", message.getEnvelope().getExchange(), "the exchange");
        Checks.equal(queue, message.getEnvelope().getRoutingKey(), "the routing key");
        AMQP.BasicProperties got = message.getProps();
        Checks.equal(sent.getContentType(), got.getContentType(), "content type");
        Checks.equal(sent.getCorrelationId(), got.getCorrelationId(), "correlation id");
        Checks.equal(sent.getMessageId(), got.getMessageId(), "message id");
        Checks.equal(sent.getType(), got.getType(), "type");
        Checks.equal(sent.getTimestamp(), got.getTimestamp(), "timestamp");
        Checks.equal(sent.getDeliveryMode(), got.getDeliveryMode(), "delivery mode");
        checkHeaders(sent.getHeaders(), got.getHeaders());

        Checks.equal(null, channel.basicGet(queue, true), "a second message");
        channel.close();
        connection.close();
    }

    /** All is equal but strings, which the client gives as LongString. */
    private static void checkHeaders(Map<String, Object> sent, Map<String, Object> got) {
        Checks.equal(sent.keySet(), got.keySet(), "names of headers");
        for (String name : List.of("integer", "long", "boolean", "time", "table")) {
            Checks.equal(sent.get(name), got.get(name), name);
        }
        Checks.equal(sent.get("text"), ((LongString) got.get("text")).toString(), "text");
        List<?> list = (List<?>) got.get("list");
        Checks.equal("a", ((LongString) list.get(0)).toString(), "the string in the list");
        Checks.equal(List.of(2, false), list.subList(1, list.size()), "the rest of the list");
    }

    static void large() throws Exception {
        byte[] body = new byte[LARGE_OCTETS];
        for (int i = 0; i < body.length; i++) {
            body[i] = (byte) (i % 251);
        }
        try (Connection connection = Broker.connect(); Channel channel = connection.createChannel()) {
            String queue = channel.queueDeclare().getQueue();
            channel.confirmSelect();
            channel.basicPublish("", queue, MessageProperties.PERSISTENT_BASIC, body);
            channel.waitForConfirmsOrDie(LARGE_CONFIRMED_WITHIN_MS);
            Checks.that(Arrays.equals(body, Checks.get(channel, queue).getBody()), "another body came back");
        }
    }
}
