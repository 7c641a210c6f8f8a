package interop;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.Envelope;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** A consumer that keeps what it is given for the thread of the scenario. */
final class Inbox extends DefaultConsumer {
    /** The consumer tag, when the broker has cancelled the consumer. */
    final CompletableFuture<String> cancelled = new CompletableFuture<>();

    private final BlockingQueue<Delivery> deliveries = new LinkedBlockingQueue<>();

    Inbox(Channel channel) {
        super(channel);
    }

    @Override
    public void handleDelivery(String tag, Envelope envelope, AMQP.BasicProperties properties, byte[] body) {
        deliveries.add(new Delivery(envelope, properties, body));
    }

    @Override
    public void handleCancel(String tag) {
        cancelled.complete(tag);
    }

    Delivery take() throws InterruptedException {
        Delivery delivery = deliveries.poll(Checks.DEADLINE_S, TimeUnit.SECONDS);
        Checks.that(delivery != null, "no delivery within " + Checks.DEADLINE_S + " s");
        return delivery;
    }

    /** The next delivery, which has this body. */
    Delivery take(String body) throws InterruptedException {
        Delivery delivery = take();
        Checks.equal(body, Checks.text(delivery.getBody()), "the body of a delivery");
        return delivery;
    }

    boolean isEmpty() {
        return deliveries.isEmpty();
    }
}
