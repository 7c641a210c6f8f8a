package seeds;

import com.lixiang.rabbitmq.utils.RabbitUtils;
import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.GetResponse;
import java.io.IOException;
import java.util.Objects;
import java.util.concurrent.Callable;

/** One line per check on standard output; the process fails if one of them did. */
class Checks {
    private static final long POLL_MS = 20;

    private int failed;

    void that(boolean holds, String what) {
        System.out.println((holds ? "ok    " : "FAIL  ") + what);
        if (!holds) {
            failed++;
        }
    }

    void equal(Object actual, Object expected, String what) {
        boolean same = Objects.equals(actual, expected);
        that(same, same ? what + ": " + actual : what + ": expected " + expected + ", got " + actual);
    }

    /** A number between the bounds, both included. */
    void between(long actual, long low, long high, String what) {
        that(low <= actual && actual <= high, what + ": " + actual + " (" + low + " to " + high + ")");
    }

    /** Waits until the condition holds; its failure to do so is a failed check. */
    void soon(Callable<Boolean> condition, long timeoutMs, String what) throws Exception {
        long deadline = System.currentTimeMillis() + timeoutMs;
        boolean holds = condition.call();
        while (!holds && System.currentTimeMillis() < deadline) {
            Thread.sleep(POLL_MS);
            holds = condition.call();
        }
        that(holds, what);
    }

    /** What a test does with its own connection to the broker. */
    interface Test {
        void run(Checks checks, Connection connection) throws Exception;
    }

    /**
     * Runs the test and ends the process: 0 when every check held. An exception is a failed check; the client's threads
     * would otherwise keep the process alive after it.
     */
    static void main(Test test) {
        Checks checks = new Checks();
        try (Connection connection = RabbitUtils.getConnection()) {
            test.run(checks, connection);
        } catch (Throwable thrown) {
            checks.that(false, "no exception: " + thrown);
            thrown.printStackTrace();
        }
        System.exit(checks.failed == 0 ? 0 : 1);
    }

    /** Whether RabbitMQ's timing is to be expected: as the caller said, or as the broker tells of itself. */
    static boolean isRabbitMQ(Connection connection) {
        boolean isLeveret = connection.getServerProperties().containsKey("leveret_version");
        return "rabbitmq".equals(System.getProperty("seeds.broker", isLeveret ? "leveret" : "rabbitmq"));
    }

    /**
     * What the queue holds. In RabbitMQ the question overtakes publishes of the same channel that were not confirmed:
     * ask again, or ask after a confirm.
     */
    static AMQP.Queue.DeclareOk passive(Channel channel, String queue) throws IOException {
        return channel.queueDeclarePassive(queue);
    }

    /** The next message of the queue, acknowledged, or null when none came in time. */
    static GetResponse get(Channel channel, String queue, long timeoutMs) throws Exception {
        long deadline = System.currentTimeMillis() + timeoutMs;
        GetResponse message = channel.basicGet(queue, true);
        while (message == null && System.currentTimeMillis() < deadline) {
            Thread.sleep(POLL_MS);
            message = channel.basicGet(queue, true);
        }
        return message;
    }
}
