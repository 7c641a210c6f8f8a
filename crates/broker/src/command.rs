//! Commands of clients: one variant per AMQP method that does not concern the connection itself.
//!
//! The list is closed and borrows from the socket's buffer: a command that leaves no state behind allocates
//! nothing. Control from elsewhere (new connections, the timer, policies) uses methods of the vhost.

use std::borrow::Cow;

use amqp::method::MethodId;
use amqp::table::TableRef;

use crate::ids::{ChannelNumber, DeliveryTag};
use crate::message::Content;
use crate::refusal::Refusal;

/// A command on a channel.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The channel.
    pub channel: ChannelNumber,
    /// The AMQP method of the command, named in errors; [`MethodId::NONE`] if there was no method.
    pub method: MethodId,
    /// The command.
    pub command: Command<'a>,
}

/// A command that a client sends on a channel.
#[derive(Clone, Debug)]
pub enum Command<'a> {
    /// The client sent something that is not a valid command; the refusal is its answer.
    Refused(Refusal),
    /// `channel.open`: opens the channel.
    OpenChannel,
    /// `channel.close`: closes the channel.
    CloseChannel,
    /// `channel.close-ok`: the client agrees that the broker closed the channel.
    ChannelCloseOk,
    /// `channel.flow` with `active` set; the session refuses any other.
    Flow,
    /// `access.request`, which has had no meaning since AMQP 0-8.
    AccessRequest,
    /// `exchange.declare`: creates an exchange or checks an existing one.
    DeclareExchange(DeclareExchange<'a>),
    /// `exchange.delete`: deletes an exchange.
    DeleteExchange {
        /// The exchange name.
        exchange: &'a str,
        /// Delete only if the exchange has no bindings.
        if_unused: bool,
        /// Send no answer.
        nowait: bool,
    },
    /// `exchange.bind`: binds an exchange to an exchange.
    BindExchange(Bind<'a>),
    /// `exchange.unbind`: removes a binding between exchanges.
    UnbindExchange(Bind<'a>),
    /// `queue.declare`: creates a queue or checks an existing one.
    DeclareQueue(DeclareQueue<'a>),
    /// `queue.bind`: binds a queue to an exchange.
    BindQueue(Bind<'a>),
    /// `queue.unbind`: removes a binding of a queue.
    UnbindQueue(Bind<'a>),
    /// `queue.purge`: removes all ready messages of a queue.
    PurgeQueue {
        /// The queue name.
        queue: &'a str,
        /// Send no answer.
        nowait: bool,
    },
    /// `queue.delete`: deletes a queue with its messages.
    DeleteQueue(DeleteQueue<'a>),
    /// `basic.qos`: sets the prefetch limit.
    Qos {
        /// Limit of unacknowledged deliveries; 0 is unlimited.
        prefetch_count: u16,
        /// Applies to the whole channel instead of each later consumer.
        global: bool,
    },
    /// `basic.consume`: starts a consumer.
    Consume(Consume<'a>),
    /// `basic.cancel`: ends a consumer.
    Cancel {
        /// The consumer tag.
        consumer_tag: &'a str,
        /// Send no answer.
        nowait: bool,
    },
    /// `basic.publish` with its content.
    Publish(Publish<'a>),
    /// `basic.get`: takes one message.
    Get {
        /// The queue name.
        queue: &'a str,
        /// The delivery needs no acknowledgement.
        no_ack: bool,
    },
    /// `basic.ack`, `basic.nack` or `basic.reject`: settles deliveries.
    Settle {
        /// The delivery tag.
        tag: DeliveryTag,
        /// Settles all deliveries up to the tag.
        multiple: bool,
        /// The outcome for the deliveries.
        outcome: Outcome,
    },
    /// `basic.recover` and `basic.recover-async` with requeue.
    Recover {
        /// True if the client expects `basic.recover-ok`.
        answer: bool,
    },
    /// `confirm.select`: turns on publisher confirms.
    ConfirmSelect {
        /// Send no answer.
        nowait: bool,
    },
    /// `tx.select`: turns on transactions.
    TxSelect,
    /// `tx.commit`: applies the current transaction.
    TxCommit,
    /// `tx.rollback`: discards the current transaction.
    TxRollback,
}

impl Command<'_> {
    /// True if the answer may be delayed. Later commands of the client are then held back, so that answers
    /// come in order.
    pub fn may_wait(&self) -> bool {
        match self {
            Self::CloseChannel
            | Self::DeclareExchange(_)
            | Self::DeleteExchange { .. }
            | Self::BindExchange(_)
            | Self::UnbindExchange(_)
            | Self::DeclareQueue(_)
            | Self::BindQueue(_)
            | Self::UnbindQueue(_)
            | Self::PurgeQueue { .. }
            | Self::DeleteQueue(_)
            | Self::Qos { .. }
            | Self::Cancel { .. }
            | Self::Get { .. }
            | Self::ConfirmSelect { .. }
            | Self::TxCommit => true,
            Self::Refused(_)
            | Self::OpenChannel
            | Self::ChannelCloseOk
            | Self::Flow
            | Self::AccessRequest
            | Self::Recover { .. }
            | Self::Consume(_)
            | Self::Publish(_)
            | Self::Settle { .. }
            | Self::TxSelect
            | Self::TxRollback => false,
        }
    }
}

/// Fields of `exchange.declare`.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of the method")]
pub struct DeclareExchange<'a> {
    /// The exchange name.
    pub exchange: &'a str,
    /// The exchange type as text.
    pub kind: &'a str,
    /// Only check that the exchange exists.
    pub passive: bool,
    /// The exchange survives a restart.
    pub durable: bool,
    /// The exchange is deleted with its last binding.
    pub auto_delete: bool,
    /// Clients may not publish to the exchange.
    pub internal: bool,
    /// Send no answer.
    pub nowait: bool,
    /// The exchange arguments.
    pub arguments: TableRef<'a>,
}

/// Fields of `queue.declare`.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of the method")]
pub struct DeclareQueue<'a> {
    /// The queue name; empty to let the broker choose one.
    pub queue: &'a str,
    /// Only check that the queue exists.
    pub passive: bool,
    /// The queue survives a restart.
    pub durable: bool,
    /// Only this connection may use the queue, which is deleted with the connection.
    pub exclusive: bool,
    /// The queue is deleted with its last consumer.
    pub auto_delete: bool,
    /// Send no answer.
    pub nowait: bool,
    /// The queue arguments.
    pub arguments: TableRef<'a>,
}

/// Fields of `queue.bind`, `queue.unbind`, `exchange.bind` and `exchange.unbind`.
#[derive(Clone, Copy, Debug)]
pub struct Bind<'a> {
    /// The queue or exchange that receives the messages.
    pub destination: &'a str,
    /// The source exchange.
    pub source: &'a str,
    /// The binding key.
    pub routing_key: &'a str,
    /// Send no answer.
    pub nowait: bool,
    /// The arguments of the binding.
    pub arguments: TableRef<'a>,
}

/// Fields of `queue.delete`.
#[derive(Clone, Copy, Debug)]
pub struct DeleteQueue<'a> {
    /// The queue name.
    pub queue: &'a str,
    /// Delete only if the queue has no consumers.
    pub if_unused: bool,
    /// Delete only if the queue has no ready messages.
    pub if_empty: bool,
    /// Send no answer.
    pub nowait: bool,
}

/// Fields of `basic.consume`.
#[derive(Clone, Copy, Debug)]
pub struct Consume<'a> {
    /// The queue name.
    pub queue: &'a str,
    /// The consumer tag; empty to let the broker choose one.
    pub consumer_tag: &'a str,
    /// Deliveries need no acknowledgement.
    pub no_ack: bool,
    /// Request to be the only consumer of the queue.
    pub exclusive: bool,
    /// Send no answer.
    pub nowait: bool,
    /// The arguments of the consumer.
    pub arguments: TableRef<'a>,
}

/// Fields of `basic.publish`, with the content.
#[derive(Clone, Debug)]
pub struct Publish<'a> {
    /// The exchange; empty for the default exchange. Bytes, because a client may send any.
    pub exchange: Cow<'a, [u8]>,
    /// The routing key; bytes, because a client may send any.
    pub routing_key: Cow<'a, [u8]>,
    /// Return the message to the client if it is routed to no queue.
    pub mandatory: bool,
    /// Properties and body.
    pub content: Content<'a>,
}

/// The outcome that a client settles a delivery with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Acknowledged: the message is done.
    Ack,
    /// Returned to its queue.
    Requeue {
        /// True if the return counts against the delivery limit: `basic.reject` and lost channels count,
        /// `basic.nack` and `basic.recover` do not (as in RabbitMQ).
        failed: bool,
    },
    /// Rejected: the message is dead-lettered or dropped.
    Reject,
}
