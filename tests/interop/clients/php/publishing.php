<?php

// Scenarios about publishing.

declare(strict_types=1);

use PhpAmqpLib\Channel\AMQPChannel;
use PhpAmqpLib\Message\AMQPMessage;

const MESSAGES = 1000;

/** Publishes a persistent message and waits until it is confirmed. */
function publish_confirmed(AMQPChannel $channel, string $exchange, string $key, string $body): void
{
    $channel->set_nack_handler(fn (AMQPMessage $message) => throw new Exception("{$message->getBody()} was refused"));
    publish($channel, $exchange, $key, $body, ['delivery_mode' => AMQPMessage::DELIVERY_MODE_PERSISTENT]);
    $channel->wait_for_pending_acks(WITHIN_S);
}

function confirms(): void
{
    $connection = connection();
    $channel = $connection->channel();
    $said = [];
    $channel->set_ack_handler(function (AMQPMessage $message) use (&$said) {
        $said[] = 'ack ' . $message->getBody();
    });
    $channel->set_nack_handler(function (AMQPMessage $message) use (&$said) {
        $said[] = 'nack ' . $message->getBody();
    });
    $channel->set_return_listener(function (int $code, string $text, ...$more) use (&$said) {
        $said[] = "$code $text " . $more[2]->getBody();
    });
    $channel->confirm_select();

    [$queue] = $channel->queue_declare(unique(), false, true, false, false);
    for ($number = 0; $number < MESSAGES; $number++) {
        publish($channel, '', $queue, "$number", ['delivery_mode' => AMQPMessage::DELIVERY_MODE_PERSISTENT]);
    }
    $channel->wait_for_pending_acks(WITHIN_S);
    expect_equal($said, array_map(fn (int $number) => "ack $number", range(0, MESSAGES - 1)), 'confirms');
    expect_equal(ready($channel, $queue), MESSAGES, 'messages in the queue');
    expect_equal($channel->queue_delete($queue), MESSAGES, 'deleted with the queue');

    $said = [];
    $channel->basic_publish(new AMQPMessage('nobody'), '', unique(), true);
    $channel->wait_for_pending_acks_returns(WITHIN_S);
    expect_equal($said, ['312 NO_ROUTE nobody', 'ack nobody'], 'a mandatory message');

    $said = [];
    $full = exclusive($channel, ['x-max-length' => 1, 'x-overflow' => 'reject-publish']);
    publish($channel, '', $full, 'first');
    publish($channel, '', $full, 'second');
    $channel->wait_for_pending_acks(WITHIN_S);
    sort($said);
    expect_equal($said, ['ack first', 'nack second'], 'confirms of the full queue');
    expect_equal(get($channel, $full)->getBody(), 'first', 'what the full queue has');
    $connection->close();
}

function priorities(): void
{
    $connection = connection();
    $channel = $connection->channel();
    $queue = exclusive($channel, ['x-max-priority' => 5]);
    publish($channel, '', $queue, '1', ['priority' => 1]);
    publish($channel, '', $queue, '5', ['priority' => 5]);
    publish($channel, '', $queue, '3', ['priority' => 3]);
    publish($channel, '', $queue, 'without');
    foreach (['5', '3', '1', 'without'] as $wanted) {
        expect_equal(get($channel, $queue)->getBody(), $wanted, 'priority');
    }
    $connection->close();
}

function transactions(): void
{
    $connection = connection();
    $channel = $connection->channel();
    $channel->tx_select();
    $queue = exclusive($channel);
    publish($channel, '', $queue, 'rolled back');
    publish($channel, '', $queue, 'rolled back too');
    $channel->tx_rollback();
    expect_equal(ready($channel, $queue), 0, 'messages after the rollback');
    publish($channel, '', $queue, 'one');
    publish($channel, '', $queue, 'two');
    expect_equal(ready($channel, $queue), 0, 'messages before the commit');
    $channel->tx_commit();
    expect_equal(ready($channel, $queue), 2, 'messages after the commit');

    get($channel, $queue, false)->ack();
    $channel->tx_commit();
    $channel->close(); // what is not acknowledged comes back
    $channel = $connection->channel();
    expect_equal(get($channel, $queue)->getBody(), 'two', 'what is left');
    expect_equal($channel->basic_get($queue), null, 'the empty queue');
    $connection->close();
}

function large(): void
{
    $connection = connection();
    $channel = $connection->channel();
    $channel->confirm_select();
    $queue = exclusive($channel);
    $body = str_repeat(implode(array_map(chr(...), range(0, 249))), 80_000);
    publish_confirmed($channel, '', $queue, $body);
    if (get($channel, $queue)->getBody() !== $body) {
        throw new Exception('the message is another one');
    }
    $connection->close();
}
