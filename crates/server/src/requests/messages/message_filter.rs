//! Selection of messages by their deaths, headers and bodies.

use amqp::properties::Properties;
use amqp::table::Value as Field;
use broker::Message;
use broker::dead_letter::DeathReason;

use serde_json::Value as Json;

use crate::json::table::{bytes_to_text, value_to_json};
use crate::limits::FILTERED_JSON_BYTES_MAX;

/// Conditions on a message, all of which must hold; an empty filter matches every message.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MessageFilter {
    /// Reason of the last death.
    pub reason: Option<DeathReason>,
    /// Queue of the first death.
    pub first_queue: Option<String>,
    /// Headers that must be present, each with a value if one is given.
    pub headers: Vec<(String, Option<String>)>,
    /// Text that the body must contain.
    pub text: Option<String>,
    /// Places in the body, which must be JSON of at most [`FILTERED_JSON_BYTES_MAX`] bytes, as JSON pointers (RFC 6901), each
    /// with the value that must stand there if one is given.
    pub json: Vec<(String, Option<String>)>,
    /// Headers of which none may be present; one with a value only if it has another value.
    pub without_headers: Vec<(String, Option<String>)>,
    /// Text that the body must not contain.
    pub without_text: Option<String>,
}

impl MessageFilter {
    /// True if every message matches.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// True if `message` matches.
    pub fn matches(&self, message: &Message) -> bool {
        self.matches_deaths(message) && self.matches_headers(message) && self.matches_body(message)
    }

    fn matches_deaths(&self, message: &Message) -> bool {
        let deaths = message.deaths();
        self.reason.is_none_or(|reason| deaths.is_some_and(|deaths| deaths.last.reason == reason))
            && self
                .first_queue
                .as_ref()
                .is_none_or(|queue| deaths.is_some_and(|deaths| *deaths.first.queue == **queue))
    }

    fn matches_headers(&self, message: &Message) -> bool {
        if self.headers.is_empty() && self.without_headers.is_empty() {
            return true;
        }
        // Properties were validated when the message was published.
        let properties = Properties::parse(message.properties()).unwrap_or_default();
        have_headers(&properties, &self.headers)
            && !self.without_headers.iter().any(|unwanted| has_header(&properties, unwanted))
    }

    fn matches_body(&self, message: &Message) -> bool {
        if !self.json.is_empty() && !has_json(message.body(), &self.json) {
            return false;
        }
        if self.text.is_none() && self.without_text.is_none() {
            return true;
        }
        let body = String::from_utf8_lossy(message.body());
        self.text.as_ref().is_none_or(|wanted| body.contains(wanted))
            && !self.without_text.as_ref().is_some_and(|unwanted| body.contains(unwanted))
    }
}

/// True if a body is JSON that has all of these places, each with its value if one is given. The value of a place that is a
/// list matches one of its items.
fn has_json(body: &[u8], wanted: &[(String, Option<String>)]) -> bool {
    if body.len() > FILTERED_JSON_BYTES_MAX {
        return false;
    }
    let Ok(document) = serde_json::from_slice::<Json>(body) else { return false };
    wanted.iter().all(|(pointer, value)| {
        let Some(found) = document.pointer(pointer) else { return false };
        let is_wanted =
            |found: &Json| value.as_deref().is_none_or(|value| is_json_shown_as(found, value));
        found.as_array().is_some_and(|items| items.iter().any(is_wanted)) || is_wanted(found)
    })
}

/// True if a single JSON value is shown as `wanted`: a string without its quotes.
fn is_json_shown_as(found: &Json, wanted: &str) -> bool {
    match found {
        Json::String(text) => text == wanted,
        Json::Null => wanted == "null",
        Json::Bool(value) => wanted == if *value { "true" } else { "false" },
        Json::Number(number) => number.to_string().as_str() == wanted,
        Json::Array(_) | Json::Object(_) => false,
    }
}

/// True if properties have all of these headers, each with its value if one is given.
pub(super) fn have_headers(
    properties: &Properties<'_>,
    wanted: &[(String, Option<String>)],
) -> bool {
    wanted.iter().all(|wanted| has_header(properties, wanted))
}

fn has_header(properties: &Properties<'_>, (name, value): &(String, Option<String>)) -> bool {
    let mut fields = properties.headers.iter().flat_map(|headers| headers.iter());
    fields.any(|(key, found)| {
        key == name.as_bytes() && value.as_ref().is_none_or(|value| is_shown_as(found, value))
    })
}

/// True if a value, or one value of a list, is shown as `wanted`.
fn is_shown_as(value: Field<'_>, wanted: &str) -> bool {
    let is_wanted = |value| shown_value(value).as_deref() == Some(wanted);
    if let Field::Array(items) = value { items.iter().any(is_wanted) } else { is_wanted(value) }
}

/// A single value as text; none for a list or a table.
pub fn shown_value(value: Field<'_>) -> Option<String> {
    match value {
        Field::LongStr(bytes) | Field::Binary(bytes) => Some(bytes_to_text(bytes)),
        Field::Array(_) | Field::Table(_) => None,
        Field::Bool(_)
        | Field::I8(_)
        | Field::U8(_)
        | Field::I16(_)
        | Field::U16(_)
        | Field::I32(_)
        | Field::U32(_)
        | Field::I64(_)
        | Field::F32(_)
        | Field::F64(_)
        | Field::Decimal { .. }
        | Field::Timestamp(_)
        | Field::Void => Some(value_to_json(value).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use amqp::table::TableBuilder;
    use broker::{Content, Envelope, MessageMeta};

    use super::*;

    fn message(body: &[u8]) -> Message {
        let mut headers = TableBuilder::new();
        headers.insert("customer", Field::LongStr(b"a=b"));
        headers.insert("tries", Field::I32(3));
        headers.insert("vip", Field::Bool(true));
        headers.array("CC", |list| {
            list.push(Field::LongStr(b"x"));
            list.push(Field::LongStr(b"y"));
        });
        let headers = headers.finish();
        let properties = Properties { headers: Some(headers.as_ref()), ..Properties::default() };
        let mut encoded = Vec::new();
        properties.encode(&mut encoded);
        let content = Content::Assembled { properties: encoded.into(), body: body.to_vec().into() };
        let envelope = Envelope::new("".into(), "q".into());
        Message::new(Arc::new(envelope), MessageMeta::default(), content, None)
    }

    #[test]
    fn filter_matches_if_all_conditions_hold() {
        let owned = |wanted: &[(&str, Option<&str>)]| {
            let owned = wanted.iter().map(|(n, v)| ((*n).to_owned(), v.map(str::to_owned)));
            owned.collect::<Vec<_>>()
        };
        let headers = |wanted: &[(&str, Option<&str>)]| MessageFilter {
            headers: owned(wanted),
            ..MessageFilter::default()
        };
        let without = |unwanted: &[(&str, Option<&str>)]| MessageFilter {
            without_headers: owned(unwanted),
            ..MessageFilter::default()
        };
        let without_text = |text: &str| MessageFilter {
            without_text: Some(text.to_owned()),
            ..MessageFilter::default()
        };
        let json = |wanted: &[(&str, Option<&str>)]| MessageFilter {
            json: owned(wanted),
            ..MessageFilter::default()
        };
        let text =
            |text: &str| MessageFilter { text: Some(text.to_owned()), ..MessageFilter::default() };
        let reason =
            MessageFilter { reason: Some(DeathReason::Expired), ..MessageFilter::default() };
        let queue = MessageFilter { first_queue: Some("q".into()), ..MessageFilter::default() };
        for (filter, expected) in [
            (MessageFilter::default(), true),
            (headers(&[("customer", None)]), true),
            (headers(&[("nothing", None)]), false),
            (headers(&[("customer", Some("a=b"))]), true),
            (headers(&[("customer", Some("a"))]), false),
            (headers(&[("tries", Some("3")), ("vip", Some("true"))]), true),
            (headers(&[("tries", Some("3")), ("vip", Some("false"))]), false),
            (headers(&[("CC", Some("y"))]), true),
            (headers(&[("CC", Some("z"))]), false),
            (text("order 7"), true),
            (text("Order"), false),
            (without(&[("customer", Some("a"))]), true),
            (without(&[("customer", Some("a")), ("vip", None)]), false),
            (without(&[("CC", Some("y"))]), false),
            (without_text("order 8"), true),
            (without_text("order"), false),
            (MessageFilter { text: Some("order".into()), ..without_text("71") }, false),
            (MessageFilter { text: Some("order".into()), ..without_text("72") }, true),
            // The body is no JSON.
            (json(&[("/a", None)]), false),
            // The message has not died.
            (reason, false),
            (queue, false),
        ] {
            let message = message(b"\xff order 71");
            assert_eq!(filter.matches(&message), expected, "{filter:?}");
        }
    }

    #[test]
    fn filter_finds_places_of_json_bodies() {
        let body = br#"{"customer": {"id": 7, "a/b": "x"}, "lines": [{"sku": "s1"}, {"sku": "s2"}], "tags": ["new", 3, null], "big": 12345678901234567890}"#;
        for (pointer, value, expected) in [
            ("", None, true),
            ("/customer", None, true),
            ("/customer", Some("7"), false),
            ("/customer/id", Some("7"), true),
            ("/customer/id", Some("\"7\""), false),
            ("/customer/id", Some("8"), false),
            ("/customer/a~1b", Some("x"), true),
            ("/customer/none", None, false),
            ("/lines/1/sku", Some("s2"), true),
            ("/lines/2/sku", None, false),
            ("/tags", Some("new"), true),
            ("/tags", Some("3"), true),
            ("/tags", Some("null"), true),
            ("/tags", Some("old"), false),
            ("/big", Some("12345678901234567890"), true),
            // A pointer begins with a slash.
            ("customer", None, false),
        ] {
            let json = vec![(pointer.to_owned(), value.map(str::to_owned))];
            let filter = MessageFilter { json, ..MessageFilter::default() };
            assert_eq!(filter.matches(&message(body)), expected, "{pointer} {value:?}");
        }
        let long = format!("{{\"a\": \"{}\"}}", "x".repeat(FILTERED_JSON_BYTES_MAX));
        let filter = MessageFilter { json: vec![("/a".into(), None)], ..MessageFilter::default() };
        assert!(!filter.matches(&message(long.as_bytes())));
    }
}
