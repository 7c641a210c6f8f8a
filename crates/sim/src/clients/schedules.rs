//! Clients that publish messages with names, which wait in the queue `later` or in the delayed exchange `held`, and that
//! cancel, reschedule and deliver them.

use amqp::content_header::write_content_header;
use amqp::frame::write_body_frames;
use amqp::method::{BasicPublish, ExchangeDeclare, QueueBind};
use amqp::properties::Properties;
use amqp::table::{Table, TableBuilder, Value};
use simdisk::Random;

use crate::checks::book::{Book, MessageFacts};
use crate::checks::schedules::{Mode, Operation, Since};
use crate::clients::confirms::Confirms;
use crate::clients::handshake::{FRAME_MAX, frame};
use crate::clients::operations::REQUEST;
pub(super) use crate::clients::operations::{OPERATIONS_CHANNEL, Operations};
use crate::clients::topology::{LATER, QueueSpec, SCHEDULE_QUEUE as QUEUE, Topology};

/// Name of the delayed exchange in which messages wait.
const EXCHANGE: &str = "held";

/// Messages with one name, more or less.
const MESSAGES_PER_NAME: u64 = 6;

/// Names that are in use at one time.
const NAMES: u64 = 5;

/// Longest delay, in milliseconds.
const DELAY_MS_MAX: u64 = 5_000;

impl Topology {
    /// Adds the queue.
    pub(super) fn add_schedules(&mut self, is_quorum: bool) {
        assert_eq!(self.queues.len(), LATER, "the queue is behind all others");
        let spec = QueueSpec { name: QUEUE, is_quorum, ttl_ms: None, dead_letters_to: None };
        self.queues.push(spec);
    }

    /// The methods that declare the queue, the delayed exchange and the binding between them, if the run has them.
    pub(super) fn declare_schedules(&self) -> Vec<Vec<u8>> {
        if self.queues.len() <= LATER {
            return Vec::new();
        }
        let mut arguments = TableBuilder::new();
        arguments.insert("x-delayed-type", Value::LongStr(b"direct"));
        let arguments: Table = arguments.finish();
        let exchange = ExchangeDeclare {
            exchange: EXCHANGE,
            exchange_type: "x-delayed-message",
            passive: false,
            durable: true,
            auto_delete: false,
            internal: false,
            nowait: false,
            arguments: arguments.as_ref(),
        };
        let none = Table::default();
        let bind = QueueBind {
            queue: QUEUE,
            exchange: EXCHANGE,
            routing_key: QUEUE,
            nowait: false,
            arguments: none.as_ref(),
        };
        vec![frame(1, exchange), self.declare(LATER, false), frame(1, bind)]
    }
}

/// One of the names in use.
pub(super) fn newest_name(book: &Book, random: &mut Random) -> u64 {
    NAMES + book.schedules.published() / MESSAGES_PER_NAME - random.below(NAMES)
}

/// A name, and the place in which its messages wait, as text.
pub(super) fn target_of(name: u64) -> (String, String) {
    let target = match is_held(name) {
        true => format!("exchange/{EXCHANGE}"),
        false => format!("queue/{QUEUE}"),
    };
    (name_of(name), target)
}

/// True if messages of a name wait in the delayed exchange.
fn is_held(name: u64) -> bool {
    (name / 3).is_multiple_of(3)
}

/// The mode of a publish with this name.
fn mode_of(name: u64, random: &mut Random) -> Mode {
    match name % 3 {
        0 => Mode::Replace,
        1 if random.percent(60) => Mode::Keep,
        1 => Mode::Replace,
        _ => Mode::Add,
    }
}

/// Does something on the channel of publishes and that of operations. Returns octets to send.
pub(super) fn act(
    (confirms, operations): (&mut Confirms, &mut Operations),
    book: &mut Book,
    next_id: &mut u64,
    since: Since,
    random: &mut Random,
) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..random.below(3) {
        let name = newest_name(book, random);
        if random.percent(60) {
            *next_id += 1;
            out.extend(publish(confirms, book, (*next_id, name), since, random));
        } else {
            out.extend(operate(operations, book, name, since, random));
        }
    }
    out
}

fn publish(
    confirms: &mut Confirms,
    book: &mut Book,
    (id, name): (u64, u64),
    since: Since,
    random: &mut Random,
) -> Vec<u8> {
    let mode = mode_of(name, random);
    let is_held = is_held(name);
    let delay_ms = match random.below(100) {
        0..10 if mode == Mode::Replace && !is_held => 0,
        0..30 => 1 + random.below(300),
        _ => 1 + random.below(DELAY_MS_MAX),
    };
    confirms.sends(id);
    book.messages.insert(id, MessageFacts::published(LATER, since));
    book.schedules.publishes(id, (name, mode), delay_ms, since, book.ledger.len());
    book.note(format_args!("message {id} of name {name} is to come in {delay_ms} ms, {mode:?}"));
    let (exchange, delay) =
        if is_held { (EXCHANGE, "x-delay") } else { ("", "x-opt-delivery-delay") };
    let mut headers = TableBuilder::new();
    headers.insert(delay, integer(delay_ms));
    headers.insert("x-schedule-id", Value::LongStr(name_of(name).as_bytes()));
    let mode: Option<&[u8]> = match mode {
        Mode::Replace => None,
        Mode::Keep => Some(b"keep"),
        Mode::Add => Some(b"add"),
    };
    if let Some(mode) = mode {
        headers.insert("x-schedule-mode", Value::LongStr(mode));
    }
    let mut body = id.to_le_bytes().to_vec();
    body.resize(8 + usize::try_from(random.below(200)).unwrap_or(0), 7);
    octets(1, (exchange, QUEUE), &headers.finish(), &body)
}

fn operate(
    operations: &mut Operations,
    book: &mut Book,
    name: u64,
    since: Since,
    random: &mut Random,
) -> Vec<u8> {
    let operation = match random.below(100) {
        0..45 => Operation::Cancel,
        45..85 => Operation::Reschedule(random.below(DELAY_MS_MAX)),
        _ => Operation::Deliver,
    };
    let request = book.schedules.asks(name, operation, since, book.ledger.len());
    operations.sends(request);
    book.note(format_args!("operation {request} is {operation:?} of name {name}"));
    let (id, target) = target_of(name);
    let word: &[u8] = match operation {
        Operation::Cancel | Operation::CancelAll => b"cancel",
        Operation::Reschedule(_) => b"reschedule",
        Operation::Deliver => b"deliver-now",
    };
    let mut headers = TableBuilder::new();
    headers.insert("x-schedule-op", Value::LongStr(word));
    headers.insert("x-schedule-target", Value::LongStr(target.as_bytes()));
    headers.insert("x-schedule-id", Value::LongStr(id.as_bytes()));
    if let Operation::Reschedule(delay_ms) = operation {
        headers.insert("x-opt-delivery-delay", integer(delay_ms));
    }
    headers.insert(REQUEST, integer(request));
    octets(OPERATIONS_CHANNEL, ("amq.schedule", ""), &headers.finish(), &[])
}

fn name_of(name: u64) -> String {
    format!("name-{name}")
}

fn integer(value: u64) -> Value<'static> {
    Value::I64(i64::try_from(value).expect("numbers of a run are small"))
}

/// A mandatory publish with its content.
fn octets(channel: u16, (exchange, key): (&str, &str), headers: &Table, body: &[u8]) -> Vec<u8> {
    let publish = BasicPublish {
        exchange: exchange.as_bytes(),
        routing_key: key.as_bytes(),
        mandatory: channel == OPERATIONS_CHANNEL,
        immediate: false,
    };
    let mut out = frame(channel, publish);
    let properties = Properties {
        headers: Some(headers.as_ref()),
        delivery_mode: Some(2),
        ..Properties::default()
    };
    let mut encoded = Vec::new();
    properties.encode(&mut encoded);
    write_content_header(&mut out, channel, body.len() as u64, &encoded);
    write_body_frames(&mut out, channel, body, FRAME_MAX - 8);
    out
}
