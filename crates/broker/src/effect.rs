//! What the core wants done: frames to clients, records for the log, events for whoever watches.
//!
//! A closed list in the order in which things happened. A frame to a client is named here, its bytes
//! are the session's business. A record says what must be durable; the shell writes the records in
//! order and reports how far they are (`Vhost::durable`), which is what confirms wait for.

use amqp::method::MethodId;

use crate::dead_letter::DeathReason;
use crate::delivery::Delivery;
use crate::ids::{ChannelNumber, ConnectionId, Lsn, PublishSeq};
use crate::message::{Message, Name};
use crate::page::PageTask;
use crate::queue::DropCause;
use crate::record::Record;
use crate::refusal::Refusal;
use crate::time::Now;

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
    /// Tell a client something once the log is durable up to `lsn`: the answer to what changed
    /// something that outlives a restart.
    SendDurable {
        /// The position.
        lsn: Lsn,
        /// Its connection.
        connection: ConnectionId,
        /// The channel.
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
        /// The record it is about; 0 for none.
        about: Lsn,
        /// Records of which one reference ends with this one, beside the one it is about.
        ended: Vec<Lsn>,
        /// What.
        record: Record,
        /// It continues the record before it: after a crash both are there, or neither.
        is_joined: bool,
    },
    /// Report with [`Vhost::set_backlog`](crate::Vhost::set_backlog) when less waits for this
    /// connection's socket: the core holds messages back until then.
    Stalled(ConnectionId),
    /// Report with [`Vhost::set_backlog`](crate::Vhost::set_backlog) now, once the effects before this
    /// one are carried out: the core has only counted what it sent.
    AskBacklog(ConnectionId),
    /// Write, read or forget a page, after those before it.
    Page(PageTask),
    /// A `basic.get` of the connection is answered when a page has been read
    /// ([`Vhost::awaits_get`](crate::Vhost::awaits_get)): nothing more may be applied for it before.
    AwaitGet(ConnectionId),
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
    /// Deliveries to a channel wait until it acknowledges some, or others do; told once per channel.
    DeliveriesWait {
        /// The connection's name.
        connection: Name,
        /// The channel.
        channel: ChannelNumber,
        /// Memory of what it has not acknowledged, in bytes.
        unacked_bytes: u64,
    },
    /// A consumer did not settle its deliveries in time.
    ConsumerTimedOut {
        /// The queue.
        queue: Name,
        /// The consumer; none for `basic.get`.
        consumer_tag: Option<Name>,
    },
}
