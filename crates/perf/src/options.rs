//! The command line.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::message_template::STAMP_BYTES;
use crate::topology::Argument;

/// Largest body, in bytes: four times the default limit of brokers.
const SIZE_MAX: usize = 64 * 1024 * 1024;

/// Largest number of messages of a run that needs a bit for each.
const COUNT_MAX: u64 = 10_000_000_000;

/// Largest number of connections, queues or bindings.
const MANY_MAX: usize = 1_000_000;

/// Longest run in seconds: a year.
const TIME_MAX_S: f64 = 31_536_000.0;

/// Longest prefix of names, in bytes: a name has at most 255, and suffixes follow.
const NAME_MAX: usize = 200;

/// Loads an AMQP 0-9-1 broker and measures its performance
///
/// Every command declares its own queues, with names from --name, and deletes them at its end.
#[derive(Debug, Parser)]
#[command(name = "leveret-perf", version, disable_help_subcommand = true)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) general: General,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of all commands.
#[derive(Args, Debug)]
pub(crate) struct General {
    /// The broker: amqp[s]://USER:PASSWORD@HOST:PORT/VHOST
    #[arg(
        long,
        short = 'u',
        global = true,
        default_value = "amqp://guest:guest@127.0.0.1:5672/%2f"
    )]
    pub(crate) uri: String,

    /// The authority that signs the broker's certificate, for amqps
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) cacert: Option<PathBuf>,

    /// Prefix of the names of queues and exchanges
    #[arg(long, value_name = "NAME", global = true, default_value = "perf", value_parser = name)]
    pub(crate) name: String,

    /// Print the result as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Write a report with plots
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) html: Option<PathBuf>,

    /// Print no progress
    #[arg(long, short = 'q', global = true)]
    pub(crate) quiet: bool,

    /// Process of the broker on this machine, to measure processor time and memory
    #[arg(long, value_name = "PID", global = true)]
    pub(crate) broker_pid: Option<u32>,

    /// Seed of drawn TTLs and priorities
    #[arg(long, value_name = "N", global = true, default_value_t = 1)]
    pub(crate) seed: u64,
}

/// Command of the program.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Publish and consume, and measure rates and latencies
    Throughput(Throughput),
    /// Let messages expire into a dead-letter queue, and measure how late they arrive there
    Expiry(Expiry),
    /// Fill a queue without consumers, then drain it
    Backlog(Backlog),
    /// Open and close connections, channels or queues as fast as possible
    Churn(Churn),
    /// Print the manual page, for the program man
    Man(ManPage),
}

/// Options of the manual page.
#[derive(Args, Clone, Debug)]
pub(crate) struct ManPage {
    /// The command that the page is about, instead of the whole program
    pub(crate) command: Option<String>,
}

impl Command {
    /// Checks that the options are consistent, before a connection is opened.
    ///
    /// # Errors
    /// If options contradict each other.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Throughput(options) => {
                ensure!(
                    options.producers + options.consumers() > 0,
                    "there is nothing to do without producers and consumers"
                );
                ensure!(
                    !options.reject || options.consumers() > 0,
                    "--reject needs a consumer that rejects"
                );
            }
            Self::Expiry(options) => ensure!(
                options.messages.size >= STAMP_BYTES,
                "--size must be {STAMP_BYTES} or more: the body says when its message is due"
            ),
            Self::Backlog(_) | Self::Churn(_) | Self::Man(_) => {}
        }
        Ok(())
    }
}

/// Options for messages and queues.
#[derive(Args, Clone, Debug)]
pub(crate) struct Messages {
    /// Bytes of a message's body; from 20 on latencies are measured
    #[arg(long, short = 's', value_name = "BYTES", default_value_t = 64, value_parser = size)]
    pub(crate) size: usize,

    /// Persistent messages in durable queues
    #[arg(long, short = 'p')]
    pub(crate) persistent: bool,

    /// Wait for confirms, with so many messages not confirmed yet; `expiry` and `backlog` always do
    #[arg(long, short = 'c', value_name = "WINDOW", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) confirm: Option<u64>,

    /// An argument of the queues, such as x-queue-type=quorum
    #[arg(long = "queue-argument", short = 'A', value_name = "NAME=VALUE")]
    pub(crate) queue_arguments: Vec<Argument>,
}

/// Publish and consume, and measure rates and latencies.
#[derive(Args, Debug)]
pub(crate) struct Throughput {
    /// Connections that publish
    #[arg(long, short = 'x', value_name = "N", default_value_t = 1, value_parser = number)]
    pub(crate) producers: usize,

    /// Connections that consume, 0 for none [default: one for each queue]
    #[arg(long, short = 'y', value_name = "N", value_parser = number)]
    pub(crate) consumers: Option<usize>,

    /// Queues; producers and consumers share them out in turn, several to one where there are more
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    pub(crate) queues: usize,

    #[command(flatten)]
    pub(crate) messages: Messages,

    /// Publish to an exchange of this type instead of to the queues; fanout copies to all of them
    #[arg(long, value_name = "TYPE")]
    pub(crate) exchange_type: Option<String>,

    /// Binding keys of all queues together, used in turn as routing keys; in patterns of a topic
    /// exchange their last word is a wildcard
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = at_least_one,
        requires = "exchange_type"
    )]
    pub(crate) bindings: usize,

    /// Deliveries need no acknowledgement
    #[arg(long, short = 'a', conflicts_with_all = ["ack_every", "reject"])]
    pub(crate) auto_ack: bool,

    /// Largest number of deliveries acknowledged, or rejected, together
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) ack_every: u64,

    /// Reject every delivery into a dead-letter queue, which is consumed, too
    #[arg(long)]
    pub(crate) reject: bool,

    /// Prefetch: unacknowledged deliveries of each consumer, 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub(crate) prefetch: u16,

    /// Messages per second of each producer
    #[arg(long, short = 'r', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: Option<u32>,

    /// Messages per second of each consumer
    #[arg(long, short = 'R', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) consumer_rate: Option<u32>,

    /// Limit of the messages that producers are ahead of consumers, 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) in_flight: u64,

    /// Random priorities from 0 to this
    #[arg(long, value_name = "N")]
    pub(crate) priority_max: Option<u8>,

    /// Return unroutable messages (mandatory)
    #[arg(long)]
    pub(crate) mandatory: bool,

    /// Duration of the measurement in seconds
    #[arg(long, short = 't', value_name = "SECONDS", default_value_t = 10.0, value_parser = some_seconds)]
    pub(crate) time: f64,

    /// Warm-up in seconds, not measured
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    pub(crate) warm_up: f64,
}

impl Throughput {
    /// Number of consumers.
    pub(crate) fn consumers(&self) -> usize {
        self.consumers.unwrap_or(self.queues)
    }
}

/// Let messages expire into a dead-letter queue, and measure how late they arrive there.
#[derive(Args, Debug)]
pub(crate) struct Expiry {
    /// Messages to publish
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100_000, value_parser = count())]
    pub(crate) count: u64,

    /// The TTL of the queue in milliseconds, or, as MIN..MAX, of each message, drawn at random
    #[arg(long, value_name = "MS|MIN..MAX", default_value = "1000..4000", value_parser = ttl)]
    pub(crate) ttl_ms: Ttl,

    /// Messages per second
    #[arg(long, short = 'r', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: Option<u32>,

    #[command(flatten)]
    pub(crate) messages: Messages,

    /// Seconds after the last deadline until missing messages count as lost
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = patience())]
    pub(crate) patience: u64,
}

/// Fill a queue without consumers, then drain it.
#[derive(Args, Debug)]
pub(crate) struct Backlog {
    /// Number of messages
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1_000_000, value_parser = count())]
    pub(crate) count: u64,

    #[command(flatten)]
    pub(crate) messages: Messages,

    /// Deliveries need no acknowledgement
    #[arg(long, short = 'a')]
    pub(crate) auto_ack: bool,

    /// Time limit of filling and of draining, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = patience())]
    pub(crate) patience: u64,
}

/// Open and close connections, channels or queues as fast as possible.
#[derive(Args, Debug)]
pub(crate) struct Churn {
    /// Kind of object
    #[arg(value_enum)]
    pub(crate) what: Churned,

    /// Number of objects at a time
    #[arg(long, short = 'x', value_name = "N", default_value_t = 4, value_parser = at_least_one)]
    pub(crate) workers: usize,

    /// Duration of the measurement in seconds
    #[arg(long, short = 't', value_name = "SECONDS", default_value_t = 10.0, value_parser = some_seconds)]
    pub(crate) time: f64,
}

/// Kind of resource that a churn opens and closes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Churned {
    /// Connections, with login and one channel
    Connections,
    /// Channels of one connection for each worker
    Channels,
    /// Queues, declared and deleted
    Queues,
}

/// Expiration of messages.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Ttl {
    /// TTL of the queue, in milliseconds.
    Queue(u32),
    /// Range of the TTL of each message, in milliseconds.
    Message(RangeInclusive<u32>),
}

impl Ttl {
    /// Largest TTL, in milliseconds.
    pub(crate) fn max_ms(&self) -> u32 {
        match self {
            Self::Queue(ttl_ms) => *ttl_ms,
            Self::Message(range) => *range.end(),
        }
    }
}

fn ttl(text: &str) -> Result<Ttl, String> {
    let number =
        |text: &str| text.parse().map_err(|_| format!("'{text}' is no number of milliseconds"));
    let Some((min, max)) = text.split_once("..") else {
        return Ok(Ttl::Queue(number(text)?));
    };
    let range = number(min)?..=number(max)?;
    if range.is_empty() {
        Err("the first is larger than the last".to_owned())
    } else {
        Ok(Ttl::Message(range))
    }
}

fn number(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number <= MANY_MAX);
    number.ok_or_else(|| format!("expected a number from 0 to {MANY_MAX}"))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MANY_MAX).contains(number));
    number.ok_or_else(|| format!("expected a number from 1 to {MANY_MAX}"))
}

fn size(text: &str) -> Result<usize, String> {
    let size = text.parse().ok().filter(|size| *size <= SIZE_MAX);
    size.ok_or_else(|| format!("expected a number from 0 to {SIZE_MAX}"))
}

fn count() -> RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=COUNT_MAX)
}

fn patience() -> RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=TIME_MAX_S as u64)
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=TIME_MAX_S).contains(seconds));
    seconds.ok_or_else(|| format!("expected seconds, {TIME_MAX_S} at most"))
}

fn some_seconds(text: &str) -> Result<f64, String> {
    let seconds = seconds(text)?;
    if seconds > 0.0 { Ok(seconds) } else { Err("expected more than 0 seconds".to_owned()) }
}

fn name(text: &str) -> Result<String, String> {
    if (1..=NAME_MAX).contains(&text.len()) {
        Ok(text.to_owned())
    } else {
        Err(format!("expected 1 to {NAME_MAX} bytes"))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn ttl_option_is_for_the_queue_or_for_each_message() {
        assert_eq!(ttl("5"), Ok(Ttl::Queue(5)));
        assert_eq!(ttl("5..9"), Ok(Ttl::Message(5..=9)));
        assert!(ttl("9..5").is_err() && ttl("x").is_err() && ttl("1..").is_err());
    }

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        let refused = [
            "throughput -t 0",
            "throughput --time=-1",
            "throughput --time=nan",
            "throughput --warm-up=1e99",
            "throughput --size 1000000000",
            "throughput --bindings 5",
            "throughput --queues 0",
            "throughput -x 0 -y 0",
            "throughput --reject -y 0",
            "throughput --reject --auto-ack",
            "throughput --confirm 0",
            "throughput -A x",
            "expiry -n 0",
            "expiry --size 19",
            "expiry --ttl-ms 9..5",
            "backlog --patience 0",
            "churn",
            "churn nothing",
            "churn queues -x 0",
        ];
        for line in refused {
            let words = std::iter::once("leveret-perf").chain(line.split(' '));
            let accepted =
                CommandLine::try_parse_from(words).is_ok_and(|line| line.command.check().is_ok());
            assert!(!accepted, "{line}");
        }
    }
}
