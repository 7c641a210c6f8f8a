package interop;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.Delivery;
import java.io.IOException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Messages that come later, and come again: delays, schedules with names, and retries. */
final class Delays {
    private static final long HOUR_MS = 3_600_000;

    private Delays() {}

    /** An exchange of the delayed-message plugin's type, with every integer that Java has for the delay. */
    static void delayedExchange() throws Exception {
        try (Connection connection = Broker.connect(); Channel channel = connection.createChannel()) {
            String exchange = Broker.unique();
            Map<String, Object> arguments = Map.of("x-delayed-type", "topic");
            channel.exchangeDeclare(exchange, "x-delayed-message", false, false, arguments);
            try {
                String queue = channel.queueDeclare().getQueue();
                channel.queueBind(queue, exchange, "later.#");
                channel.confirmSelect();
                List<Number> delays = List.of(900, 600L, (short) 300, (byte) 100);
                Map<String, Long> published = new HashMap<>();
                for (Number delay : delays) {
                    published.put(delay.toString(), System.nanoTime());
                    publish(channel, exchange, "later.on", delay.toString(), Map.of("x-delay", delay));
                }
                publish(channel, exchange, "later", "0", Map.of());
                publish(channel, exchange, "never", "no queue", Map.of("x-delay", 1));
                channel.waitForConfirmsOrDie();
                Set<String> missing = new HashSet<>(Set.of("0", "100", "300", "600", "900"));
                while (!missing.isEmpty()) {
                    Checks.eventually(() -> Checks.ready(channel, queue) >= 1, missing + " ms are over");
                    String body = Checks.text(Checks.get(channel, queue).getBody());
                    Checks.that(missing.remove(body), body + " came twice or was not sent");
                    if (published.containsKey(body)) {
                        notEarly(published.get(body), Long.parseLong(body));
                    }
                }
                Checks.equal(0, Checks.ready(channel, queue), "messages in the queue");
            } finally {
                channel.exchangeDelete(exchange);
            }
        }
    }

    /** Delays and delivery times by headers, and operations on a schedule by its name. */
    static void schedules() throws Exception {
        try (Connection connection = Broker.connect(); Channel channel = connection.createChannel()) {
            String queue = channel.queueDeclare(Broker.unique(), true, true, false, Map.of()).getQueue();
            Inbox inbox = new Inbox(channel);
            channel.basicConsume(queue, true, inbox);
            BlockingQueue<Integer> returned = new LinkedBlockingQueue<>();
            channel.addReturnListener(back -> returned.add(back.getReplyCode()));
            channel.confirmSelect();

            long began = System.nanoTime();
            publish(channel, "", queue, "by delay", Map.of("x-opt-delivery-delay", 300));
            inbox.take("by delay");
            notEarly(began, 300);
            long due = System.currentTimeMillis() + 300;
            publish(channel, "", queue, "by time", Map.of("x-opt-delivery-time", due));
            inbox.take("by time");
            Checks.that(System.currentTimeMillis() >= due, "not before its time");

            for (String body : List.of("old", "new")) {
                publish(channel, "", queue, body, Map.of("x-opt-delivery-delay", HOUR_MS, "x-schedule-id", "one"));
            }
            operate(channel, queue, "reschedule", "one", Map.of("x-opt-delivery-delay", 100L));
            inbox.take("new");
            publish(channel, "", queue, "soon", Map.of("x-opt-delivery-delay", HOUR_MS, "x-schedule-id", "two"));
            operate(channel, queue, "deliver-now", "two", Map.of());
            inbox.take("soon");
            publish(channel, "", queue, "never", Map.of("x-opt-delivery-delay", HOUR_MS, "x-schedule-id", "three"));
            operate(channel, queue, "cancel", "three", Map.of());
            Checks.equal(null, returned.poll(), "a return of an operation that had an effect");
            operate(channel, queue, "cancel", "three", Map.of());
            Checks.equal(312, returned.poll(Checks.DEADLINE_S, TimeUnit.SECONDS), "the return of a second cancellation");
        }
    }

    /** Retries whose delays grow, on both types of queues, and a delay and a reason for one delivery. */
    static void retries() throws Exception {
        for (String type : List.of("classic", "quorum")) {
            try (Connection connection = Broker.connect(); Channel channel = connection.createChannel()) {
                String queue = Broker.unique();
                String dead = channel.queueDeclare(Broker.unique(), false, true, false, Map.of()).getQueue();
                Map<String, Object> arguments = Map.of(
                        "x-queue-type", type, "x-delayed-retry-type", "all", "x-delayed-retry-schedule", "100ms,300ms",
                        "x-delivery-limit", 2, "x-delivery-limit-count", "acquired",
                        "x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead);
                channel.queueDeclare(queue, true, false, false, arguments);
                try {
                    grow(channel, queue, dead);
                    settle(channel, queue);
                } finally {
                    channel.queueDelete(queue);
                }
            }
        }
    }

    private static void grow(Channel channel, String queue, String dead) throws Exception {
        Inbox inbox = new Inbox(channel);
        String consumer = channel.basicConsume(queue, false, inbox);
        publish(channel, "", queue, "difficult", Map.of());
        long returned = 0;
        for (long delay : List.of(0, 100, 300)) {
            Delivery delivery = inbox.take("difficult");
            if (delay > 0) {
                notEarly(returned, delay);
            }
            returned = System.nanoTime();
            channel.basicNack(delivery.getEnvelope().getDeliveryTag(), false, true);
        }
        Checks.eventually(() -> Checks.ready(channel, dead) == 1, "the message has died at the limit");
        Map<String, Object> headers = Checks.get(channel, dead).getProps().getHeaders();
        Checks.equal("delivery_limit", headers.get("x-first-death-reason").toString(), "the reason of the death");
        channel.basicCancel(consumer);
    }

    private static void settle(Channel channel, String queue) throws Exception {
        Inbox inbox = new Inbox(channel);
        String consumer = channel.basicConsume(queue, false, inbox);
        publish(channel, "", queue, "mail", Map.of());
        long tag = inbox.take("mail").getEnvelope().getDeliveryTag();
        long returned = System.nanoTime();
        publish(channel, "amq.settle", "", "", Map.of(
                "x-delivery-tag", tag, "x-op", "requeue", "x-opt-delivery-delay", 200, "x-reason", "greylisted"));
        Delivery again = inbox.take("mail");
        notEarly(returned, 200);
        Checks.equal("greylisted", again.getProperties().getHeaders().get("x-reason").toString(), "the reason");
        channel.basicAck(again.getEnvelope().getDeliveryTag(), false);
        channel.basicCancel(consumer);
    }

    private static void publish(
            Channel channel, String exchange, String key, String body, Map<String, Object> headers) throws IOException {
        AMQP.BasicProperties properties =
                new AMQP.BasicProperties.Builder().deliveryMode(2).headers(headers).build();
        channel.basicPublish(exchange, key, properties, Checks.octets(body));
    }

    /** The operation is on disk when this returns. */
    private static void operate(
            Channel channel, String queue, String operation, String name, Map<String, Object> more) throws Exception {
        Map<String, Object> headers = new HashMap<>(more);
        headers.put("x-schedule-op", operation);
        headers.put("x-schedule-target", "queue/" + queue);
        headers.put("x-schedule-id", name);
        AMQP.BasicProperties properties = new AMQP.BasicProperties.Builder().headers(headers).build();
        channel.basicPublish("amq.schedule", "", true, properties, new byte[0]);
        channel.waitForConfirmsOrDie();
    }

    private static void notEarly(long sinceNanos, long delayMs) {
        long waitedMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - sinceNanos);
        Checks.that(waitedMs >= delayMs, "came after " + waitedMs + " of " + delayMs + " ms");
    }
}
