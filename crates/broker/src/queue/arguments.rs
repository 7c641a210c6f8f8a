//! The arguments of a queue, parsed once into typed values.
//!
//! The table of settings has the names, checks and refusal texts. Validation follows RabbitMQ: first the value of
//! each argument, then arguments that belong to another type of queue. `resolved_keys` combines arguments with
//! policies.

use std::sync::Arc;

use amqp::table::{Table, TableBuilder, TableRef, Value};

use crate::erlang_term;
use crate::message::Name;
use crate::queue_type::QueueType;
use crate::refusal::{Refusal, Resource};
use crate::setting::{self, PolicyKey, SettingValue, unacceptable};

/// The parsed arguments of a queue.
#[derive(Clone, Default, Debug)]
pub struct QueueArguments {
    /// The type from `x-queue-type`.
    pub(crate) queue_type: QueueType,
    /// `x-max-priority` of a classic queue.
    pub(crate) max_priority: Option<u8>,
    /// The flag `x-single-active-consumer`.
    pub(crate) single_active_consumer: bool,
    /// All arguments as declared, with `x-queue-type` filled in.
    pub table: Table,
}

/// Reads `x-dead-letter-exchange`, which RabbitMQ checks before permissions and before all other arguments.
///
/// # Errors
/// 406 if the value is not a longstr.
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
    /// 406 with RabbitMQ's text for the first argument that is invalid.
    pub(crate) fn parse(table: TableRef<'_>, queue: Resource<'_>) -> Result<Self, Refusal> {
        let invalid = |name: &str, reason: &str| Refusal::invalid_argument(name, queue, reason);
        let queue_type = queue_type(table).map_err(|reason| invalid("x-queue-type", &reason))?;
        dead_letter_exchange(table, queue)?;
        let mut wrong_value = FirstFault::default();
        let mut refused = FirstFault::default();
        for (_, setting, rule) in setting::arguments() {
            let Some(value) = table.get(rule.name) else { continue };
            if let Err(text) = (rule.check)(&value, table) {
                wrong_value.add(rule.order, (rule.name, text));
            }
            if !setting.is_of(queue_type) {
                refused.add(rule.refusal_order, rule.name);
            }
        }
        // RabbitMQ checks all values before it checks that the queue type supports the arguments.
        if let Some((name, text)) = wrong_value.into_fault() {
            return Err(invalid(name, &text));
        }
        if let Some(name) = refused.into_fault() {
            return Err(Refusal::precondition_failed(format!(
                "invalid arg '{name}' for {queue} of queue type {}",
                queue_type.module()
            )));
        }
        let max_priority = table.get("x-max-priority").and_then(|value| value.as_integer());
        Ok(Self {
            queue_type,
            max_priority: max_priority.and_then(|priority| u8::try_from(priority).ok()),
            single_active_consumer: table.get("x-single-active-consumer")
                == Some(Value::Bool(true)),
            table: with_queue_type(table, queue_type),
        })
    }

    /// The argument for this setting, read from the table: few calls ask for it, and the settings in force stay.
    pub(crate) fn get(&self, key: PolicyKey) -> Option<SettingValue> {
        let setting = key.setting();
        let value = self.table.as_ref().get(setting.argument_if_any()?.name)?;
        setting.value().parse_argument(value)
    }
}

/// The fault with the lowest number, which is the one that RabbitMQ names because it stops at the first.
struct FirstFault<T>(Option<(u8, T)>);

impl<T> Default for FirstFault<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> FirstFault<T> {
    fn add(&mut self, order: u8, fault: T) {
        if self.0.as_ref().is_none_or(|(first, _)| order < *first) {
            self.0 = Some((order, fault));
        }
    }

    fn into_fault(self) -> Option<T> {
        self.0.map(|(_, fault)| fault)
    }
}

/// Checks that a queue declared with `current` may be declared again with `received`.
///
/// # Errors
/// 406 with RabbitMQ's text for the first argument that differs.
pub(crate) fn check_equivalence(
    current: TableRef<'_>,
    received: TableRef<'_>,
    queue: Resource<'_>,
) -> Result<(), Refusal> {
    let mut differs = FirstFault::default();
    for (.., rule) in setting::arguments().filter(|(.., rule)| rule.is_compared) {
        let (current, received) = (current.get(rule.name), received.get(rule.name));
        if let Err(refusal) = check_argument(rule.name, current, received, queue) {
            differs.add(rule.order, refusal);
        }
    }
    if let Some(refusal) = differs.into_fault() {
        return Err(refusal);
    }
    let current_type = queue_type(current).expect("a queue has arguments that were checked");
    if queue_type(received) == Ok(current_type) {
        return Ok(());
    }
    let received = received.get("x-queue-type").map(|v| erlang_term::value(&v)).unwrap_or_default();
    let received = if received.is_empty() { QueueType::default().as_str() } else { &received };
    let name = "x-queue-type";
    Err(inequivalent(name, queue, &quoted(received), &quoted(current_type.as_str())))
}

/// Checks that one argument of a queue or exchange is the same in two declarations.
pub(crate) fn check_argument(
    name: &str,
    current: Option<Value<'_>>,
    received: Option<Value<'_>>,
    resource: Resource<'_>,
) -> Result<(), Refusal> {
    let described = |v: &Value<'_>| {
        format!("the value '{}' of type '{}'", erlang_term::value(v), v.type_name())
    };
    match (current, received) {
        (None, None) => Ok(()),
        (Some(current), Some(received)) => {
            if same_value(&current, &received) {
                return Ok(());
            }
            let (received, current) = (erlang_term::value(&received), erlang_term::value(&current));
            Err(inequivalent(name, resource, &quoted(&received), &quoted(&current)))
        }
        (Some(current), None) => Err(inequivalent(name, resource, "none", &described(&current))),
        (None, Some(received)) => Err(inequivalent(name, resource, &described(&received), "none")),
    }
}

/// The refusal 406 for a property or argument that differs from the first declaration.
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

/// Compares two values. Integers of any width are equal by value; all other values need the same type.
fn same_value(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a.as_integer(), b.as_integer()) {
        (Some(a), Some(b)) => a == b,
        _ => match (a, b) {
            (Value::F32(a), Value::F64(b)) | (Value::F64(b), Value::F32(a)) => f64::from(*a) == *b,
            _ => a == b,
        },
    }
}

fn queue_type(table: TableRef<'_>) -> Result<QueueType, String> {
    match table.get("x-queue-type") {
        _ if leaves_type_open(table) => Ok(QueueType::default()),
        None => Ok(QueueType::default()),
        Some(Value::LongStr(name)) => QueueType::parse(name).ok_or_else(|| {
            format!("\"unsupported queue type '{}'\"", String::from_utf8_lossy(name))
        }),
        Some(other) => Err(unacceptable(&other)),
    }
}

/// True if `x-queue-type` is missing or does not choose a type.
pub(crate) fn leaves_type_open(table: TableRef<'_>) -> bool {
    matches!(table.get("x-queue-type"), None | Some(Value::LongStr(b"" | b"undefined")))
}

/// The arguments with `x-queue-type` set to this type.
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
