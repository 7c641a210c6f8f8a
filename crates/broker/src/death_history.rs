//! The history of a dead message: the queues in which it died, the reasons and the counts.

use std::fmt;
use std::sync::Arc;

use crate::ids::Name;
use crate::routing_key::RoutingKey;

/// The reason why a message died.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DeathReason {
    /// `basic.reject` or `basic.nack` without requeue.
    Rejected,
    /// The TTL of the message ran out, from any source.
    Expired,
    /// The queue exceeded a length limit.
    Maxlen,
    /// The message was returned more often than the delivery limit allows.
    DeliveryLimit,
}

impl DeathReason {
    /// All reasons, in the order counters list them.
    pub const ALL: [Self; 4] = [Self::Rejected, Self::Expired, Self::Maxlen, Self::DeliveryLimit];

    /// The word in `x-death.reason`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Maxlen => "maxlen",
            Self::DeliveryLimit => "delivery_limit",
        }
    }

    /// Parses the form that `as_str` gives.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }
}

impl fmt::Display for DeathReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One entry of `x-death`: all deaths of a message in one queue for one reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Death {
    /// The queue in which the message died.
    pub queue: Name,
    /// The reason of the deaths.
    pub reason: DeathReason,
    /// The number of deaths.
    pub count: u64,
    /// Time of the first of these deaths, in seconds since the Unix epoch.
    pub time_s: u64,
    /// The exchange that the message was published to before the first of these deaths.
    pub exchange: Name,
    /// The keys that the message was published with before the first of these deaths, without `BCC`.
    /// Consecutive deaths with the same keys share one list.
    pub routing_keys: Arc<[RoutingKey]>,
    /// The message's `expiration` at the first of these deaths.
    pub original_expiration_ms: Option<u64>,
}

/// The first or the last death, as the flat headers show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeathSummary {
    /// The queue in which the message died.
    pub queue: Name,
    /// The reason of the death.
    pub reason: DeathReason,
    /// The exchange that the message was published to before.
    pub exchange: Name,
}

/// The deaths of a message, most recent first; one entry per queue and reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeathHistory {
    /// The first death; never changes once set.
    pub first: DeathSummary,
    /// The last death; every death replaces it.
    pub last: DeathSummary,
    /// The entries of `x-death`.
    pub entries: Vec<Death>,
}
