//! The headers by which a publish names its schedule (`x-schedule-id`, `x-schedule-mode`), and those of an operation on
//! scheduled messages (`x-schedule-op` and others).

use amqp::properties::Properties;
use amqp::table::{TableRef, Value};

use super::delivery_time::DeliveryTime;
use crate::message::Message;
use crate::refusal::Refusal;
use crate::schedule::{
    ScheduleId, ScheduleMode, ScheduleOperation, ScheduleRequest, ScheduleSelector, ScheduleTarget,
};
use crate::time::Now;

const ID: &str = "x-schedule-id";
const MODE: &str = "x-schedule-mode";
const OPERATION: &str = "x-schedule-op";
const TARGET: &str = "x-schedule-target";
const HANDLE: &str = "x-schedule-handle";

/// The name of the schedule of a publish, and the meaning of a name in use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NamedSchedule {
    pub(crate) id: ScheduleId,
    pub(crate) mode: ScheduleMode,
}

impl NamedSchedule {
    /// Reads the headers of a publish; none if the publisher names no schedule.
    ///
    /// # Errors
    /// 406 for a name that is empty, too long or no text, and for an unknown mode.
    pub(crate) fn of(headers: TableRef<'_>) -> Result<Option<Self>, Refusal> {
        let Some(id) = headers.get(ID) else { return Ok(None) };
        let id = schedule_id(&id).ok_or_else(|| {
            Refusal::precondition_failed(format!("invalid {ID}: must be text of 1 to 255 bytes"))
        })?;
        let mode = match headers.get(MODE) {
            None => ScheduleMode::default(),
            Some(mode) => text(&mode).and_then(ScheduleMode::parse).ok_or_else(|| {
                let text = format!("invalid {MODE}: must be 'replace', 'keep' or 'add'");
                Refusal::precondition_failed(text)
            })?,
        };
        Ok(Some(Self { id, mode }))
    }

    /// Checks the encoded properties of a publish.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub(crate) fn check(properties: &[u8]) -> Result<(), Refusal> {
        let properties = Properties::parse(properties).expect("a message has valid properties");
        properties.headers.map(Self::of).transpose().map(drop)
    }

    /// The name of the older messages that the publish replaces.
    pub(crate) fn replaces(&self) -> Option<&ScheduleId> {
        (self.mode == ScheduleMode::Replace).then_some(&self.id)
    }

    /// The schedule that a message names; none if its headers, which no publish checked, are invalid.
    pub(crate) fn of_message(message: &Message) -> Option<Self> {
        Self::of(message.decoded_properties().headers?).ok().flatten()
    }
}

/// The name of the schedule in the headers of a message.
pub(crate) fn schedule_id_of(message: &Message) -> Option<ScheduleId> {
    schedule_id(&message.decoded_properties().headers?.get(ID)?)
}

/// Reads the headers of a publish to the exchange `amq.schedule`.
///
/// # Errors
/// 406 if a header is missing or invalid.
pub(crate) fn operation(headers: TableRef<'_>, now: Now) -> Result<ScheduleRequest, Refusal> {
    let invalid = |header: &str, rule: &str| {
        Refusal::precondition_failed(format!("invalid {header}: {rule}"))
    };
    let get = |header| headers.get(header);
    let target = get(TARGET).and_then(|value| text(&value)?.parse::<ScheduleTarget>().ok());
    let target =
        target.ok_or_else(|| invalid(TARGET, "must be 'queue/NAME' or 'exchange/NAME'"))?;
    let selector = match (get(ID), get(HANDLE)) {
        (Some(id), None) => schedule_id(&id).map(ScheduleSelector::Id),
        (None, Some(handle)) => {
            let handle = handle.as_integer().and_then(|handle| u64::try_from(handle).ok());
            handle.map(ScheduleSelector::Handle)
        }
        _ => None,
    };
    let selector = selector.ok_or_else(|| {
        let rule = format!("must be text of 1 to 255 bytes, or {HANDLE} an integer instead");
        invalid(ID, &rule)
    })?;
    let operation = match get(OPERATION).as_ref().and_then(text) {
        Some("cancel") => ScheduleOperation::Cancel,
        Some("deliver-now") => ScheduleOperation::Deliver,
        Some("reschedule") => {
            let Some(time) = DeliveryTime::of(headers) else {
                let rule =
                    "'reschedule' needs x-opt-delivery-time or x-opt-delivery-delay, an integer";
                return Err(invalid(OPERATION, rule));
            };
            ScheduleOperation::Reschedule { delivery_time_ms: time.wall_ms(now) }
        }
        _ => return Err(invalid(OPERATION, "must be 'cancel', 'reschedule' or 'deliver-now'")),
    };
    Ok(ScheduleRequest { target, selector, operation })
}

fn schedule_id(value: &Value<'_>) -> Option<ScheduleId> {
    ScheduleId::new(text(value)?)
}

fn text<'a>(value: &Value<'a>) -> Option<&'a str> {
    std::str::from_utf8(value.as_long_str()?).ok()
}

#[cfg(test)]
mod tests {
    use amqp::table::TableBuilder;

    use super::*;

    const NOW: Now = Now::from_millis(1_000_000);

    fn headers(fields: &[(&str, Value<'_>)]) -> amqp::table::Table {
        let mut table = TableBuilder::new();
        for (key, value) in fields {
            table.insert(*key, *value);
        }
        table.finish()
    }

    #[test]
    fn name_and_mode_are_read() {
        let named = |fields: &[_]| NamedSchedule::of(headers(fields).as_ref());
        assert_eq!(named(&[]), Ok(None));
        let found = named(&[(ID, Value::LongStr(b"a")), (MODE, Value::LongStr(b"keep"))]);
        let id = ScheduleId::new("a").unwrap();
        assert_eq!(found, Ok(Some(NamedSchedule { id, mode: ScheduleMode::Keep })));
        for fields in [
            &[(ID, Value::LongStr(b""))][..],
            &[(ID, Value::I64(5))],
            &[(ID, Value::LongStr(b"\xff"))],
            &[(ID, Value::LongStr(b"a")), (MODE, Value::LongStr(b"append"))],
        ] {
            assert!(named(fields).is_err(), "{fields:?}");
        }
    }

    #[test]
    fn operations_need_target_selector_and_time() {
        let target = (TARGET, Value::LongStr(b"queue/q"));
        let id = (ID, Value::LongStr(b"a"));
        let op = |name: &'static str| (OPERATION, Value::LongStr(name.as_bytes()));
        let delay = ("x-opt-delivery-delay", Value::I64(500));
        let read = |fields: &[_]| operation(headers(fields).as_ref(), NOW);
        let request = read(&[target, id, op("reschedule"), delay]).unwrap();
        assert_eq!(
            request.operation,
            ScheduleOperation::Reschedule { delivery_time_ms: 1_000_500 }
        );
        let within_ms = Now { wall_us: NOW.wall_us + 1, ..NOW };
        let request =
            operation(headers(&[target, id, op("reschedule"), delay]).as_ref(), within_ms);
        assert_eq!(
            request.unwrap().operation,
            ScheduleOperation::Reschedule { delivery_time_ms: 1_000_501 },
            "a delay is never shorter"
        );
        let no_delay = ("x-opt-delivery-delay", Value::I64(0));
        let request =
            operation(headers(&[target, id, op("reschedule"), no_delay]).as_ref(), within_ms);
        assert_eq!(
            request.unwrap().operation,
            ScheduleOperation::Reschedule { delivery_time_ms: 1_000_000 },
            "no delay is none"
        );
        let handle = (HANDLE, Value::I64(7));
        let request = read(&[target, handle, op("cancel")]).unwrap();
        assert_eq!(request.selector, ScheduleSelector::Handle(7));
        for fields in [
            &[id, op("cancel")][..],
            &[target, op("cancel")],
            &[target, id, handle, op("cancel")],
            &[target, id],
            &[target, id, op("reschedule")],
            &[target, id, op("reschedule"), ("x-opt-delivery-delay", Value::LongStr(b"500"))],
            &[target, id, op("stop")],
        ] {
            assert!(read(fields).is_err(), "{fields:?}");
        }
    }
}
