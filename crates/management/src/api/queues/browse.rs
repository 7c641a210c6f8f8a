//! `GET /api/queues/VHOST/NAME/messages`: reads the messages of a queue without changing it. RabbitMQ has no
//! such endpoint: its `get` takes messages and requeues them.
//!
//! A request does a bounded amount of work and answers with a cursor for the next request.

use std::fmt;
use std::str::FromStr;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::routing::get;
use broker::dead_letter::DeathReason;
use broker::{BrowseCursor, MessageState};
use serde_json::{Value, json};
use server::http_budget::OverBudget;
use server::requests::{BrowseBatch, BrowseError, Caller, MessageFilter, QueuePath};

use crate::api::queues::message::{MessageContext, browsed_bytes, check_pointers};
use crate::http::access::{Management, check_can_enter};
use crate::http::allowance::Allowance;
use crate::http::answer::{ApiError, Json, refused_read};
use crate::http::extract::{NameInVhost, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::limits::{
    BROWSE_COUNT_DEFAULT, BROWSE_COUNT_MAX, BROWSE_READS_MAX, BROWSE_TRUNCATE_DEFAULT,
    GET_BYTES_MAX,
};

/// The path.
pub(super) fn routes() -> Routes {
    Routes::new().route("/api/queues/{vhost}/{name}/messages", Scope::Vhost("vhost"), get(browse))
}

async fn browse(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    query: BrowseQuery,
    allowance: Allowance,
) -> Result<Json, ApiError> {
    check_can_enter(&caller, &vhost)?;
    let queue = QueuePath { vhost: &vhost, queue: &name };
    query.browse(&node, &caller, queue, &allowance).await.map(Json::ok)
}

impl From<BrowseError> for ApiError {
    fn from(refused: BrowseError) -> Self {
        match refused {
            BrowseError::NoSuchQueue => Self::not_found(),
            BrowseError::NoPermissions => Self::access_refused(),
            BrowseError::Refused(refusal) => refused_read(&refusal),
            BrowseError::Unreadable(problem) => Self::internal(problem),
        }
    }
}

/// The position behind the shown messages, and the number of messages before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cursor {
    passed: u64,
    place: BrowseCursor,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}_{}", self.passed, self.place)
    }
}

impl FromStr for Cursor {
    type Err = ApiError;

    fn from_str(text: &str) -> Result<Self, ApiError> {
        let none = || ApiError::bad_request("the cursor is none that was given");
        let (passed, place) = text.split_once('_').ok_or_else(none)?;
        let passed = u64::from_str_radix(passed, 16).map_err(|_| none())?;
        Ok(Self { passed, place: place.parse().map_err(|_| none())? })
    }
}

/// The query of a browse request.
#[derive(PartialEq, Eq, Debug)]
struct BrowseQuery {
    from: Cursor,
    count: usize,
    truncate: usize,
    filter: MessageFilter,
}

impl<S: Sync> FromRequestParts<S> for BrowseQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::parse(parts.uri.query().unwrap_or_default())
    }
}

impl BrowseQuery {
    fn parse(query: &str) -> Result<Self, ApiError> {
        let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
        let find = |wanted: &str| {
            let found = pairs.iter().find(|(name, value)| name == wanted && !value.is_empty());
            found.map(|(_, value)| &**value)
        };
        let number = |name: &str, default| match find(name).map(str::parse::<usize>) {
            None => Ok(default),
            Some(Ok(number)) => Ok(number),
            Some(Err(_)) => Err(ApiError::bad_request(format!("{name} must be a whole number"))),
        };
        let count = number("count", BROWSE_COUNT_DEFAULT)?;
        if count == 0 || count > BROWSE_COUNT_MAX {
            let reason = format!("count must be from 1 to {BROWSE_COUNT_MAX}");
            return Err(ApiError::bad_request(reason));
        }
        let state = find("state").map_or(Ok(MessageState::Ready), state)?;
        let start = Cursor { passed: 0, place: BrowseCursor::start(state) };
        let from = find("cursor").map_or(Ok(start), str::parse)?;
        if from.place.state() != state {
            return Err(ApiError::bad_request("the cursor is of another state"));
        }
        let headers = |wanted: &str| -> Vec<(String, Option<String>)> {
            let all = pairs.iter().filter(|(name, _)| name == wanted);
            let all = all.map(|(_, header)| match header.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (header.to_string(), None),
            });
            all.filter(|(name, _)| !name.is_empty()).collect()
        };
        let filter = MessageFilter {
            reason: find("reason").map(reason).transpose()?,
            first_queue: find("first_queue").map(str::to_owned),
            headers: headers("header"),
            text: find("text").map(str::to_owned),
            without_headers: headers("without_header"),
            without_text: find("without_text").map(str::to_owned),
            json: headers("json"),
        };
        check_pointers(&filter.json)?;
        Ok(Self { from, count, truncate: number("truncate", BROWSE_TRUNCATE_DEFAULT)?, filter })
    }

    async fn browse(
        &self,
        node: &SharedNode,
        caller: &Caller,
        queue: QueuePath<'_>,
        allowance: &Allowance,
    ) -> Result<Value, ApiError> {
        let mut page = Page { next: Some(self.from), ..Page::default() };
        for _ in 0..BROWSE_READS_MAX {
            let Some(from) = page.next else { break };
            let count = if self.reads_whole_batches() { usize::MAX } else { self.missing(&page) };
            let batch = node.browse(caller, queue, from.place, count).await?;
            if page.add(self, &batch, allowance)? {
                break;
            }
        }
        Ok(json!({
            "messages": page.messages,
            "cursor": page.next.map(|next| next.to_string()),
            "scanned": page.scanned,
            "messages_total": page.total,
        }))
    }

    /// True if the number of messages to read is unknown, because not all of them match.
    fn reads_whole_batches(&self) -> bool {
        !self.filter.is_empty() || self.from.place.state() == MessageState::Unacknowledged
    }

    fn missing(&self, page: &Page) -> usize {
        self.count.saturating_sub(page.messages.len())
    }
}

/// The messages found so far.
#[derive(Default, Debug)]
struct Page {
    messages: Vec<Value>,
    /// Approximate bytes of the messages in the answer.
    bytes: usize,
    next: Option<Cursor>,
    scanned: u64,
    total: u64,
}

impl Page {
    /// Adds the matching messages of a batch. True if the page is complete: it has as many messages as asked for, or there
    /// is no memory for more.
    ///
    /// # Errors
    /// [`OverBudget`] if there is no memory for the first one.
    fn add(
        &mut self,
        query: &BrowseQuery,
        batch: &BrowseBatch,
        allowance: &Allowance,
    ) -> Result<bool, OverBudget> {
        let BrowseQuery { from, truncate, filter, .. } = query;
        let state = from.place.state();
        let json =
            MessageContext { queue: batch.queue, state, now: batch.now, truncate: *truncate };
        let mut passed = self.next.map_or(0, |next| next.passed);
        self.total = batch.total;
        let last = batch.messages.len();
        for (number, message) in (1..).zip(&batch.messages) {
            let position = (state != MessageState::Unacknowledged).then_some(passed);
            if filter.matches(&message.entry.message) {
                let bytes = browsed_bytes(&message.entry.message, *truncate);
                match allowance.hold(bytes) {
                    Ok(()) => {}
                    Err(over) if self.messages.is_empty() => return Err(over),
                    Err(_) => return Ok(true),
                }
                self.bytes += bytes;
                self.messages.push(json.message(message, position));
            }
            passed += 1;
            self.scanned += 1;
            let place = if number == last { batch.next } else { Some(message.behind) };
            self.next = place.map(|place| Cursor { passed, place });
            if self.messages.len() == query.count || self.bytes >= GET_BYTES_MAX {
                return Ok(true);
            }
        }
        self.next = batch.next.map(|place| Cursor { passed, place });
        Ok(false)
    }
}

fn state(word: &str) -> Result<MessageState, ApiError> {
    MessageState::parse(word).ok_or_else(|| {
        let all = MessageState::ALL.map(MessageState::as_str).join(", ");
        ApiError::bad_request(format!("state must be one of {all}"))
    })
}

fn reason(word: &str) -> Result<DeathReason, ApiError> {
    DeathReason::parse(word).ok_or_else(|| {
        let all = DeathReason::ALL.map(DeathReason::as_str).join(", ");
        ApiError::bad_request(format!("reason must be one of {all}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browse_query_is_parsed() {
        let plain = BrowseQuery::parse("").unwrap();
        assert_eq!((plain.count, plain.truncate), (50, 50_000));
        assert_eq!(plain.from.place.state(), MessageState::Ready);
        assert!(plain.filter.is_empty());
        let query = "state=dead&count=500&truncate=0&reason=expired&first_queue=a%20b&text=x\
                     &header=k&header=tries=3=4&header=&cursor=7_d1&without_header=a=b\
                     &without_header=c&without_text=y&json=/a/b=7=8&json=/c";
        let parsed = BrowseQuery::parse(query).unwrap();
        assert_eq!(parsed.from, Cursor { passed: 7, place: "d1".parse().unwrap() });
        assert_eq!(parsed.from.to_string(), "7_d1");
        assert_eq!((parsed.count, parsed.truncate), (500, 0));
        let headers = vec![("k".into(), None), ("tries".into(), Some("3=4".into()))];
        let filter = MessageFilter {
            reason: Some(DeathReason::Expired),
            first_queue: Some("a b".into()),
            headers,
            text: Some("x".into()),
            without_headers: vec![("a".into(), Some("b".into())), ("c".into(), None)],
            without_text: Some("y".into()),
            json: vec![("/a/b".into(), Some("7=8".into())), ("/c".into(), None)],
        };
        assert_eq!(parsed.filter, filter);
    }

    #[test]
    fn browse_query_refuses_invalid_values() {
        for (query, reason) in [
            ("count=0", "count must be from 1 to 500"),
            ("count=501", "count must be from 1 to 500"),
            ("count=x", "count must be a whole number"),
            ("truncate=-1", "truncate must be a whole number"),
            ("state=gone", "state must be one of ready, unacknowledged, delayed, dead"),
            ("reason=x", "reason must be one of rejected, expired, maxlen, delivery_limit"),
            (
                "json=customer=7",
                "json should name a place by a JSON pointer, such as /customer/id, got customer",
            ),
            ("cursor=x", "the cursor is none that was given"),
            ("cursor=0_x", "the cursor is none that was given"),
            ("cursor=0_d1", "the cursor is of another state"),
        ] {
            assert_eq!(BrowseQuery::parse(query).unwrap_err().reason(), reason, "{query}");
        }
    }
}
