//! The headers of a publish to the exchange `amq.settle`: the delivery, its annotation, and the settlement.

use amqp::table::{TableBuilder, TableRef};

use super::delivery_time::{self, DeliveryTime};
use crate::channel::annotations::Annotation;
use crate::command::Outcome;
use crate::ids::DeliveryTag;
use crate::limits::{ANNOTATION_BYTES_MAX, ANNOTATION_HEADERS_MAX};
use crate::message::Message;
use crate::refusal::Refusal;
use crate::time::Now;

const TAG: &str = "x-delivery-tag";
const OPERATION: &str = "x-op";

/// Headers that the broker writes, or that decide about routes: no annotation may set them.
const RESERVED: [&str; 4] = ["x-delivery-count", "x-acquired-count", "CC", "BCC"];

/// Beginnings of reserved headers: those of deaths and of schedules.
const RESERVED_PREFIXES: [&str; 4] = ["x-death", "x-first-", "x-last-", "x-schedule"];

/// A publish to `amq.settle`.
#[derive(Debug)]
pub(crate) struct SettleRequest {
    pub(crate) tag: DeliveryTag,
    pub(crate) annotation: Annotation,
    /// The settlement to make at once; none leaves it to the client.
    pub(crate) outcome: Option<Outcome>,
}

/// Reads the headers of a publish to `amq.settle`.
///
/// # Errors
/// 406 if a header is missing, invalid or reserved, or if they are too many or too long.
pub(crate) fn request(headers: TableRef<'_>, now: Now) -> Result<SettleRequest, Refusal> {
    let tag = headers.get(TAG).and_then(|tag| tag.as_integer()).and_then(|tag| tag.try_into().ok());
    let tag = tag.ok_or_else(|| refuse(format!("invalid {TAG}: must be a positive integer")))?;
    let operation = headers.get(OPERATION);
    let outcome = match operation.as_ref().map(|operation| operation.as_long_str()) {
        None => None,
        Some(Some(b"requeue")) => Some(Outcome::Requeue { failed: false }),
        Some(Some(b"dead-letter")) => Some(Outcome::Reject),
        Some(_) => {
            let text = format!("invalid {OPERATION}: must be 'requeue' or 'dead-letter'");
            return Err(refuse(text));
        }
    };
    let delivery_time = DeliveryTime::of(headers);
    delivery_time.map_or(Ok(()), |time| time.check(now))?;
    let mut kept = TableBuilder::new();
    for (key, value) in headers.iter() {
        if is_reserved(key) {
            let name = String::from_utf8_lossy(key);
            return Err(refuse(format!("header '{name}' is reserved and cannot be set")));
        }
        if key.starts_with(b"x-") && !is_own(key) {
            kept.insert(key, value);
        }
    }
    let headers = kept.finish().as_ref().normalised();
    let count = headers.as_ref().iter().count();
    let bytes = headers.as_ref().as_bytes().len();
    if count > ANNOTATION_HEADERS_MAX || bytes > ANNOTATION_BYTES_MAX {
        return Err(refuse(format!(
            "annotation of {count} headers with {bytes} bytes exceeds the limit of \
             {ANNOTATION_HEADERS_MAX} headers with {ANNOTATION_BYTES_MAX} bytes"
        )));
    }
    Ok(SettleRequest {
        tag: DeliveryTag(tag),
        annotation: Annotation { headers, delivery_time },
        outcome,
    })
}

/// The message with the headers of an annotation, which replace headers of the same names.
pub(crate) fn annotated(message: &Message, annotation: TableRef<'_>) -> Message {
    let headers = message.decoded_properties().headers.unwrap_or_default();
    let mut merged = TableBuilder::new();
    for (key, value) in headers.iter() {
        if !annotation.iter().any(|(name, _)| name == key) {
            merged.insert(key, value);
        }
    }
    annotation.iter().for_each(|(key, value)| {
        merged.insert(key, value);
    });
    message.with_headers(merged.finish().as_ref().normalised().as_ref())
}

/// True for headers that are instructions and no part of the annotation.
fn is_own(key: &[u8]) -> bool {
    [TAG, OPERATION].iter().chain(&delivery_time::HEADERS).any(|name| name.as_bytes() == key)
}

fn is_reserved(key: &[u8]) -> bool {
    RESERVED.iter().any(|name| name.as_bytes() == key)
        || RESERVED_PREFIXES.iter().any(|prefix| key.starts_with(prefix.as_bytes()))
}

fn refuse(text: String) -> Refusal {
    Refusal::precondition_failed(text)
}

#[cfg(test)]
mod tests {
    use amqp::table::Value;

    use super::*;

    fn read(fields: &[(&str, Value<'_>)]) -> Result<SettleRequest, Refusal> {
        let mut table = TableBuilder::new();
        for (key, value) in fields {
            table.insert(*key, *value);
        }
        request(table.finish().as_ref(), Now::from_millis(1_000_000))
    }

    #[test]
    fn annotation_has_other_x_headers_only() {
        let text = |text: &'static str| Value::LongStr(text.as_bytes());
        let fields = [
            (TAG, Value::I32(7)),
            ("x-reason", text("r")),
            (OPERATION, text("requeue")),
            ("traceparent", text("t")),
            ("x-opt-delivery-delay", Value::I32(-5)),
        ];
        let found = read(&fields).unwrap();
        assert_eq!(
            (found.tag, found.outcome),
            (DeliveryTag(7), Some(Outcome::Requeue { failed: false }))
        );
        let headers = found.annotation.headers;
        let keys: Vec<&[u8]> = headers.as_ref().iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [b"x-reason"]);
        let delivery_time = found.annotation.delivery_time.expect("a negative delay is none");
        assert_eq!(delivery_time.delay_ms(Now::from_millis(1_000_000)), 0);
        let ignored = read(&[(TAG, Value::I32(7)), ("x-opt-delivery-delay", text("5"))]).unwrap();
        assert_eq!(ignored.annotation.delivery_time, None);
    }

    #[test]
    fn reserved_names_and_invalid_instructions_are_refused() {
        let tag = (TAG, Value::I64(1));
        for name in [
            "x-death",
            "x-first-death-queue",
            "x-last-x",
            "x-delivery-count",
            "x-acquired-count",
            "CC",
            "BCC",
            "x-schedule-id",
        ] {
            assert!(read(&[tag, (name, Value::I64(1))]).is_err(), "{name}");
        }
        let unknown = (OPERATION, Value::LongStr(b"ack"));
        let far = ("x-opt-delivery-delay", Value::I64(i64::MAX));
        for fields in [
            &[][..],
            &[(TAG, Value::LongStr(b"1"))],
            &[(TAG, Value::I64(-1))],
            &[tag, unknown],
            &[tag, far],
        ] {
            assert!(read(fields).is_err(), "{fields:?}");
        }
    }

    #[test]
    fn annotations_are_limited_in_number_and_bytes() {
        let names: Vec<String> = (0..=ANNOTATION_HEADERS_MAX).map(|n| format!("x-{n}")).collect();
        let fields = |count: usize| {
            let tag = (TAG, Value::I64(1));
            let others = names[..count].iter().map(|name| (name.as_str(), Value::Void));
            std::iter::once(tag).chain(others).collect::<Vec<_>>()
        };
        assert!(read(&fields(ANNOTATION_HEADERS_MAX)).is_ok());
        assert!(read(&fields(ANNOTATION_HEADERS_MAX + 1)).is_err());
        let long = |bytes| {
            let value = vec![b'.'; bytes];
            read(&[(TAG, Value::I64(1)), ("x-r", Value::LongStr(&value))]).is_ok()
        };
        let overhead = 1 + "x-r".len() + 1 + 4;
        assert!(long(ANNOTATION_BYTES_MAX - overhead));
        assert!(!long(ANNOTATION_BYTES_MAX - overhead + 1));
    }
}
