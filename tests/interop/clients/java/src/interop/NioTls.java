package interop;

import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;

/**
 * TLS 1.3 on a channel, as the NIO mode of the Java client has done it since version 5.2. Debian's version is older than
 * TLS 1.3 in Java and cannot: it never writes while there is something to read.
 *
 * <p>What decides is the order of two steps. The client reads records until the engine's result for one of them asks it to
 * write, and the result for a record with a task does not: that asks for the task. When the task ends the handshake, the
 * client reads on, and nothing more comes.
 */
final class NioTls {
    private static final byte[] PROTOCOL_HEADER = {'A', 'M', 'Q', 'P', 0, 0, 9, 1};
    private static final byte[] CONNECTION_START = {1, 0, 0};

    private final SSLEngine engine;
    private final SocketChannel channel;
    private final ByteBuffer received;
    private final ByteBuffer plain;

    private NioTls(SSLEngine engine, SocketChannel channel) {
        this.engine = engine;
        this.channel = channel;
        this.received = ByteBuffer.allocate(engine.getSession().getPacketBufferSize()).flip();
        this.plain = ByteBuffer.allocate(engine.getSession().getApplicationBufferSize());
    }

    /** Twice with one context, so that the second may go on with the session of the first. */
    static void nioTls() throws Exception {
        SSLContext context = Broker.tlsContext("TLSv1.3");
        for (int i = 0; i < 2; i++) {
            connectionStarts(context);
        }
    }

    private static void connectionStarts(SSLContext context) throws Exception {
        String host = System.getenv("AMQP_HOST");
        int port = Integer.parseInt(System.getenv("AMQPS_PORT"));
        SSLEngine engine = context.createSSLEngine(host, port);
        engine.setUseClientMode(true);
        try (SocketChannel channel = SocketChannel.open()) {
            channel.socket().connect(new InetSocketAddress(host, port));
            // Reads from the socket's stream end in time; those from the channel would wait for ever.
            channel.socket().setSoTimeout((int) (Checks.DEADLINE_S * 1000));
            NioTls client = new NioTls(engine, channel);
            client.handshake();
            Checks.equal("TLSv1.3", engine.getSession().getProtocol(), "the version of TLS");
            client.send(ByteBuffer.wrap(PROTOCOL_HEADER));
            client.plain.clear();
            // The first record that comes has what was asked for: a record without data would be taken for the end.
            SSLEngineResult result = client.readRecord();
            Checks.that(result.bytesProduced() > 0, "the first record after the handshake has no data");
            client.plain.flip();
            for (byte octet : CONNECTION_START) {
                Checks.equal(octet, client.plain.get(), "an octet of connection.start");
            }
        }
    }

    private void handshake() throws Exception {
        engine.beginHandshake();
        HandshakeStatus status = engine.getHandshakeStatus();
        while (status != HandshakeStatus.FINISHED) {
            status = status == HandshakeStatus.NEED_WRAP ? send(ByteBuffer.allocate(0)) : readUntilAskedToWrite();
        }
    }

    private HandshakeStatus readUntilAskedToWrite() throws Exception {
        while (true) {
            HandshakeStatus status = readRecord().getHandshakeStatus();
            if (status == HandshakeStatus.NEED_TASK) {
                for (Runnable task = engine.getDelegatedTask(); task != null; task = engine.getDelegatedTask()) {
                    task.run();
                }
            }
            if (status == HandshakeStatus.NEED_WRAP || status == HandshakeStatus.FINISHED) {
                return status;
            }
        }
    }

    /** Gives the engine the next record. */
    private SSLEngineResult readRecord() throws Exception {
        while (true) {
            SSLEngineResult result = engine.unwrap(received, plain);
            if (result.getStatus() != SSLEngineResult.Status.BUFFER_UNDERFLOW) {
                Checks.equal(SSLEngineResult.Status.OK, result.getStatus(), "what came of a record");
                return result;
            }
            received.compact();
            byte[] octets = new byte[received.remaining()];
            int count = channel.socket().getInputStream().read(octets);
            Checks.that(count > 0, "the broker has closed the socket");
            received.put(octets, 0, count).flip();
        }
    }

    private HandshakeStatus send(ByteBuffer octets) throws Exception {
        ByteBuffer records = ByteBuffer.allocate(engine.getSession().getPacketBufferSize());
        HandshakeStatus status = engine.wrap(octets, records).getHandshakeStatus();
        records.flip();
        while (records.hasRemaining()) {
            channel.write(records);
        }
        return status;
    }
}
