//! The history of a message that died: which queues it died in, why and how often.

use std::fmt;
use std::sync::Arc;

use crate::ids::Name;
use crate::routing_key::RoutingKey;

/// Why a message was dead-lettered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DeathReason {
    /// `basic.reject` or `basic.nack` without requeue.
    Rejected,
    /// Its TTL, from whichever source, ran out.
    Expired,
    /// It was over a length limit.
    Maxlen,
    /// It was returned more often than the delivery limit allows.
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

    /// What a word stands for.
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
    /// The queue it died in.
    pub queue: Name,
    /// Why.
    pub reason: DeathReason,
    /// How often.
    pub count: u64,
    /// When it first did, in seconds since the Unix epoch.
    pub time_s: u64,
    /// The exchange it had been published to before the first of these deaths.
    pub exchange: Name,
    /// The keys it had been published with before the first of these deaths, without `BCC`. Deaths
    /// that follow each other with the same keys share them.
    pub routing_keys: Arc<[RoutingKey]>,
    /// Its `expiration` at the first of these deaths.
    pub original_expiration_ms: Option<u64>,
}

/// The first or the last death, as the flat headers show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeathSummary {
    /// The queue.
    pub queue: Name,
    /// Why.
    pub reason: DeathReason,
    /// The exchange the message had been published to before.
    pub exchange: Name,
}

/// The deaths of a message, most recent first; one entry per queue and reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deaths {
    /// Never changed once set.
    pub first: DeathSummary,
    /// Overwritten by each death.
    pub last: DeathSummary,
    /// What `x-death` lists.
    pub entries: Vec<Death>,
}
