# Bunny and its own recovery: publishes numbered messages with confirms, and consumes them. ../foreign.py says how.

require "bunny"

PERIOD_S = 0.03
ANSWER_S = 10

QUEUE = ARGV.fetch(0)
$stdout.sync = true

def say(word, number = "")
  puts "#{word} #{number}"
end

# A connection that recovers by itself. Nobody makes the first one again but this.
def connect
  options = { addresses: ENV.fetch("NODES").split(","), tls: true, verify_peer: true, heartbeat: 5, log_level: :fatal,
              tls_ca_certificates: [ENV.fetch("CA_FILE")], network_recovery_interval: 0.2,
              recover_from_connection_close: true, continuation_timeout: ANSWER_S * 1000,
              connection_timeout: ANSWER_S, hosts_shuffle_strategy: ->(hosts) { hosts } }
  connection = Bunny.new(options)
  connection.start
  connection
rescue Bunny::Exception, Timeout::Error, IOError, SystemCallError, OpenSSL::SSL::SSLError
  sleep 0.2
  retry
end

# The exchange, on a channel in confirm mode.
def publisher(connection)
  channel = connection.create_channel
  channel.confirm_select
  channel.default_exchange
end

# True if the message is confirmed; false if that is not known.
def confirmed?(exchange, body)
  exchange.publish(body, routing_key: QUEUE, persistent: true)
  Timeout.timeout(ANSWER_S) { exchange.wait_for_confirms }
rescue Bunny::Exception, Timeout::Error, IOError, SystemCallError, OpenSSL::SSL::SSLError
  sleep 0.1
  false
end

# True unless the library has given up: it dies of answers that break off while it recovers.
def recovers?(connection)
  deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + ANSWER_S
  sleep 0.1 until connection.open? || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
  connection.open?
end

def publish
  connection = exchange = nil
  number = 0
  until $stopped
    say "sent", number
    until exchange && confirmed?(exchange, number.to_s)
      begin
        connection = connect unless connection && recovers?(connection)
        exchange = publisher(connection) unless exchange&.channel&.open? && exchange.channel.connection == connection
      rescue Bunny::Exception, Timeout::Error, IOError, SystemCallError, OpenSSL::SSL::SSLError
        exchange = nil
      end
    end
    say "confirmed", number
    number += 1
    sleep PERIOD_S
  end
  say "done"
end

def consume
  loop do
    connection = connect
    channel = connection.create_channel
    channel.prefetch(20)
    channel.queue(QUEUE, passive: true).subscribe(manual_ack: true) do |info, _, body|
      say "got", body
      channel.ack(info.delivery_tag)
    rescue Bunny::Exception, IOError, SystemCallError, OpenSSL::SSL::SSLError
      # It comes again.
    end
    sleep 0.5 while recovers?(connection)
  rescue Bunny::Exception, Timeout::Error, IOError, SystemCallError, OpenSSL::SSL::SSLError
    # Lost before it consumed.
  end
end

threads = [Thread.new { publish }, Thread.new { consume }]
while (line = $stdin.gets)
  $stopped = true if line == "stop\n"
end
exit! threads.all?(&:alive?) || $stopped ? 0 : 1
