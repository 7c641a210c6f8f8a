# Scenarios about connections and their errors.

def connect
  connected { |connection| round_trip(connection) }
end

def tls
  over_tls = { port: ENV.fetch("AMQPS_PORT").to_i, tls: true, verify_peer: true }
  connected(tls_ca_certificates: [ENV.fetch("CA_FILE")], **over_tls) { |connection| round_trip(connection) }
  refused = error_of(OpenSSL::SSL::SSLError) { connected(tls_ca_certificates: [], **over_tls) {} }
  raise refused unless refused.message.include?("certificate verify failed")
end

# Sends a message with properties to itself and closes the connection.
def round_trip(connection)
  channel = connection.create_channel
  queue = exclusive(channel)
  raise "not named by the broker: #{queue.name}" unless queue.name.start_with?("amq.gen-")

  properties = {
    content_type: "text/plain",
    headers: {
      "string" => "text",
      "integer" => -42,
      "boolean" => true,
      "timestamp" => Time.at(1_700_000_000),
      "table" => { "nested" => { "deep" => "yes" } },
      "list" => [false, 2, "three"]
    },
    delivery_mode: 2,
    priority: 0,
    correlation_id: "correlation",
    message_id: "message",
    type: "greeting"
  }
  queue.publish("hello", properties)
  _, got, body = queue.pop
  expect_equal(body, "hello", "body")
  expect_equal(got.to_h, properties, "properties")
  expect_equal(queue.pop, [nil, nil, nil], "the empty queue")
  channel.close
  connection.close
  expect_equal(connection.status, :closed, "status")
end

# Bunny recovers the connection, the channel with its prefetch and confirms, the topology and the consumer by itself.
def restart
  name = unique
  recoveries = Inbox.new
  options = { network_recovery_interval: 0.1, recovery_completed: -> { recoveries << true } }
  connected(**options) do |connection|
    channel = connection.create_channel
    channel.prefetch(1)
    channel.confirm_select
    exchange = channel.direct(name, durable: true)
    queue = channel.queue(name, durable: true).bind(exchange, routing_key: "work")
    deliveries = deliveries_of(queue, manual_ack: true)
    publish_confirmed(exchange, "held")
    deliveries.next("the message that the consumer holds")
    publish_confirmed(exchange, "before") # which nothing consumes, as the consumer takes one at a time
    restart_broker
    recoveries.next("the connection is recovered")

    expect_delivery(channel, deliveries, "held", redelivered: true)
    expect_delivery(channel, deliveries, "before", redelivered: true)
    publish_confirmed(exchange, "after")
    expect_delivery(channel, deliveries, "after", redelivered: false)
    queue.delete
    exchange.delete
  end
end

def publish_confirmed(exchange, body)
  exchange.publish(body, routing_key: "work", persistent: true)
  raise "#{body} was refused" unless exchange.wait_for_confirms
end

def expect_delivery(channel, deliveries, wanted, redelivered:)
  info, _, body = deliveries.next(wanted)
  expect_equal([body, info.redelivered?], [wanted, redelivered], "delivered")
  channel.ack(info.delivery_tag)
end

def errors
  connected do |connection|
    connected do |other|
      channel_errors(connection, exclusive(other.create_channel).name)
    end
  end

  log = StringIO.new
  error_of(Bunny::AuthenticationFailureError) { connected(password: "wrong", log_file: log) {} }
  raise log.string unless log.string.include?("403 ACCESS_REFUSED - Login was refused using authentication mechanism " \
                                              "PLAIN. For details see the broker logfile.")

  refused = error_of(Bunny::NotAllowedError) { connected(vhost: "nope") {} }.connection_close
  expect_equal([refused.reply_code, refused.reply_text], [530, "NOT_ALLOWED - vhost nope not found"], "no such vhost")
end

# Each closes its channel, and the connection lives on.
def channel_errors(connection, locked)
  name = unique
  error = error_of(Bunny::NotFound) { connection.create_channel.queue(name, passive: true) }
  expect_closed(error, 404, "NOT_FOUND - no queue '#{name}' in vhost '/'")

  connection.create_channel.queue(name, exclusive: true)
  error = error_of(Bunny::PreconditionFailed) do
    connection.create_channel.queue(name, exclusive: true, arguments: { "x-message-ttl" => 1000 })
  end
  expect_closed(error, 406, "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue '#{name}' in vhost '/': ")

  error = error_of(Bunny::ResourceLocked) { connection.create_channel.queue(locked, passive: true) }
  expect_closed(error, 405, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '#{locked}' " \
                            "in vhost '/'. ")

  channel = connection.create_channel
  channel.default_exchange.publish("never", routing_key: name, expiration: "abc")
  # Nothing waits for an answer to a publish: what is done next on the channel tells the error.
  eventually("invalid expiration") do
    error = error_of(Bunny::Exception) { channel.queue(name, passive: true) }
    error.message.include?("PRECONDITION_FAILED - invalid expiration 'abc': ")
  end
  expect_equal(connection.create_channel.queue(name, passive: true).message_count, 0, "on the same connection")
end

def expect_closed(error, code, text)
  told = error.channel_close
  raise "not #{code} #{text}: #{told.inspect}" unless told.reply_code == code && told.reply_text.start_with?(text)
end
