package interop;

import com.rabbitmq.client.ConnectionFactory;
import java.util.Map;

/** RabbitMQ's Java client, through every scenario; tests/interop/README.md says what each does. */
final class Main {
    private static final Map<String, Scenario> SCENARIOS = Map.ofEntries(
            Map.entry("connect", Basics::connect),
            Map.entry("tls", Basics::tls),
            Map.entry("tls-nio", NioTls::nioTls),
            Map.entry("identity", Basics::identity),
            Map.entry("large", Basics::large),
            Map.entry("confirms", Publishing::confirms),
            Map.entry("transactions", Publishing::transactions),
            Map.entry("prefetch", Consuming::prefetch),
            Map.entry("priorities", Consuming::priorities),
            Map.entry("rpc", Consuming::rpc),
            Map.entry("cancel", Consuming::cancel),
            Map.entry("queue-ttl", Expiry::queueTtl),
            Map.entry("message-ttl", Expiry::messageTtl),
            Map.entry("dead-letter", DeadLetters::deadLetter),
            Map.entry("delayed-exchange", Delays::delayedExchange),
            Map.entry("schedules", Delays::schedules),
            Map.entry("retries", Delays::retries),
            Map.entry("restart", Restart::restart),
            Map.entry("errors", Errors::errors));

    private Main() {}

    interface Scenario {
        void run() throws Exception;
    }

    public static void main(String[] names) {
        System.out.println("version " + new ConnectionFactory().getClientProperties().get("version"));
        boolean failed = false;
        for (String name : names) {
            try {
                SCENARIOS.get(name).run();
                System.out.println("ok " + name);
            } catch (Exception | AssertionError why) {
                failed = true;
                why.printStackTrace();
                System.out.println("failed " + name + ": " + why.toString().replace('\n', ' '));
            }
        }
        System.exit(failed ? 1 : 0);
    }
}
