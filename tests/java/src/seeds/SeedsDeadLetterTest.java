package seeds;

import com.google.gson.Gson;
import com.lixiang.rabbitmq.entity.SMS;
import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.BuiltinExchangeType;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.LongString;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/**
 * The order system's queue with a dead-letter exchange: every message that dies arrives there, and its x-death is read
 * through the Java client's own types.
 */
public final class SeedsDeadLetterTest {
    private static final String QUEUE = "seeds.sms.dlx";
    private static final String EXCHANGE = "seeds.sms.dead";
    private static final String DEAD = "seeds.sms.dead.letters";
    private static final String KEY = "unsent";
    private static final int TTL_MS = 2_000;
    private static final int ORDERS = 100;
    private static final int SHORT_TTL_MS = 500;
    private static final long LATE_MAX_MS = 30_000;

    private final Checks checks;
    private final Channel channel;
    private final boolean rabbitMQ;

    private SeedsDeadLetterTest(Checks checks, Connection connection) throws Exception {
        this.checks = checks;
        channel = connection.createChannel();
        rabbitMQ = Checks.isRabbitMQ(connection);
    }

    public static void main(String[] args) {
        Checks.main(SeedsDeadLetterTest::run);
    }

    private static void run(Checks checks, Connection connection) throws Exception {
        SeedsDeadLetterTest test = new SeedsDeadLetterTest(checks, connection);
        test.deleteAll();
        test.declareDeadLetters();
        test.declareQueue(true);
        test.ordersExpire();
        test.expirationBehindALongerTtl();
        test.channel.queueDelete(QUEUE);
        test.declareQueue(false);
        test.rejected();
        test.diedTwice();
        test.tooLong();
        test.deleteAll();
    }

    private void deleteAll() throws Exception {
        channel.queueDelete(QUEUE);
        channel.queueDelete(DEAD);
        channel.exchangeDelete(EXCHANGE);
    }

    private void declareDeadLetters() throws Exception {
        channel.exchangeDeclare(EXCHANGE, BuiltinExchangeType.DIRECT, true);
        channel.queueDeclare(DEAD, true, false, false, null);
        channel.queueBind(DEAD, EXCHANGE, KEY);
    }

    /** A TTL only for the messages that shall expire: the others must not, however busy the machine is. */
    private void declareQueue(boolean expiring) throws Exception {
        Map<String, Object> arguments = new HashMap<>();
        if (expiring) {
            arguments.put("x-message-ttl", TTL_MS);
        }
        arguments.put("x-max-length", ORDERS);
        arguments.put("x-dead-letter-exchange", EXCHANGE);
        arguments.put("x-dead-letter-routing-key", KEY);
        channel.queueDeclare(QUEUE, true, false, false, arguments);
    }

    private void publish(String expiration, byte[] body) throws Exception {
        AMQP.BasicProperties properties = expiration == null ? null
            : new AMQP.BasicProperties.Builder().expiration(expiration).build();
        channel.basicPublish("", QUEUE, properties, body);
    }

    /** All orders expire at the queue's TTL, half of them although they asked for a longer life. */
    private void ordersExpire() throws Exception {
        long before = System.currentTimeMillis();
        for (int i = 100; i < 100 + ORDERS; i++) {
            SMS sms = new SMS("乘客" + i, "13900000" + i, "您的车票已预订成功");
            publish(i % 2 == 0 ? "60000" : null, new Gson().toJson(sms).getBytes(StandardCharsets.UTF_8));
        }
        for (int i = 100; i < 100 + ORDERS; i++) {
            GetResponse dead = Checks.get(channel, DEAD, TTL_MS + LATE_MAX_MS);
            if (dead == null) {
                checks.that(false, "dead letter of order " + i + " did not arrive");
                return;
            }
            long now = System.currentTimeMillis();
            if (i == 100) {
                checks.between(now - before, TTL_MS, TTL_MS + LATE_MAX_MS, "first order dead after (ms)");
            }
            SMS sms = new Gson().fromJson(new String(dead.getBody(), StandardCharsets.UTF_8), SMS.class);
            // Every message is checked; a line is printed for the first of each kind and for what is wrong.
            Checks quiet = i < 102 ? checks : new Silence(checks);
            String what = "order " + i + ": ";
            quiet.equal(sms.getMobile(), "13900000" + i, what + "is the next in order");
            quiet.equal(dead.getEnvelope().getExchange(), EXCHANGE, what + "exchange");
            quiet.equal(dead.getEnvelope().getRoutingKey(), KEY, what + "routing key");
            quiet.equal(dead.getEnvelope().isRedeliver(), false, what + "redelivered");
            quiet.equal(dead.getProps().getExpiration(), null, what + "expiration property is gone");
            Map<String, Object> headers = dead.getProps().getHeaders();
            List<Map<String, Object>> deaths = deaths(quiet, headers, what);
            quiet.equal(deaths.size(), 1, what + "deaths");
            Map<String, Object> death = deaths.get(0);
            String keys = i % 2 == 0
                ? "[count, exchange, original-expiration, queue, reason, routing-keys, time]"
                : "[count, exchange, queue, reason, routing-keys, time]";
            quiet.equal(new TreeSet<>(death.keySet()).toString(), keys, what + "fields of x-death");
            field(quiet, death, "reason", "expired", what);
            field(quiet, death, "queue", QUEUE, what);
            field(quiet, death, "exchange", "", what);
            count(quiet, death, 1, what);
            time(quiet, death, before, now, what);
            routingKeys(quiet, death, QUEUE, what);
            if (i % 2 == 0) {
                field(quiet, death, "original-expiration", "60000", what);
            }
            for (String which : new String[] {"first", "last"}) {
                field(quiet, headers, "x-" + which + "-death-reason", "expired", what);
                field(quiet, headers, "x-" + which + "-death-queue", QUEUE, what);
                field(quiet, headers, "x-" + which + "-death-exchange", "", what);
            }
        }
        checks.equal(Checks.passive(channel, DEAD).getMessageCount(), 0, "dead letters left over");
        checks.equal(Checks.passive(channel, QUEUE).getMessageCount(), 0, "orders left over");
    }

    /** A short-lived message behind a longer-lived one: RabbitMQ looks at the head only, Leveret at each deadline. */
    private void expirationBehindALongerTtl() throws Exception {
        long before = System.currentTimeMillis();
        publish(null, "long".getBytes());
        publish(String.valueOf(SHORT_TTL_MS), "short".getBytes());
        List<String> order = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            GetResponse dead = Checks.get(channel, DEAD, TTL_MS + LATE_MAX_MS);
            String body = dead == null ? "nothing" : new String(dead.getBody());
            long age = System.currentTimeMillis() - before;
            order.add(body);
            long due = body.equals("long") || rabbitMQ ? TTL_MS : SHORT_TTL_MS;
            checks.between(age, due, due + LATE_MAX_MS, body + " dead after (ms)");
            if (body.equals("short")) {
                Map<String, Object> death = deaths(checks, dead.getProps().getHeaders(), "short: ").get(0);
                field(checks, death, "original-expiration", String.valueOf(SHORT_TTL_MS), "short: ");
            }
        }
        checks.equal(order.toString(), rabbitMQ ? "[long, short]" : "[short, long]", "order of the two deaths");
    }

    private void rejected() throws Exception {
        long before = System.currentTimeMillis();
        publish("60000", "no".getBytes());
        GetResponse got = channel.basicGet(QUEUE, false);
        checks.equal(got.getProps().getExpiration(), "60000", "rejected: expiration before the death");
        channel.basicNack(got.getEnvelope().getDeliveryTag(), false, false);
        GetResponse dead = Checks.get(channel, DEAD, LATE_MAX_MS);
        Map<String, Object> death = deaths(checks, dead.getProps().getHeaders(), "rejected: ").get(0);
        field(checks, death, "reason", "rejected", "rejected: ");
        field(checks, death, "original-expiration", "60000", "rejected: ");
        count(checks, death, 1, "rejected: ");
        time(checks, death, before, System.currentTimeMillis(), "rejected: ");
    }

    /** Dead, published by hand with its headers, dead again: the client's x-death counts for nothing. */
    private void diedTwice() throws Exception {
        publish(null, "twice".getBytes());
        channel.basicNack(channel.basicGet(QUEUE, false).getEnvelope().getDeliveryTag(), false, false);
        GetResponse first = Checks.get(channel, DEAD, LATE_MAX_MS);
        channel.basicPublish("", QUEUE, first.getProps(), first.getBody());
        GetResponse again = channel.basicGet(QUEUE, false);
        checks.equal(again.getProps().getHeaders().keySet(), first.getProps().getHeaders().keySet(),
            "republished: headers are passed on");
        channel.basicNack(again.getEnvelope().getDeliveryTag(), false, false);
        GetResponse second = Checks.get(channel, DEAD, LATE_MAX_MS);
        List<Map<String, Object>> deaths = deaths(checks, second.getProps().getHeaders(), "republished: ");
        checks.equal(deaths.size(), 1, "republished: deaths");
        count(checks, deaths.get(0), 1, "republished: ");
    }

    /** The 101st message drives out the oldest. */
    private void tooLong() throws Exception {
        for (int i = 0; i <= ORDERS; i++) {
            publish(null, String.valueOf(i).getBytes());
        }
        GetResponse dead = Checks.get(channel, DEAD, LATE_MAX_MS);
        checks.equal(new String(dead.getBody()), "0", "too long: the oldest");
        Map<String, Object> death = deaths(checks, dead.getProps().getHeaders(), "too long: ").get(0);
        field(checks, death, "reason", "maxlen", "too long: ");
        channel.queuePurge(QUEUE);
        checks.equal(Checks.get(channel, DEAD, 200), null, "too long: nothing else died, and purging is no death");
    }

    @SuppressWarnings("unchecked")
    private static List<Map<String, Object>> deaths(Checks checks, Map<String, Object> headers, String what) {
        Object deaths = headers.get("x-death");
        checks.that(deaths instanceof List, what + "x-death is a List");
        checks.that(((List<?>) deaths).get(0) instanceof Map, what + "x-death holds Maps");
        return (List<Map<String, Object>>) deaths;
    }

    private static void field(Checks checks, Map<String, Object> table, String key, String expected, String what) {
        Object value = table.get(key);
        checks.that(value instanceof LongString, what + key + " is a LongString");
        checks.equal(String.valueOf(value), expected, what + key);
    }

    private static void count(Checks checks, Map<String, Object> death, long expected, String what) {
        checks.that(death.get("count") instanceof Long, what + "count is a Long");
        checks.equal(death.get("count"), expected, what + "count");
    }

    /** Whole seconds, in UTC, between the publish and now. */
    private static void time(Checks checks, Map<String, Object> death, long before, long after, String what) {
        checks.that(death.get("time") instanceof Date, what + "time is a Date");
        long time = ((Date) death.get("time")).getTime();
        checks.that(before - 1_000 <= time && time <= after, what + "time is the time of death");
    }

    private static void routingKeys(Checks checks, Map<String, Object> death, String expected, String what) {
        Object keys = death.get("routing-keys");
        checks.that(keys instanceof List, what + "routing-keys is a List");
        checks.that(((List<?>) keys).get(0) instanceof LongString, what + "routing-keys holds LongStrings");
        checks.equal(keys.toString(), "[" + expected + "]", what + "routing-keys");
    }
}
