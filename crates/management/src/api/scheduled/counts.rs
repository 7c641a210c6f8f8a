//! `GET /api/scheduled-counts` and `/api/scheduled-counts/{vhost}`: how many scheduled messages match, and when they are
//! due.

use axum::extract::{RawQuery, State};
use axum::routing::get;
use broker::ScheduledMessage;
use broker::time::{Now, Time};
use serde_json::{Value, json};
use server::requests::{Caller, ScheduleError, ScheduleQuery, on_axis};

use super::query::Parameters;
use super::{is_hidden, visible_vhosts};
use crate::http::access::{Management, check_can_enter};
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::limits::{
    SCHEDULED_BUCKETS_DEFAULT, SCHEDULED_BUCKETS_MAX, SCHEDULED_COUNTED_AT_ONCE,
    SCHEDULED_COUNTED_MAX,
};

/// The default length of a bucket: a minute.
const BUCKET_MS_DEFAULT: u64 = 60_000;

pub(super) fn routes() -> Routes {
    Routes::new().route("/api/scheduled-counts", Scope::ScheduledCounts, get(count)).route(
        "/api/scheduled-counts/{name}",
        Scope::Vhost("name"),
        get(count_in_vhost),
    )
}

async fn count(
    State(node): State<SharedNode>,
    Management(caller): Management,
    RawQuery(query): RawQuery,
) -> Result<Json, ApiError> {
    let mut counts = Counts::parse(&query.unwrap_or_default(), node.now_ms())?;
    for vhost in visible_vhosts(&node, &caller) {
        match counts.add_vhost(&node, &caller, &vhost).await {
            Err(error) if !is_hidden(&error) => return Err(error.into()),
            _ => {}
        }
    }
    Ok(Json::ok(counts.to_json()))
}

async fn count_in_vhost(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(vhost): Name,
    RawQuery(query): RawQuery,
) -> Result<Json, ApiError> {
    check_can_enter(&caller, &vhost)?;
    let mut counts = Counts::parse(&query.unwrap_or_default(), node.now_ms())?;
    counts.add_vhost(&node, &caller, &vhost).await?;
    Ok(Json::ok(counts.to_json()))
}

/// Numbers of messages by delivery time.
#[derive(PartialEq, Eq, Debug)]
struct Counts {
    filters: ScheduleQuery,
    /// Start of the first bucket, in milliseconds since the Unix epoch.
    from_ms: u64,
    bucket_ms: u64,
    buckets: Vec<u64>,
    /// Messages behind the last bucket.
    later: u64,
    messages: u64,
    /// False if more messages match than are counted.
    is_complete: bool,
}

impl Counts {
    fn parse(query: &str, now_ms: u64) -> Result<Self, ApiError> {
        let parameters = Parameters::parse(query, &["buckets", "bucket_ms"])?;
        let filters = parameters.filters()?;
        let buckets =
            parameters.count("buckets", SCHEDULED_BUCKETS_DEFAULT, SCHEDULED_BUCKETS_MAX)?;
        let bucket_ms = parameters.number("bucket_ms")?.unwrap_or(BUCKET_MS_DEFAULT);
        if bucket_ms == 0 {
            return Err(ApiError::bad_request("bucket_ms must be more than 0"));
        }
        Ok(Self {
            from_ms: filters.after_ms.unwrap_or(now_ms),
            filters,
            bucket_ms,
            buckets: vec![0; buckets],
            later: 0,
            messages: 0,
            is_complete: true,
        })
    }

    /// Counts the messages of a vhost, a slice at a time.
    async fn add_vhost(
        &mut self,
        node: &SharedNode,
        caller: &Caller,
        vhost: &str,
    ) -> Result<(), ScheduleError> {
        let mut behind = None;
        loop {
            if self.messages >= SCHEDULED_COUNTED_MAX {
                self.is_complete = false;
                return Ok(());
            }
            let (filters, count) = (self.filters.clone(), SCHEDULED_COUNTED_AT_ONCE);
            let batch = node.scheduled(caller, vhost, filters, behind, count).await?;
            self.add(&batch.page.messages, batch.now);
            behind = batch.page.next;
            if behind.is_none() {
                return Ok(());
            }
        }
    }

    fn add(&mut self, messages: &[ScheduledMessage], now: Now) {
        let from = on_axis(now, self.from_ms);
        messages.iter().for_each(|message| self.add_one(from, message.ready_at));
    }

    /// Counts a message. One whose delivery time has come counts in the first bucket.
    fn add_one(&mut self, from: Time, ready_at: Time) {
        self.messages += 1;
        let bucket = ready_at.micros_since(from) / self.bucket_ms.saturating_mul(1000);
        match usize::try_from(bucket).ok().and_then(|bucket| self.buckets.get_mut(bucket)) {
            Some(count) => *count += 1,
            None => self.later += 1,
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "from": self.from_ms,
            "bucket_ms": self.bucket_ms,
            "counts": self.buckets,
            "later": self.later,
            "messages": self.messages,
            "complete": self.is_complete,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_by_delivery_time() {
        let mut counts = Counts::parse("buckets=3&bucket_ms=1000&after=5000", 9000).unwrap();
        let from = Time::from_millis(5000);
        for ms in [4000, 5000, 5999, 6000, 7999, 8000, u64::MAX / 1000] {
            counts.add_one(from, Time::from_millis(ms));
        }
        let expected = json!({"from": 5000, "bucket_ms": 1000, "counts": [3, 1, 1], "later": 2,
            "messages": 7, "complete": true});
        assert_eq!(counts.to_json(), expected);
    }

    #[test]
    fn counts_begin_now_and_have_limits() {
        let counts = Counts::parse("", 9000).unwrap();
        assert_eq!((counts.from_ms, counts.bucket_ms, counts.buckets.len()), (9000, 60_000, 60));
        for query in ["buckets=0", "buckets=201", "bucket_ms=0", "bucket_ms=x", "limit=5"] {
            assert!(Counts::parse(query, 9000).is_err(), "{query}");
        }
        let mut longest = Counts::parse("bucket_ms=18446744073709551615&buckets=1", 9000).unwrap();
        longest.add_one(Time::default(), Time::from_millis(1));
        assert_eq!(longest.buckets, [1]);
    }
}
