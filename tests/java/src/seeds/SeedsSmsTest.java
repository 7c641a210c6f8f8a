package seeds;

import com.lixiang.rabbitmq.OrderSystem;
import com.lixiang.rabbitmq.SmsSender;
import com.lixiang.rabbitmq.utils.RabbitConstant;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The order system sends 100 text messages into a queue with a TTL of ten seconds; the sender takes one a second, as
 * the document has it. What was not sent after ten seconds is never sent.
 */
public final class SeedsSmsTest {
    private static final String QUEUE = RabbitConstant.QUEUE_SMS_TTL;
    private static final int ORDERS = 100;
    private static final long SENDER_RUNS_MS = 12_500;
    /** Ten seconds of life, one a second: the first at once, the last started before the tenth second was over. */
    private static final int SENT_MAX = 11;
    /** Starting a virtual machine costs some of the ten seconds, most of them on a busy machine. */
    private static final int SENT_MIN = 1;
    private static final Pattern SENT = Pattern.compile("SMSSender-.*\"mobile\":\"13900000(\\d+)\"");

    private SeedsSmsTest() {
    }

    public static void main(String[] args) {
        Checks.main(SeedsSmsTest::run);
    }

    private static void run(Checks checks, Connection connection) throws Exception {
        Channel channel = connection.createChannel();
        channel.queueDelete(QUEUE);

        Program orders = new Program(OrderSystem.class);
        checks.that(orders.process.waitFor(120, TimeUnit.SECONDS), "OrderSystem ends");
        long publishedAt = System.currentTimeMillis();
        checks.equal(orders.process.exitValue(), 0, "OrderSystem's exit code");
        checks.soon(() -> Checks.passive(channel, QUEUE).getMessageCount() == ORDERS, 30_000, "100 messages wait");

        Program sender = new Program(SmsSender.class);
        checks.soon(() -> !sender.sent().isEmpty(), 120_000, "SmsSender sends");
        checks.equal(Checks.passive(channel, QUEUE).getConsumerCount(), 1, "consumers while SmsSender runs");
        Thread.sleep(Math.max(0, publishedAt + SENDER_RUNS_MS - System.currentTimeMillis()));
        checks.that(sender.process.isAlive(), "SmsSender still runs, with nothing left to do");
        List<Integer> sent = sender.sent();
        sender.process.destroy();
        checks.that(sender.process.waitFor(120, TimeUnit.SECONDS), "SmsSender stopped");
        checks.soon(() -> Checks.passive(channel, QUEUE).getConsumerCount() == 0, 30_000, "its consumer is gone");

        checks.between(sent.size(), SENT_MIN, SENT_MAX, "sent by SMS before their ten seconds were over");
        // An order can expire between two deliveries, and a later one, published a moment after it, still be sent.
        checks.equal(sent, new ArrayList<>(new TreeSet<>(sent)), "sent in the order of the orders, each once");
        checks.equal(sent.get(0), 100, "the first order is sent first");
        checks.equal(Checks.passive(channel, QUEUE).getMessageCount(), 0, "left in the queue");
        checks.that(channel.basicGet(QUEUE, true) == null, "basic.get finds none of the expired ones");
        System.out.println("      of " + ORDERS + " orders " + sent.size() + " were sent by SMS, "
            + (ORDERS - sent.size()) + " expired unsent");
        channel.queueDelete(QUEUE);
    }

    /** One of the document's programs in a virtual machine of its own, as its reader would run it. */
    private static final class Program {
        final Process process;
        private final List<Integer> sent = Collections.synchronizedList(new ArrayList<>());

        Program(Class<?> main) throws IOException {
            List<String> command = new ArrayList<>();
            command.add(System.getProperty("java.home") + "/bin/java");
            command.add("-Dfile.encoding=UTF-8");
            for (String key : new String[] {"rabbitmq.host", "rabbitmq.port"}) {
                command.add("-D" + key + "=" + System.getProperty(key));
            }
            Collections.addAll(command, "-cp", System.getProperty("java.class.path"), main.getName());
            process = new ProcessBuilder(command).redirectErrorStream(true).start();
            Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
            Thread reader = new Thread(this::read);
            reader.setDaemon(true);
            reader.start();
        }

        private void read() {
            try (BufferedReader log = new BufferedReader(
                    new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
                for (String line = log.readLine(); line != null; line = log.readLine()) {
                    Matcher found = SENT.matcher(line);
                    if (found.find()) {
                        sent.add(Integer.valueOf(found.group(1)));
                    } else if (line.contains("Exception") || line.startsWith("\tat ")) {
                        System.out.println("      " + line);
                    }
                }
            } catch (IOException closed) {
                // The program was stopped; what it said before has been read.
            }
        }

        List<Integer> sent() {
            synchronized (sent) {
                return new ArrayList<>(sent);
            }
        }
    }
}
