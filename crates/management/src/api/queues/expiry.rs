//! `GET /api/queues/VHOST/NAME/expiry`: a histogram of the deadlines of waiting messages. RabbitMQ has no
//! such endpoint.

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::routing::get;
use broker::ExpiryCursor;
use serde_json::{Value, json};
use server::requests::QueuePath;
use server::snapshot::moment::wall_ms;

use crate::api::queues::deadline_histogram::{Bucket, DeadlineHistogram};
use crate::http::access::{Management, check_can_enter};
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{NameInVhost, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::limits::{EXPIRY_BUCKETS_DEFAULT, EXPIRY_BUCKETS_MAX};

/// The path.
pub(super) fn routes() -> Routes {
    Routes::new().route("/api/queues/{vhost}/{name}/expiry", Scope::Vhost("vhost"), get(show))
}

async fn show(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    Buckets(buckets): Buckets,
) -> Result<Json, ApiError> {
    check_can_enter(&caller, &vhost)?;
    let queue = QueuePath { vhost: &vhost, queue: &name };
    let mut batch = node.expiry(queue, ExpiryCursor::START).await?;
    let (now, message_ttl_ms) = (batch.now, batch.message_ttl_ms);
    let mut histogram = DeadlineHistogram::new(now.time);
    histogram.take(&batch.slice);
    while let Some(next) = batch.slice.next {
        batch = node.expiry(queue, next).await?;
        histogram.take(&batch.slice);
    }
    let age_ms = |at| now.time.micros_since(at) / 1000;
    Ok(Json::ok(json!({
        "now_ms": now.wall_ms(),
        "messages": histogram.messages(),
        "oldest_age_ms": histogram.oldest.map(age_ms),
        "next_deadline_ms": histogram.first.map(|at| wall_ms(now, at)),
        "message_ttl_ms": message_ttl_ms,
        "never": histogram.never,
        "overdue": histogram.overdue,
        "buckets": histogram.buckets(buckets).into_iter().map(bucket).collect::<Vec<Value>>(),
        "estimated": histogram.estimated,
    })))
}

fn bucket(Bucket { from_ms, to_ms, count }: Bucket) -> Value {
    json!({"from_ms": from_ms, "to_ms": to_ms, "count": count})
}

/// The requested number of buckets.
#[derive(Debug)]
struct Buckets(usize);

impl<S: Sync> FromRequestParts<S> for Buckets {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let wanted = pairs.find(|(name, _)| name == "buckets").map(|(_, value)| value.parse());
        match wanted.unwrap_or(Ok(EXPIRY_BUCKETS_DEFAULT)) {
            Ok(buckets) if (1..=EXPIRY_BUCKETS_MAX).contains(&buckets) => Ok(Self(buckets)),
            _ => {
                let reason = format!("buckets must be from 1 to {EXPIRY_BUCKETS_MAX}");
                Err(ApiError::bad_request(reason))
            }
        }
    }
}
