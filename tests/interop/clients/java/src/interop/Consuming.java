package interop;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.RpcClient;
import com.rabbitmq.client.ShutdownSignalException;
import com.rabbitmq.client.StringRpcServer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** What consumers are given. */
final class Consuming {
    private static final int MESSAGES = 100;
    private static final int PREFETCH = 10;

    private Consuming() {}

    static void prefetch() throws Exception {
        try (Connection connection = Broker.connect()) {
            Channel channel = connection.createChannel();
            String queue = channel.queueDeclare(Broker.unique(), false, true, false, null).getQueue();
            for (int i = 0; i < MESSAGES; i++) {
                channel.basicPublish("", queue, null, Checks.octets("message " + i));
            }
            channel.basicQos(PREFETCH);
            Inbox inbox = new Inbox(channel);
            channel.basicConsume(queue, false, inbox);

            List<Long> tags = new ArrayList<>();
            for (int i = 0; i < PREFETCH; i++) {
                tags.add(tagOf(inbox.take("message " + i)));
            }
            Checks.equal(MESSAGES - PREFETCH, Checks.ready(channel, queue), "messages that were not handed out");
            Checks.that(inbox.isEmpty(), "more came than the prefetch allows");

            for (long tag : tags.subList(0, PREFETCH / 2)) {
                channel.basicAck(tag, false);
            }
            channel.basicAck(tags.get(PREFETCH - 1), true);
            for (int i = PREFETCH; i < MESSAGES - 1; i++) {
                long tag = tagOf(inbox.take("message " + i));
                if (i % 3 == 0) {
                    channel.basicAck(tag, true);
                }
            }
            Delivery last = inbox.take("message " + (MESSAGES - 1));
            Checks.that(!last.getEnvelope().isRedeliver(), "a first delivery is marked as redelivered");
            channel.basicAck(tagOf(last) - 1, true);
            channel.basicNack(tagOf(last), false, true);
            last = inbox.take("message " + (MESSAGES - 1));
            Checks.that(last.getEnvelope().isRedeliver(), "what was sent back is not marked as redelivered");
            channel.basicReject(tagOf(last), false);

            channel.close(); // what is not settled would go back to the queue
            Checks.that(inbox.isEmpty(), "what was rejected came again");
            try (Channel another = connection.createChannel()) {
                Checks.equal(0, Checks.ready(another, queue), "messages at the end");
            }
        }
    }

    private static long tagOf(Delivery delivery) {
        return delivery.getEnvelope().getDeliveryTag();
    }

    static void priorities() throws Exception {
        try (Connection connection = Broker.connect(); Channel channel = connection.createChannel()) {
            String queue = Broker.unique();
            channel.queueDeclare(queue, false, true, false, Map.of("x-max-priority", 5));
            for (Integer priority : new Integer[] {1, 5, 3, null}) {
                AMQP.BasicProperties properties = new AMQP.BasicProperties.Builder().priority(priority).build();
                channel.basicPublish("", queue, properties, Checks.octets("priority " + priority));
            }
            for (Integer priority : new Integer[] {5, 3, 1, null}) {
                Checks.equal("priority " + priority, Checks.text(Checks.get(channel, queue).getBody()), "the next one");
            }
        }
    }

    /** RpcClient consumes amq.rabbitmq.reply-to and finds the answer by the correlation id. */
    static void rpc() throws Exception {
        try (Connection connection = Broker.connect(); Channel channel = connection.createChannel()) {
            String queue = channel.queueDeclare().getQueue();
            StringRpcServer server = new StringRpcServer(connection.createChannel(), queue) {
                @Override
                public String handleStringCall(String request, AMQP.BasicProperties reply) {
                    return "answer to " + request;
                }
            };
            ExecutorService thread = Executors.newSingleThreadExecutor();
            Future<ShutdownSignalException> serving = thread.submit(server::mainloop);
            RpcClient client = new RpcClient(channel, "", queue, (int) TimeUnit.SECONDS.toMillis(Checks.DEADLINE_S));
            for (int i = 0; i < 100; i++) {
                Checks.equal("answer to request " + i, client.stringCall("request " + i), "the answer");
            }
            client.close();
            server.getChannel().close();
            ShutdownSignalException end = serving.get(Checks.DEADLINE_S, TimeUnit.SECONDS);
            Checks.that(end.isInitiatedByApplication(), "the server ended: " + end);
            thread.shutdown();
        }
    }

    static void cancel() throws Exception {
        try (Connection connection = Broker.connect();
                Channel channel = connection.createChannel();
                Channel another = connection.createChannel()) {
            String queue = channel.queueDeclare().getQueue();
            Inbox inbox = new Inbox(channel);
            String tag = channel.basicConsume(queue, false, inbox);
            another.queueDelete(queue);
            String cancelled = inbox.cancelled.get(Checks.DEADLINE_S, TimeUnit.SECONDS);
            Checks.equal(tag, cancelled, "the consumer that was cancelled");
            Checks.that(channel.isOpen(), "the channel of the consumer was closed, too");
        }
    }
}
