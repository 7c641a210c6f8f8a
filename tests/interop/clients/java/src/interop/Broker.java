package interop;

import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.UUID;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

/** Where the broker is and how to get there. */
final class Broker {
    private static final BufferedReader ANSWERS =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

    private Broker() {}

    /** A name that nobody else uses. */
    static String unique() {
        return "interop-" + UUID.randomUUID();
    }

    /** User, password and vhost are the defaults. */
    static ConnectionFactory factory() {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setHost(System.getenv("AMQP_HOST"));
        factory.setPort(Integer.parseInt(System.getenv("AMQP_PORT")));
        return factory;
    }

    static Connection connect() throws Exception {
        return factory().newConnection();
    }

    /** What trusts the test's authority. */
    static SSLContext tlsContext(String protocol) throws Exception {
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null, null);
        try (InputStream file = new FileInputStream(System.getenv("CA_FILE"))) {
            trusted.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance(protocol);
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    /** Over TLS; the certificate must be signed by the test's authority, and for the host's name. */
    static Connection connectOverTls() throws Exception {
        SSLContext context = tlsContext("TLS");
        ConnectionFactory factory = factory();
        factory.setPort(Integer.parseInt(System.getenv("AMQPS_PORT")));
        factory.useSslProtocol(context);
        factory.setSocketConfigurator(socket -> {
            SSLParameters parameters = ((SSLSocket) socket).getSSLParameters();
            parameters.setEndpointIdentificationAlgorithm("HTTPS");
            ((SSLSocket) socket).setSSLParameters(parameters);
        });
        return factory.newConnection();
    }

    /** Has the broker killed and started again. */
    static void restart() throws IOException {
        System.out.println("restart");
        Checks.equal("restarted", ANSWERS.readLine(), "what the matrix says");
    }
}
