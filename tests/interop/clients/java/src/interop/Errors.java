package interop;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AuthenticationFailureException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** What applications read in the client's exceptions. */
final class Errors {
    private Errors() {}

    static void errors() throws Exception {
        try (Connection connection = Broker.connect(); Connection another = Broker.connect()) {
            noSuchQueue(connection);
            otherArguments(connection);
            invalidExpiration(connection);
            lockedQueue(connection, another);
            try (Channel channel = another.createChannel()) {
                Checks.that(channel.isOpen() && connection.isOpen(), "a connection did not live on");
            }
        }
        wrongPassword();
        noSuchVhost();
    }

    private static void noSuchQueue(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = Broker.unique();
        refused(AMQP.NOT_FOUND, "NOT_FOUND - no queue '" + queue + "' in vhost '/'",
                () -> channel.queueDeclarePassive(queue));
        Checks.that(!channel.isOpen(), "the channel lived on");
    }

    private static void otherArguments(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = Broker.unique();
        channel.queueDeclare(queue, false, true, false, Map.of("x-message-ttl", 1000));
        refused(AMQP.PRECONDITION_FAILED,
                "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue '" + queue
                        + "' in vhost '/': received '2000' but current is '1000'",
                () -> channel.queueDeclare(queue, false, true, false, Map.of("x-message-ttl", 2000)));
    }

    /** Publishing has no answer: the channel tells its listeners why it was closed. */
    private static void invalidExpiration(Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        String queue = channel.queueDeclare().getQueue();
        CompletableFuture<ShutdownSignalException> closed = new CompletableFuture<>();
        channel.addShutdownListener(closed::complete);
        channel.basicPublish("", queue, new AMQP.BasicProperties.Builder().expiration("abc").build(), new byte[0]);
        Checks.closedChannel(closed.get(Checks.DEADLINE_S, TimeUnit.SECONDS), AMQP.PRECONDITION_FAILED,
                "PRECONDITION_FAILED - invalid expiration 'abc': no_integer");
    }

    private static void lockedQueue(Connection owner, Connection another) throws Exception {
        try (Channel channel = owner.createChannel()) {
            String queue = channel.queueDeclare().getQueue();
            refused(AMQP.RESOURCE_LOCKED,
                    "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '" + queue + "' in vhost '/'. "
                            + "It could be originally declared on another connection or the exclusive property value "
                            + "does not match that of the original declaration.",
                    () -> another.createChannel().queueDeclarePassive(queue));
        }
    }

    private static void wrongPassword() throws Exception {
        ConnectionFactory factory = Broker.factory();
        factory.setPassword("wrong");
        try (Connection connection = factory.newConnection()) {
            throw new AssertionError("logged in with a wrong password: " + connection);
        } catch (AuthenticationFailureException error) { // 403, ACCESS_REFUSED, is what this exception stands for
            Checks.equal("ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. "
                    + "For details see the broker logfile.", error.getMessage(), "why the login was refused");
        }
    }

    private static void noSuchVhost() throws Exception {
        ConnectionFactory factory = Broker.factory();
        factory.setVirtualHost("nope");
        try (Connection connection = factory.newConnection()) {
            throw new AssertionError("opened a vhost that does not exist: " + connection);
        } catch (IOException error) {
            ShutdownSignalException signal = (ShutdownSignalException) error.getCause();
            AMQP.Connection.Close reason = (AMQP.Connection.Close) signal.getReason();
            Checks.equal(AMQP.NOT_ALLOWED, reason.getReplyCode(), "reply code");
            Checks.equal("NOT_ALLOWED - vhost nope not found", reason.getReplyText(), "reply text");
        }
    }

    private static void refused(int code, String text, Main.Scenario request) throws Exception {
        try {
            request.run();
        } catch (IOException error) {
            Checks.closedChannel((ShutdownSignalException) error.getCause(), code, text);
            return;
        }
        throw new AssertionError("no exception, but " + text + " was expected");
    }
}
