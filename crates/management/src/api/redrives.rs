//! `/api/queues/VHOST/NAME/redrive` and `/api/redrives`: moves dead-lettered messages back. RabbitMQ has no
//! such endpoints.

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use broker::dead_letter::DeathReason;
use broker::redrive::RedriveTo;
use broker::{BrowsedMessage, MessageState};
use serde_json::{Map, Value, json};
use server::requests::{
    Caller, MessageFilter, MessageId, QueuePath, RedriveDryRun, RedriveError, RedriveJob,
    RedriveRequest, RedriveSelection, RedriveState,
};

use crate::api::queues::message::{MessageContext, check_pointers};
use crate::api::user_channel::{UserVhost, short};
use crate::http::access::{Management, check_can_close_client, check_can_enter};
use crate::http::answer::{ApiError, Json, refused_read};
use crate::http::body::Object;
use crate::http::extract::{Name, NameInVhost, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::limits::REDRIVE_SAMPLE_TRUNCATE;

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/api/queues/{vhost}/{name}/redrive", Scope::Vhost("vhost"), post(begin))
        .route("/api/queues/{vhost}/{name}/redrives", Scope::Vhost("vhost"), get(list_of_queue))
        .route("/api/redrives", Scope::List(&["id"]), get(list))
        .route("/api/redrives/{name}", Scope::Anywhere, get(show).delete(cancel))
}

async fn begin(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    body: Object,
) -> Result<Response, ApiError> {
    let user_vhost = UserVhost::for_create(node, Arc::clone(&caller), vhost)?;
    let queue = QueuePath { vhost: &user_vhost.vhost, queue: &name };
    if user_vhost.node().queue(&user_vhost.vhost, &name).is_none() {
        return Err(ApiError::missing("queue_not_found"));
    }
    let request = request(&body)?;
    if flag(&body, "dry_run")? {
        let dry_run = user_vhost.node().redrive_dry_run(&caller, queue, request).await;
        return Ok(Json::ok(dry_run_to_json(&dry_run?)).into_response());
    }
    let job = user_vhost.node().redrive(&caller, queue, request).await?;
    Ok(Json(StatusCode::CREATED, to_json(&job)).into_response())
}

/// Users see the jobs of the vhosts that they see.
async fn list(State(node): State<SharedNode>, Management(caller): Management) -> Json {
    let jobs = node.redrives();
    Json::ok(jobs.iter().filter(|job| caller.can_list(&job.vhost)).map(to_json).collect())
}

async fn list_of_queue(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
) -> Result<Json, ApiError> {
    check_can_enter(&caller, &vhost)?;
    if node.queue(&vhost, &name).is_none() {
        return Err(ApiError::not_found());
    }
    let jobs = node.redrives();
    let of_queue = jobs.iter().filter(|job| job.vhost == vhost && job.queue == name);
    Ok(Json::ok(of_queue.map(to_json).collect()))
}

async fn show(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(id): Name,
) -> Result<Json, ApiError> {
    Ok(Json::ok(to_json(&find(&node, &caller, &id)?)))
}

/// Cancels a job on behalf of its owner or an administrator. An ended job cannot be cancelled.
async fn cancel(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(id): Name,
) -> Result<StatusCode, ApiError> {
    let job = find(&node, &caller, &id)?;
    check_can_close_client(&caller, &job.user)?;
    match node.cancel_redrive(job.id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => {
            let reason = format!("redrive {} has ended", job.id);
            Err(ApiError::new(StatusCode::CONFLICT, "conflict", reason))
        }
    }
}

fn find(node: &SharedNode, caller: &Caller, id: &str) -> Result<RedriveJob, ApiError> {
    let id: u64 = id.parse().map_err(|_| ApiError::not_found())?;
    // Before the jobs are read as well as after it: the vhost of a job may come or go in between.
    let unknown_before = node.vhost_with_unknown_redrives();
    let job = node.redrives().into_iter().find(|job| job.id == id && caller.can_list(&job.vhost));
    job.ok_or_else(|| match unknown_before.or_else(|| node.vhost_with_unknown_redrives()) {
        // Another node may know the job; of a job of this vhost nobody can say yet that there is none.
        Some(vhost) => ApiError::unavailable(format!(
            "the redrives of vhost '{vhost}' are not known yet, try again"
        )),
        None => ApiError::not_found(),
    })
}

impl From<RedriveError> for ApiError {
    fn from(why: RedriveError) -> Self {
        match why {
            RedriveError::NoSuchVhost => Self::no_such_vhost(),
            RedriveError::NoSuchQueue => Self::missing("queue_not_found"),
            RedriveError::NoPermissions => Self::access_refused(),
            RedriveError::Refused(refusal) => refused_read(&refusal),
            RedriveError::TooMany(max) => {
                let reason = format!("{max} redrives run already");
                Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", reason)
            }
            RedriveError::TooLong(bytes_max) => {
                let reason = format!("ids and filter should be shorter than {bytes_max} bytes");
                Self::bad_request(reason)
            }
            RedriveError::Disk(reason) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", reason)
            }
        }
    }
}

// ---- request ----

fn request(body: &Object) -> Result<RedriveRequest, ApiError> {
    let known = ["to", "ids", "filter", "limit", "rate", "dry_run", "max_redrives", "kept"];
    only(&body.0, "", &known)?;
    let filter = match body.get("filter") {
        None | Some(Value::Null) => &Map::new(),
        Some(Value::Object(filter)) => filter,
        Some(_) => return Err(ApiError::bad_request("filter should be an object")),
    };
    let known = [
        "reason",
        "first_queue",
        "headers",
        "text",
        "without_headers",
        "without_text",
        "json",
        "older_than_ms",
    ];
    only(filter, "filter.", &known)?;
    let rate = positive(body.get("rate"), "rate")?;
    Ok(RedriveRequest {
        to: target(body.get("to"))?,
        selection: RedriveSelection {
            ids: ids(body.get("ids"))?,
            filter: MessageFilter {
                reason: text(filter.get("reason"), "filter.reason")?.map(reason).transpose()?,
                first_queue: text(filter.get("first_queue"), "filter.first_queue")?
                    .map(str::to_owned),
                headers: headers(filter.get("headers"), "filter.headers")?,
                text: text(filter.get("text"), "filter.text")?.map(str::to_owned),
                without_headers: without_headers(filter.get("without_headers"))?,
                without_text: text(filter.get("without_text"), "filter.without_text")?
                    .map(str::to_owned),
                json: json_places(filter.get("json"))?,
            },
            older_than_ms: number(filter.get("older_than_ms"), "filter.older_than_ms")?,
            max_redrives: number(body.get("max_redrives"), "max_redrives")?,
        },
        limit: positive(body.get("limit"), "limit")?,
        rate: rate.map(|rate| u32::try_from(rate).unwrap_or(u32::MAX)),
        is_of_kept: flag(body, "kept")?,
    })
}

/// Refuses unknown fields: a misspelt filter must not select more messages than intended.
fn only(object: &Map<String, Value>, of: &str, known: &[&str]) -> Result<(), ApiError> {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(ApiError::bad_request(format!(
            "{of}{key} is not known; known are {}",
            known.join(", ")
        ))),
    }
}

fn target(to: Option<&Value>) -> Result<RedriveTo, ApiError> {
    let unknown = || {
        let reason = "to should be \"origin\", \"first\", {\"queue\": NAME} or {\"exchange\": NAME, \
                      \"routing_key\": KEY}";
        ApiError::bad_request(reason)
    };
    match to {
        None | Some(Value::Null) => Ok(RedriveTo::Origin),
        Some(Value::String(word)) if word == "origin" => Ok(RedriveTo::Origin),
        Some(Value::String(word)) if word == "first" => Ok(RedriveTo::First),
        Some(Value::Object(object)) => {
            only(object, "to.", &["queue", "exchange", "routing_key"])?;
            let [queue, exchange, key] = ["queue", "exchange", "routing_key"].map(|name| {
                let value = text(object.get(name), &format!("to.{name}"))?;
                value.map(|value| short(name, value)).transpose()
            });
            match (queue?, exchange?, key?) {
                (Some(queue), None, None) => Ok(RedriveTo::Queue(queue.into())),
                (None, Some(exchange), key) => Ok(RedriveTo::Exchange {
                    exchange: if exchange == "amq.default" { "" } else { exchange }.into(),
                    routing_key: key.map(Into::into),
                }),
                _ => Err(unknown()),
            }
        }
        Some(_) => Err(unknown()),
    }
}

fn ids(ids: Option<&Value>) -> Result<Option<HashSet<MessageId>>, ApiError> {
    let ids = match ids {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(ids)) => ids,
        Some(_) => return Err(ApiError::bad_request("ids should be a list")),
    };
    let id = |value: &Value| {
        let id = value.as_str().and_then(|id| id.parse().ok());
        id.ok_or_else(|| ApiError::bad_request(format!("{value} is not the id of a message")))
    };
    ids.iter().map(id).collect::<Result<_, _>>().map(Some)
}

fn reason(word: &str) -> Result<DeathReason, ApiError> {
    DeathReason::parse(word).ok_or_else(|| {
        let known = DeathReason::ALL.map(DeathReason::as_str).join(", ");
        ApiError::bad_request(format!("filter.reason should be one of {known}"))
    })
}

/// Headers with their values as text; `null` stands for any value.
fn headers(headers: Option<&Value>, of: &str) -> Result<Vec<(String, Option<String>)>, ApiError> {
    let wanted = object(headers, of)?.into_iter().flatten();
    wanted.map(|(name, value)| header(name, value, of)).collect()
}

/// Places of JSON bodies, each with the value that must stand there if one is given.
fn json_places(places: Option<&Value>) -> Result<Vec<(String, Option<String>)>, ApiError> {
    let places = headers(places, "filter.json")?;
    check_pointers(&places)?;
    Ok(places)
}

/// Headers of which messages must have none. A value may be a list of several.
fn without_headers(headers: Option<&Value>) -> Result<Vec<(String, Option<String>)>, ApiError> {
    let headers = object(headers, "filter.without_headers")?.into_iter().flatten();
    let values = headers.flat_map(|(name, value)| {
        let values =
            if let Value::Array(values) = value { values } else { std::slice::from_ref(value) };
        values.iter().map(move |value| (name, value))
    });
    values.map(|(name, value)| header(name, value, "filter.without_headers")).collect()
}

fn object<'a>(
    value: Option<&'a Value>,
    of: &str,
) -> Result<Option<&'a Map<String, Value>>, ApiError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(ApiError::bad_request(format!("{of} should be an object"))),
    }
}

fn header(name: &str, value: &Value, of: &str) -> Result<(String, Option<String>), ApiError> {
    let value = match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(_) | Value::Object(_) => {
            let problem = format!("a value in {of} should be a string");
            return Err(ApiError::bad_request(problem));
        }
    };
    Ok((name.to_owned(), value))
}

fn text<'a>(value: Option<&'a Value>, name: &str) -> Result<Option<&'a str>, ApiError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(ApiError::bad_request(format!("{name} should be a string"))),
    }
}

fn number(value: Option<&Value>, name: &str) -> Result<Option<u64>, ApiError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or_else(|| {
            ApiError::bad_request(format!("{name} should be a whole number, not less than 0"))
        }),
    }
}

fn positive(value: Option<&Value>, name: &str) -> Result<Option<u64>, ApiError> {
    match number(value, name)? {
        Some(0) => Err(ApiError::bad_request(format!("{name} should be more than 0"))),
        number => Ok(number),
    }
}

fn flag(body: &Object, name: &str) -> Result<bool, ApiError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(ApiError::bad_request(format!("{name} should be true or false"))),
    }
}

// ---- answer ----

fn to_json(job: &RedriveJob) -> Value {
    let reason = if let RedriveState::Failed(reason) = &job.state { Some(reason) } else { None };
    json!({
        "id": job.id.to_string(),
        "vhost": job.vhost,
        "queue": job.queue,
        "to": target_to_json(&job.to),
        "kept": job.is_of_kept,
        "user": job.user,
        "state": job.state.as_str(),
        "reason": reason,
        "started_ms": job.started_ms,
        "ended_ms": job.ended_ms,
        "messages_total": job.messages_total,
        "scanned": job.counts.scanned,
        "moved": job.counts.moved,
        "skipped": job.counts.skipped,
        "unroutable": job.counts.unroutable,
        "no_origin": job.counts.no_origin,
        "gone": job.counts.gone,
        "not_examined": job.not_examined(),
        "unacked_left": job.unacked_left,
    })
}

fn target_to_json(to: &RedriveTo) -> Value {
    match to {
        RedriveTo::Origin => json!("origin"),
        RedriveTo::First => json!("first"),
        RedriveTo::Queue(queue) => json!({"queue": **queue}),
        RedriveTo::Exchange { exchange, routing_key: None } => json!({"exchange": **exchange}),
        RedriveTo::Exchange { exchange, routing_key: Some(key) } => {
            json!({"exchange": **exchange, "routing_key": key.to_string()})
        }
    }
}

fn dry_run_to_json(dry_run: &RedriveDryRun) -> Value {
    let target = |(queue, messages): &(String, u64)| json!({"queue": queue, "messages": messages});
    let sample = |(state, browsed): &(MessageState, BrowsedMessage)| {
        let truncate = REDRIVE_SAMPLE_TRUNCATE;
        let context =
            MessageContext { queue: dry_run.number, state: *state, now: dry_run.now, truncate };
        context.message(browsed, None)
    };
    json!({
        "messages_total": dry_run.messages_total,
        "scanned": dry_run.scanned,
        "matched": dry_run.matched,
        "would_move": dry_run.would_move,
        "skipped": dry_run.scanned.saturating_sub(dry_run.matched),
        "unroutable": dry_run.unroutable,
        "no_origin": dry_run.no_origin,
        "not_examined": dry_run.not_examined,
        "unacked_left": dry_run.unacked_left,
        "targets": dry_run.targets.iter().map(target).collect::<Vec<_>>(),
        "complete": dry_run.is_complete,
        "sample": dry_run.sample.iter().map(sample).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<RedriveRequest, ApiError> {
        request(&Object::parse(body.as_bytes()).unwrap())
    }

    #[test]
    fn redrive_request_needs_no_fields() {
        let request = read("").unwrap();
        assert_eq!(request.to, RedriveTo::Origin);
        assert_eq!((request.limit, request.rate), (None, None));
        assert!(request.selection.ids.is_none() && request.selection.filter.is_empty());
    }

    #[test]
    fn redrive_target_is_a_word_or_an_object() {
        let exchange = |exchange: &str, key: Option<&str>| RedriveTo::Exchange {
            exchange: exchange.into(),
            routing_key: key.map(Into::into),
        };
        for (to, expected) in [
            (r#""origin""#, RedriveTo::Origin),
            (r#""first""#, RedriveTo::First),
            (r#"{"queue":"q"}"#, RedriveTo::Queue("q".into())),
            (r#"{"exchange":"x"}"#, exchange("x", None)),
            (r#"{"exchange":"amq.default","routing_key":"q"}"#, exchange("", Some("q"))),
        ] {
            assert_eq!(read(&format!("{{\"to\":{to}}}")).unwrap().to, expected);
        }
        for to in [
            r#""elsewhere""#,
            "5",
            "{}",
            r#"{"queue":5}"#,
            r#"{"queue":"q","exchange":"x"}"#,
            r#"{"queue":"q","routing_key":"k"}"#,
            r#"{"routing_key":"k"}"#,
            r#"{"vhost":"v"}"#,
        ] {
            assert!(read(&format!("{{\"to\":{to}}}")).is_err(), "{to}");
        }
        assert!(read(&format!("{{\"to\":{{\"queue\":\"{}\"}}}}", "q".repeat(256))).is_err());
    }

    #[test]
    fn redrive_request_refuses_unknown_and_invalid_fields() {
        for (body, reason) in [
            (r#"{"filters":{}}"#, "filters is not known"),
            (r#"{"filter":{"reasons":"expired"}}"#, "filter.reasons is not known"),
            (r#"{"filter":"expired"}"#, "filter should be an object"),
            (r#"{"filter":{"reason":"bored"}}"#, "filter.reason should be one of"),
            (r#"{"filter":{"headers":{"a":[]}}}"#, "a value in filter.headers"),
            (r#"{"filter":{"without_headers":[]}}"#, "filter.without_headers should be an object"),
            (r#"{"filter":{"without_headers":{"a":[{}]}}}"#, "a value in filter.without_headers"),
            (r#"{"filter":{"older_than_ms":-1}}"#, "filter.older_than_ms should be a whole number"),
            (r#"{"limit":0}"#, "limit should be more than 0"),
            (r#"{"rate":"fast"}"#, "rate should be a whole number"),
            (r#"{"ids":"1-2-3"}"#, "ids should be a list"),
            (r#"{"ids":["x"]}"#, "\"x\" is not the id of a message"),
        ] {
            let error = read(body).unwrap_err();
            assert!(error.reason().starts_with(reason), "{body}: {}", error.reason());
        }
    }

    #[test]
    fn redrive_selection_is_parsed() {
        let request = read(
            r#"{"ids":["1-2-0"],"filter":{"reason":"expired","first_queue":"q","text":"t",
                "headers":{"a":"b","n":5,"any":null},"older_than_ms":7},
                "limit":3,"rate":5000000000,"max_redrives":2}"#,
        );
        let RedriveRequest { selection, limit, rate, .. } = request.unwrap();
        assert_eq!((limit, rate), (Some(3), Some(u32::MAX)));
        assert_eq!(selection.ids.unwrap().len(), 1);
        assert_eq!((selection.older_than_ms, selection.max_redrives), (Some(7), Some(2)));
        let owned = |text: &str| text.to_owned();
        let headers = vec![
            (owned("a"), Some(owned("b"))),
            (owned("any"), None),
            (owned("n"), Some(owned("5"))),
        ];
        let mut found = selection.filter.headers.clone();
        found.sort();
        assert_eq!(found, headers);
        assert_eq!(selection.filter.reason, Some(DeathReason::Expired));
    }

    #[test]
    fn redrive_selection_without_some_messages_is_parsed() {
        let request = read(
            r#"{"filter":{"without_headers":{"schema":["v1",2],"any":null},"without_text":"t"}}"#,
        );
        let filter = request.unwrap().selection.filter;
        let mut found = filter.without_headers.clone();
        found.sort();
        let header = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
        let expected =
            [header("any", None), header("schema", Some("2")), header("schema", Some("v1"))];
        assert_eq!(found, expected);
        assert_eq!((filter.without_text.as_deref(), filter.text), (Some("t"), None));
    }

    #[test]
    fn redrive_selection_by_places_of_json_is_parsed() {
        let request = read(r#"{"filter":{"json":{"/customer/id":7,"/vip":null}}}"#).unwrap();
        let mut found = request.selection.filter.json;
        found.sort();
        assert_eq!(found, [("/customer/id".into(), Some("7".into())), ("/vip".into(), None)]);
        let error = read(r#"{"filter":{"json":{"$.customer":7}}}"#).unwrap_err();
        assert!(error.reason().starts_with("json should name a place by a JSON pointer"));
    }
}
