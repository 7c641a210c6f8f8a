//! `GET /api/queues/VHOST/NAME/given-reasons`: messages of a queue counted by the reason of their last death, and by the
//! reason in their header `x-reason`, which a consumer gives by a publish to `amq.settle`. RabbitMQ has no such endpoint.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use amqp::properties::Properties;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::routing::get;
use broker::{BrowseCursor, GIVEN_REASON_HEADER, Message, MessageState};
use serde_json::{Value, json};
use server::requests::{QueuePath, shown_value};

use crate::http::access::{Management, check_can_enter};
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{NameInVhost, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::limits::{
    GIVEN_REASON_SHOWN_BYTES_MAX, GIVEN_REASONS_COUNT_DEFAULT, GIVEN_REASONS_COUNT_MAX,
    GIVEN_REASONS_KEPT_MAX, GIVEN_REASONS_SCANNED_MAX,
};

/// The path.
pub(super) fn routes() -> Routes {
    Routes::new().route(
        "/api/queues/{vhost}/{name}/given-reasons",
        Scope::Vhost("vhost"),
        get(show),
    )
}

async fn show(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    query: ReasonsQuery,
) -> Result<Json, ApiError> {
    check_can_enter(&caller, &vhost)?;
    let queue = QueuePath { vhost: &vhost, queue: &name };
    let mut counts = ReasonCounts::default();
    let (mut messages_total, mut is_complete) = (0, true);
    for state in query.states() {
        let mut next = Some(BrowseCursor::start(*state));
        let mut total = 0;
        while let Some(from) = next.filter(|_| counts.scanned < GIVEN_REASONS_SCANNED_MAX) {
            let batch = node.browse(&caller, queue, from, usize::MAX).await?;
            batch.messages.iter().for_each(|browsed| counts.add(&browsed.entry.message));
            (next, total) = (batch.next, batch.total);
        }
        messages_total += total;
        is_complete &= next.is_none();
    }
    Ok(Json::ok(counts.to_json(query.count, messages_total, is_complete)))
}

/// The query of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ReasonsQuery {
    /// Reasons in the answer.
    count: usize,
    /// True for the dead letters that the queue keeps, as in a redrive.
    is_of_kept: bool,
}

impl<S: Sync> FromRequestParts<S> for ReasonsQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::parse(parts.uri.query().unwrap_or_default())
    }
}

impl ReasonsQuery {
    fn parse(query: &str) -> Result<Self, ApiError> {
        let find = |wanted: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.find(|(name, value)| name == wanted && !value.is_empty()).map(|(_, value)| value)
        };
        let count = match find("count").map(|count| count.parse()) {
            None => GIVEN_REASONS_COUNT_DEFAULT,
            Some(Ok(count)) if (1..=GIVEN_REASONS_COUNT_MAX).contains(&count) => count,
            Some(_) => {
                let reason = format!("count must be from 1 to {GIVEN_REASONS_COUNT_MAX}");
                return Err(ApiError::bad_request(reason));
            }
        };
        let is_of_kept = match find("kept").as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(ApiError::bad_request("kept must be true or false")),
        };
        Ok(Self { count, is_of_kept })
    }

    /// The states of the messages that a redrive with the same `kept` moves.
    const fn states(self) -> &'static [MessageState] {
        match self.is_of_kept {
            true => &[MessageState::Dead],
            false => &[MessageState::Ready, MessageState::Delayed],
        }
    }
}

/// A reason as text, and true if the text is only its beginning.
type ShownReason = (String, bool);

/// Numbers of messages by reason.
#[derive(Default, Debug)]
struct ReasonCounts {
    /// Messages by the reason of their last death.
    by_death: BTreeMap<&'static str, u64>,
    by_reason: BTreeMap<ShownReason, u64>,
    /// Messages with further reasons, or with a list or a table as the reason.
    other: u64,
    /// Messages without a reason.
    without: u64,
    scanned: u64,
}

impl ReasonCounts {
    fn add(&mut self, message: &Message) {
        self.scanned += 1;
        if let Some(deaths) = message.deaths() {
            *self.by_death.entry(deaths.last.reason.as_str()).or_default() += 1;
        }
        // Properties were validated when the message was published.
        let properties = Properties::parse(message.properties()).unwrap_or_default();
        let header = properties.headers.and_then(|headers| headers.get(GIVEN_REASON_HEADER));
        match header.map(shown_value) {
            None => self.without += 1,
            Some(None) => self.other += 1,
            Some(Some(reason)) => self.count(cut(reason)),
        }
    }

    fn count(&mut self, reason: ShownReason) {
        let is_full = self.by_reason.len() >= GIVEN_REASONS_KEPT_MAX;
        match self.by_reason.get_mut(&reason) {
            Some(count) => *count += 1,
            None if is_full => self.other += 1,
            None => {
                self.by_reason.insert(reason, 1);
            }
        }
    }

    /// The most frequent reasons; equally frequent ones in the order of their text.
    fn to_json(&self, count: usize, messages_total: u64, is_complete: bool) -> Value {
        let mut all: Vec<(&ShownReason, &u64)> = self.by_reason.iter().collect();
        all.sort_by_key(|(_, messages)| Reverse(**messages));
        let (first, rest) = all.split_at(count.min(all.len()));
        let group = |((reason, is_cut), messages): &(&ShownReason, &u64)| json!({"given_reason": reason, "messages": messages, "cut": is_cut});
        let mut deaths: Vec<(&&str, &u64)> = self.by_death.iter().collect();
        deaths.sort_by_key(|(_, messages)| Reverse(**messages));
        let died: u64 = self.by_death.values().sum();
        assert!(died <= self.scanned, "a message has one last death");
        let death =
            |(reason, messages): &(&&str, &u64)| json!({"reason": reason, "messages": messages});
        json!({
            "death_reasons": deaths.iter().map(death).collect::<Vec<_>>(),
            "without_death": self.scanned - died,
            "given_reasons": first.iter().map(group).collect::<Vec<_>>(),
            "other_reasons": self.other + rest.iter().map(|(_, messages)| **messages).sum::<u64>(),
            "without_reason": self.without,
            "scanned": self.scanned,
            "messages_total": messages_total.max(self.scanned),
            "complete": is_complete,
        })
    }
}

fn cut(mut reason: String) -> ShownReason {
    let end = reason.floor_char_boundary(GIVEN_REASON_SHOWN_BYTES_MAX);
    let is_cut = end < reason.len();
    reason.truncate(end);
    (reason, is_cut)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use amqp::table::{TableBuilder, Value as Field};
    use broker::{Content, Envelope, MessageMeta};

    use super::*;

    fn message(reason: Option<Field<'_>>) -> Message {
        let mut headers = TableBuilder::new();
        if let Some(reason) = reason {
            headers.insert("x-reason", reason);
        }
        let headers = headers.finish();
        let properties = Properties { headers: Some(headers.as_ref()), ..Properties::default() };
        let mut encoded = Vec::new();
        properties.encode(&mut encoded);
        let content = Content::Assembled { properties: encoded.into(), body: b"".to_vec().into() };
        let envelope = Envelope::new("".into(), "q".into());
        Message::new(Arc::new(envelope), MessageMeta::default(), content, None)
    }

    fn counted(reasons: &[Option<Field<'_>>]) -> ReasonCounts {
        let mut counts = ReasonCounts::default();
        reasons.iter().for_each(|reason| counts.add(&message(*reason)));
        counts
    }

    #[test]
    fn messages_are_counted_by_reason() {
        let list = TableBuilder::new().finish();
        let counts = counted(&[
            None,
            Some(Field::LongStr(b"b")),
            Some(Field::LongStr(b"a")),
            Some(Field::I32(503)),
            Some(Field::LongStr(b"503")),
            Some(Field::LongStr(b"\xff")),
            Some(Field::Table(list.as_ref())),
        ]);
        let group = |reason: &str, messages: u64| json!({"given_reason": reason, "messages": messages, "cut": false});
        let binary = "Not UTF-8, base64 is: /w==";
        let all = json!({
            "death_reasons": [], "without_death": 7,
            "given_reasons": [group("503", 2), group(binary, 1), group("a", 1), group("b", 1)],
            "other_reasons": 1, "without_reason": 1, "scanned": 7, "messages_total": 9, "complete": true,
        });
        assert_eq!(counts.to_json(20, 9, true), all);
        let first = json!({
            "death_reasons": [], "without_death": 7,
            "given_reasons": [group("503", 2)],
            "other_reasons": 4, "without_reason": 1, "scanned": 7, "messages_total": 7, "complete": false,
        });
        assert_eq!(counts.to_json(1, 3, false), first);
    }

    #[test]
    fn long_reasons_are_cut_and_many_count_as_other() {
        let long = "é".repeat(GIVEN_REASON_SHOWN_BYTES_MAX);
        let (text, is_cut) = cut(format!("x{long}"));
        assert_eq!((text.len(), is_cut), (GIVEN_REASON_SHOWN_BYTES_MAX - 1, true));
        let mut counts = ReasonCounts::default();
        for number in 0..GIVEN_REASONS_KEPT_MAX + 5 {
            counts.count(cut(number.to_string()));
        }
        counts.count(cut("0".to_owned()));
        assert_eq!((counts.by_reason.len(), counts.other), (GIVEN_REASONS_KEPT_MAX, 5));
        assert_eq!(counts.by_reason[&("0".to_owned(), false)], 2);
    }

    #[test]
    fn query_is_checked() {
        let parsed = |count, is_of_kept| ReasonsQuery { count, is_of_kept };
        assert_eq!(ReasonsQuery::parse("").unwrap(), parsed(20, false));
        assert_eq!(ReasonsQuery::parse("count=3&kept=true").unwrap(), parsed(3, true));
        for query in ["count=0", "count=101", "count=x", "kept=1"] {
            assert!(ReasonsQuery::parse(query).is_err(), "{query}");
        }
    }
}
