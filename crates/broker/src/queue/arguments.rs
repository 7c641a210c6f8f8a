//! The arguments of a queue, parsed once into types that cannot be wrong.
//!
//! The `x-` strings of the wire stand here and nowhere else. Validation follows RabbitMQ's order and
//! texts (spec 6.1, 6.4): each argument's value first, then arguments that belong to another queue
//! type. What arguments and policies make of a queue together is `settings`' business.

use std::sync::Arc;

use amqp::limits::SHORT_STRING_BYTES_MAX;
use amqp::table::{Table, TableBuilder, TableRef, Value};

use crate::limits::TTL_MS_MAX;
use crate::message::{Name, RoutingKey};
use crate::policy::values::{DeadLetterStrategy, DelayedRetryType, ExpiryOrder, Overflow};
use crate::queue_type::QueueType;
use crate::refusal::{Refusal, Resource};
use crate::term;

/// The arguments of a queue.
#[derive(Clone, Default, Debug)]
pub struct QueueArguments {
    /// `x-queue-type`.
    pub queue_type: QueueType,
    /// `x-message-ttl`, milliseconds.
    pub message_ttl_ms: Option<u64>,
    /// `x-expires`, milliseconds, at least 1.
    pub expires_ms: Option<u64>,
    /// `x-dead-letter-exchange`.
    pub dead_letter_exchange: Option<Name>,
    /// `x-dead-letter-routing-key`.
    pub dead_letter_routing_key: Option<RoutingKey>,
    /// `x-dead-letter-strategy`.
    pub dead_letter_strategy: Option<DeadLetterStrategy>,
    /// `x-max-length`, messages.
    pub max_length: Option<u64>,
    /// `x-max-length-bytes`.
    pub max_length_bytes: Option<u64>,
    /// `x-overflow`.
    pub overflow: Option<Overflow>,
    /// `x-max-priority` of a classic queue.
    pub max_priority: Option<u8>,
    /// `x-single-active-consumer`.
    pub single_active_consumer: bool,
    /// `x-delivery-limit`; negative is unlimited.
    pub delivery_limit: Option<i64>,
    /// `x-consumer-timeout`, milliseconds.
    pub consumer_timeout_ms: Option<u64>,
    /// `x-delayed-retry-type`.
    pub delayed_retry_type: Option<DelayedRetryType>,
    /// `x-delayed-retry-min`, milliseconds.
    pub delayed_retry_min_ms: Option<u64>,
    /// `x-delayed-retry-max`, milliseconds.
    pub delayed_retry_max_ms: Option<u64>,
    /// `x-expiry-order`, Leveret's own: whether expiry is exact or at the head only.
    pub expiry_order: Option<ExpiryOrder>,
    /// Everything as declared, with `x-queue-type` filled in.
    pub table: Table,
}

/// The reason why a value is refused, as RabbitMQ prints it.
type Reason = String;

/// Checks the value of one argument among all.
type Validator = fn(&Value<'_>, TableRef<'_>) -> Result<(), Reason>;

/// Arguments in the order in which their values are checked. `x-queue-type` comes first because the
/// others depend on it, and `x-dead-letter-exchange` earlier still, before permissions.
const VALIDATORS: [(&str, Validator); 22] = [
    ("x-expires", |v, _| in_range(v, 1, TTL_MS_MAX)),
    ("x-message-ttl", |v, _| in_range(v, 0, TTL_MS_MAX)),
    ("x-dead-letter-routing-key", dead_letter_routing_key),
    ("x-dead-letter-strategy", |v, _| word(v, DeadLetterStrategy::parse, "invalid_dlx_strategy")),
    ("x-max-length", |v, _| in_range(v, 0, u64::MAX)),
    ("x-max-length-bytes", |v, _| in_range(v, 0, u64::MAX)),
    ("x-max-in-memory-length", |v, _| in_range(v, 0, u64::MAX)),
    ("x-max-in-memory-bytes", |v, _| in_range(v, 0, u64::MAX)),
    ("x-max-priority", max_priority),
    ("x-overflow", |v, _| word(v, Overflow::parse, "invalid_overflow")),
    ("x-queue-version", queue_version),
    ("x-single-active-consumer", boolean),
    ("x-consumer-timeout", |v, _| in_range(v, 0, u64::MAX)),
    ("x-consumer-disconnected-timeout", |v, _| in_range(v, 0, u64::MAX)),
    ("x-quorum-initial-group-size", |v, _| in_range(v, 1, u64::MAX)),
    ("x-max-age", max_age),
    ("x-stream-max-segment-size-bytes", segment_size),
    ("x-stream-filter-size-bytes", |v, _| in_range(v, 0, u64::MAX)),
    ("x-initial-cluster-size", |v, _| in_range(v, 1, u64::MAX)),
    ("x-queue-leader-locator", leader_locator),
    ("x-expiry-order", |v, _| word(v, ExpiryOrder::parse, "invalid_expiry_order")),
    ("x-queue-mode", |_, _| Ok(())),
];

/// Arguments that only some queue types know: the type they are refused by.
const REFUSED: [(&str, &[QueueType]); 18] = [
    ("x-dead-letter-strategy", &[QueueType::Classic]),
    ("x-max-in-memory-length", &[QueueType::Classic]),
    ("x-max-in-memory-bytes", &[QueueType::Classic]),
    ("x-quorum-initial-group-size", &[QueueType::Classic]),
    ("x-delivery-limit", &[QueueType::Classic]),
    ("x-consumer-timeout", &[QueueType::Classic]),
    ("x-consumer-disconnected-timeout", &[QueueType::Classic]),
    ("x-delayed-retry-type", &[QueueType::Classic]),
    ("x-delayed-retry-min", &[QueueType::Classic]),
    ("x-delayed-retry-max", &[QueueType::Classic]),
    ("x-max-priority", &[QueueType::Quorum]),
    ("x-queue-mode", &[QueueType::Quorum]),
    ("x-queue-version", &[QueueType::Quorum]),
    ("x-max-age", &[QueueType::Classic, QueueType::Quorum]),
    ("x-stream-max-segment-size-bytes", &[QueueType::Classic, QueueType::Quorum]),
    ("x-stream-filter-size-bytes", &[QueueType::Classic, QueueType::Quorum]),
    ("x-initial-cluster-size", &[QueueType::Classic, QueueType::Quorum]),
    ("x-queue-master-locator", &[QueueType::Quorum]),
];

/// Arguments whose values must be the same when a queue is declared again (spec 6.2).
const EQUIVALENT: [&str; 23] = [
    "x-expires",
    "x-message-ttl",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-dead-letter-strategy",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-in-memory-length",
    "x-max-in-memory-bytes",
    "x-max-priority",
    "x-overflow",
    "x-queue-mode",
    "x-queue-version",
    "x-single-active-consumer",
    "x-delivery-limit",
    "x-consumer-timeout",
    "x-consumer-disconnected-timeout",
    "x-delayed-retry-type",
    "x-delayed-retry-min",
    "x-delayed-retry-max",
    "x-quorum-initial-group-size",
    "x-queue-leader-locator",
    "x-expiry-order",
];

/// `x-dead-letter-exchange`, which is checked before permissions and before all other arguments.
///
/// # Errors
/// 406 when it is not a longstr.
pub(crate) fn dead_letter_exchange(
    table: TableRef<'_>,
    queue: Resource<'_>,
) -> Result<Option<Name>, Refusal> {
    match table.get("x-dead-letter-exchange") {
        None => Ok(None),
        Some(Value::LongStr(name)) => Ok(Some(lossy(name))),
        Some(other) => Err(Refusal::precondition_failed(format!(
            "invalid type '{}' for arg 'x-dead-letter-exchange' in {queue}",
            other.type_name()
        ))),
    }
}

impl QueueArguments {
    /// Parses the arguments of a new queue.
    ///
    /// # Errors
    /// 406 with RabbitMQ's text for the first argument that is wrong.
    pub(crate) fn parse(table: TableRef<'_>, queue: Resource<'_>) -> Result<Self, Refusal> {
        let invalid = |name: &str, reason: &str| Refusal::invalid_argument(name, queue, reason);
        let queue_type = queue_type(table).map_err(|reason| invalid("x-queue-type", &reason))?;
        let dead_letter_exchange = dead_letter_exchange(table, queue)?;
        for (name, validate) in VALIDATORS {
            if let Some(value) = table.get(name) {
                validate(&value, table).map_err(|reason| invalid(name, &reason))?;
            }
        }
        for (name, refused_by) in REFUSED {
            if table.get(name).is_some() && refused_by.contains(&queue_type) {
                return Err(Refusal::precondition_failed(format!(
                    "invalid arg '{name}' for {queue} of queue type {}",
                    queue_type.module()
                )));
            }
        }
        let number = |name: &str| {
            let value = table.get(name).and_then(|v| v.as_integer());
            value.and_then(|v| u64::try_from(v).ok())
        };
        let text = |name: &str| table.get(name).and_then(|v| v.as_long_str());
        Ok(Self {
            queue_type,
            message_ttl_ms: number("x-message-ttl"),
            expires_ms: number("x-expires"),
            dead_letter_exchange,
            dead_letter_routing_key: text("x-dead-letter-routing-key").map(RoutingKey::from),
            dead_letter_strategy: text("x-dead-letter-strategy")
                .and_then(DeadLetterStrategy::parse),
            max_length: number("x-max-length"),
            max_length_bytes: number("x-max-length-bytes"),
            overflow: text("x-overflow").and_then(Overflow::parse),
            max_priority: number("x-max-priority").and_then(|p| u8::try_from(p).ok()),
            single_active_consumer: table.get("x-single-active-consumer")
                == Some(Value::Bool(true)),
            delivery_limit: table.get("x-delivery-limit").and_then(|v| v.as_integer()),
            consumer_timeout_ms: number("x-consumer-timeout"),
            delayed_retry_type: text("x-delayed-retry-type").and_then(DelayedRetryType::parse),
            delayed_retry_min_ms: number("x-delayed-retry-min"),
            delayed_retry_max_ms: number("x-delayed-retry-max"),
            expiry_order: text("x-expiry-order").and_then(ExpiryOrder::parse),
            table: with_queue_type(table, queue_type),
        })
    }
}

/// Whether a queue declared with `current` may be declared again with `received`.
///
/// # Errors
/// 406 with RabbitMQ's text for the first argument that differs.
pub(crate) fn check_equivalence(
    current: TableRef<'_>,
    received: TableRef<'_>,
    queue: Resource<'_>,
) -> Result<(), Refusal> {
    for name in EQUIVALENT {
        check_argument(name, current.get(name), received.get(name), queue)?;
    }
    let current_type = queue_type(current).unwrap_or_default();
    if queue_type(received) == Ok(current_type) {
        return Ok(());
    }
    let received = received.get("x-queue-type").map(|v| term::value(&v)).unwrap_or_default();
    let received = if received.is_empty() { QueueType::default().as_str() } else { &received };
    let name = "x-queue-type";
    Err(inequivalent(name, queue, &quoted(received), &quoted(current_type.as_str())))
}

/// Whether one argument of a queue or exchange is the same in two declarations.
pub(crate) fn check_argument(
    name: &str,
    current: Option<Value<'_>>,
    received: Option<Value<'_>>,
    resource: Resource<'_>,
) -> Result<(), Refusal> {
    let described =
        |v: &Value<'_>| format!("the value '{}' of type '{}'", term::value(v), v.type_name());
    match (current, received) {
        (None, None) => Ok(()),
        (Some(current), Some(received)) => {
            if same_value(&current, &received) {
                return Ok(());
            }
            let (received, current) = (term::value(&received), term::value(&current));
            Err(inequivalent(name, resource, &quoted(&received), &quoted(&current)))
        }
        (Some(current), None) => Err(inequivalent(name, resource, "none", &described(&current))),
        (None, Some(received)) => Err(inequivalent(name, resource, &described(&received), "none")),
    }
}

/// 406 for a property or argument that differs from the first declaration.
pub(crate) fn inequivalent(
    name: &str,
    resource: Resource<'_>,
    received: &str,
    current: &str,
) -> Refusal {
    Refusal::precondition_failed(format!(
        "inequivalent arg '{name}' for {resource}: received {received} but current is {current}"
    ))
}

fn quoted(text: &str) -> String {
    format!("'{text}'")
}

/// Integers of any width are equal by value; everything else needs the same type.
fn same_value(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a.as_integer(), b.as_integer()) {
        (Some(a), Some(b)) => a == b,
        _ => match (a, b) {
            (Value::F32(a), Value::F64(b)) | (Value::F64(b), Value::F32(a)) => f64::from(*a) == *b,
            _ => a == b,
        },
    }
}

fn queue_type(table: TableRef<'_>) -> Result<QueueType, Reason> {
    match table.get("x-queue-type") {
        _ if leaves_type_open(table) => Ok(QueueType::default()),
        None => Ok(QueueType::default()),
        Some(Value::LongStr(name)) => QueueType::parse(name).ok_or_else(|| {
            format!("\"unsupported queue type '{}'\"", String::from_utf8_lossy(name))
        }),
        Some(other) => Err(unacceptable(&other)),
    }
}

/// Whether `x-queue-type` says nothing.
pub(crate) fn leaves_type_open(table: TableRef<'_>) -> bool {
    matches!(table.get("x-queue-type"), None | Some(Value::LongStr(b"" | b"undefined")))
}

/// The arguments with this type.
pub(crate) fn with_queue_type(table: TableRef<'_>, queue_type: QueueType) -> Table {
    let mut filled = TableBuilder::new();
    for (key, value) in table.iter() {
        if key != b"x-queue-type" {
            filled.insert(key, value);
        }
    }
    filled.insert("x-queue-type", Value::LongStr(queue_type.as_str().as_bytes()));
    filled.finish()
}

fn lossy(bytes: &[u8]) -> Name {
    Arc::from(String::from_utf8_lossy(bytes))
}

fn unacceptable(value: &Value<'_>) -> Reason {
    format!("{{unacceptable_type,{}}}", value.type_name())
}

fn integer(value: &Value<'_>) -> Result<i64, Reason> {
    let wrong = || format!("\"expected integer, got {}\"", value.type_name());
    value.as_integer().ok_or_else(wrong)
}

fn in_range(value: &Value<'_>, min: u64, max: u64) -> Result<(), Reason> {
    let number = integer(value)?;
    match u64::try_from(number) {
        Err(_) => Err(format!("{{value_negative,{number}}}")),
        Ok(number) if number < min => Err(format!("{{value_zero,{number}}}")),
        Ok(number) if number > max => Err(format!("{{value_too_large,{number}}}")),
        Ok(_) => Ok(()),
    }
}

fn word<T>(
    value: &Value<'_>,
    parse: fn(&[u8]) -> Option<T>,
    otherwise: &str,
) -> Result<(), Reason> {
    let text = value.as_long_str().ok_or_else(|| unacceptable(value))?;
    parse(text).map(|_| ()).ok_or_else(|| otherwise.to_owned())
}

fn boolean(value: &Value<'_>, _: TableRef<'_>) -> Result<(), Reason> {
    if matches!(value, Value::Bool(_)) { Ok(()) } else { Err(unacceptable(value)) }
}

/// COMPAT: long routing keys: as in a policy.
fn dead_letter_routing_key(value: &Value<'_>, table: TableRef<'_>) -> Result<(), Reason> {
    let Some(key) = value.as_long_str() else {
        return Err(unacceptable(value));
    };
    if table.get("x-dead-letter-exchange").is_none() {
        return Err("routing_key_but_no_dlx_defined".to_owned());
    }
    if key.len() > SHORT_STRING_BYTES_MAX {
        return Err(format!("{{max_length_exceeded,{}}}", key.len()));
    }
    Ok(())
}

fn max_priority(value: &Value<'_>, _: TableRef<'_>) -> Result<(), Reason> {
    let number = integer(value)?;
    if number > i64::from(u8::MAX) {
        return Err(format!("{{max_value_exceeded,{number}}}"));
    }
    in_range(value, 0, u64::MAX)
}

fn queue_version(value: &Value<'_>, _: TableRef<'_>) -> Result<(), Reason> {
    match integer(value)? {
        2 => Ok(()),
        other => Err(format!("\"unsupported queue version '{other}'\"")),
    }
}

/// A positive number and one unit of `Y M D h m s`.
fn max_age(value: &Value<'_>, _: TableRef<'_>) -> Result<(), Reason> {
    let text = value.as_long_str().ok_or_else(|| unacceptable(value))?;
    let invalid = || "invalid_max_age".to_owned();
    let (unit, digits) = text.split_last().ok_or_else(invalid)?;
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let is_positive = digits.iter().any(|digit| *digit != b'0');
    if is_number && is_positive && b"YMDhms".contains(unit) { Ok(()) } else { Err(invalid()) }
}

fn segment_size(value: &Value<'_>, _: TableRef<'_>) -> Result<(), Reason> {
    if integer(value)? > 3_000_000_000 {
        return Err("Exceeded max value for x-stream-max-segment-size-bytes".to_owned());
    }
    in_range(value, 0, u64::MAX)
}

fn leader_locator(value: &Value<'_>, _: TableRef<'_>) -> Result<(), Reason> {
    let text = value.as_long_str().ok_or_else(|| unacceptable(value))?;
    let known = matches!(text, b"client-local" | b"balanced" | b"random" | b"least-leaders");
    if known { Ok(()) } else { Err("invalid_queue_locator_arg".to_owned()) }
}
