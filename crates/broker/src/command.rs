//! What a client can ask of the core: one variant per AMQP method that is not about the connection
//! itself.
//!
//! A closed list, borrowed from the socket's buffer: nothing is allocated for a command that does not
//! leave something behind. Control from elsewhere (connections opening, the timer, policies) are
//! methods of the vhost.

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
    /// The method it came as, which an error names; [`MethodId::NONE`] if it came as none.
    pub method: MethodId,
    /// What is asked.
    pub command: Command<'a>,
}

/// What a client asks on a channel.
#[derive(Clone, Debug)]
pub enum Command<'a> {
    /// What the client sent makes no command: it is refused.
    Refused(Refusal),
    /// `channel.open`.
    OpenChannel,
    /// `channel.close`.
    CloseChannel,
    /// `channel.close-ok`: the client agrees that the broker closed the channel.
    ChannelCloseOk,
    /// `channel.flow` that asks to go on; anything else is refused before it gets here.
    Flow,
    /// `access.request`, which has had no meaning since AMQP 0-8.
    AccessRequest,
    /// `exchange.declare`.
    DeclareExchange(DeclareExchange<'a>),
    /// `exchange.delete`.
    DeleteExchange {
        /// Its name.
        exchange: &'a str,
        /// Only if nothing is bound to it.
        if_unused: bool,
        /// No answer.
        nowait: bool,
    },
    /// `exchange.bind`.
    BindExchange(Bind<'a>),
    /// `exchange.unbind`.
    UnbindExchange(Bind<'a>),
    /// `queue.declare`.
    DeclareQueue(DeclareQueue<'a>),
    /// `queue.bind`.
    BindQueue(Bind<'a>),
    /// `queue.unbind`.
    UnbindQueue(Bind<'a>),
    /// `queue.purge`.
    PurgeQueue {
        /// Its name.
        queue: &'a str,
        /// No answer.
        nowait: bool,
    },
    /// `queue.delete`.
    DeleteQueue(DeleteQueue<'a>),
    /// `basic.qos`.
    Qos {
        /// Unacknowledged deliveries; 0 is unlimited.
        prefetch_count: u16,
        /// For the whole channel instead of each consumer to come.
        global: bool,
    },
    /// `basic.consume`.
    Consume(Consume<'a>),
    /// `basic.cancel`.
    Cancel {
        /// The consumer.
        consumer_tag: &'a str,
        /// No answer.
        nowait: bool,
    },
    /// `basic.publish` with its content.
    Publish(Publish<'a>),
    /// `basic.get`.
    Get {
        /// The queue.
        queue: &'a str,
        /// Needs no acknowledgement.
        no_ack: bool,
    },
    /// `basic.ack`, `basic.nack`, `basic.reject`.
    Settle {
        /// The delivery.
        tag: DeliveryTag,
        /// All up to it.
        multiple: bool,
        /// What becomes of it.
        outcome: Outcome,
    },
    /// `basic.recover` and `basic.recover-async` with requeue.
    Recover {
        /// Whether `basic.recover-ok` is expected.
        answer: bool,
    },
    /// `confirm.select`.
    ConfirmSelect {
        /// No answer.
        nowait: bool,
    },
    /// `tx.select`.
    TxSelect,
    /// `tx.commit`.
    TxCommit,
    /// `tx.rollback`.
    TxRollback,
}

impl Command<'_> {
    /// Whether its answer may come later than at once: nothing that the client sends after it is to
    /// be applied before, so that answers come in order.
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

/// `exchange.declare`.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of the method")]
pub struct DeclareExchange<'a> {
    /// Its name.
    pub exchange: &'a str,
    /// Its type.
    pub kind: &'a str,
    /// Only ask whether it exists.
    pub passive: bool,
    /// It survives a restart.
    pub durable: bool,
    /// It goes with its last binding.
    pub auto_delete: bool,
    /// Clients may not publish to it.
    pub internal: bool,
    /// No answer.
    pub nowait: bool,
    /// Its arguments.
    pub arguments: TableRef<'a>,
}

/// `queue.declare`.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of the method")]
pub struct DeclareQueue<'a> {
    /// Its name; empty for one that the broker chooses.
    pub queue: &'a str,
    /// Only ask whether it exists.
    pub passive: bool,
    /// It survives a restart.
    pub durable: bool,
    /// Only this connection may use it; it goes with it.
    pub exclusive: bool,
    /// It goes with its last consumer.
    pub auto_delete: bool,
    /// No answer.
    pub nowait: bool,
    /// Its arguments.
    pub arguments: TableRef<'a>,
}

/// `queue.bind`, `queue.unbind`, `exchange.bind`, `exchange.unbind`.
#[derive(Clone, Copy, Debug)]
pub struct Bind<'a> {
    /// The queue or exchange that gets the messages.
    pub destination: &'a str,
    /// The exchange they come from.
    pub source: &'a str,
    /// The binding key.
    pub routing_key: &'a str,
    /// No answer.
    pub nowait: bool,
    /// Its arguments.
    pub arguments: TableRef<'a>,
}

/// `queue.delete`.
#[derive(Clone, Copy, Debug)]
pub struct DeleteQueue<'a> {
    /// Its name.
    pub queue: &'a str,
    /// Only if it has no consumers.
    pub if_unused: bool,
    /// Only if nothing waits in it.
    pub if_empty: bool,
    /// No answer.
    pub nowait: bool,
}

/// `basic.consume`.
#[derive(Clone, Copy, Debug)]
pub struct Consume<'a> {
    /// The queue.
    pub queue: &'a str,
    /// Its tag; empty for one that the broker chooses.
    pub consumer_tag: &'a str,
    /// Deliveries need no acknowledgement.
    pub no_ack: bool,
    /// It wants to be the only consumer.
    pub exclusive: bool,
    /// No answer.
    pub nowait: bool,
    /// Its arguments.
    pub arguments: TableRef<'a>,
}

/// `basic.publish`.
#[derive(Clone, Debug)]
pub struct Publish<'a> {
    /// The exchange; empty for the default exchange. Bytes, because a publish may hold any.
    pub exchange: Cow<'a, [u8]>,
    /// The routing key; bytes, because a publish may hold any.
    pub routing_key: Cow<'a, [u8]>,
    /// It comes back if it is routed to no queue.
    pub mandatory: bool,
    /// Properties and body.
    pub content: Content<'a>,
}

/// What becomes of a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is done.
    Ack,
    /// It goes back to its queue.
    Requeue {
        /// Whether that counts against the delivery limit: `basic.reject` and lost channels do,
        /// `basic.nack` and `basic.recover` do not (spec 7.2).
        failed: bool,
    },
    /// It is dead.
    Reject,
}
