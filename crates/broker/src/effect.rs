//! What the core wants done: frames to clients, records for the log, events for whoever watches.
//!
//! A closed list in the order in which things happened. A frame to a client is named here, its bytes
//! are the session's business. A record says what must be durable; the shell writes the records in
//! order and reports how far they are (`Vhost::durable`), which is what confirms wait for.

use smallvec::SmallVec;

use amqp::method::MethodId;
use amqp::table::Table;

use crate::dead_letter::DeathReason;
use crate::exchange::ExchangeType;
use crate::ids::{ChannelNumber, ConnectionId, DeliveryTag, EntryId, Lsn, PublishSeq, QueueNumber};
use crate::message::{Message, Name};
use crate::queue::DropCause;
use crate::refusal::Refusal;
use crate::time::{Now, Time};

/// One thing to do.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Tell a client something.
    Send {
        /// Its connection.
        connection: ConnectionId,
        /// The channel; 0 for the connection itself.
        channel: ChannelNumber,
        /// What.
        outgoing: Outgoing,
    },
    /// Make something durable.
    Log {
        /// Its position.
        lsn: Lsn,
        /// When it happened: messages that enter arrive then.
        at: Now,
        /// What.
        record: Record,
    },
    /// Report with [`Vhost::set_backlog`](crate::Vhost::set_backlog) when less waits for this
    /// connection's socket: the core holds messages back until then.
    Stalled(ConnectionId),
    /// Report with [`Vhost::set_backlog`](crate::Vhost::set_backlog) now, once the effects before this
    /// one are carried out: the core has only counted what it sent.
    AskBacklog(ConnectionId),
    /// Something a person may want to know.
    Event(Event),
}

/// A method, perhaps with content, to a client.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each is the AMQP method of that name")]
pub enum Outgoing {
    ChannelOpenOk,
    ChannelCloseOk,
    /// `channel.close`, because of `refusal`; `method` is what was refused.
    ChannelClose {
        refusal: Refusal,
        method: MethodId,
    },
    /// `connection.close`, because of `refusal`.
    ConnectionClose {
        refusal: Refusal,
        method: MethodId,
    },
    /// Deliveries go on.
    ChannelFlowOk,
    AccessRequestOk,
    ExchangeDeclareOk,
    ExchangeDeleteOk,
    ExchangeBindOk,
    ExchangeUnbindOk,
    QueueDeclareOk {
        queue: Name,
        message_count: u32,
        consumer_count: u32,
    },
    QueueBindOk,
    QueueUnbindOk,
    QueuePurgeOk {
        message_count: u32,
    },
    QueueDeleteOk {
        message_count: u32,
    },
    QosOk,
    ConsumeOk {
        consumer_tag: Name,
    },
    CancelOk {
        consumer_tag: Name,
    },
    /// `basic.cancel` from the broker: the consumer is gone.
    Cancel {
        consumer_tag: Name,
    },
    Deliver {
        consumer_tag: Name,
        delivery: Delivery,
    },
    GetOk {
        delivery: Delivery,
        message_count: u32,
    },
    GetEmpty,
    Return {
        message: Message,
    },
    Ack {
        seq: PublishSeq,
        multiple: bool,
    },
    Nack {
        seq: PublishSeq,
        multiple: bool,
    },
    RecoverOk,
    ConfirmSelectOk,
    TxSelectOk,
    TxCommitOk,
    TxRollbackOk,
}

/// A message on its way to a client.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Its tag on the channel.
    pub tag: DeliveryTag,
    /// Whether it was delivered before.
    pub redelivered: bool,
    /// Headers that the queue adds, if its type counts deliveries and there is something to tell.
    pub counts: Option<DeliveryCounts>,
    /// The message.
    pub message: Message,
}

/// How often a quorum queue has handed out a message before (spec 7.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeliveryCounts {
    /// `x-acquired-count`.
    pub acquired: u32,
    /// `x-delivery-count`, shown from 1 on.
    pub delivery: u32,
}

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
    /// Everything in a queue is gone but what was unacknowledged, which is `kept`.
    Purge {
        queue: QueueNumber,
        kept: Vec<EntryId>,
    },
    DeclareQueue {
        queue: QueueNumber,
        name: Name,
        arguments: Table,
    },
    DeleteQueue {
        queue: QueueNumber,
    },
    DeclareExchange {
        name: Name,
        kind: ExchangeType,
        auto_delete: bool,
        internal: bool,
        arguments: Table,
    },
    DeleteExchange {
        name: Name,
    },
    Bind(BindingRecord),
    Unbind(BindingRecord),
}

/// The queues a message entered, with its identity in each.
pub type Entries = SmallVec<[(QueueNumber, EntryId); 2]>;

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

/// Something worth a line in the broker's log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Messages that die in this queue for this reason leave nothing; told once per queue, reason
    /// and cause.
    DroppedDeadLetters {
        /// The queue.
        queue: Name,
        /// Why they die.
        reason: DeathReason,
        /// Why nothing is left.
        cause: DropCause,
    },
    /// A dead letter would have gone round in a circle; told once per circle.
    DeadLetterCycle {
        /// The queues on it, most recent first.
        queues: Vec<Name>,
    },
    /// An unused queue expired with messages in it.
    QueueExpired {
        /// The queue.
        queue: Name,
        /// Messages that went with it.
        message_count: u64,
    },
    /// A consumer did not settle its deliveries in time.
    ConsumerTimedOut {
        /// The queue.
        queue: Name,
        /// The consumer; none for `basic.get`.
        consumer_tag: Option<Name>,
    },
}
