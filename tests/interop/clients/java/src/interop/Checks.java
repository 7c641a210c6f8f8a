package interop;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;

/** What scenarios check, and how long they wait for it. */
final class Checks {
    static final long DEADLINE_S = 60;

    private static final long POLL_MS = 10;

    private Checks() {}

    static void that(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static void equal(Object expected, Object actual, String what) {
        that(Objects.equals(expected, actual), what + ": expected " + expected + ", got " + actual);
    }

    /** Waits until it holds. */
    static void eventually(Callable<Boolean> holds, String what) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(DEADLINE_S);
        while (!holds.call()) {
            that(System.nanoTime() < deadline, "not within " + DEADLINE_S + " s: " + what);
            Thread.sleep(POLL_MS);
        }
    }

    static int ready(Channel channel, String queue) throws IOException {
        return channel.queueDeclarePassive(queue).getMessageCount();
    }

    static GetResponse get(Channel channel, String queue) throws IOException {
        GetResponse message = channel.basicGet(queue, true);
        that(message != null, "no message in " + queue);
        return message;
    }

    static byte[] octets(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] octets) {
        return new String(octets, StandardCharsets.UTF_8);
    }

    /** The broker closed the channel for this reason. */
    static void closedChannel(ShutdownSignalException signal, int code, String text) {
        AMQP.Channel.Close reason = (AMQP.Channel.Close) signal.getReason();
        equal(code + " " + text, reason.getReplyCode() + " " + reason.getReplyText(), "why the channel was closed");
    }
}
