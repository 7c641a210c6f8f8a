# Scenarios about messages and queues that expire.

def queue_ttl
  connected do |connection|
    channel = connection.create_channel
    queue = exclusive(channel, x_message_ttl: 1000)
    channel.confirm_select
    3.times { queue.publish("short-lived") }
    channel.wait_for_confirms
    expect_equal(queue.message_count, 3, "messages at first")
    eventually("the messages expire") { queue.message_count.zero? }

    unused = channel.queue(unique, arguments: { "x-expires" => 300 }).name
    # To ask is to use the queue: it must be left alone for longer than it lives..
    eventually("the queue expires", pause_s: 0.5) { !connection.queue_exists?(unused) }
    gone = error_of(Bunny::NotFound) { connection.create_channel.queue(unused, passive: true) }
    expect_equal(gone.channel_close.reply_code, 404, "reply code")
  end
end

def message_ttl
  connected do |connection|
    channel = connection.create_channel
    channel.confirm_select
    queue = exclusive(channel)
    queue.publish("short", expiration: "1000")
    queue.publish("long", expiration: "60000")
    channel.wait_for_confirms
    expect_equal(queue.message_count, 2, "messages at first")
    eventually("the first message expires") { queue.message_count == 1 }
    _, properties, body = queue.pop
    expect_equal([body, properties.expiration], %w[long 60000], "what is left")

    queue.publish("never", expiration: "0")
    channel.wait_for_confirms
    expect_equal(queue.message_count, 0, "messages that expire at once")
    expect_equal(queue.pop, [nil, nil, nil], "the empty queue")
  end
end
