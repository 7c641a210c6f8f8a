//! Effects of the core: frames to clients, records for the log, page tasks, and events for operators.
//!
//! The list is closed and in the order of events. An effect names a frame to a client; the session encodes
//! it. A record describes what must be durable: the shell writes the records in order and reports its
//! progress with `Vhost::durable`, which confirms wait for.

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

/// One effect of a call.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Send a method to a client.
    Send {
        /// The connection of the client.
        connection: ConnectionId,
        /// The channel; 0 for the connection itself.
        channel: ChannelNumber,
        /// The method to send.
        outgoing: Outgoing,
    },
    /// Send a method to a client once the log is durable up to `lsn`: the answer to a command that changed
    /// durable state.
    SendDurable {
        /// The log position to wait for.
        lsn: Lsn,
        /// The connection of the client.
        connection: ConnectionId,
        /// The channel.
        channel: ChannelNumber,
        /// The method to send.
        outgoing: Outgoing,
    },
    /// Hold what follows for this connection, in this batch, until the log is durable up to the end of the batch, which
    /// is `Vhost::last_lsn` after the last `Vhost::flush`: a delivery of a quorum queue of a replicated vhost comes next.
    /// Later batches go behind what is held, so that the order stays.
    Hold(ConnectionId),
    /// Append a record to the log.
    Log {
        /// The position of the record.
        lsn: Lsn,
        /// The moment of the event; messages that enter queues arrive at this time.
        at: Now,
        /// The record that this one is about; 0 for none.
        about: Lsn,
        /// Further records that each lose one reference.
        ended: Vec<Lsn>,
        /// The record.
        record: Record,
        /// True if the record continues the one before: after a crash, either both are present or neither is.
        is_joined: bool,
    },
    /// Call [`Vhost::set_backlog`](crate::Vhost::set_backlog) when fewer bytes wait for this connection's
    /// socket; the core holds messages back until then.
    Stalled(ConnectionId),
    /// Call [`Vhost::set_backlog`](crate::Vhost::set_backlog) after the effects before this one: the core has
    /// only estimated the bytes that it sent.
    AskBacklog(ConnectionId),
    /// Write, read or drop a page, after earlier page tasks.
    Page(PageTask),
    /// A `basic.get` of the connection waits for a page ([`Vhost::awaits_get`](crate::Vhost::awaits_get));
    /// apply nothing more for the connection until then.
    AwaitGet(ConnectionId),
    /// An event of interest to operators.
    Event(Event),
}

/// A method, perhaps with content, to a client.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each is the AMQP method of that name")]
pub enum Outgoing {
    ChannelOpenOk,
    ChannelCloseOk,
    /// `channel.close` because of `refusal`; `method` is the refused method.
    ChannelClose {
        refusal: Refusal,
        method: MethodId,
    },
    /// `connection.close` because of `refusal`.
    ConnectionClose {
        refusal: Refusal,
        method: MethodId,
    },
    /// `channel.flow-ok`: deliveries continue.
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

/// An event that deserves a line in the broker's log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Messages that die in this queue for this reason are dropped; reported once per queue, reason and
    /// cause.
    DroppedDeadLetters {
        /// The queue.
        queue: Name,
        /// The reason of the deaths.
        reason: DeathReason,
        /// The cause of the drop.
        cause: DropCause,
    },
    /// A dead letter was dropped because it would have run in a cycle; reported once per cycle.
    DeadLetterCycle {
        /// The queues of the cycle, most recent first.
        queues: Vec<Name>,
    },
    /// A delayed exchange was declared again with another routing type, which has no effect; reported once per
    /// exchange.
    DelayedTypeIgnored {
        /// The exchange.
        exchange: Name,
        /// `x-delayed-type` of the exchange.
        current: Name,
        /// `x-delayed-type` of the declaration that was ignored; its type in AMQP if it is no text, and empty if there is
        /// none.
        received: Name,
    },
    /// An unused queue expired with messages in it.
    QueueExpired {
        /// The queue.
        queue: Name,
        /// Messages removed with the queue.
        message_count: u64,
    },
    /// Deliveries to a channel wait until it or other channels acknowledge some; reported once per channel.
    DeliveriesWait {
        /// The connection's name.
        connection: Name,
        /// The channel.
        channel: ChannelNumber,
        /// Memory of the channel's unacknowledged deliveries, in bytes.
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
