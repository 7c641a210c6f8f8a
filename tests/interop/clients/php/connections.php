<?php

// Scenarios about connections and their errors.

declare(strict_types=1);

use PhpAmqpLib\Connection\AbstractConnection;
use PhpAmqpLib\Exception\AMQPConnectionClosedException;
use PhpAmqpLib\Exception\AMQPIOException;
use PhpAmqpLib\Exception\AMQPProtocolChannelException;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPTable;

function connect(): void
{
    round_trip(connection());
}

function tls(): void
{
    $config = config();
    $config->setPort((int) getenv('AMQPS_PORT'));
    $config->setIsSecure(true);
    $config->setNetworkProtocol('tls');
    $config->setSslVerify(true);
    $config->setSslVerifyName(true);
    error_of(AMQPIOException::class, fn () => connection($config)); // nobody vouches for the broker
    $config->setSslCaCert(getenv('CA_FILE'));
    round_trip(connection($config));
}

/** Sends a message with properties to itself and closes the connection. */
function round_trip(AbstractConnection $connection): void
{
    $channel = $connection->channel();
    $queue = exclusive($channel);
    expect_starts($queue, 'amq.gen-');

    $headers = [
        'boolean' => true,
        'integer' => -42,
        'list' => ['one', 2, false],
        'long' => 1 << 40,
        'string' => 'grün',
        'table' => ['nested' => ['deep' => 'yes']],
        'timestamp' => new DateTime('@1700000000'),
    ];
    $properties = [
        'content_type' => 'text/plain',
        'delivery_mode' => AMQPMessage::DELIVERY_MODE_PERSISTENT,
        'correlation_id' => 'correlation',
        'message_id' => 'message',
        'type' => 'greeting',
    ];
    publish($channel, '', $queue, 'hello', ['application_headers' => new AMQPTable($headers), ...$properties]);
    $got = get($channel, $queue);
    expect_equal($got->getBody(), 'hello', 'body');
    foreach ($properties as $name => $value) {
        expect_equal($got->get($name), $value, $name);
    }
    $got_headers = $got->get('application_headers')->getNativeData();
    expect_equal($got_headers['timestamp']->getTimestamp(), 1_700_000_000, 'timestamp');
    unset($headers['timestamp'], $got_headers['timestamp']);
    expect_equal($got_headers, $headers, 'headers');
    expect_equal($channel->basic_get($queue), null, 'the empty queue');
    $channel->close();
    $connection->close();
    expect_equal($connection->isConnected(), false, 'connected');
}

// The client has no recovery of its own: applications catch the exception and reconnect.
function restart(): void
{
    $connection = connection();
    $channel = $connection->channel();
    $name = unique();
    $channel->exchange_declare($name, 'direct', false, true, false);
    $channel->queue_declare($name, false, true, false, false);
    $channel->queue_bind($name, $name, 'work');
    $channel->confirm_select();
    publish_confirmed($channel, $name, 'work', 'before');
    restart_broker();
    error_of(AMQPConnectionClosedException::class, fn () => $channel->wait(null, false, WITHIN_S));

    $connection->reconnect();
    $channel = $connection->channel();
    $inbox = consume($channel, $name);
    expect_equal($inbox->next()->getBody(), 'before', 'delivered');
    $channel->confirm_select();
    publish_confirmed($channel, $name, 'work', 'after');
    expect_equal($inbox->next()->getBody(), 'after', 'delivered');
    $channel->queue_delete($name);
    $channel->exchange_delete($name);
    $connection->close();
}

function errors(): void
{
    $connection = connection();
    $other = connection();
    channel_errors($connection, exclusive($other->channel()));
    $other->close();
    $connection->close();

    $config = config();
    $config->setPassword('wrong');
    $refused = error_of(AMQPConnectionClosedException::class, fn () => connection($config));
    expect_equal($refused->getCode(), 403, 'a wrong password');
    // AMQPLAIN is what this client chooses if nothing else is asked for.
    $text = 'Login was refused using authentication mechanism AMQPLAIN. For details see the broker logfile.';
    expect_starts($refused->getMessage(), "ACCESS_REFUSED - $text");

    $config = config();
    $config->setVhost('nope');
    $refused = error_of(AMQPConnectionClosedException::class, fn () => connection($config));
    expect_equal($refused->getCode(), 530, 'no such vhost');
    expect_starts($refused->getMessage(), 'NOT_ALLOWED - vhost nope not found');
}

/** Each closes its channel, and the connection lives on. */
function channel_errors(AbstractConnection $connection, string $locked): void
{
    $name = unique();
    expect_closed(404, "NOT_FOUND - no queue '$name' in vhost '/'", fn () => ready($connection->channel(), $name));

    $connection->channel()->queue_declare($name, false, false, true, false);
    expect_closed(
        406,
        "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue '$name' in vhost '/': ",
        fn () => $connection->channel()->queue_declare(
            $name,
            false,
            false,
            true,
            false,
            false,
            new AMQPTable(['x-message-ttl' => 1000])
        )
    );
    expect_closed(406, "PRECONDITION_FAILED - invalid expiration 'abc': ", function () use ($connection, $name) {
        $channel = $connection->channel();
        publish($channel, '', $name, 'never', ['expiration' => 'abc']);
        $channel->wait(null, false, WITHIN_S);
    });
    expect_closed(
        405,
        "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '$locked' in vhost '/'. ",
        fn () => ready($connection->channel(), $locked)
    );
    expect_equal(ready($connection->channel(), $name), 0, 'on the same connection');
}

function expect_closed(int $code, string $text, Closure $provoke): void
{
    $error = error_of(AMQPProtocolChannelException::class, $provoke);
    expect_equal($error->amqp_reply_code, $code, $error->amqp_reply_text);
    expect_starts($error->amqp_reply_text, $text);
}
