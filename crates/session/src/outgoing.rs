//! Encoding of what the core sends to a client.
//!
//! The encoder needs only the negotiated frame size of the connection, so that any thread with effects
//! for a connection can write them into its outbox.

use amqp::content_header::write_content_header;
use amqp::frame::write_body_frames;
use amqp::limits::{CONTENT_HEADER_SIZE, FRAME_END, FRAME_OVERHEAD};
use amqp::method::{
    AccessRequestOk, BasicAck, BasicCancel, BasicCancelOk, BasicConsumeOk, BasicDeliver,
    BasicGetEmpty, BasicGetOk, BasicNack, BasicQosOk, BasicRecoverOk, BasicReturn, ChannelClose,
    ChannelCloseOk, ChannelFlowOk, ChannelOpenOk, ConfirmSelectOk, ConnectionClose, ExchangeBindOk,
    ExchangeDeclareOk, ExchangeDeleteOk, ExchangeUnbindOk, Method, MethodId, QueueBindOk,
    QueueDeclareOk, QueueDeleteOk, QueuePurgeOk, QueueUnbindOk, TxCommitOk, TxRollbackOk,
    TxSelectOk, write_method,
};
use amqp::primitives::{put_u16, put_u32};
use amqp::reply_code::ReplyCode;
use broker::refusal::Refusal;
use broker::{Message, Outgoing};

use crate::limits::UNCOPIED_BODY_BYTES_MIN;
use crate::outbox::Outbox;

/// Appends the frames of `outgoing` on `channel`, for a client whose frames have at most `frame_max`
/// bytes.
pub fn transmit(outgoing: &Outgoing, channel: u16, frame_max: u32, outbox: &mut Outbox) {
    if let Some(method) = method(outgoing) {
        write_method(outbox.tail(), channel, &method);
    }
    match outgoing {
        Outgoing::Deliver { delivery, .. } | Outgoing::GetOk { delivery, .. } => {
            let properties = delivery.properties();
            write_content(&delivery.message, &properties, channel, frame_max, outbox);
        }
        Outgoing::Return { message } => {
            write_content(message, message.properties(), channel, frame_max, outbox);
        }
        Outgoing::ChannelClose { refusal, method } => {
            let reply_text = refusal.code.text(&refusal.explanation);
            let close = ChannelClose {
                reply_code: refusal.code.code(),
                reply_text: &reply_text,
                class_id: method.class_id,
                method_id: method.method_id,
            };
            write_method(outbox.tail(), channel, &close.into());
        }
        Outgoing::ConnectionClose { refusal, method } => {
            write_connection_close(refusal, *method, outbox.tail());
        }
        _ => {}
    }
}

/// Appends `connection.close` because of `refusal`.
pub(crate) fn write_connection_close(refusal: &Refusal, method: MethodId, out: &mut Vec<u8>) {
    let reply_text = refusal.code.text(&refusal.explanation);
    let close = ConnectionClose {
        reply_code: refusal.code.code(),
        reply_text: &reply_text,
        class_id: method.class_id,
        method_id: method.method_id,
    };
    write_method(out, 0, &close.into());
}

/// The method for `outgoing`; `None` for the two close methods, whose reply texts need a buffer.
fn method(outgoing: &Outgoing) -> Option<Method<'_>> {
    Some(match outgoing {
        Outgoing::ChannelClose { .. } | Outgoing::ConnectionClose { .. } => return None,
        Outgoing::Deliver { consumer_tag, delivery } => {
            let envelope = delivery.message.envelope();
            BasicDeliver {
                consumer_tag,
                delivery_tag: delivery.tag.0,
                redelivered: delivery.redelivered,
                exchange: envelope.exchange.as_bytes(),
                routing_key: envelope.routing_key.as_bytes(),
            }
            .into()
        }
        Outgoing::GetOk { delivery, message_count } => {
            let envelope = delivery.message.envelope();
            BasicGetOk {
                delivery_tag: delivery.tag.0,
                redelivered: delivery.redelivered,
                exchange: envelope.exchange.as_bytes(),
                routing_key: envelope.routing_key.as_bytes(),
                message_count: *message_count,
            }
            .into()
        }
        Outgoing::Return { message } => BasicReturn {
            reply_code: ReplyCode::NoRoute.code(),
            reply_text: ReplyCode::NoRoute.name(),
            exchange: message.envelope().exchange.as_bytes(),
            routing_key: message.envelope().routing_key.as_bytes(),
        }
        .into(),
        Outgoing::Ack { seq, multiple } => {
            BasicAck { delivery_tag: seq.0, multiple: *multiple }.into()
        }
        Outgoing::Nack { seq, multiple } => {
            BasicNack { delivery_tag: seq.0, multiple: *multiple, requeue: false }.into()
        }
        Outgoing::QueueDeclareOk { queue, message_count, consumer_count } => {
            QueueDeclareOk { queue, message_count: *message_count, consumer_count: *consumer_count }
                .into()
        }
        Outgoing::QueuePurgeOk { message_count } => {
            QueuePurgeOk { message_count: *message_count }.into()
        }
        Outgoing::QueueDeleteOk { message_count } => {
            QueueDeleteOk { message_count: *message_count }.into()
        }
        Outgoing::ConsumeOk { consumer_tag } => BasicConsumeOk { consumer_tag }.into(),
        Outgoing::CancelOk { consumer_tag } => BasicCancelOk { consumer_tag }.into(),
        Outgoing::Cancel { consumer_tag } => BasicCancel { consumer_tag, nowait: true }.into(),
        Outgoing::ChannelFlowOk => ChannelFlowOk { active: true }.into(),
        // RabbitMQ also answers with ticket 1 and ignores tickets.
        Outgoing::AccessRequestOk => AccessRequestOk { ticket: 1 }.into(),
        Outgoing::ChannelOpenOk => ChannelOpenOk.into(),
        Outgoing::ChannelCloseOk => ChannelCloseOk.into(),
        Outgoing::ExchangeDeclareOk => ExchangeDeclareOk.into(),
        Outgoing::ExchangeDeleteOk => ExchangeDeleteOk.into(),
        Outgoing::ExchangeBindOk => ExchangeBindOk.into(),
        Outgoing::ExchangeUnbindOk => ExchangeUnbindOk.into(),
        Outgoing::QueueBindOk => QueueBindOk.into(),
        Outgoing::QueueUnbindOk => QueueUnbindOk.into(),
        Outgoing::QosOk => BasicQosOk.into(),
        Outgoing::GetEmpty => BasicGetEmpty.into(),
        Outgoing::RecoverOk => BasicRecoverOk.into(),
        Outgoing::ConfirmSelectOk => ConfirmSelectOk.into(),
        Outgoing::TxSelectOk => TxSelectOk.into(),
        Outgoing::TxCommitOk => TxCommitOk.into(),
        Outgoing::TxRollbackOk => TxRollbackOk.into(),
    })
}

fn write_content(
    message: &Message,
    properties: &[u8],
    channel: u16,
    frame_max: u32,
    outbox: &mut Outbox,
) {
    let body = message.body();
    let overhead = u32::try_from(FRAME_OVERHEAD).unwrap_or(0);
    let payload_max = frame_max.saturating_sub(overhead).max(1);
    let properties_max = usize::try_from(payload_max).unwrap_or(usize::MAX);
    let properties_max = properties_max.saturating_sub(CONTENT_HEADER_SIZE);
    let properties = message.properties_within(properties, properties_max);
    write_content_header(outbox.tail(), channel, body.len() as u64, &properties);
    if body.len() < UNCOPIED_BODY_BYTES_MIN {
        write_body_frames(outbox.tail(), channel, body, payload_max);
        return;
    }
    let step = usize::try_from(payload_max).unwrap_or(usize::MAX);
    let mut start = 0;
    while start < body.len() {
        let end = body.len().min(start.saturating_add(step));
        let tail = outbox.tail();
        tail.push(amqp::frame::FrameType::Body.octet());
        put_u16(tail, channel);
        put_u32(tail, u32::try_from(end - start).expect("a frame is no longer than frame_max"));
        outbox.push_body(message, start..end);
        outbox.tail().push(FRAME_END);
        start = end;
    }
}
