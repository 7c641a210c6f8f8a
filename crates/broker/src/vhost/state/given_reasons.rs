//! Deaths by the reason that a consumer gave for them, in the header `x-reason` of a publish to `amq.settle`.

use amqp::table::Value;

use crate::limits::{GIVEN_REASON_BYTES_MAX, GIVEN_REASONS_MAX};

/// The header of a publish to `amq.settle` that gives a reason.
pub const GIVEN_REASON_HEADER: &str = "x-reason";

/// The name of all reasons that are not counted apart.
pub const OTHER_REASONS: &str = "other";

/// Numbers of messages by given reason. The first [`GIVEN_REASONS_MAX`] different reasons are counted apart.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct GivenReasons {
    counts: Vec<(Box<str>, u64)>,
    other: u64,
}

impl GivenReasons {
    /// Counts a death. A list or a table counts as another reason, an empty text as none.
    pub(crate) fn count(&mut self, reason: Value<'_>) {
        let Some(text) = text(reason).filter(|text| text != OTHER_REASONS) else {
            self.other += 1;
            return;
        };
        if text.is_empty() {
            return;
        }
        let is_full = self.counts.len() >= GIVEN_REASONS_MAX;
        match self.counts.iter_mut().find(|(known, _)| **known == *text) {
            Some((_, count)) => *count += 1,
            None if is_full => self.other += 1,
            None => self.counts.push((text.into(), 1)),
        }
    }

    /// Each reason with its number of messages, in the order of the first deaths; [`OTHER_REASONS`] at the end, if
    /// there are any. Texts have no control characters and about [`GIVEN_REASON_BYTES_MAX`] bytes at the most.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let counts = self.counts.iter().map(|(reason, count)| (&**reason, *count));
        counts.chain((self.other > 0).then_some((OTHER_REASONS, self.other)))
    }
}

/// A reason as text; none for a list or a table.
fn text(reason: Value<'_>) -> Option<String> {
    match reason {
        Value::LongStr(bytes) | Value::Binary(bytes) => Some(printable(bytes)),
        Value::Bool(value) => Some(value.to_string()),
        Value::F32(value) => Some(value.to_string()),
        Value::F64(value) => Some(value.to_string()),
        Value::I8(_)
        | Value::U8(_)
        | Value::I16(_)
        | Value::U16(_)
        | Value::I32(_)
        | Value::U32(_)
        | Value::I64(_) => reason.as_integer().map(|value| value.to_string()),
        Value::Void => Some(String::new()),
        Value::Timestamp(_) | Value::Decimal { .. } | Value::Array(_) | Value::Table(_) => None,
    }
}

/// The beginning of a text of a client. Bytes that are no text are replaced, control characters escaped.
fn printable(bytes: &[u8]) -> String {
    // Long enough for the shown text; a character that the end cuts in two is beyond that text.
    let beginning = bytes.get(..GIVEN_REASON_BYTES_MAX + char::MAX.len_utf8()).unwrap_or(bytes);
    let mut text = String::new();
    for c in String::from_utf8_lossy(beginning).chars() {
        if text.len() + c.len_utf8() > GIVEN_REASON_BYTES_MAX {
            text.push_str("...");
            break;
        }
        match c.is_control() {
            true => text.extend(c.escape_default()),
            false => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(reasons: &[Value<'_>]) -> Vec<(String, u64)> {
        let mut counts = GivenReasons::default();
        reasons.iter().for_each(|reason| counts.count(*reason));
        counts.iter().map(|(reason, count)| (reason.to_owned(), count)).collect()
    }

    fn pairs(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
        expected.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect()
    }

    #[test]
    fn deaths_are_counted_by_reason() {
        let reasons = [
            Value::LongStr(b"503"),
            Value::I32(503),
            Value::Bool(true),
            Value::LongStr(b"other"),
            Value::Timestamp(1),
            Value::LongStr(b""),
            Value::Void,
        ];
        assert_eq!(counted(&reasons), pairs(&[("503", 2), ("true", 1), ("other", 2)]));
        assert_eq!(counted(&[]), []);
    }

    #[test]
    fn reasons_are_limited_in_number() {
        let all: Vec<String> = (0..GIVEN_REASONS_MAX + 3).map(|n| n.to_string()).collect();
        let mut reasons: Vec<Value<'_>> =
            all.iter().map(|reason| Value::LongStr(reason.as_bytes())).collect();
        reasons.push(reasons[0]);
        let counts = counted(&reasons);
        assert_eq!(counts.len(), GIVEN_REASONS_MAX + 1);
        assert_eq!(counts[0], ("0".to_owned(), 2));
        assert_eq!(counts[GIVEN_REASONS_MAX], ("other".to_owned(), 3));
    }

    #[test]
    fn hostile_reasons_are_cut_and_escaped() {
        let long = "é".repeat(1000);
        let half = "é".repeat(GIVEN_REASON_BYTES_MAX / 2) + "...";
        let reasons = [
            Value::LongStr(long.as_bytes()),
            Value::LongStr(b"a\n\0\xff\""),
            Value::LongStr(&[1; 4000]),
        ];
        let [(cut, _), (escaped, _), (control, _)] = &counted(&reasons)[..] else { panic!() };
        assert_eq!((cut, escaped.as_str()), (&half, "a\\n\\u{0}\u{fffd}\""));
        assert!(control.len() < GIVEN_REASON_BYTES_MAX + 10 && control.ends_with("..."));
    }
}
