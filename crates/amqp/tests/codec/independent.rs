//! The same values through `amq-protocol`, the codec of the lapin client, which is generated from
//! another description of the protocol: both must write the same bytes and read each other's.
//!
//! What it cannot hold is left out of the inputs: it takes UTF-8 only, keeps tables sorted without
//! duplicates, and has no field for prefetch-size (always 0) and the access ticket (always 1).

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "each class takes its own methods; one that none takes fails the test"
)]

use std::io::Cursor;

use amq_protocol::frame::{AMQPContentHeader, AMQPFrame, WriteContext, gen_frame, parse_frame};
use amq_protocol::protocol::basic::AMQPProperties;
use amq_protocol::protocol::{
    AMQPClass, access, basic, channel, confirm, connection, exchange, queue, tx,
};
use amq_protocol::types::{
    AMQPValue, DecimalValue, FieldArray, FieldTable, LongString, ShortString,
};
use amqp::content_header::{ContentHeader, write_content_header};
use amqp::frame::{split_frame, write_body_frames, write_heartbeat};
use amqp::method::*;
use amqp::properties::Properties;
use amqp::table::{TableRef, Value};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::generate::Arguments;

fn short(octets: impl AsRef<[u8]>) -> ShortString {
    std::str::from_utf8(octets.as_ref()).expect("portable inputs are UTF-8").into()
}

fn long(octets: &[u8]) -> LongString {
    octets.to_vec().into()
}

fn field_table(table: TableRef<'_>) -> FieldTable {
    let mut theirs = FieldTable::default();
    for (key, value) in table {
        theirs.insert(short(key), amqp_value(value));
    }
    theirs
}

fn amqp_value(value: Value<'_>) -> AMQPValue {
    match value {
        Value::Bool(value) => AMQPValue::Boolean(value),
        Value::I8(value) => AMQPValue::ShortShortInt(value),
        Value::U8(value) => AMQPValue::ShortShortUInt(value),
        Value::I16(value) => AMQPValue::ShortInt(value),
        Value::U16(value) => AMQPValue::ShortUInt(value),
        Value::I32(value) => AMQPValue::LongInt(value),
        Value::U32(value) => AMQPValue::LongUInt(value),
        Value::I64(value) => AMQPValue::LongLongInt(value),
        Value::F32(value) => AMQPValue::Float(value),
        Value::F64(value) => AMQPValue::Double(value),
        Value::Decimal { scale, value } => AMQPValue::DecimalValue(DecimalValue { scale, value }),
        Value::LongStr(octets) => AMQPValue::LongString(long(octets)),
        Value::Binary(octets) => AMQPValue::ByteArray(octets.into()),
        Value::Timestamp(value) => AMQPValue::Timestamp(value),
        Value::Table(table) => AMQPValue::FieldTable(field_table(table)),
        Value::Array(array) => {
            let values: Vec<_> = array.iter().map(amqp_value).collect();
            AMQPValue::FieldArray(FieldArray::from(values))
        }
        Value::Void => AMQPValue::Void,
    }
}

/// A method in the form of `amq-protocol`, and ours without the fields that it lacks.
fn amqp_class<'a>(method: &Method<'a>) -> (AMQPClass, Method<'a>) {
    let class = match *method {
        Method::BasicQos(m) => {
            let ours = BasicQos { prefetch_size: 0, ..m };
            let theirs = basic::Qos { prefetch_count: m.prefetch_count, global: m.global };
            return (AMQPClass::Basic(basic::AMQPMethod::Qos(theirs)), ours.into());
        }
        Method::AccessRequestOk(_) => {
            let theirs = access::AMQPMethod::RequestOk(access::RequestOk {});
            return (AMQPClass::Access(theirs), AccessRequestOk { ticket: 1 }.into());
        }
        _ => connection_class(method)
            .or_else(|| channel_class(method))
            .or_else(|| exchange_class(method))
            .or_else(|| queue_class(method))
            .or_else(|| basic_class(method))
            .or_else(|| content_class(method))
            .or_else(|| other_class(method))
            .expect("every method is in one of them"),
    };
    (class, *method)
}

fn connection_class(method: &Method<'_>) -> Option<AMQPClass> {
    use connection::AMQPMethod as M;
    let method = match *method {
        Method::ConnectionStart(m) => M::Start(connection::Start {
            version_major: m.version_major,
            version_minor: m.version_minor,
            server_properties: field_table(m.server_properties),
            mechanisms: long(m.mechanisms),
            locales: long(m.locales),
        }),
        Method::ConnectionStartOk(m) => M::StartOk(connection::StartOk {
            client_properties: field_table(m.client_properties),
            mechanism: short(m.mechanism),
            response: long(m.response),
            locale: short(m.locale),
        }),
        Method::ConnectionSecure(m) => {
            M::Secure(connection::Secure { challenge: long(m.challenge) })
        }
        Method::ConnectionSecureOk(m) => {
            M::SecureOk(connection::SecureOk { response: long(m.response) })
        }
        Method::ConnectionTune(m) => M::Tune(connection::Tune {
            channel_max: m.channel_max,
            frame_max: m.frame_max,
            heartbeat: m.heartbeat,
        }),
        Method::ConnectionTuneOk(m) => M::TuneOk(connection::TuneOk {
            channel_max: m.channel_max,
            frame_max: m.frame_max,
            heartbeat: m.heartbeat,
        }),
        Method::ConnectionOpen(m) => {
            M::Open(connection::Open { virtual_host: short(m.virtual_host) })
        }
        Method::ConnectionOpenOk(_) => M::OpenOk(connection::OpenOk {}),
        Method::ConnectionClose(m) => M::Close(connection::Close {
            reply_code: m.reply_code,
            reply_text: short(m.reply_text),
            class_id: m.class_id,
            method_id: m.method_id,
        }),
        Method::ConnectionCloseOk(_) => M::CloseOk(connection::CloseOk {}),
        Method::ConnectionBlocked(m) => M::Blocked(connection::Blocked { reason: short(m.reason) }),
        Method::ConnectionUnblocked(_) => M::Unblocked(connection::Unblocked {}),
        Method::ConnectionUpdateSecret(m) => M::UpdateSecret(connection::UpdateSecret {
            new_secret: long(m.new_secret),
            reason: short(m.reason),
        }),
        Method::ConnectionUpdateSecretOk(_) => M::UpdateSecretOk(connection::UpdateSecretOk {}),
        _ => return None,
    };
    Some(AMQPClass::Connection(method))
}

fn channel_class(method: &Method<'_>) -> Option<AMQPClass> {
    use channel::AMQPMethod as M;
    let method = match *method {
        Method::ChannelOpen(_) => M::Open(channel::Open {}),
        Method::ChannelOpenOk(_) => M::OpenOk(channel::OpenOk {}),
        Method::ChannelFlow(m) => M::Flow(channel::Flow { active: m.active }),
        Method::ChannelFlowOk(m) => M::FlowOk(channel::FlowOk { active: m.active }),
        Method::ChannelClose(m) => M::Close(channel::Close {
            reply_code: m.reply_code,
            reply_text: short(m.reply_text),
            class_id: m.class_id,
            method_id: m.method_id,
        }),
        Method::ChannelCloseOk(_) => M::CloseOk(channel::CloseOk {}),
        _ => return None,
    };
    Some(AMQPClass::Channel(method))
}

fn exchange_class(method: &Method<'_>) -> Option<AMQPClass> {
    use exchange::AMQPMethod as M;
    let method = match *method {
        Method::ExchangeDeclare(m) => M::Declare(exchange::Declare {
            exchange: short(m.exchange),
            kind: short(m.exchange_type),
            passive: m.passive,
            durable: m.durable,
            auto_delete: m.auto_delete,
            internal: m.internal,
            nowait: m.nowait,
            arguments: field_table(m.arguments),
        }),
        Method::ExchangeDeclareOk(_) => M::DeclareOk(exchange::DeclareOk {}),
        Method::ExchangeDelete(m) => M::Delete(exchange::Delete {
            exchange: short(m.exchange),
            if_unused: m.if_unused,
            nowait: m.nowait,
        }),
        Method::ExchangeDeleteOk(_) => M::DeleteOk(exchange::DeleteOk {}),
        Method::ExchangeBind(m) => M::Bind(exchange::Bind {
            destination: short(m.destination),
            source: short(m.source),
            routing_key: short(m.routing_key),
            nowait: m.nowait,
            arguments: field_table(m.arguments),
        }),
        Method::ExchangeBindOk(_) => M::BindOk(exchange::BindOk {}),
        Method::ExchangeUnbind(m) => M::Unbind(exchange::Unbind {
            destination: short(m.destination),
            source: short(m.source),
            routing_key: short(m.routing_key),
            nowait: m.nowait,
            arguments: field_table(m.arguments),
        }),
        Method::ExchangeUnbindOk(_) => M::UnbindOk(exchange::UnbindOk {}),
        _ => return None,
    };
    Some(AMQPClass::Exchange(method))
}

fn queue_class(method: &Method<'_>) -> Option<AMQPClass> {
    use queue::AMQPMethod as M;
    let method = match *method {
        Method::QueueDeclare(m) => M::Declare(queue::Declare {
            queue: short(m.queue),
            passive: m.passive,
            durable: m.durable,
            exclusive: m.exclusive,
            auto_delete: m.auto_delete,
            nowait: m.nowait,
            arguments: field_table(m.arguments),
        }),
        Method::QueueDeclareOk(m) => M::DeclareOk(queue::DeclareOk {
            queue: short(m.queue),
            message_count: m.message_count,
            consumer_count: m.consumer_count,
        }),
        Method::QueueBind(m) => M::Bind(queue::Bind {
            queue: short(m.queue),
            exchange: short(m.exchange),
            routing_key: short(m.routing_key),
            nowait: m.nowait,
            arguments: field_table(m.arguments),
        }),
        Method::QueueBindOk(_) => M::BindOk(queue::BindOk {}),
        Method::QueuePurge(m) => M::Purge(queue::Purge { queue: short(m.queue), nowait: m.nowait }),
        Method::QueuePurgeOk(m) => M::PurgeOk(queue::PurgeOk { message_count: m.message_count }),
        Method::QueueDelete(m) => M::Delete(queue::Delete {
            queue: short(m.queue),
            if_unused: m.if_unused,
            if_empty: m.if_empty,
            nowait: m.nowait,
        }),
        Method::QueueDeleteOk(m) => M::DeleteOk(queue::DeleteOk { message_count: m.message_count }),
        Method::QueueUnbind(m) => M::Unbind(queue::Unbind {
            queue: short(m.queue),
            exchange: short(m.exchange),
            routing_key: short(m.routing_key),
            arguments: field_table(m.arguments),
        }),
        Method::QueueUnbindOk(_) => M::UnbindOk(queue::UnbindOk {}),
        _ => return None,
    };
    Some(AMQPClass::Queue(method))
}

fn basic_class(method: &Method<'_>) -> Option<AMQPClass> {
    use basic::AMQPMethod as M;
    let method = match *method {
        Method::BasicQosOk(_) => M::QosOk(basic::QosOk {}),
        Method::BasicConsume(m) => M::Consume(basic::Consume {
            queue: short(m.queue),
            consumer_tag: short(m.consumer_tag),
            no_local: m.no_local,
            no_ack: m.no_ack,
            exclusive: m.exclusive,
            nowait: m.nowait,
            arguments: field_table(m.arguments),
        }),
        Method::BasicConsumeOk(m) => {
            M::ConsumeOk(basic::ConsumeOk { consumer_tag: short(m.consumer_tag) })
        }
        Method::BasicCancel(m) => {
            M::Cancel(basic::Cancel { consumer_tag: short(m.consumer_tag), nowait: m.nowait })
        }
        Method::BasicCancelOk(m) => {
            M::CancelOk(basic::CancelOk { consumer_tag: short(m.consumer_tag) })
        }
        Method::BasicGet(m) => M::Get(basic::Get { queue: short(m.queue), no_ack: m.no_ack }),
        Method::BasicGetEmpty(_) => M::GetEmpty(basic::GetEmpty {}),
        Method::BasicAck(m) => {
            M::Ack(basic::Ack { delivery_tag: m.delivery_tag, multiple: m.multiple })
        }
        Method::BasicReject(m) => {
            M::Reject(basic::Reject { delivery_tag: m.delivery_tag, requeue: m.requeue })
        }
        Method::BasicRecoverAsync(m) => M::RecoverAsync(basic::RecoverAsync { requeue: m.requeue }),
        Method::BasicRecover(m) => M::Recover(basic::Recover { requeue: m.requeue }),
        Method::BasicRecoverOk(_) => M::RecoverOk(basic::RecoverOk {}),
        Method::BasicNack(m) => M::Nack(basic::Nack {
            delivery_tag: m.delivery_tag,
            multiple: m.multiple,
            requeue: m.requeue,
        }),
        _ => return None,
    };
    Some(AMQPClass::Basic(method))
}

/// The methods of class basic that have content.
fn content_class(method: &Method<'_>) -> Option<AMQPClass> {
    use basic::AMQPMethod as M;
    let method = match *method {
        Method::BasicPublish(m) => M::Publish(basic::Publish {
            exchange: short(m.exchange),
            routing_key: short(m.routing_key),
            mandatory: m.mandatory,
            immediate: m.immediate,
        }),
        Method::BasicReturn(m) => M::Return(basic::Return {
            reply_code: m.reply_code,
            reply_text: short(m.reply_text),
            exchange: short(m.exchange),
            routing_key: short(m.routing_key),
        }),
        Method::BasicDeliver(m) => M::Deliver(basic::Deliver {
            consumer_tag: short(m.consumer_tag),
            delivery_tag: m.delivery_tag,
            redelivered: m.redelivered,
            exchange: short(m.exchange),
            routing_key: short(m.routing_key),
        }),
        Method::BasicGetOk(m) => M::GetOk(basic::GetOk {
            delivery_tag: m.delivery_tag,
            redelivered: m.redelivered,
            exchange: short(m.exchange),
            routing_key: short(m.routing_key),
            message_count: m.message_count,
        }),
        _ => return None,
    };
    Some(AMQPClass::Basic(method))
}

fn other_class(method: &Method<'_>) -> Option<AMQPClass> {
    Some(match *method {
        Method::AccessRequest(m) => {
            AMQPClass::Access(access::AMQPMethod::Request(access::Request {
                realm: short(m.realm),
                exclusive: m.exclusive,
                passive: m.passive,
                active: m.active,
                write: m.write,
                read: m.read,
            }))
        }
        Method::ConfirmSelect(m) => {
            AMQPClass::Confirm(confirm::AMQPMethod::Select(confirm::Select { nowait: m.nowait }))
        }
        Method::ConfirmSelectOk(_) => {
            AMQPClass::Confirm(confirm::AMQPMethod::SelectOk(confirm::SelectOk {}))
        }
        Method::TxSelect(_) => AMQPClass::Tx(tx::AMQPMethod::Select(tx::Select {})),
        Method::TxSelectOk(_) => AMQPClass::Tx(tx::AMQPMethod::SelectOk(tx::SelectOk {})),
        Method::TxCommit(_) => AMQPClass::Tx(tx::AMQPMethod::Commit(tx::Commit {})),
        Method::TxCommitOk(_) => AMQPClass::Tx(tx::AMQPMethod::CommitOk(tx::CommitOk {})),
        Method::TxRollback(_) => AMQPClass::Tx(tx::AMQPMethod::Rollback(tx::Rollback {})),
        Method::TxRollbackOk(_) => AMQPClass::Tx(tx::AMQPMethod::RollbackOk(tx::RollbackOk {})),
        _ => return None,
    })
}

fn amqp_properties(properties: &Properties<'_>) -> AMQPProperties {
    type Set = fn(AMQPProperties, ShortString) -> AMQPProperties;
    let strings: [(Option<&[u8]>, Set); 10] = [
        (properties.content_type, AMQPProperties::with_content_type),
        (properties.content_encoding, AMQPProperties::with_content_encoding),
        (properties.correlation_id, AMQPProperties::with_correlation_id),
        (properties.reply_to, AMQPProperties::with_reply_to),
        (properties.expiration, AMQPProperties::with_expiration),
        (properties.message_id, AMQPProperties::with_message_id),
        (properties.type_, AMQPProperties::with_type),
        (properties.user_id, AMQPProperties::with_user_id),
        (properties.app_id, AMQPProperties::with_app_id),
        (properties.cluster_id, AMQPProperties::with_cluster_id),
    ];
    let mut theirs = AMQPProperties::default();
    for (value, set) in strings {
        if let Some(value) = value {
            theirs = set(theirs, short(value));
        }
    }
    if let Some(headers) = properties.headers {
        theirs = theirs.with_headers(field_table(headers));
    }
    if let Some(delivery_mode) = properties.delivery_mode {
        theirs = theirs.with_delivery_mode(delivery_mode);
    }
    if let Some(priority) = properties.priority {
        theirs = theirs.with_priority(priority);
    }
    if let Some(timestamp) = properties.timestamp {
        theirs = theirs.with_timestamp(timestamp);
    }
    theirs
}

fn written_by_them(frame: &AMQPFrame) -> Vec<u8> {
    let mut buffer = vec![0; 1 << 17];
    let context = WriteContext::from(Cursor::new(buffer.as_mut_slice()));
    let context = gen_frame(frame)(context).expect("they can write what they can hold");
    let size = usize::try_from(context.position).expect("small");
    buffer.truncate(size);
    buffer
}

fn read_by_them(octets: &[u8]) -> AMQPFrame {
    let (rest, frame) = parse_frame(octets).expect("they can read what we wrote");
    assert!(rest.is_empty());
    frame
}

proptest! {
    #[test]
    fn methods_have_the_same_bytes_as_amq_protocol(arguments in Arguments::portable(), channel in any::<u16>()) {
        for method in arguments.methods() {
            let (class, ours) = amqp_class(&method);
            let theirs = AMQPFrame::Method(channel, class);
            let mut octets = Vec::new();
            write_method(&mut octets, channel, &ours);
            prop_assert_eq!(&read_by_them(&octets), &theirs);

            let octets_of_theirs = written_by_them(&theirs);
            let (frame, _) = split_frame(&octets_of_theirs, u32::MAX).unwrap().unwrap();
            prop_assert_eq!(frame.channel, channel);
            prop_assert_eq!(Method::decode(frame.payload), Ok(ours));
            prop_assert_eq!(octets, octets_of_theirs, "{}", ours.name());
        }
    }

    #[test]
    fn content_has_the_same_bytes_as_amq_protocol(
        arguments in Arguments::portable(),
        channel in any::<u16>(),
        body in vec(any::<u8>(), 1..100),
    ) {
        let properties = arguments.properties();
        let theirs = AMQPContentHeader {
            class_id: 60,
            body_size: body.len() as u64,
            properties: amqp_properties(&properties),
        };
        let theirs = AMQPFrame::Header(channel, theirs);
        let mut raw_properties = Vec::new();
        properties.encode(&mut raw_properties);
        let mut octets = Vec::new();
        write_content_header(&mut octets, channel, body.len() as u64, &raw_properties);
        prop_assert_eq!(&read_by_them(&octets), &theirs);

        let octets_of_theirs = written_by_them(&theirs);
        let (frame, _) = split_frame(&octets_of_theirs, u32::MAX).unwrap().unwrap();
        let header = ContentHeader::parse(frame.payload).unwrap();
        prop_assert_eq!(header.body_size, body.len() as u64);
        prop_assert_eq!(Properties::parse(header.properties), Ok(properties));
        prop_assert_eq!(octets, octets_of_theirs);

        let mut octets = Vec::new();
        write_body_frames(&mut octets, channel, &body, 1000);
        let theirs = AMQPFrame::Body(channel, body);
        prop_assert_eq!(&read_by_them(&octets), &theirs);
        prop_assert_eq!(octets, written_by_them(&theirs));
    }
}

#[test]
fn heartbeat_has_the_same_bytes_as_amq_protocol() {
    let mut octets = Vec::new();
    write_heartbeat(&mut octets);
    assert_eq!(octets, written_by_them(&AMQPFrame::Heartbeat));
    assert_eq!(read_by_them(&octets), AMQPFrame::Heartbeat);
}
