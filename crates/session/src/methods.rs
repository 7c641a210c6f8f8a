//! Translation of methods to commands of the core, and refusal of unsupported ones.

use std::borrow::Cow;

use amqp::method::Method;
use amqp::reply_code::ReplyCode;
use broker::refusal::Refusal;
use broker::{
    Bind, Command, Consume, DeclareExchange, DeclareQueue, DeleteQueue, DeliveryTag, Outcome,
};

/// The command for a method on a channel, except `basic.publish`, whose content is missing.
///
/// # Errors
/// 540 for methods and arguments that RabbitMQ does not implement, 503 for methods that only a server may
/// send.
pub(crate) fn command<'a>(method: &Method<'a>) -> Result<Command<'a>, Refusal> {
    if let Some(command) = channel_command(method)? {
        return Ok(command);
    }
    if let Some(command) = topology_command(method) {
        return Ok(command);
    }
    if let Some(command) = basic_command(method)? {
        return Ok(command);
    }
    Err(Refusal::new(ReplyCode::CommandInvalid, "unimplemented method"))
}

fn channel_command<'a>(method: &Method<'a>) -> Result<Option<Command<'a>>, Refusal> {
    Ok(Some(match method {
        Method::ChannelOpen(_) => Command::OpenChannel,
        Method::ChannelClose(_) => Command::CloseChannel,
        Method::ChannelCloseOk(_) => Command::ChannelCloseOk,
        // The core answers `channel.flow` and `access.request` without a look at its state. They go
        // through it all the same, because answers must keep the order of the requests on a channel, and
        // earlier requests may be waiting in the core.
        Method::ChannelFlow(flow) if flow.active => Command::Flow,
        Method::ChannelFlow(_) => return Err(Refusal::not_implemented("active=false")),
        Method::AccessRequest(_) => Command::AccessRequest,
        Method::ConfirmSelect(select) => Command::ConfirmSelect { nowait: select.nowait },
        Method::TxSelect(_) => Command::TxSelect,
        Method::TxCommit(_) => Command::TxCommit,
        Method::TxRollback(_) => Command::TxRollback,
        _ => return Ok(None),
    }))
}

fn topology_command<'a>(method: &Method<'a>) -> Option<Command<'a>> {
    Some(match method {
        Method::ExchangeDeclare(m) => Command::DeclareExchange(DeclareExchange {
            exchange: m.exchange,
            kind: m.exchange_type,
            passive: m.passive,
            durable: m.durable,
            auto_delete: m.auto_delete,
            internal: m.internal,
            nowait: m.nowait,
            arguments: m.arguments,
        }),
        Method::ExchangeDelete(m) => Command::DeleteExchange {
            exchange: m.exchange,
            if_unused: m.if_unused,
            nowait: m.nowait,
        },
        Method::ExchangeBind(m) => Command::BindExchange(Bind {
            destination: m.destination,
            source: m.source,
            routing_key: m.routing_key,
            nowait: m.nowait,
            arguments: m.arguments,
        }),
        Method::ExchangeUnbind(m) => Command::UnbindExchange(Bind {
            destination: m.destination,
            source: m.source,
            routing_key: m.routing_key,
            nowait: m.nowait,
            arguments: m.arguments,
        }),
        Method::QueueDeclare(m) => Command::DeclareQueue(DeclareQueue {
            queue: m.queue,
            passive: m.passive,
            durable: m.durable,
            exclusive: m.exclusive,
            auto_delete: m.auto_delete,
            nowait: m.nowait,
            arguments: m.arguments,
        }),
        Method::QueueBind(m) => Command::BindQueue(Bind {
            destination: m.queue,
            source: m.exchange,
            routing_key: m.routing_key,
            nowait: m.nowait,
            arguments: m.arguments,
        }),
        Method::QueueUnbind(m) => Command::UnbindQueue(Bind {
            destination: m.queue,
            source: m.exchange,
            routing_key: m.routing_key,
            nowait: false,
            arguments: m.arguments,
        }),
        Method::QueuePurge(m) => Command::PurgeQueue { queue: m.queue, nowait: m.nowait },
        Method::QueueDelete(m) => Command::DeleteQueue(DeleteQueue {
            queue: m.queue,
            if_unused: m.if_unused,
            if_empty: m.if_empty,
            nowait: m.nowait,
        }),
        _ => return None,
    })
}

fn basic_command<'a>(method: &Method<'a>) -> Result<Option<Command<'a>>, Refusal> {
    Ok(Some(match method {
        Method::BasicQos(m) if m.prefetch_size != 0 => {
            let text = format!("prefetch_size!=0 ({})", m.prefetch_size);
            return Err(Refusal::not_implemented(text));
        }
        Method::BasicQos(m) => Command::Qos { prefetch_count: m.prefetch_count, global: m.global },
        Method::BasicConsume(m) => Command::Consume(Consume {
            queue: m.queue,
            consumer_tag: m.consumer_tag,
            no_ack: m.no_ack,
            exclusive: m.exclusive,
            nowait: m.nowait,
            arguments: m.arguments,
        }),
        Method::BasicCancel(m) => {
            Command::Cancel { consumer_tag: m.consumer_tag, nowait: m.nowait }
        }
        Method::BasicGet(m) => Command::Get { queue: m.queue, no_ack: m.no_ack },
        Method::BasicAck(m) => settle(m.delivery_tag, m.multiple, Outcome::Ack),
        Method::BasicNack(m) => {
            let outcome =
                if m.requeue { Outcome::Requeue { failed: false } } else { Outcome::Reject };
            settle(m.delivery_tag, m.multiple, outcome)
        }
        Method::BasicReject(m) => {
            let outcome =
                if m.requeue { Outcome::Requeue { failed: true } } else { Outcome::Reject };
            settle(m.delivery_tag, false, outcome)
        }
        Method::BasicRecover(m) if m.requeue => Command::Recover { answer: true },
        Method::BasicRecoverAsync(m) if m.requeue => Command::Recover { answer: false },
        Method::BasicRecover(_) | Method::BasicRecoverAsync(_) => {
            return Err(Refusal::not_implemented("requeue=false"));
        }
        _ => return Ok(None),
    }))
}

fn settle(tag: u64, multiple: bool, outcome: Outcome) -> Command<'static> {
    Command::Settle { tag: DeliveryTag(tag), multiple, outcome }
}

/// The method of a publish, while its content is awaited.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PublishMethod<'a> {
    pub(crate) exchange: Cow<'a, [u8]>,
    pub(crate) routing_key: Cow<'a, [u8]>,
    pub(crate) mandatory: bool,
    pub(crate) immediate: bool,
}
