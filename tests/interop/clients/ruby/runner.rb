# What is around the scenarios: running them, waiting, and saying what is wrong.

require "securerandom"
require "timeout"

WITHIN_S = 60

$stdout.sync = true

def run(version, scenarios)
  puts "version #{version}"
  passed = ARGV.map { |name| passes?(name, scenarios.fetch(name)) }
  exit passed.all?
end

def passes?(name, scenario)
  scenario.call
  puts "ok #{name}"
  true
rescue StandardError => error
  warn error.full_message(highlight: false)
  puts "failed #{name}: #{error.class}: #{error.message}".tr("\n", " ")
  false
end

def expect_equal(got, wanted, what)
  raise "#{what}: #{got.inspect}, not #{wanted.inspect}" unless got == wanted
end

# The error that a block raises; it must.
def error_of(error_class)
  yield
rescue error_class => error
  error
else
  raise "no #{error_class} was raised"
end

# Asks again and again until the block says yes.
def eventually(what, pause_s: 0.01)
  deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + WITHIN_S
  until yield
    raise "not within #{WITHIN_S} s: #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

    sleep pause_s
  end
end

# What Bunny's threads hand over to the scenario.
class Inbox
  def initialize
    @queue = Thread::Queue.new
  end

  def <<(event)
    @queue << event
  end

  def next(what)
    Timeout.timeout(WITHIN_S, RuntimeError, "not within #{WITHIN_S} s: #{what}") { @queue.pop }
  end
end

# A name that nobody else uses.
def unique
  "interop-#{SecureRandom.hex(6)}"
end

# Has the broker killed and started again.
def restart_broker
  puts "restart"
  expect_equal($stdin.gets, "restarted\n", "the answer to restart")
end

# A connection that is closed after the block.
def connected(**options)
  connection = Bunny.new(host: ENV.fetch("AMQP_HOST"), port: ENV.fetch("AMQP_PORT").to_i, log_file: $stderr, **options)
  connection.start
  yield connection
ensure
  connection.close if connection&.open?
end

# A queue that goes with its connection, named by the broker.
def exclusive(channel, **arguments)
  channel.queue("", exclusive: true, arguments: arguments.transform_keys { |name| name.to_s.tr("_", "-") })
end

def pop_body(queue)
  _, _, body = queue.pop
  body
end

# The deliveries of a queue, each as Bunny gives it: delivery information, properties, body.
def deliveries_of(queue, **options)
  inbox = Inbox.new
  queue.subscribe(**options) { |*delivery| inbox << delivery }
  inbox
end
