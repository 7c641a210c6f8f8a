# Scenarios about consumers.

def prefetch
  connected do |connection|
    channel = connection.create_channel
    channel.confirm_select
    queue = exclusive(channel)
    100.times { |number| queue.publish(number.to_s) }
    channel.wait_for_confirms
    channel.prefetch(10)
    deliveries = deliveries_of(queue, manual_ack: true)
    10.times do |round|
      tags = next_ten(deliveries, 10 * round)
      expect_equal(queue.message_count, 90, "messages that nobody got yet") if round.zero?
      if round.even?
        tags.each { |tag| channel.ack(tag) }
      else
        channel.ack(tags[4], true)
        channel.ack(tags[9], true)
      end
    end
    send_back_and_reject(channel, queue, deliveries)
    channel.close # what is not acknowledged comes back
    queue = connection.create_channel.queue(queue.name, passive: true)
    expect_equal(queue.message_count, 0, "messages at the end")
  end
end

# The delivery tags of ten messages that come in order.
def next_ten(deliveries, first)
  (first...first + 10).map do |number|
    info, _, body = deliveries.next("message #{number}")
    expect_equal(body, number.to_s, "order")
    info.delivery_tag
  end
end

def send_back_and_reject(channel, queue, deliveries)
  queue.publish("again")
  queue.publish("rejected")
  again, = deliveries.next("the message to send back")
  rejected, = deliveries.next("the message to reject")
  expect_equal(again.redelivered?, false, "redelivered the first time")
  channel.nack(again.delivery_tag, false, true)
  again, _, body = deliveries.next("the message that was sent back")
  expect_equal([body, again.redelivered?], ["again", true], "sent back")
  channel.ack(again.delivery_tag)
  channel.reject(rejected.delivery_tag, false)
end

def rpc
  connected do |server|
    channel = server.create_channel
    queue = exclusive(channel)
    queue.subscribe do |_, call, question|
      channel.default_exchange.publish("answer to #{question}", routing_key: call.reply_to,
                                                                correlation_id: call.correlation_id)
    end
    connected { |client| ask(client.create_channel, queue.name) }
  end
end

# Sends all questions and waits for all answers, by the pseudo-queue that is never declared.
def ask(channel, queue)
  answers = deliveries_of(channel.queue("amq.rabbitmq.reply-to", no_declare: true))
  100.times do |number|
    channel.default_exchange.publish("question #{number}", routing_key: queue, correlation_id: "id-#{number}",
                                                           reply_to: "amq.rabbitmq.reply-to")
  end
  got = Array.new(100) do
    _, answer, body = answers.next("an answer")
    [answer.correlation_id, body]
  end
  expect_equal(got.sort, Array.new(100) { |number| ["id-#{number}", "answer to question #{number}"] }.sort, "answers")
end

def cancel
  connected do |connection|
    queue = exclusive(connection.create_channel)
    cancellations = Inbox.new
    consumer = queue.subscribe(on_cancellation: ->(cancelled) { cancellations << cancelled }) {}
    connection.create_channel.queue_delete(queue.name)
    cancelled = cancellations.next("the consumer is cancelled")
    expect_equal(cancelled.consumer_tag, consumer.consumer_tag, "consumer tag")
    expect_equal(queue.channel.open?, true, "the channel is open")
  end
end
