//! Vocabulary of clients: a few names, arguments and properties that often meet.

use amqp::content_header::write_content_header;
use amqp::frame::{write_body_frames, write_heartbeat};
use amqp::limits::FRAME_END;
use amqp::method::*;
use amqp::properties::Properties;
use amqp::protocol_header::AMQP_0_9_1;
use amqp::table::{Table, TableBuilder, TableRef, Value};

use super::steps::{PEERS, Say};

/// Channels that are spoken on, from 1.
pub(super) const CHANNELS: u16 = 3;

const QUEUES: [&str; 8] = ["q0", "q1", "q2", "b0", "", "amq.rabbitmq.reply-to", "q\u{e9}", "none"];
const EXCHANGES: [&str; 10] = [
    "",
    "e0",
    "e1",
    "e2",
    "amq.direct",
    "amq.topic",
    "amq.fanout",
    "amq.headers",
    "amq.rabbitmq.trace",
    "b1",
];
const KEYS: [&str; 10] = ["q0", "q1", "q2", "b0", "", "a.b", "a.*", "#", "1", "x.#.x"];
const TYPES: [&str; 8] = [
    "direct",
    "fanout",
    "topic",
    "headers",
    "x-consistent-hash",
    "x-local-random",
    "x-modulus-hash",
    "x",
];
const TAGS: [&str; 4] = ["", "c0", "c1", "c2"];

/// Bytes of a body for each step of its choice.
const BODY_STEP: usize = 600;

fn of<'a>(names: &[&'a str], choice: u8) -> &'a str {
    names[usize::from(choice) % names.len()]
}

const fn bit(bits: u8, place: u8) -> bool {
    bits >> place & 1 == 1
}

/// Index of the client whose turn it is.
pub(super) fn peer(who: u8) -> usize {
    usize::from(who) % PEERS
}

/// All frames from the protocol header to open channels.
pub(super) fn handshake(user: &str, frame_max: u32, heartbeat: u16) -> Vec<u8> {
    let mut out = AMQP_0_9_1.to_vec();
    let mut properties = TableBuilder::new();
    properties.table("capabilities", |capabilities| {
        capabilities.insert("consumer_cancel_notify", Value::Bool(true));
        capabilities.insert("connection.blocked", Value::Bool(true));
    });
    let properties = properties.finish();
    let response = format!("\0{user}\0{user}");
    let methods: [Method<'_>; 3] = [
        ConnectionStartOk {
            client_properties: properties.as_ref(),
            mechanism: "PLAIN",
            response: response.as_bytes(),
            locale: "en_US",
        }
        .into(),
        ConnectionTuneOk { channel_max: 100, frame_max, heartbeat }.into(),
        ConnectionOpen { virtual_host: "/" }.into(),
    ];
    methods.iter().for_each(|method| write_method(&mut out, 0, method));
    (1..=CHANNELS).for_each(|channel| write_method(&mut out, channel, &ChannelOpen.into()));
    out
}

/// A frame that is right at both ends.
pub(super) fn frame(frame_type: u8, channel: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![frame_type, 0, channel];
    out.extend(u32::try_from(payload.len()).unwrap_or_default().to_be_bytes());
    out.extend_from_slice(payload);
    out.push(FRAME_END);
    out
}

/// Frames of a method.
pub(super) fn frames(say: Say, frame_max: u32) -> Vec<u8> {
    let Say { verb, who, a, b, c } = say;
    let channel = u16::from(who / 3) % CHANNELS + 1;
    let mut out = Vec::new();
    let arguments = arguments(a, c);
    let none = TableRef::EMPTY;
    let method: Method<'_> = match verb % 32 {
        0 => ChannelOpen.into(),
        1 => ChannelClose { reply_code: 200, reply_text: "", class_id: 0, method_id: 0 }.into(),
        2 | 3 => QueueDeclare {
            queue: of(&QUEUES, a),
            passive: bit(b, 0) && bit(b, 5),
            durable: !bit(b, 1),
            exclusive: bit(b, 2) && bit(b, 6),
            auto_delete: bit(b, 3),
            nowait: bit(b, 4),
            arguments: arguments.as_ref(),
        }
        .into(),
        4 => QueueBind {
            queue: of(&QUEUES, a),
            exchange: of(&EXCHANGES, b),
            routing_key: of(&KEYS, c),
            nowait: bit(b, 7),
            arguments: none,
        }
        .into(),
        5 => QueueUnbind {
            queue: of(&QUEUES, a),
            exchange: of(&EXCHANGES, b),
            routing_key: of(&KEYS, c),
            arguments: none,
        }
        .into(),
        6 => QueuePurge { queue: of(&QUEUES, a), nowait: bit(b, 0) }.into(),
        7 => QueueDelete {
            queue: of(&QUEUES, a),
            if_unused: bit(b, 0),
            if_empty: bit(b, 1),
            nowait: bit(b, 2),
        }
        .into(),
        8 => ExchangeDeclare {
            exchange: of(&EXCHANGES, a),
            exchange_type: of(&TYPES, b),
            passive: bit(c, 0) && bit(c, 1),
            durable: bit(c, 2),
            auto_delete: bit(c, 3),
            internal: bit(c, 4),
            nowait: bit(c, 5),
            arguments: arguments.as_ref(),
        }
        .into(),
        9 => {
            ExchangeDelete { exchange: of(&EXCHANGES, a), if_unused: bit(b, 0), nowait: bit(b, 1) }
                .into()
        }
        10 => ExchangeBind {
            destination: of(&EXCHANGES, a),
            source: of(&EXCHANGES, b),
            routing_key: of(&KEYS, c),
            nowait: bit(b, 7),
            arguments: none,
        }
        .into(),
        11 => ExchangeUnbind {
            destination: of(&EXCHANGES, a),
            source: of(&EXCHANGES, b),
            routing_key: of(&KEYS, c),
            nowait: bit(b, 7),
            arguments: none,
        }
        .into(),
        12 => BasicQos { prefetch_size: 0, prefetch_count: u16::from(a % 4), global: bit(b, 0) }
            .into(),
        13 | 14 => BasicConsume {
            queue: of(&QUEUES, a),
            consumer_tag: of(&TAGS, c),
            no_local: bit(b, 0),
            no_ack: bit(b, 1),
            exclusive: bit(b, 2) && bit(b, 5),
            nowait: bit(b, 3),
            arguments: arguments.as_ref(),
        }
        .into(),
        15 => BasicCancel { consumer_tag: of(&TAGS, a), nowait: bit(b, 0) }.into(),
        16 => BasicGet { queue: of(&QUEUES, a), no_ack: bit(b, 0) }.into(),
        17 => BasicAck { delivery_tag: u64::from(a % 12), multiple: bit(b, 0) }.into(),
        18 => BasicReject { delivery_tag: u64::from(a % 12), requeue: bit(b, 0) }.into(),
        19 => {
            BasicNack { delivery_tag: u64::from(a % 12), multiple: bit(b, 0), requeue: bit(b, 1) }
                .into()
        }
        20 => BasicRecover { requeue: bit(a, 0) }.into(),
        21 => ConfirmSelect { nowait: bit(a, 0) }.into(),
        22 => TxSelect.into(),
        23 => TxCommit.into(),
        24 => TxRollback.into(),
        25 => ChannelFlow { active: bit(a, 0) }.into(),
        26 => ChannelCloseOk.into(),
        27 => {
            write_heartbeat(&mut out);
            return out;
        }
        28 if a == 0 => {
            let close =
                ConnectionClose { reply_code: 200, reply_text: "", class_id: 0, method_id: 0 };
            write_method(&mut out, 0, &close.into());
            return out;
        }
        28 if a == 1 => {
            write_method(&mut out, 0, &ConnectionCloseOk.into());
            return out;
        }
        28 => AccessRequest {
            realm: "/",
            exclusive: false,
            passive: false,
            active: true,
            write: true,
            read: true,
        }
        .into(),
        place => {
            let (exchange, key) = match place {
                29 => (of(&EXCHANGES, b), of(&KEYS, a)),
                _ => ("", of(&QUEUES, a)),
            };
            let body =
                vec![b; if place == 31 { usize::from(b) * BODY_STEP } else { usize::from(b % 4) }];
            publish(&mut out, channel, (exchange, key, bit(a, 7)), c, (&body, frame_max));
            return out;
        }
    };
    write_method(&mut out, channel, &method);
    out
}

/// A message with its properties chosen by `choice`.
fn publish(
    out: &mut Vec<u8>,
    channel: u16,
    (exchange, key, mandatory): (&str, &str, bool),
    choice: u8,
    (body, frame_max): (&[u8], u32),
) {
    let (exchange, routing_key) = (exchange.as_bytes(), key.as_bytes());
    let publish = BasicPublish { exchange, routing_key, mandatory, immediate: false };
    write_method(out, channel, &publish.into());
    let mut headers = TableBuilder::new();
    headers.array("CC", |list| {
        list.push(Value::LongStr(of(&QUEUES, choice).as_bytes()));
    });
    headers.insert("k", Value::I32(i32::from(choice)));
    if bit(choice, 6) {
        headers.insert("BCC", Value::LongStr(b"q1"));
    }
    let headers = headers.finish();
    let properties = Properties {
        delivery_mode: bit(choice, 0).then_some(2),
        expiration: bit(choice, 1).then_some(if bit(choice, 2) { b"0" } else { b"20" }),
        priority: bit(choice, 3).then_some(choice >> 4),
        reply_to: bit(choice, 4).then_some(b"amq.rabbitmq.reply-to"),
        headers: bit(choice, 5).then_some(headers.as_ref()),
        user_id: (bit(choice, 7) && bit(choice, 4)).then_some(b"guest"),
        ..Properties::default()
    };
    let mut bytes = Vec::new();
    properties.encode(&mut bytes);
    write_content_header(out, channel, body.len() as u64, &bytes);
    write_body_frames(out, channel, body, frame_max - 8);
}

/// Arguments of a queue, an exchange or a consumer; each bit of `choice` is one of them.
fn arguments(name: u8, choice: u8) -> Table {
    let mut table = TableBuilder::new();
    if bit(choice, 0) {
        table.insert("x-message-ttl", Value::I32(i32::from(choice >> 4) * 5));
    }
    if bit(choice, 1) {
        table.insert("x-max-length", Value::I32(i32::from(choice >> 6) + 1));
    }
    if bit(choice, 2) {
        let target = of(&QUEUES[..4], choice >> 5);
        table.insert("x-dead-letter-exchange", Value::LongStr(b""));
        table.insert("x-dead-letter-routing-key", Value::LongStr(target.as_bytes()));
    }
    if bit(choice, 3) {
        table.insert("x-queue-type", Value::LongStr(b"quorum"));
        if bit(choice, 7) {
            table.insert("x-delivery-limit", Value::I32(1));
        }
    }
    if bit(choice, 4) {
        table.insert("x-max-priority", Value::U8(3));
        table.insert("alternate-exchange", Value::LongStr(of(&EXCHANGES, name / 8).as_bytes()));
    }
    if bit(choice, 5) {
        let overflow: &[u8] =
            if bit(choice, 6) { b"reject-publish" } else { b"reject-publish-dlx" };
        table.insert("x-overflow", Value::LongStr(overflow));
    }
    if bit(choice, 6) {
        table.insert("x-expires", Value::I32(50));
    }
    if bit(choice, 7) {
        table.insert("x-single-active-consumer", Value::Bool(true));
        table.insert("x-priority", Value::I32(i32::from(name)));
    }
    table.finish()
}
