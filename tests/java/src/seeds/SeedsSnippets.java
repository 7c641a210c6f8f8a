package seeds;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Every other Java snippet of the documents, as it stands there, and what must be true after it. */
public final class SeedsSnippets {
    private static final int DEMO_TTL_MS = 10_000;
    /** Two seconds longer than the pauses between the uses of the queue: a busy machine makes them longer. */
    private static final int X_EXPIRES_MS = 5_000;
    private static final long LATE_MAX_MS = 30_000;

    private final Checks checks;
    private final Connection connection;
    private Channel channel;

    private SeedsSnippets(Checks checks, Connection connection) throws IOException {
        this.checks = checks;
        this.connection = connection;
        channel = connection.createChannel();
    }

    public static void main(String[] args) {
        Checks.main(SeedsSnippets::run);
    }

    private static void run(Checks checks, Connection connection) throws Exception {
        SeedsSnippets snippets = new SeedsSnippets(checks, connection);
        snippets.deleteAll();
        long demoPublishedAt = snippets.demo();
        snippets.messageTtl();
        snippets.perMessageTtl();
        snippets.queueTtl();
        snippets.deadLetterExchange();
        snippets.demoExpired(demoPublishedAt);
        snippets.deleteAll();
    }

    private void deleteAll() throws IOException {
        for (String queue : new String[] {"myqueue", "seeds.bound", "demo.queue", "demo.dead.letter.queue"}) {
            channel.queueDelete(queue);
        }
        for (String exchange : new String[] {"my-exchange", "some.exchange.name", "demo.exchange"}) {
            channel.exchangeDelete(exchange);
        }
    }

    /** The reply text with which declaring "myqueue" so is refused; null when it is not. */
    private String refusal(Map<String, Object> args) throws IOException {
        try {
            channel.queueDeclare("myqueue", false, false, false, args);
            return null;
        } catch (IOException refused) {
            channel = connection.createChannel();
            AMQP.Channel.Close close =
                (AMQP.Channel.Close) ((ShutdownSignalException) refused.getCause()).getReason();
            return close.getReplyCode() + " " + close.getReplyText();
        }
    }

    private static Map<String, Object> with(String key, Object value) {
        Map<String, Object> args = new HashMap<>();
        args.put(key, value);
        return args;
    }

    private void messageTtl() throws IOException {
        Map<String, Object> args = new HashMap<>();
        args.put("x-message-ttl", 60000);
        channel.queueDeclare("myqueue", false, false, false, args);

        checks.equal(Checks.passive(channel, "myqueue").getMessageCount(), 0, "x-message-ttl 60000: messages");
        checks.equal(refusal(args), null, "x-message-ttl 60000: declared again");
        checks.equal(refusal(with("x-message-ttl", 60000L)), null, "x-message-ttl 60000 as a Long: the same");
        checks.equal(refusal(with("x-message-ttl", 60001)),
            "406 PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'myqueue' in vhost '/': "
                + "received '60001' but current is '60000'", "x-message-ttl 60001");
        checks.equal(refusal(null),
            "406 PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'myqueue' in vhost '/': "
                + "received none but current is the value '60000' of type 'signedint'", "without x-message-ttl");
        channel.queueDelete("myqueue");
        checks.equal(refusal(with("x-message-ttl", -1)),
            "406 PRECONDITION_FAILED - invalid arg 'x-message-ttl' for queue 'myqueue' in vhost '/': "
                + "{value_negative,-1}", "x-message-ttl -1");
        checks.equal(refusal(with("x-message-ttl", "60000")),
            "406 PRECONDITION_FAILED - invalid arg 'x-message-ttl' for queue 'myqueue' in vhost '/': "
                + "\"expected integer, got longstr\"", "x-message-ttl \"60000\"");
        for (Object integer : new Object[] {(byte) 100, (short) 60000, 60000, 60000L, 0}) {
            String type = integer.getClass().getSimpleName();
            boolean negative = ((Number) integer).longValue() < 0;
            String refused = refusal(with("x-message-ttl", integer));
            checks.that(negative == (refused != null), "x-message-ttl " + integer + " as " + type);
            channel.queueDelete("myqueue");
        }
    }

    private void perMessageTtl() throws Exception {
        channel.exchangeDeclare("my-exchange", "direct");
        channel.queueDeclare("seeds.bound", false, false, false, null);
        channel.queueBind("seeds.bound", "my-exchange", "routing-key");

        byte[] messageBodyBytes = "Hello, world!".getBytes();
        AMQP.BasicProperties properties = new AMQP.BasicProperties.Builder()
                                           .expiration("60000")
                                           .build();
        channel.basicPublish("my-exchange", "routing-key", properties, messageBodyBytes);

        GetResponse message = Checks.get(channel, "seeds.bound", LATE_MAX_MS);
        checks.equal(new String(message.getBody()), "Hello, world!", "expiration 60000: body");
        checks.equal(message.getProps().getExpiration(), "60000", "expiration 60000: property");

        // The lower of the two counts.
        channel.queueDelete("seeds.bound");
        channel.queueDeclare("seeds.bound", false, false, false, with("x-message-ttl", 300));
        channel.queueBind("seeds.bound", "my-exchange", "routing-key");
        long began = System.currentTimeMillis();
        channel.confirmSelect();
        channel.basicPublish("my-exchange", "routing-key", properties, messageBodyBytes);
        channel.waitForConfirmsOrDie(LATE_MAX_MS);
        checks.soon(() -> Checks.passive(channel, "seeds.bound").getMessageCount() == 0, LATE_MAX_MS,
            "both TTLs: expires");
        checks.between(System.currentTimeMillis() - began, 300, 300 + LATE_MAX_MS, "both TTLs: after (ms)");
    }

    private void queueTtl() throws Exception {
        Map<String, Object> args = new HashMap<>();
        args.put("x-expires", 1800000);
        channel.queueDeclare("myqueue", false, false, false, args);

        checks.equal(Checks.passive(channel, "myqueue").getConsumerCount(), 0, "x-expires 1800000: consumers");
        checks.equal(refusal(args), null, "x-expires 1800000: declared again");
        channel.queueDelete("myqueue");
        checks.equal(refusal(with("x-expires", 0)),
            "406 PRECONDITION_FAILED - invalid arg 'x-expires' for queue 'myqueue' in vhost '/': {value_zero,0}",
            "x-expires 0");
        channel.queueDeclare("myqueue", false, false, false, with("x-expires", X_EXPIRES_MS));
        // A publish is no use of a queue: it goes away with its message. Deleting tells, declaring would prolong it.
        channel.basicPublish("", "myqueue", null, "unused".getBytes());
        Thread.sleep(3000);
        checks.equal(channel.basicGet("myqueue", true) != null, true, "x-expires 5000: still there after 3 s");
        Thread.sleep(3000);
        checks.equal(channel.basicGet("myqueue", true), null, "x-expires 5000: basic.get had prolonged it");
        Thread.sleep(X_EXPIRES_MS + 1000);
        checks.that(refusal(with("x-message-ttl", 60000)) == null, "x-expires 5000: gone, the name is free");
        channel.queueDelete("myqueue");
    }

    private void deadLetterExchange() throws Exception {
        channel.exchangeDeclare("some.exchange.name", "direct");

        Map<String, Object> args = new HashMap<String, Object>();
        args.put("x-dead-letter-exchange", "some.exchange.name");
        channel.queueDeclare("myqueue", false, false, false, args);

        channel.queueDelete("seeds.bound");
        channel.queueDeclare("seeds.bound", false, false, false, null);
        channel.queueBind("seeds.bound", "some.exchange.name", "myqueue");
        channel.queueBind("seeds.bound", "some.exchange.name", "some-routing-key");
        checks.equal(deadRoutingKey(), "myqueue", "x-dead-letter-exchange: the message's own key");

        channel.queueDelete("myqueue");
        args.put("x-dead-letter-routing-key", "some-routing-key");
        channel.queueDeclare("myqueue", false, false, false, args);
        checks.equal(deadRoutingKey(), "some-routing-key", "x-dead-letter-routing-key");

        // "It need not be declared when the queue is, but should exist when messages die": they are dropped in silence.
        channel.exchangeDelete("some.exchange.name");
        channel.basicPublish("", "myqueue", null, "lost".getBytes());
        GetResponse message = channel.basicGet("myqueue", false);
        channel.basicReject(message.getEnvelope().getDeliveryTag(), false);
        checks.equal(Checks.passive(channel, "myqueue").getMessageCount(), 0, "missing dead-letter exchange: dropped");
    }

    private String deadRoutingKey() throws Exception {
        channel.basicPublish("", "myqueue", null, "dead".getBytes());
        GetResponse message = channel.basicGet("myqueue", false);
        channel.basicReject(message.getEnvelope().getDeliveryTag(), false);
        GetResponse dead = Checks.get(channel, "seeds.bound", LATE_MAX_MS);
        return dead == null ? null : dead.getEnvelope().getRoutingKey();
    }

    /**
     * The demo of the second document. It never says what deadLetterRoutingKey is and binds nothing to it; here it is
     * the name its queue suggests. Only the host and port are ours, which is why the factory has two more lines.
     */
    private long demo() throws Exception {
        String deadLetterRoutingKey = "demo.dead.letter.queue";

        // 创建连接工厂对象
        ConnectionFactory factory = new ConnectionFactory();
        factory.setHost("localhost");
        factory.setUsername("guest");
        factory.setPassword("guest");
        factory.setHost(System.getProperty("rabbitmq.host"));
        factory.setPort(Integer.getInteger("rabbitmq.port"));
        // 创建连接对象
        Connection connection = factory.newConnection();
        // 创建信道对象
        Channel channel = connection.createChannel();
        // 定义交换机名称和类型
        String exchangeName = "demo.exchange";
        String exchangeType = "direct";
        // 定义正常队列名称、死信队列名称和 routing key
        String queueName = "demo.queue";
        String deadLetterQueueName = "demo.dead.letter.queue";
        String routingKey = "demo.routing.key";
        // 定义正常队列属性
        Map<String, Object> queueArgs = new HashMap<>();
        queueArgs.put("x-message-ttl", 10000);
        queueArgs.put("x-dead-letter-exchange", exchangeName);
        queueArgs.put("x-dead-letter-routing-key", deadLetterRoutingKey);
        // 声明交换机
        channel.exchangeDeclare(exchangeName, exchangeType, true, false, null);
        // 声明正常队列
        channel.queueDeclare(queueName, true, false, false, queueArgs);
        // 声明死信队列
        channel.queueDeclare(deadLetterQueueName, true, false, false, null);
        // 绑定正常队列和 routing key 到交换机
        channel.queueBind(queueName, exchangeName, routingKey);
        // 发送消息到正常队列
        long publishedAt = System.currentTimeMillis();
        channel.basicPublish(exchangeName, routingKey, null, "Hello World!".getBytes());
        // 关闭连接
        channel.close();
        connection.close();

        checks.soon(() -> Checks.passive(this.channel, queueName).getMessageCount() == 1, LATE_MAX_MS,
            "demo: message waits");
        // The document leaves the queue unbound; bound before the message dies, its dead letter arrives.
        this.channel.queueBind(deadLetterQueueName, exchangeName, deadLetterRoutingKey);
        return publishedAt;
    }

    private void demoExpired(long publishedAt) throws Exception {
        GetResponse dead = Checks.get(channel, "demo.dead.letter.queue", DEMO_TTL_MS + LATE_MAX_MS);
        checks.that(dead != null, "demo: dead letter arrives");
        checks.equal(new String(dead.getBody()), "Hello World!", "demo: body");
        Map<?, ?> death = (Map<?, ?>) ((List<?>) dead.getProps().getHeaders().get("x-death")).get(0);
        // x-death has whole seconds, and "published" is the time before the publish.
        long diedAt = ((Date) death.get("time")).getTime();
        checks.between(diedAt - publishedAt, DEMO_TTL_MS - 1000, DEMO_TTL_MS + LATE_MAX_MS, "demo: dead after (ms)");
        checks.equal(death.get("queue").toString(), "demo.queue", "demo: x-death queue");
        checks.equal(death.get("reason").toString(), "expired", "demo: x-death reason");
        checks.equal(death.get("exchange").toString(), "demo.exchange", "demo: x-death exchange");
        checks.equal(death.get("routing-keys").toString(), "[demo.routing.key]", "demo: x-death routing-keys");
        checks.equal(Checks.passive(channel, "demo.queue").getMessageCount(), 0, "demo: queue empty");

        // As the document has it, without the binding: a dead letter that nothing takes is lost without a sound.
        channel.confirmSelect();
        channel.queueUnbind("demo.dead.letter.queue", "demo.exchange", "demo.dead.letter.queue");
        channel.basicPublish("demo.exchange", "demo.routing.key",
            new AMQP.BasicProperties.Builder().expiration("100").build(), "Hello World!".getBytes());
        channel.waitForConfirmsOrDie(LATE_MAX_MS);
        checks.soon(() -> Checks.passive(channel, "demo.queue").getMessageCount() == 0, LATE_MAX_MS,
            "demo unbound: expires");
        checks.equal(Checks.passive(channel, "demo.dead.letter.queue").getMessageCount(), 0, "demo unbound: is lost");
    }
}
