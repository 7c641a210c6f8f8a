//! The history of dead letters: one entry per death, with its circumstances, kept by the vhost for a limited time.
//!
//! `x-death` counts the deaths of a message per queue and reason, and goes with the message. An entry of this history
//! stays when the message is consumed, and also says where the message went, by whose settlement it died, and under
//! which policy.

use std::sync::Arc;

use crate::death_history::DeathReason;
use crate::ids::{ChannelNumber, QueueId};
use crate::limits::{
    DEATH_CIRCUMSTANCES_BYTES, DEATHS_KEPT_AGE_MS, DEATHS_KEPT_BYTES, DEATHS_KEPT_MAX,
};
use crate::message::{Envelope, Message, Name, SharedProperties};
use crate::queue::DropCause;
use smallvec::SmallVec;

/// Limits of the history of dead letters of one vhost; the oldest deaths are forgotten first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeadLetterHistoryLimits {
    /// `dead_letter_history.max_entries`: deaths; 0 turns the history off.
    pub entries_max: u64,
    /// `dead_letter_history.max_bytes`: approximate memory of the deaths, in bytes.
    pub bytes_max: u64,
    /// `dead_letter_history.max_age`: time after which a death is forgotten, in milliseconds.
    pub age_max_ms: u64,
}

impl Default for DeadLetterHistoryLimits {
    fn default() -> Self {
        Self {
            entries_max: DEATHS_KEPT_MAX,
            bytes_max: DEATHS_KEPT_BYTES,
            age_max_ms: DEATHS_KEPT_AGE_MS,
        }
    }
}

/// A death in the history.
#[derive(Clone, Debug)]
pub struct RecordedDeath {
    /// The number of the death in its vhost, from 1 since the vhost was opened.
    pub number: u64,
    /// Time of the death, in milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// The circumstances, which consecutive deaths share if they are the same.
    pub circumstances: Arc<DeathCircumstances>,
    pub(crate) properties: KeptProperties,
}

impl RecordedDeath {
    /// The encoded properties of the dead letter, or of the message if there was no dead letter.
    pub fn properties(&self) -> &[u8] {
        self.properties.encoded()
    }

    /// True if headers are missing because the properties are longer than
    /// [`DEATH_PROPERTIES_BYTES_MAX`](crate::limits::DEATH_PROPERTIES_BYTES_MAX).
    pub fn is_cut(&self) -> bool {
        matches!(self.properties, KeptProperties::Cut(_))
    }
}

/// A death that an earlier process recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RestoredDeath {
    /// Time of the death, in milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// The circumstances.
    pub circumstances: DeathCircumstances,
    /// The encoded properties; empty for none.
    pub properties: Vec<u8>,
    /// True if headers are missing.
    pub is_cut: bool,
}

/// The circumstances of a death.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeathCircumstances {
    /// The queue in which the message died.
    pub queue: Name,
    /// The reason of the death.
    pub reason: DeathReason,
    /// The exchange and the keys that the message had before its death.
    pub published: Arc<Envelope>,
    /// The exchange and the keys of the dead letter; none if the queue had no dead-letter exchange.
    pub dead_letter: Option<Arc<Envelope>>,
    /// The result of the death.
    pub outcome: DeathOutcome,
    /// The settlement that ended the message; none if no client did.
    pub settled_by: Option<Arc<SettledBy>>,
    /// The user policy of the queue.
    pub policy: Option<Name>,
    /// The operator policy of the queue.
    pub operator_policy: Option<Name>,
    /// The queues by id; the default for a death of an earlier process, which no queue has.
    pub ids: CircumstancesIds,
}

impl DeathCircumstances {
    /// Approximate memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let name = |name: &Option<Name>| name.as_ref().map_or(0, |name| name.len());
        let envelope = |envelope: &Envelope| {
            let keys = envelope.routing_keys().map(|key| key.as_bytes().len() + size_of::<Name>());
            envelope.exchange.len() + keys.sum::<usize>()
        };
        let queues = match &self.outcome {
            DeathOutcome::DeadLettered { queues, .. } => {
                queues.iter().map(|queue| queue.len() + size_of::<Name>()).sum()
            }
            DeathOutcome::Kept(_) | DeathOutcome::Dropped(_) => 0,
        };
        let texts = self.queue.len()
            + envelope(&self.published)
            + self.dead_letter.as_ref().map_or(0, |letter| envelope(letter))
            + queues
            + name(&self.policy)
            + name(&self.operator_policy);
        DEATH_CIRCUMSTANCES_BYTES + texts as u64
    }
}

/// Queues by id, for the comparison with the next death.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CircumstancesIds {
    pub(crate) queue: QueueId,
    /// The first targets.
    pub(crate) targets: SmallVec<[QueueId; 2]>,
}

/// The result of a death.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeathOutcome {
    /// The dead letter was routed.
    DeadLettered {
        /// The queues that took the dead letter, or dead-lettered it in turn because they were full; the first
        /// [`DEATH_TARGETS_KEPT_MAX`](crate::limits::DEATH_TARGETS_KEPT_MAX).
        queues: Box<[Name]>,
        /// The number of such queues; 0 if a delayed exchange or a direct reply took the dead letter.
        queues_total: u64,
        /// Queues that would have closed a cycle, or were full.
        copies_dropped: u64,
    },
    /// The queue keeps the message until its dead letter can be delivered (strategy `at-least-once`).
    Kept(DropCause),
    /// The message is gone.
    Dropped(DropCause),
}

/// The client that settled a delivery.
#[derive(PartialEq, Eq, Debug)]
pub struct SettledBy {
    /// The user of the connection.
    pub user: Name,
    /// The name of the connection.
    pub connection: Name,
    /// The channel.
    pub channel: ChannelNumber,
    /// The consumer; none for `basic.get`, or if the consumer was gone.
    pub consumer_tag: Option<Name>,
}

/// The properties of a dead message in the history.
#[derive(Clone, Debug)]
pub(crate) enum KeptProperties {
    /// No properties: an earlier process has not written them.
    Nothing,
    /// In an allocation of their own, mostly that of the dead letter.
    Whole(SharedProperties),
    /// The same without the headers that are too long.
    Cut(SharedProperties),
    /// In a short message that was dropped.
    Message(Message),
}

impl KeptProperties {
    pub(crate) fn encoded(&self) -> &[u8] {
        match self {
            Self::Nothing => &[],
            Self::Whole(properties) | Self::Cut(properties) => properties.encoded(),
            Self::Message(message) => message.properties(),
        }
    }

    /// Approximate memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Whole(properties) | Self::Cut(properties) => properties.encoded().len() as u64,
            Self::Message(message) => message.memory_bytes(),
        }
    }
}

/// Consecutive deaths of the history, the latest first.
#[derive(Clone, Debug)]
pub struct RecordedDeaths {
    /// The deaths.
    pub deaths: Vec<RecordedDeath>,
    /// The number before which the next deaths are; none at the end.
    pub before: Option<u64>,
    /// Deaths that were forgotten since the vhost was opened.
    pub forgotten: u64,
    /// Time of the last death that was forgotten, in milliseconds since the Unix epoch.
    pub forgotten_until_ms: Option<u64>,
}
