import com.rabbitmq.client.Address;
import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.CancelCallback;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.DeliverCallback;
import com.rabbitmq.client.MessageProperties;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.concurrent.TimeoutException;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * The Java client and its automatic recovery: publishes numbered messages with confirms, and consumes them. foreign.py
 * says how.
 */
public final class Recovering {
    private static final int PERIOD_MS = 30;
    private static final int ANSWER_MS = 10_000;

    private static volatile boolean stopped;

    public static void main(String[] arguments) throws Exception {
        ConnectionFactory factory = factory();
        String queue = arguments[0];
        Thread publisher = new Thread(() -> publish(factory, queue));
        publisher.setDaemon(true);
        publisher.start();
        consume(factory, queue);
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            stopped |= line.equals("stop");
        }
        Runtime.getRuntime().halt(0);
    }

    private static ConnectionFactory factory() throws Exception {
        KeyStore known = KeyStore.getInstance(KeyStore.getDefaultType());
        known.load(null);
        try (FileInputStream file = new FileInputStream(System.getenv("CA_FILE"))) {
            known.setCertificateEntry("authority", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(known);
        SSLContext context = SSLContext.getInstance("TLSv1.2"); // what Debian's version of the client can
        context.init(null, trust.getTrustManagers(), null);
        ConnectionFactory factory = new ConnectionFactory();
        factory.useSslProtocol(context);
        factory.setAutomaticRecoveryEnabled(true);
        factory.setNetworkRecoveryInterval(200);
        factory.setRequestedHeartbeat(5);
        factory.setConnectionTimeout(ANSWER_MS);
        factory.setHandshakeTimeout(ANSWER_MS);
        factory.setChannelRpcTimeout(ANSWER_MS);
        return factory;
    }

    private static synchronized void say(String word, String number) {
        System.out.println(word + " " + number);
    }

    /** A connection that recovers by itself; the first one is made again here. */
    private static Connection connect(ConnectionFactory factory) throws InterruptedException {
        while (true) {
            try {
                return factory.newConnection(Address.parseAddresses(System.getenv("NODES")));
            } catch (IOException | TimeoutException | ShutdownSignalException gone) {
                Thread.sleep(200);
            }
        }
    }

    private static void publish(ConnectionFactory factory, String queue) {
        try {
            Connection connection = connect(factory);
            Channel channel = null;
            for (int number = 0; !stopped; number++) {
                say("sent", Integer.toString(number));
                while (true) {
                    try {
                        if (channel == null || !connection.isOpen()) {
                            channel = connection.createChannel();
                            channel.confirmSelect();
                        }
                        byte[] body = Integer.toString(number).getBytes(StandardCharsets.UTF_8);
                        channel.basicPublish("", queue, MessageProperties.PERSISTENT_BASIC, body);
                        if (channel.waitForConfirms(ANSWER_MS)) {
                            break;
                        }
                    } catch (IOException | TimeoutException | ShutdownSignalException gone) {
                        // AlreadyClosedException is one of them; the library connects meanwhile.
                        Thread.sleep(100);
                    }
                }
                say("confirmed", Integer.toString(number));
                Thread.sleep(PERIOD_MS);
            }
            say("done", "");
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    private static void consume(ConnectionFactory factory, String queue) throws Exception {
        Channel channel = connect(factory).createChannel();
        channel.basicQos(20);
        DeliverCallback take = (tag, delivery) -> {
            say("got", new String(delivery.getBody(), StandardCharsets.UTF_8));
            try {
                channel.basicAck(delivery.getEnvelope().getDeliveryTag(), false);
            } catch (AlreadyClosedException gone) {
                // It comes again.
            }
        };
        CancelCallback cancelled = tag -> say("cancelled", "");
        channel.basicConsume(queue, false, take, cancelled);
    }
}
