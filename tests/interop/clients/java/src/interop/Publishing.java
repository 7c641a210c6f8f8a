package interop;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.MessageProperties;
import com.rabbitmq.client.Return;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;

/** What a publisher is told about its messages. */
final class Publishing {
    private static final int MESSAGES = 1000;

    private Publishing() {}

    static void confirms() throws Exception {
        try (Connection connection = Broker.connect()) {
            everyMessageIsConfirmed(connection);
            unroutableMessageComesBack(connection);
            fullQueueRefuses(connection);
        }
    }

    private static void everyMessageIsConfirmed(Connection connection) throws Exception {
        try (Channel channel = connection.createChannel()) {
            String queue = Broker.unique();
            channel.queueDeclare(queue, true, false, false, null);
            try {
                Outstanding outstanding = new Outstanding(channel);
                for (int i = 0; i < MESSAGES; i++) {
                    outstanding.publish(false, queue, "message " + i);
                }
                outstanding.await();
                Checks.equal(List.of(), outstanding.refused, "refused messages");
                Checks.equal(MESSAGES, Checks.ready(channel, queue), "messages in the queue");
            } finally {
                channel.queueDelete(queue);
            }
        }
    }

    private static void unroutableMessageComesBack(Connection connection) throws Exception {
        try (Channel channel = connection.createChannel()) {
            List<Return> returned = new CopyOnWriteArrayList<>();
            channel.addReturnListener(message -> returned.add(message));
            Outstanding outstanding = new Outstanding(channel);
            outstanding.publish(true, Broker.unique(), "to nobody");
            outstanding.await();
            Checks.equal(List.of(), outstanding.refused, "refused messages");
            Checks.equal(1, returned.size(), "returned messages when it was confirmed");
            Checks.equal(312, returned.get(0).getReplyCode(), "reply code");
            Checks.equal("NO_ROUTE", returned.get(0).getReplyText(), "reply text");
            Checks.equal("to nobody", Checks.text(returned.get(0).getBody()), "the returned body");
        }
    }

    private static void fullQueueRefuses(Connection connection) throws Exception {
        try (Channel channel = connection.createChannel()) {
            String queue = Broker.unique();
            channel.queueDeclare(queue, false, true, false, Map.of("x-max-length", 1, "x-overflow", "reject-publish"));
            Outstanding outstanding = new Outstanding(channel);
            outstanding.publish(false, queue, "first");
            outstanding.publish(false, queue, "second");
            outstanding.await();
            Checks.equal(List.of("second"), outstanding.refused, "refused messages");
            Checks.equal("first", Checks.text(Checks.get(channel, queue).getBody()), "the message that was taken");
        }
    }

    static void transactions() throws Exception {
        try (Connection connection = Broker.connect()) {
            Channel channel = connection.createChannel();
            String queue = channel.queueDeclare().getQueue();
            channel.txSelect();
            publishTwo(channel, queue);
            channel.txRollback();
            Checks.equal(0, Checks.ready(channel, queue), "messages after a rollback");
            publishTwo(channel, queue);
            Checks.equal(0, Checks.ready(channel, queue), "messages before the commit");
            channel.txCommit();
            Checks.equal(2, Checks.ready(channel, queue), "messages after a commit");

            channel.basicAck(channel.basicGet(queue, false).getEnvelope().getDeliveryTag(), false);
            channel.txCommit();
            channel.basicAck(channel.basicGet(queue, false).getEnvelope().getDeliveryTag(), false);
            channel.txRollback();
            channel.close();
            try (Channel another = connection.createChannel()) {
                Checks.equal("two", Checks.text(Checks.get(another, queue).getBody()), "what was not committed");
                Checks.equal(null, another.basicGet(queue, true), "what was acknowledged and committed");
            }
        }
    }

    private static void publishTwo(Channel channel, String queue) throws Exception {
        channel.basicPublish("", queue, null, Checks.octets("one"));
        channel.basicPublish("", queue, null, Checks.octets("two"));
    }

    /** The messages of a channel that are not yet confirmed, and those that were refused. */
    private static final class Outstanding {
        final List<String> refused = new CopyOnWriteArrayList<>();

        private final ConcurrentNavigableMap<Long, String> messages = new ConcurrentSkipListMap<>();
        private final Channel channel;

        Outstanding(Channel channel) throws Exception {
            this.channel = channel;
            channel.confirmSelect();
            channel.addConfirmListener(this::settle, (tag, multiple) -> {
                refused.addAll(upTo(tag, multiple).values());
                settle(tag, multiple);
            });
        }

        void publish(boolean mandatory, String queue, String message) throws Exception {
            messages.put(channel.getNextPublishSeqNo(), message);
            channel.basicPublish("", queue, mandatory, MessageProperties.PERSISTENT_BASIC, Checks.octets(message));
        }

        void await() throws Exception {
            Checks.eventually(messages::isEmpty, "every message is confirmed or refused");
        }

        private void settle(long tag, boolean multiple) {
            upTo(tag, multiple).clear();
        }

        private ConcurrentNavigableMap<Long, String> upTo(long tag, boolean multiple) {
            return messages.subMap(multiple ? 0 : tag, true, tag, true);
        }
    }
}
