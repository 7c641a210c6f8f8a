//! Records of a vhost's log: everything that must be durable.
//!
//! A record describes an event, not a request. Replaying the records in order restores the durable part of
//! the vhost, with every queue, message and deadline. `encode` and `decode` convert records to bytes and
//! back. By the [`RecordRole`] of a record the log knows which records are still needed, without
//! understanding their contents.

mod decode;
mod digest;
mod encode;
mod kind;

use std::sync::Arc;

use smallvec::SmallVec;

use amqp::table::Table;

pub(crate) use decode::Reader;
pub use decode::{DecodeError, Decoded, Envelopes};
pub(crate) use digest::definition_hash;
pub use digest::{Digest, QueueDigest};
pub(crate) use encode::put_message;
pub use kind::{RecordRole, record_description};

use self::kind::{About, Keeps, Kind};
use crate::death_history::DeathReason;
use crate::exchange::ExchangeType;
use crate::ids::{EntryId, QueueNumber, RedriveId};
use crate::message::{Message, Name};
use crate::policy::{Policy, PolicyKind};
use crate::setting::Setting;
use crate::time::Time;

/// A durable event. Replaying all records in order restores the durable part of the vhost.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each field repeats what the commands document")]
pub enum Record {
    /// A message entered queues.
    Publish {
        message: Message,
        entries: Entries,
    },
    /// A message entered queues and delayed exchanges, in which it waits until `ready_at`.
    Schedule {
        message: Message,
        entries: Entries,
        ready_at: Time,
    },
    /// A message that waited in a queue became ready. It has another place and therefore another id, `to`.
    Ready {
        queue: QueueNumber,
        entry: EntryId,
        to: EntryId,
    },
    /// A message that waits got another delivery time.
    Reschedule {
        queue: QueueNumber,
        entry: EntryId,
        ready_at: Time,
        /// The delivery time on the wall clock, in milliseconds, for the header `x-scheduled-for`. None where the axis
        /// of the log is the wall clock, as in every vhost that is not replicated.
        scheduled_for_ms: Option<u64>,
    },
    /// A message left its queue for good.
    Settle {
        queue: QueueNumber,
        entry: EntryId,
    },
    /// A message died in one queue and its dead letter entered others. One record holds both, so that after
    /// any crash the message is in exactly one state. Without entries the message left nothing behind.
    DeadLetter {
        queue: QueueNumber,
        entry: EntryId,
        message: Message,
        entries: Entries,
    },
    /// A message was requeued; it becomes ready at `ready_at`.
    Requeue {
        queue: QueueNumber,
        entry: EntryId,
        acquired_count: u32,
        delivery_count: u32,
        ready_at: Option<Time>,
    },
    /// A consumer gave a message these headers, instead of those it had.
    Annotate {
        queue: QueueNumber,
        entry: EntryId,
        headers: Table,
    },
    /// A message died, and its queue keeps it until the dead letter can be delivered.
    Pend {
        queue: QueueNumber,
        entry: EntryId,
        reason: DeathReason,
    },
    /// Messages of a queue up to the number `up_to` have been delivered.
    Delivered {
        queue: QueueNumber,
        up_to: u64,
    },
    /// A queue was purged; only the unacknowledged messages in `kept` remain.
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
    /// A redrive job of a replicated vhost began or went on. The core keeps `job` as it is, for the next leader.
    SetRedrive {
        id: RedriveId,
        job: Arc<[u8]>,
    },
    /// A redrive job is not needed any more.
    ClearRedrive {
        id: RedriveId,
    },
    /// The durable state of the leader of a replicated vhost at this position, in short; replicas compare it with
    /// their own.
    Digest(Digest),
    /// The leader of a replicated vhost hands over: no queue has delivered a message of which the log does not tell, and
    /// none delivers any more. With `ends`, the leader goes on after all.
    HandOver {
        ends: bool,
    },
}

/// The queues, and the stores of delayed exchanges, that a message entered, with its entry id in each.
pub type Entries = SmallVec<[(QueueNumber, EntryId); 2]>;

/// A queue declaration in the log.
#[derive(Clone, PartialEq, Debug)]
pub struct QueueRecord {
    /// The number of the queue in the log.
    pub queue: QueueNumber,
    /// The queue name.
    pub name: Name,
    /// True if the queue is deleted with its last consumer.
    pub auto_delete: bool,
    /// The queue arguments.
    pub arguments: Table,
    /// The user who declared the queue.
    pub declared_by: Name,
}

/// An exchange declaration in the log.
#[derive(Clone, PartialEq, Debug)]
pub struct ExchangeRecord {
    /// The exchange name.
    pub name: Name,
    /// The exchange type.
    pub kind: ExchangeType,
    /// True if the exchange is deleted with its last binding.
    pub auto_delete: bool,
    /// True if clients may not publish to the exchange.
    pub internal: bool,
    /// The exchange arguments.
    pub arguments: Table,
    /// The user who declared the exchange.
    pub declared_by: Name,
    /// The number under which the log knows the messages that wait in a delayed exchange.
    pub store: Option<QueueNumber>,
}

/// A binding in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BindingRecord {
    /// The name of the source exchange.
    pub source: Name,
    /// True if the destination is a queue, false if it is an exchange.
    pub to_queue: bool,
    /// The name of the destination.
    pub destination: Name,
    /// The binding key.
    pub routing_key: Name,
    /// The arguments of the binding.
    pub arguments: Table,
}

impl Record {
    const fn kind_of(&self) -> Kind {
        match self {
            Self::Publish { .. } => Kind::Publish,
            Self::Settle { .. } => Kind::Settle,
            Self::DeadLetter { .. } => Kind::DeadLetter,
            Self::Requeue { .. } => Kind::Requeue,
            Self::Pend { .. } => Kind::Pend,
            Self::Delivered { .. } => Kind::Delivered,
            Self::Purge { .. } => Kind::Purge,
            Self::Schedule { .. } => Kind::Schedule,
            Self::Ready { .. } => Kind::Ready,
            Self::Reschedule { .. } => Kind::Reschedule,
            Self::Annotate { .. } => Kind::Annotate,
            Self::DeclareQueue(_) => Kind::DeclareQueue,
            Self::DeleteQueue { .. } => Kind::DeleteQueue,
            Self::DeclareExchange(_) => Kind::DeclareExchange,
            Self::DeleteExchange { .. } => Kind::DeleteExchange,
            Self::Bind(_) => Kind::Bind,
            Self::Unbind(_) => Kind::Unbind,
            Self::SetPolicy { .. } => Kind::SetPolicy,
            Self::ClearPolicy { .. } => Kind::ClearPolicy,
            Self::SetRedrive { .. } => Kind::SetRedrive,
            Self::ClearRedrive { .. } => Kind::ClearRedrive,
            Self::Digest(_) => Kind::Digest,
            Self::HandOver { .. } => Kind::HandOver,
        }
    }

    /// The code of the kind, as stored in the log.
    pub const fn kind(&self) -> u8 {
        self.kind_of() as u8
    }

    /// The meaning of the record for the log.
    pub const fn role(&self) -> RecordRole {
        self.kind_of().row().role
    }

    /// True if the record changes the queues that publishes reach: one of a queue, an exchange, a binding or a policy.
    pub(crate) fn is_definition(&self) -> bool {
        self.kind_of().row().about == About::Definitions
    }

    /// The message in the record, if any; its body is the last part of the encoded record.
    pub const fn message(&self) -> Option<&Message> {
        if let Some((message, _)) = self.arrival() { Some(message) } else { None }
    }

    /// The rest of a record whose own references have ended: the log keeps it because it ends a reference to another
    /// record. The record that ended it may be gone. Other records end none, or have no references of their own.
    pub(crate) fn spent(self) -> Self {
        if let Self::DeadLetter { queue, entry, .. } = self {
            Self::Settle { queue, entry }
        } else if let Self::SetPolicy { kind, policy } = &self {
            Self::ClearPolicy { kind: *kind, name: Arc::clone(&policy.name) }
        } else if let Self::SetRedrive { id, .. } = self {
            Self::ClearRedrive { id }
        } else {
            self
        }
    }

    /// The oldest version of the log's format whose builds know the record: the version of its kind, or of a field that
    /// later builds have added. Builds of version 1 would leave out delivery times, headers that a consumer gives, delayed
    /// exchanges, and policies with keys of later builds. Version 3 came with replicated logs.
    pub fn format_version(&self) -> u32 {
        let of_fields = if let Self::Reschedule { scheduled_for_ms: Some(_), .. } = self {
            3
        } else if let Self::DeclareExchange(ExchangeRecord { store: Some(_), .. }) = self {
            2
        } else if let Self::SetPolicy { policy, .. } = self {
            let keys = policy.definition.iter().map(|(key, _)| key.setting());
            keys.map(Setting::format_version).max().unwrap_or(1)
        } else {
            1
        };
        of_fields.max(self.kind_of().row().since)
    }

    /// The number of references to the record: copies of a message, or one definition.
    pub fn references(&self) -> u16 {
        match self.kind_of().row().keeps {
            Keeps::Nothing => 0,
            Keeps::Object => 1,
            Keeps::Places => {
                let (_, places) = self.arrival().expect("a record of this kind has places");
                u16::try_from(places.len()).expect("a record names ENTRIES_PER_RECORD_MAX queues")
            }
        }
    }

    /// The message of the record, and the places that it has entered.
    const fn arrival(&self) -> Option<(&Message, &Entries)> {
        if let Self::Publish { message, entries, .. }
        | Self::Schedule { message, entries, .. }
        | Self::DeadLetter { message, entries, .. } = self
        {
            Some((message, entries))
        } else {
            None
        }
    }
}
