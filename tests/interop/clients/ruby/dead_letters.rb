# What happens to dead letters, and what the broker writes on them.

def dead_letter
  connected do |connection|
    channel = connection.create_channel
    exchange = channel.direct(unique, auto_delete: true)
    dead = deliveries_of(exclusive(channel).bind(exchange, routing_key: "dead"))
    arguments = { x_dead_letter_exchange: exchange.name, x_dead_letter_routing_key: "dead" }
    queue = exclusive(channel, **arguments).bind(exchange, routing_key: "work")

    exchange.publish("too late", routing_key: "work", expiration: "100")
    properties = expect_dead(dead, "too late", "original-expiration" => "100", "reason" => "expired",
                                               "queue" => queue.name, "exchange" => exchange.name,
                                               "routing-keys" => ["work"])
    expect_equal(properties.expiration, nil, "expiration of the expired message")

    exchange.publish("unwanted", routing_key: "work")
    info, = queue.pop(manual_ack: true)
    channel.reject(info.delivery_tag)
    expect_dead(dead, "unwanted", "reason" => "rejected", "queue" => queue.name, "exchange" => exchange.name,
                                  "routing-keys" => ["work"])

    small = exclusive(channel, x_max_length: 1, **arguments).bind(exchange, routing_key: "small")
    exchange.publish("pushed out", routing_key: "small")
    exchange.publish("stays", routing_key: "small")
    expect_dead(dead, "pushed out", "reason" => "maxlen", "queue" => small.name, "exchange" => exchange.name,
                                    "routing-keys" => ["small"])
    try_again(channel)
  end
end

# The next dead letter, which died once, as `death` says; returns its properties.
def expect_dead(dead, text, death)
  _, properties, body = dead.next(text)
  expect_equal(body, text, "body")
  headers = properties.headers
  time = headers["x-death"].first.fetch("time")
  raise "time of the death: #{time.inspect}" unless time.is_a?(Time) && (Time.now - time).abs < 60

  expect_equal(headers["x-death"], [{ "count" => 1, "time" => time, **death }], "x-death")
  %w[reason queue exchange].each do |name|
    expect_equal(headers["x-first-death-#{name}"], death[name], "x-first-death-#{name}")
  end
  properties
end

# Rejects a message twice into a queue from which it comes back.
def try_again(channel)
  work = unique
  wait = exclusive(channel, x_message_ttl: 100, x_dead_letter_exchange: "", x_dead_letter_routing_key: work)
  queue = channel.queue(work, exclusive: true, arguments: { "x-dead-letter-exchange" => "",
                                                            "x-dead-letter-routing-key" => wait.name })
  deliveries = deliveries_of(queue, manual_ack: true)
  queue.publish("try")
  2.times do
    info, = deliveries.next("a delivery to reject")
    channel.reject(info.delivery_tag)
  end
  _, properties, = deliveries.next("the third delivery")
  deaths = properties.headers["x-death"].map { |death| death.values_at("reason", "queue", "count") }
  expect_equal(deaths, [["expired", wait.name, 2], ["rejected", work, 2]], "x-death")
end
