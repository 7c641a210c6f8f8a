<?php

// Scenarios about consumers.

declare(strict_types=1);

use PhpAmqpLib\Channel\AMQPChannel;
use PhpAmqpLib\Exception\AMQPBasicCancelException;
use PhpAmqpLib\Message\AMQPMessage;

function prefetch(): void
{
    $connection = connection();
    $channel = $connection->channel();
    $channel->confirm_select();
    $queue = exclusive($channel);
    for ($number = 0; $number < 100; $number++) {
        publish($channel, '', $queue, "$number");
    }
    $channel->wait_for_pending_acks(WITHIN_S);
    $channel->basic_qos(0, 10, false);
    $inbox = consume($channel, $queue, false);
    for ($round = 0; $round < 10; $round++) {
        $ten = next_ten($inbox, 10 * $round);
        if ($round === 0) {
            expect_equal(ready($channel, $queue), 90, 'messages that nobody got yet');
        }
        if ($round % 2 === 0) {
            array_walk($ten, fn (AMQPMessage $message) => $message->ack());
        } else {
            $ten[4]->ack(true);
            $ten[9]->ack(true);
        }
    }
    send_back_and_reject($channel, $queue, $inbox);
    $channel->close(); // what is not acknowledged comes back
    expect_equal(ready($connection->channel(), $queue), 0, 'messages at the end');
    $connection->close();
}

/** Ten messages that come in order. */
function next_ten(Inbox $inbox, int $first): array
{
    return array_map(function (int $number) use ($inbox): AMQPMessage {
        $message = $inbox->next();
        expect_equal($message->getBody(), "$number", 'order');
        return $message;
    }, range($first, $first + 9));
}

function send_back_and_reject(AMQPChannel $channel, string $queue, Inbox $inbox): void
{
    publish($channel, '', $queue, 'again');
    publish($channel, '', $queue, 'rejected');
    $again = $inbox->next();
    $rejected = $inbox->next();
    expect_equal($again->isRedelivered(), false, 'redelivered the first time');
    $again->nack(true);
    $again = $inbox->next();
    expect_equal($again->getBody(), 'again', 'sent back');
    expect_equal($again->isRedelivered(), true, 'redelivered the second time');
    $again->ack();
    $rejected->reject(false);
}

function rpc(): void
{
    $server = connection();
    $serving = $server->channel();
    $queue = exclusive($serving);
    $requests = consume($serving, $queue);
    $client = connection();
    $asking = $client->channel();
    $answers = consume($asking, 'amq.rabbitmq.reply-to');

    $wanted = [];
    for ($number = 0; $number < 100; $number++) {
        $wanted["id-$number"] = "answer to question $number";
        publish($asking, '', $queue, "question $number", [
            'correlation_id' => "id-$number",
            'reply_to' => 'amq.rabbitmq.reply-to',
        ]);
    }
    foreach ($wanted as $_) {
        $request = $requests->next();
        publish($serving, '', $request->get('reply_to'), 'answer to ' . $request->getBody(), [
            'correlation_id' => $request->get('correlation_id'),
        ]);
    }
    $got = [];
    foreach ($wanted as $_) {
        $answer = $answers->next();
        $got[$answer->get('correlation_id')] = $answer->getBody();
    }
    expect_equal($got, $wanted, 'answers');
    $client->close();
    $server->close();
}

function cancel(): void
{
    $connection = connection();
    $channel = $connection->channel();
    $queue = exclusive($channel);
    $tag = $channel->basic_consume($queue);
    $connection->channel()->queue_delete($queue);
    $cancelled = error_of(AMQPBasicCancelException::class, fn () => $channel->wait(null, false, WITHIN_S));
    expect_equal($cancelled->getConsumerTag(), $tag, 'consumer tag');
    expect_equal($channel->is_open(), true, 'the channel is open');
    $connection->close();
}
