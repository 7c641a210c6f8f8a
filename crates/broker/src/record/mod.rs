//! What must be durable: the records of a vhost's log.
//!
//! A record says what happened, not what was asked: replaying the records in order gives the durable
//! part of the vhost, with every queue, message and deadline as it was. Its octets are `encode`'s and
//! `decode`'s business; which records are still needed is told beside it (`Meaning`), so that the log
//! need not understand what it keeps.

mod decode;
mod encode;

use std::sync::Arc;

use smallvec::SmallVec;

use amqp::table::Table;

pub(crate) use decode::Reader;
pub use decode::{DecodeError, Decoded, Envelopes};
pub(crate) use encode::put_message;
pub use encode::record_in_words;

use crate::death_history::DeathReason;
use crate::exchange::ExchangeType;
use crate::ids::{EntryId, QueueNumber};
use crate::message::{Message, Name};
use crate::policy::{Policy, PolicyKind};
use crate::time::Time;

/// What must be durable. Replaying the records in order gives the durable part of the vhost.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each field repeats what the commands document")]
pub enum Record {
    /// A message entered queues.
    Publish {
        message: Message,
        entries: Entries,
    },
    /// A message left its queue for good.
    Settle {
        queue: QueueNumber,
        entry: EntryId,
    },
    /// A message died in one queue and its dead letter entered others: one record, so that it is in
    /// exactly one state after any crash. Without entries it left nothing behind.
    DeadLetter {
        queue: QueueNumber,
        entry: EntryId,
        message: Message,
        entries: Entries,
    },
    /// A message came back to its queue; it is delivered again from `ready_at` on.
    Requeue {
        queue: QueueNumber,
        entry: EntryId,
        acquired_count: u32,
        delivery_count: u32,
        ready_at: Option<Time>,
    },
    /// A message died and its queue keeps it until there is somewhere to go.
    Pend {
        queue: QueueNumber,
        entry: EntryId,
        reason: DeathReason,
    },
    /// Messages of a queue have been handed out, none of them newer than `up_to`.
    Delivered {
        queue: QueueNumber,
        up_to: u64,
    },
    /// Everything in a queue is gone but what was unacknowledged, which is `kept`.
    Purge {
        queue: QueueNumber,
        kept: Vec<EntryId>,
    },
    DeclareQueue(QueueRecord),
    DeleteQueue {
        queue: QueueNumber,
    },
    DeclareExchange(ExchangeRecord),
    DeleteExchange {
        name: Name,
    },
    Bind(BindingRecord),
    Unbind(BindingRecord),
    SetPolicy {
        kind: PolicyKind,
        policy: Arc<Policy>,
    },
    ClearPolicy {
        kind: PolicyKind,
        name: Name,
    },
}

/// The queues a message entered, with its identity in each.
pub type Entries = SmallVec<[(QueueNumber, EntryId); 2]>;

/// A queue in the log, as it was declared.
#[derive(Clone, PartialEq, Debug)]
pub struct QueueRecord {
    /// Its number there.
    pub queue: QueueNumber,
    /// Its name.
    pub name: Name,
    /// Whether it goes with its last consumer.
    pub auto_delete: bool,
    /// Its arguments.
    pub arguments: Table,
    /// The user who has declared it.
    pub declared_by: Name,
}

/// An exchange in the log, as it was declared.
#[derive(Clone, PartialEq, Debug)]
pub struct ExchangeRecord {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub kind: ExchangeType,
    /// Whether it goes with its last binding.
    pub auto_delete: bool,
    /// Whether clients may not publish to it.
    pub internal: bool,
    /// Its arguments.
    pub arguments: Table,
    /// The user who has declared it.
    pub declared_by: Name,
}

/// A binding in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BindingRecord {
    /// Name of the exchange messages come from.
    pub source: Name,
    /// Whether the destination is a queue; an exchange otherwise.
    pub to_queue: bool,
    /// Name of the destination.
    pub destination: Name,
    /// The binding key.
    pub routing_key: Name,
    /// Its arguments.
    pub arguments: Table,
}

/// What a record means to a log that does not understand it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// It stands for itself, for as long as something refers to it.
    Stands,
    /// It ends a reference of the record it is about; it may stand for something itself, too.
    Releases,
    /// It says something of the record it is about, instead of what others of its kind said of the
    /// same entry or queue before.
    Annotates,
    /// It ends references of many records.
    EndsMany,
    /// Both of the last but one: it ends a reference of the record it is about, and of many others.
    ReleasesMany,
}

impl Record {
    /// What it means to the log.
    pub fn meaning(&self) -> Meaning {
        match self {
            Self::Publish { .. }
            | Self::DeclareQueue(_)
            | Self::DeclareExchange(_)
            | Self::Bind(_) => Meaning::Stands,
            Self::Settle { .. }
            | Self::DeadLetter { .. }
            | Self::DeleteExchange { .. }
            | Self::Unbind(_)
            | Self::SetPolicy { .. }
            | Self::ClearPolicy { .. } => Meaning::Releases,
            Self::Requeue { .. } | Self::Pend { .. } | Self::Delivered { .. } => Meaning::Annotates,
            Self::Purge { .. } => Meaning::EndsMany,
            Self::DeleteQueue { .. } => Meaning::ReleasesMany,
        }
    }

    /// How many things it stands for: copies of a message, or one definition.
    pub fn references(&self) -> u16 {
        match self {
            Self::Publish { entries, .. } | Self::DeadLetter { entries, .. } => {
                u16::try_from(entries.len()).expect("a record names ENTRIES_PER_RECORD_MAX queues")
            }
            Self::DeclareQueue(_)
            | Self::DeclareExchange(_)
            | Self::Bind(_)
            | Self::SetPolicy { .. } => 1,
            Self::Settle { .. }
            | Self::DeleteExchange { .. }
            | Self::Unbind(_)
            | Self::ClearPolicy { .. }
            | Self::Requeue { .. }
            | Self::Pend { .. }
            | Self::Delivered { .. }
            | Self::Purge { .. }
            | Self::DeleteQueue { .. } => 0,
        }
    }
}
