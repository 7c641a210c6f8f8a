# Scenarios about publishing.

MESSAGES = 1000

def confirms
  connected do |connection|
    channel = connection.create_channel
    channel.confirm_select
    queue = channel.queue(unique, durable: true)
    MESSAGES.times { |number| queue.publish(number.to_s, persistent: true) }
    expect_equal(channel.wait_for_confirms, true, "confirmed")
    expect_equal(queue.message_count, MESSAGES, "messages in the queue")
    queue.delete

    returns = Inbox.new
    exchange = channel.default_exchange
    exchange.on_return { |*returned| returns << returned }
    exchange.publish("nobody", routing_key: unique, mandatory: true)
    expect_equal(channel.wait_for_confirms, true, "the returned message is confirmed")
    info, _, body = returns.next("the message comes back")
    expect_equal([info.reply_code, info.reply_text, body], [312, "NO_ROUTE", "nobody"], "returned")

    full = exclusive(channel, x_max_length: 1, x_overflow: "reject-publish")
    full.publish("first")
    expect_equal(channel.wait_for_confirms, true, "the first message is confirmed")
    full.publish("second")
    expect_equal(channel.wait_for_confirms, false, "the second message is confirmed")
    expect_equal(channel.nacked_set.to_a, [MESSAGES + 3], "refused")
    expect_equal([pop_body(full), pop_body(full)], ["first", nil], "what the full queue has")
  end
end

def priorities
  connected do |connection|
    queue = exclusive(connection.create_channel, x_max_priority: 5)
    queue.publish("1", priority: 1)
    queue.publish("5", priority: 5)
    queue.publish("3", priority: 3)
    queue.publish("without")
    expect_equal(Array.new(4) { pop_body(queue) }, %w[5 3 1 without], "order")
  end
end

def transactions
  connected do |connection|
    channel = connection.create_channel
    channel.tx_select
    queue = exclusive(channel)
    publish_two = -> { queue.publish("one").publish("two") }
    publish_two.call
    channel.tx_rollback
    expect_equal(queue.message_count, 0, "messages after the rollback")
    publish_two.call
    expect_equal(queue.message_count, 0, "messages before the commit")
    channel.tx_commit
    expect_equal(queue.message_count, 2, "messages after the commit")

    info, = queue.pop(manual_ack: true)
    channel.ack(info.delivery_tag)
    channel.tx_commit
    channel.close # what is not acknowledged comes back
    queue = connection.create_channel.queue(queue.name, passive: true)
    expect_equal([pop_body(queue), pop_body(queue)], ["two", nil], "what is left")
  end
end

def large
  connected do |connection|
    channel = connection.create_channel
    channel.confirm_select
    queue = exclusive(channel)
    body = (0...250).to_a.pack("C*") * 80_000
    queue.publish(body)
    expect_equal(channel.wait_for_confirms, true, "confirmed")
    raise "the message is another one" unless pop_body(queue) == body
  end
end
