<?php

// What happens to dead letters, and what the broker writes on them.

declare(strict_types=1);

use PhpAmqpLib\Channel\AMQPChannel;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPTable;

function dead_letter(): void
{
    $connection = connection();
    $channel = $connection->channel();
    $exchange = unique();
    $channel->exchange_declare($exchange, 'direct', false, false, true);
    $dead_queue = exclusive($channel);
    $channel->queue_bind($dead_queue, $exchange, 'dead');
    $arguments = ['x-dead-letter-exchange' => $exchange, 'x-dead-letter-routing-key' => 'dead'];
    $queue = exclusive($channel, $arguments);
    $channel->queue_bind($queue, $exchange, 'work');
    $dead = consume($channel, $dead_queue);

    publish($channel, $exchange, 'work', 'too late', ['expiration' => '100']);
    $expired = $dead->next();
    $more = ['original-expiration' => '100'];
    expect_death($expired, 'too late', [...death('expired', $queue, $exchange, 'work'), ...$more]);
    expect_equal($expired->has('expiration'), false, 'the expired message has an expiration');

    publish($channel, $exchange, 'work', 'unwanted');
    get($channel, $queue, false)->reject(false);
    expect_death($dead->next(), 'unwanted', death('rejected', $queue, $exchange, 'work'));

    $small = exclusive($channel, ['x-max-length' => 1, ...$arguments]);
    $channel->queue_bind($small, $exchange, 'small');
    publish($channel, $exchange, 'small', 'pushed out');
    publish($channel, $exchange, 'small', 'stays');
    expect_death($dead->next(), 'pushed out', death('maxlen', $small, $exchange, 'small'));

    try_again($channel);
    $connection->close();
}

/** What `x-death` says of a first death, but for its time. */
function death(string $reason, string $queue, string $exchange, string $key): array
{
    return ['count' => 1, 'reason' => $reason, 'queue' => $queue, 'exchange' => $exchange, 'routing-keys' => [$key]];
}

function expect_death(AMQPMessage $message, string $body, array $wanted): void
{
    expect_equal($message->getBody(), $body, 'body');
    $headers = $message->get('application_headers')->getNativeData();
    expect_equal(count($headers['x-death']), 1, 'length of x-death');
    [$death] = $headers['x-death'];
    $age_s = time() - $death['time']->getTimestamp();
    expect_equal($death['time'] instanceof DateTime && abs($age_s) < 60, true, "time of a death $age_s s ago");
    unset($death['time']);
    ksort($death);
    ksort($wanted);
    expect_equal($death, $wanted, 'x-death');
    foreach (['reason', 'queue', 'exchange'] as $name) {
        expect_equal($headers["x-first-death-$name"], $wanted[$name], "x-first-death-$name");
    }
}

/** Rejects a message twice into a queue from which it comes back. */
function try_again(AMQPChannel $channel): void
{
    $work = unique();
    $wait = exclusive($channel, [
        'x-message-ttl' => 100,
        'x-dead-letter-exchange' => '',
        'x-dead-letter-routing-key' => $work,
    ]);
    $channel->queue_declare($work, false, false, true, false, false, new AMQPTable([
        'x-dead-letter-exchange' => '',
        'x-dead-letter-routing-key' => $wait,
    ]));
    $inbox = consume($channel, $work, false);
    publish($channel, '', $work, 'try');
    $inbox->next()->reject(false);
    $inbox->next()->reject(false);

    $deaths = array_map(
        fn (array $death) => [$death['reason'], $death['queue'], $death['count']],
        $inbox->next()->get('application_headers')->getNativeData()['x-death']
    );
    expect_equal($deaths, [['expired', $wait, 2], ['rejected', $work, 2]], 'x-death');
}
