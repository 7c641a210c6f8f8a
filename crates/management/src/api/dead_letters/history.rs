//! `GET /api/dead-letter-history/VHOST`: the deaths of messages, also of those that are gone. RabbitMQ has no such
//! endpoint.
//!
//! A request does a bounded amount of work and answers with a cursor for the next request.

use amqp::properties::Properties;
use axum::extract::{RawQuery, State};
use axum::routing::get;
use broker::dead_letter::DeathReason;
use broker::{DeathCircumstances, DeathOutcome, DropCause, Envelope, RecordedDeath};
use serde_json::{Value, json};
use server::json::table::bytes_to_text;
use server::requests::{DeathFilter, DeathsBefore};
use server::snapshot::client::channel_name;

use crate::api::queues::message::properties;
use crate::http::access::{Management, check_can_enter};
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::limits::{DEATHS_COUNT_DEFAULT, DEATHS_COUNT_MAX, DEATHS_READS_MAX, GET_BYTES_MAX};

/// The path.
pub(super) fn routes() -> Routes {
    Routes::new().route("/api/dead-letter-history/{vhost}", Scope::Vhost("vhost"), get(history))
}

async fn history(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(vhost): Name,
    RawQuery(query): RawQuery,
) -> Result<Json, ApiError> {
    check_can_enter(&caller, &vhost)?;
    let query = HistoryQuery::parse(&query.unwrap_or_default())?;
    let mut page = Page::default();
    let mut before = query.before;
    for _ in 0..DEATHS_READS_MAX {
        let wanted = DeathsBefore { before, count: query.count - page.deaths.len() };
        let batch = node.recorded_deaths(&caller, &vhost, &query.filter, wanted).await?;
        page.hidden += batch.hidden;
        page.about = Some((batch.is_on, batch.forgotten, batch.kept_since_ms));
        before = page.add(&batch.deaths).or(batch.before);
        if before.is_none() || page.is_full(&query) {
            break;
        }
    }
    let (is_on, forgotten, kept_since_ms) = page.about.unwrap_or_default();
    Ok(Json::ok(json!({
        "deaths": page.deaths,
        "cursor": before.map(|number| number.to_string()),
        "hidden": page.hidden,
        "enabled": is_on,
        "forgotten": forgotten,
        "kept_since_ms": kept_since_ms,
        "dropped_without_dlx": dropped_without_dlx(&node, &vhost, &query.filter),
    })))
}

/// The messages that died without a dead-letter exchange since the start, in the queue and for the reason of the filter:
/// those without headers and a `message_id` have no entry. None if the filter asks for headers or a `message_id`.
fn dropped_without_dlx(node: &SharedNode, vhost: &str, filter: &DeathFilter) -> Option<u64> {
    if filter.message_id.is_some() || !filter.headers.is_empty() {
        return None;
    }
    let dropped = node.dropped(vhost, filter.queue.as_deref())?;
    let is_wanted = |reason| filter.reason.is_none_or(|only| only == reason);
    let wanted = dropped.iter().filter(|(reason, _)| is_wanted(*reason));
    Some(wanted.map(|(_, by_cause)| by_cause.get(DropCause::NoDeadLetterExchange)).sum())
}

/// The deaths found so far.
#[derive(Default)]
struct Page {
    deaths: Vec<Value>,
    /// Approximate bytes of the deaths in the answer.
    bytes: usize,
    hidden: u64,
    /// True if deaths are kept, the number of forgotten ones, and the time since which all are kept.
    about: Option<(bool, u64, u64)>,
}

impl Page {
    /// Adds deaths. The number of the last one if the answer is so long that the others must wait.
    fn add(&mut self, deaths: &[RecordedDeath]) -> Option<u64> {
        for death in deaths {
            self.bytes += death.properties().len() + DEATH_JSON_BYTES;
            self.deaths.push(to_json(death));
            if self.bytes >= GET_BYTES_MAX {
                return Some(death.number);
            }
        }
        None
    }

    fn is_full(&self, query: &HistoryQuery) -> bool {
        self.deaths.len() == query.count || self.bytes >= GET_BYTES_MAX
    }
}

/// Approximate bytes of a death in JSON besides its properties.
const DEATH_JSON_BYTES: usize = 1024;

/// The query of a request.
#[derive(PartialEq, Eq, Debug)]
struct HistoryQuery {
    filter: DeathFilter,
    count: usize,
    before: Option<u64>,
}

/// The parameters, of which only `header` may be repeated.
const PARAMETERS: [&str; 6] = ["message_id", "header", "queue", "reason", "count", "cursor"];

impl HistoryQuery {
    fn parse(query: &str) -> Result<Self, ApiError> {
        let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
        if let Some((name, _)) = pairs.iter().find(|(name, _)| !PARAMETERS.contains(&&**name)) {
            let reason = format!("{name} is not known; known are {}", PARAMETERS.join(", "));
            return Err(ApiError::bad_request(reason));
        }
        let find = |wanted: &str| {
            let found = pairs.iter().find(|(name, value)| name == wanted && !value.is_empty());
            found.map(|(_, value)| &**value)
        };
        let count = find("count").map_or(Ok(DEATHS_COUNT_DEFAULT), |count| {
            let count = count.parse().ok().filter(|count| (1..=DEATHS_COUNT_MAX).contains(count));
            let reason = || format!("count must be from 1 to {DEATHS_COUNT_MAX}");
            count.ok_or_else(|| ApiError::bad_request(reason()))
        })?;
        let before = find("cursor").map(str::parse).transpose();
        let before =
            before.map_err(|_| ApiError::bad_request("the cursor is none that was given"))?;
        let headers = pairs.iter().filter(|(name, header)| name == "header" && !header.is_empty());
        let headers = headers.map(|(_, header)| match header.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (header.to_string(), None),
        });
        let filter = DeathFilter {
            message_id: find("message_id").map(str::to_owned),
            headers: headers.collect(),
            queue: find("queue").map(str::to_owned),
            reason: find("reason").map(reason).transpose()?,
        };
        Ok(Self { filter, count, before })
    }
}

fn reason(word: &str) -> Result<DeathReason, ApiError> {
    DeathReason::parse(word).ok_or_else(|| {
        let all = DeathReason::ALL.map(DeathReason::as_str).join(", ");
        ApiError::bad_request(format!("reason must be one of {all}"))
    })
}

/// A death in JSON.
fn to_json(death: &RecordedDeath) -> Value {
    let DeathCircumstances { published, dead_letter, outcome, settled_by, .. } =
        &*death.circumstances;
    let circumstances = &death.circumstances;
    // Properties were validated when the message was published.
    let parsed = Properties::parse(death.properties()).unwrap_or_default();
    let given = parsed.headers.and_then(|headers| headers.get("x-reason"));
    let given = given.and_then(|value| value.as_long_str()).map(bytes_to_text);
    let (result, cause) = match outcome {
        DeathOutcome::DeadLettered { .. } => ("dead_lettered", None),
        DeathOutcome::Kept(cause) => ("kept", Some(cause.as_str())),
        DeathOutcome::Dropped(cause) => ("dropped", Some(cause.as_str())),
    };
    let (queues, queues_total, copies_dropped) = match outcome {
        DeathOutcome::DeadLettered { queues, queues_total, copies_dropped } => {
            (queues.iter().map(|queue| &**queue).collect(), *queues_total, *copies_dropped)
        }
        DeathOutcome::Kept(_) | DeathOutcome::Dropped(_) => (Vec::new(), 0, 0),
    };
    let key = |envelope: &Envelope| bytes_to_text(envelope.routing_key.as_bytes());
    json!({
        "id": death.number,
        "time_ms": death.time_ms,
        "queue": *circumstances.queue,
        "reason": circumstances.reason.as_str(),
        "exchange": *published.exchange,
        "routing_key": key(published),
        "outcome": result,
        "cause": cause,
        "dead_letter_exchange": dead_letter.as_ref().map(|letter| &*letter.exchange),
        "dead_letter_routing_key": dead_letter.as_ref().map(|letter| key(letter)),
        "targets": queues,
        "targets_total": queues_total,
        "copies_dropped": copies_dropped,
        "settled_by": settled_by.as_ref().map(|by| json!({
            "user": *by.user,
            "connection": *by.connection,
            "channel": channel_name(&by.connection, by.channel),
            "consumer_tag": by.consumer_tag.as_deref(),
        })),
        "policy": circumstances.policy.as_deref(),
        "operator_policy": circumstances.operator_policy.as_deref(),
        "reason_given": given,
        "message_id": parsed.message_id.map(bytes_to_text),
        "properties": properties(death.properties()),
        "headers_complete": !death.is_cut(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_query_is_parsed() {
        let plain = HistoryQuery::parse("message_id=&header=").unwrap();
        assert_eq!(plain.filter, DeathFilter::default());
        assert_eq!((plain.count, plain.before), (DEATHS_COUNT_DEFAULT, None));
        let query =
            "message_id=a%20b&header=k&header=tries=3=4&queue=q&reason=expired&count=500&cursor=7";
        let parsed = HistoryQuery::parse(query).unwrap();
        let headers = vec![("k".into(), None), ("tries".into(), Some("3=4".into()))];
        let filter = DeathFilter {
            message_id: Some("a b".into()),
            headers,
            queue: Some("q".into()),
            reason: Some(DeathReason::Expired),
        };
        assert_eq!(parsed, HistoryQuery { filter, count: 500, before: Some(7) });
    }

    #[test]
    fn history_query_refuses_invalid_values() {
        for (query, reason) in [
            ("count=0", "count must be from 1 to 500"),
            ("count=501", "count must be from 1 to 500"),
            ("count=x", "count must be from 1 to 500"),
            ("reason=x", "reason must be one of rejected, expired, maxlen, delivery_limit"),
            ("cursor=-1", "the cursor is none that was given"),
            ("id=7", "id is not known; known are message_id, header, queue, reason, count, cursor"),
        ] {
            assert_eq!(HistoryQuery::parse(query).unwrap_err().reason(), reason, "{query}");
        }
    }
}
