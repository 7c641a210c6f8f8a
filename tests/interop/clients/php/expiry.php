<?php

// Scenarios about messages and queues that expire.

declare(strict_types=1);

use PhpAmqpLib\Connection\AbstractConnection;
use PhpAmqpLib\Exception\AMQPProtocolChannelException;
use PhpAmqpLib\Wire\AMQPTable;

function queue_ttl(): void
{
    $connection = connection();
    $channel = $connection->channel();
    $queue = exclusive($channel, ['x-message-ttl' => 1000]);
    $channel->confirm_select();
    foreach (['one', 'two', 'three'] as $body) {
        publish($channel, '', $queue, $body);
    }
    $channel->wait_for_pending_acks(WITHIN_S);
    expect_equal(ready($channel, $queue), 3, 'messages at first');
    eventually('the messages expire', fn () => ready($channel, $queue) === 0);

    $unused = unique();
    $channel->queue_declare($unused, false, false, false, false, false, new AMQPTable(['x-expires' => 300]));
    // To ask is to use the queue: it must be left alone for longer than it lives.
    eventually('the queue expires', fn () => !exists($connection, $unused), 0.5);
    $connection->close();
}

/** Asks in a channel of its own, which "no" closes. */
function exists(AbstractConnection $connection, string $queue): bool
{
    $channel = $connection->channel();
    try {
        ready($channel, $queue);
        $channel->close();
        return true;
    } catch (AMQPProtocolChannelException $error) {
        expect_equal($error->amqp_reply_code, 404, 'reply code');
        return false;
    }
}

function message_ttl(): void
{
    $connection = connection();
    $channel = $connection->channel();
    $channel->confirm_select();
    $queue = exclusive($channel);
    publish($channel, '', $queue, 'short', ['expiration' => '1000']);
    publish($channel, '', $queue, 'long', ['expiration' => '60000']);
    $channel->wait_for_pending_acks(WITHIN_S);
    expect_equal(ready($channel, $queue), 2, 'messages at first');
    eventually('the first message expires', fn () => ready($channel, $queue) === 1);
    $second = get($channel, $queue);
    expect_equal($second->getBody(), 'long', 'what is left');
    expect_equal($second->get('expiration'), '60000', 'expiration');

    publish($channel, '', $queue, 'never', ['expiration' => '0']);
    $channel->wait_for_pending_acks(WITHIN_S);
    expect_equal(ready($channel, $queue), 0, 'messages that expire at once');
    expect_equal($channel->basic_get($queue), null, 'the empty queue');
    $connection->close();
}
