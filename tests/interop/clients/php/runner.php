<?php

// What is around the scenarios: running them, waiting, and saying what is wrong.

declare(strict_types=1);

use PhpAmqpLib\Channel\AMQPChannel;
use PhpAmqpLib\Connection\AbstractConnection;
use PhpAmqpLib\Connection\AMQPConnectionConfig;
use PhpAmqpLib\Connection\AMQPConnectionFactory;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPTable;

const WITHIN_S = 60;

function run(string $version, array $scenarios): never
{
    global $argv;
    // A warning is a failure, but php-amqplib silences some with "@" on purpose.
    set_error_handler(function (int $level, string $message, string $file, int $line): bool {
        if (error_reporting() & $level) {
            throw new ErrorException($message, 0, $level, $file, $line);
        }
        return false;
    }, E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED);
    echo "version $version\n";
    $passed = array_map(fn (string $name): bool => passes($name, $scenarios[$name]), array_slice($argv, 1));
    exit(in_array(false, $passed, true) ? 1 : 0);
}

function passes(string $name, Closure $scenario): bool
{
    try {
        $scenario();
        echo "ok $name\n";
        return true;
    } catch (Throwable $error) {
        echo "$error\nfailed $name: " . strtr($error->getMessage(), "\n", ' ') . "\n";
        return false;
    }
}

/** Equal are values of the same type; tables have the same keys in the same order. */
function expect_equal(mixed $got, mixed $wanted, string $what): void
{
    if ($got !== $wanted) {
        throw new Exception("$what: " . json_encode($got) . ', not ' . json_encode($wanted));
    }
}

function expect_starts(string $text, string $prefix): void
{
    if (!str_starts_with($text, $prefix)) {
        throw new Exception("$text, not $prefix");
    }
}

/** The error of this class that a call throws; it must. */
function error_of(string $class, Closure $call): Throwable
{
    try {
        $call();
    } catch (Throwable $error) {
        if ($error instanceof $class) {
            return $error;
        }
        throw $error;
    }
    throw new Exception("no $class was thrown");
}

/** Asks again and again until it holds. */
function eventually(string $what, Closure $holds, float $pause_s = 0.01): void
{
    $deadline = microtime(true) + WITHIN_S;
    while (!$holds()) {
        if (microtime(true) > $deadline) {
            throw new Exception('not within ' . WITHIN_S . " s: $what");
        }
        usleep((int) ($pause_s * 1e6));
    }
}

/** A name that nobody else uses. */
function unique(): string
{
    return 'interop-' . bin2hex(random_bytes(6));
}

/** Has the broker killed and started again. */
function restart_broker(): void
{
    echo "restart\n";
    expect_equal(fgets(STDIN), "restarted\n", 'the answer to restart');
}

function config(): AMQPConnectionConfig
{
    $config = new AMQPConnectionConfig();
    $config->setHost(getenv('AMQP_HOST'));
    $config->setPort((int) getenv('AMQP_PORT'));
    $config->setReadTimeout(WITHIN_S);
    $config->setWriteTimeout(WITHIN_S);
    $config->setChannelRPCTimeout(WITHIN_S);
    return $config;
}

function connection(?AMQPConnectionConfig $config = null): AbstractConnection
{
    return AMQPConnectionFactory::create($config ?? config());
}

/** The name of a new queue that goes with its connection, named by the broker. */
function exclusive(AMQPChannel $channel, array $arguments = []): string
{
    [$queue] = $channel->queue_declare('', false, false, true, false, false, new AMQPTable($arguments));
    return $queue;
}

/** How many messages wait in a queue. */
function ready(AMQPChannel $channel, string $queue): int
{
    [, $ready] = $channel->queue_declare($queue, true);
    return $ready;
}

function publish(AMQPChannel $channel, string $exchange, string $key, string $body, array $properties = []): void
{
    $channel->basic_publish(new AMQPMessage($body, $properties), $exchange, $key);
}

/** The next message of a queue, which must have one. */
function get(AMQPChannel $channel, string $queue, bool $no_ack = true): AMQPMessage
{
    return $channel->basic_get($queue, $no_ack) ?? throw new Exception("$queue is empty");
}

/** Starts a consumer, whose messages come into an inbox. */
function consume(AMQPChannel $channel, string $queue, bool $no_ack = true): Inbox
{
    $inbox = new Inbox($channel);
    $channel->basic_consume($queue, '', false, $no_ack, false, false, $inbox->add(...));
    return $inbox;
}

/** Collects what the channel's callbacks are given. */
class Inbox
{
    private array $messages = [];

    public function __construct(private AMQPChannel $channel)
    {
    }

    public function add(AMQPMessage $message): void
    {
        $this->messages[] = $message;
    }

    /** The next message; the channel throws when none comes. */
    public function next(): AMQPMessage
    {
        while ($this->messages === []) {
            $this->channel->wait(null, false, WITHIN_S);
        }
        return array_shift($this->messages);
    }
}
