//! A warning about a dead-letter map, and words that several warnings use.

use super::MapQueue;
use crate::setting::DeadLetterStrategy;
use crate::words;

/// The severity of a warning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Dead letters are lost.
    Error,
    /// Some dead letters may be lost or delayed.
    Warning,
    /// The configuration is unusual, but may be intended.
    Info,
}

impl Severity {
    /// The severity as it appears in the HTTP API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// The kind of problem that a warning reports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum WarningKind {
    /// The dead-letter exchange does not exist.
    ExchangeMissing,
    /// The dead-letter exchange routes dead letters to no queue.
    Unroutable,
    /// Dead letters return to the queue in which they died.
    Loop,
    /// Dead letters reach a queue whose TTL is shorter than the TTL they had before.
    ShorterTtl,
    /// Dead letters reach a queue with a length limit.
    Limit,
    /// Dead letters reach a queue without a consumer.
    NoConsumer,
}

impl WarningKind {
    /// The kind as it appears in the HTTP API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ExchangeMissing => "exchange_missing",
            Self::Unroutable => "unroutable",
            Self::Loop => "loop",
            Self::ShorterTtl => "shorter_ttl",
            Self::Limit => "limit",
            Self::NoConsumer => "no_consumer",
        }
    }
}

/// A warning about the dead-letter map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapWarning {
    /// The severity of the problem.
    pub severity: Severity,
    /// The kind of problem.
    pub kind: WarningKind,
    /// Index of the queue that the dead letters come from; if there are several, one of them.
    pub queue: usize,
    /// Index of the dead-letter exchange.
    pub exchange: usize,
    /// Index of the queue that the dead letters reach, if the warning is about that queue.
    pub to_queue: Option<usize>,
    /// Indices of all queues that the dead letters come from; for a cycle, the queues of one round in order;
    /// empty if the warning is about the queue that dead letters reach.
    pub queues: Vec<usize>,
    /// The warning as a sentence.
    pub text: String,
}

/// True if the queue keeps dead letters that it cannot deliver.
pub(super) fn keeps(queue: &MapQueue) -> bool {
    queue.settings.dead_letter_strategy == DeadLetterStrategy::AtLeastOnce
}

/// Formats `'a'`, `'a' and another queue`, `'a' and 5 others`.
pub(super) fn first_of(first: &MapQueue, count: u64) -> String {
    let first = &first.name;
    match count {
        0 | 1 => format!("'{first}'"),
        2 => format!("'{first}' and another queue"),
        n => format!("'{first}' and {} others", words::number(n - 1)),
    }
}
