//! Lists and totals of all vhosts, put together from the parts of all nodes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::future::join_all;
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use server::VhostContents;
use server::peers::request::json_of;
use server::requests::Caller;

use super::wire::is_in_lines;
use super::{Sender, copy, samples, wire};
use crate::api::dead_letters::{self, MapQuery};
use crate::api::{Query, definitions, health, scheduled};
use crate::http::allowance::Allowance;
use crate::http::answer::{ApiError, Json};
use crate::http::extract::SharedNode;
use crate::limits::{HTTP_TREE_TIMES, PART_TIMEOUT, PEER_TIMEOUT};

/// Names the nodes whose part is missing.
const INCOMPLETE: HeaderName = HeaderName::from_static("leveret-incomplete");

/// Parameters of a query that count for the whole list, and not for its parts.
const OF_THE_WHOLE: [&str; 7] =
    ["page", "page_size", "name", "use_regex", "sort", "sort_reverse", "columns"];

/// Fields of the overview that are sums over vhosts.
const SUMS: [&str; 5] =
    ["message_stats", "churn_rates", "queue_totals", "object_totals", "schedule_totals"];

/// Fields of the overview that are lists over nodes.
const LISTS: [&str; 2] = ["listeners", "contexts"];

/// The answer of a node for the vhosts that it leads.
pub(super) struct Part {
    pub(super) vhosts: Vec<String>,
    pub(super) answer: Value,
}

impl Part {
    fn into_json(self) -> Value {
        json!({"vhosts": self.vhosts, "answer": self.answer})
    }

    pub(super) fn of_json(mut json: Value) -> Option<Self> {
        let vhosts = json.get("vhosts")?.as_array()?.iter();
        let vhosts = vhosts.map(|vhost| vhost.as_str().map(str::to_owned));
        Some(Self {
            vhosts: vhosts.collect::<Option<_>>()?,
            answer: json.get_mut("answer")?.take(),
        })
    }
}

/// The answers of all nodes for the vhosts that each leads. This node answers for those that no other node answers for.
struct Parts {
    here: Value,
    others: Vec<Value>,
    missing: Vec<String>,
    /// A vhost that this node answers for without its contents, or gave up meanwhile.
    lacks: Option<String>,
}

/// Answers with the definitions of all nodes, or with none at all: those without the queues of a vhost would pass for
/// a backup.
pub(super) async fn definitions(sender: &Sender, request: Request, next: Next) -> Response {
    let download = match definitions::download(request.uri().query()) {
        Ok(download) => download,
        Err(error) => return error.into_response(),
    };
    let parts = parts(sender, request, next, PEER_TIMEOUT).await;
    let Parts { here, others, missing, lacks } = match parts {
        Ok(parts) => parts,
        Err(response) => return response,
    };
    if let Some(vhost) = lacks {
        let reason =
            format!("the definitions of vhost '{vhost}' are on other nodes, which do not answer");
        return ApiError::unavailable(reason).into_response();
    }
    complete(definitions::file(definitions::merge(here, others), download), &missing)
}

/// Answers with the dead-letter map of all nodes.
pub(super) async fn dead_letter_map(sender: &Sender, request: Request, next: Next) -> Response {
    let query = match MapQuery::parse(request.uri().query().unwrap_or_default()) {
        Ok(query) => query,
        Err(error) => return error.into_response(),
    };
    match parts_as_asked(sender, request, next, PART_TIMEOUT).await {
        Ok(Parts { here, others, missing, .. }) => {
            let parts = std::iter::once(here).chain(others).collect();
            complete(dead_letters::merge(parts, &query).into_response(), &missing)
        }
        Err(response) => response,
    }
}

/// Answers with the findings of all nodes, or with a health check of them.
pub(super) async fn findings(sender: &Sender, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let check = path.strip_prefix("/api/health/checks/findings");
    let check = check.map(|severity| severity.strip_prefix('/'));
    match parts(sender, request, next, PART_TIMEOUT).await {
        Ok(Parts { here, others, missing, .. }) => {
            let answer = health::findings::merge(here, others, check);
            complete(answer.into_response(), &missing)
        }
        Err(response) => response,
    }
}

/// Answers with the totals of all nodes.
pub(super) async fn overview(sender: &Sender, request: Request, next: Next) -> Response {
    let query = match Query::parse(request.uri().query().unwrap_or_default()) {
        Ok(query) => query,
        Err(error) => return error.into_response(),
    };
    let Parts { mut here, others, missing, .. } =
        match parts(sender, request, next, PART_TIMEOUT).await {
            Ok(parts) => parts,
            Err(response) => return response,
        };
    for part in &others {
        for name in SUMS {
            if let (Some(sum), Some(more)) = (here.get_mut(name), part.get(name)) {
                add(sum, more);
            }
        }
        for name in LISTS {
            let more = part.get(name).and_then(Value::as_array);
            if let (Some(all), Some(more)) =
                (here.get_mut(name).and_then(Value::as_array_mut), more)
            {
                all.extend(more.iter().cloned());
            }
        }
    }
    complete(Json::ok(query.select_columns(here)).into_response(), &missing)
}

/// Answers with a page of the scheduled messages of all nodes.
pub(super) async fn scheduled_messages(sender: &Sender, request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let limit = match scheduled::limit(query) {
        Ok(limit) => limit,
        Err(error) => return error.into_response(),
    };
    match parts(sender, request, next, PART_TIMEOUT).await {
        Ok(Parts { here, others, missing, .. }) => {
            let pages = std::iter::once(here).chain(others).collect();
            complete(Json::ok(scheduled::merge(pages, limit)).into_response(), &missing)
        }
        Err(response) => response,
    }
}

/// Answers with the numbers of scheduled messages of all nodes.
pub(super) async fn scheduled_counts(sender: &Sender, request: Request, next: Next) -> Response {
    match parts(sender, request, next, PART_TIMEOUT).await {
        Ok(Parts { mut here, others, missing, .. }) => {
            others.iter().for_each(|more| add_counts(&mut here, more));
            complete(Json::ok(here).into_response(), &missing)
        }
        Err(response) => response,
    }
}

/// Adds the numbers of scheduled messages of another node.
fn add_counts(counts: &mut Value, more: &Value) {
    for name in ["later", "messages"] {
        add(&mut counts[name], &more[name]);
    }
    let buckets = counts["counts"].as_array_mut().into_iter().flatten();
    let more_buckets = more["counts"].as_array().into_iter().flatten();
    buckets.zip(more_buckets).for_each(|(bucket, more)| add(bucket, more));
    counts["complete"] = json!(counts["complete"] == true && more["complete"] == true);
}

/// Adds all numbers of `more` to those of `sum`, and takes over what is only there.
fn add(sum: &mut Value, more: &Value) {
    match (sum, more) {
        (Value::Object(sum), Value::Object(more)) => {
            for (name, value) in more {
                match sum.get_mut(name) {
                    Some(known) => add(known, value),
                    None => {
                        sum.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Number(sum), Value::Number(more)) => {
            let whole = sum.as_u64().zip(more.as_u64()).map(|(a, b)| a.saturating_add(b).into());
            let real = || serde_json::Number::from_f64(sum.as_f64()? + more.as_f64()?);
            if let Some(total) = whole.or_else(real) {
                *sum = total;
            }
        }
        (Value::Array(sum), Value::Array(more)) => samples::add(sum, more),
        // Texts.
        _ => {}
    }
}

pub(super) fn complete(mut response: Response, missing: &[String]) -> Response {
    if !missing.is_empty()
        && let Ok(names) = HeaderValue::from_str(&missing.join(", "))
    {
        response.headers_mut().insert(INCOMPLETE, names);
    }
    response
}

/// The answer of this node to the one that asks for its part: with the vhosts that it is about, because a node may believe
/// that another one leads. Those that the node has given up meanwhile are not among them.
pub(super) async fn answer_part(
    node: &SharedNode,
    caller: &Caller,
    request: Request,
    next: Next,
) -> Response {
    let contents = caller.only_vhosts.iter().flat_map(|names| names.iter());
    let contents: Vec<_> =
        contents.filter_map(|name| Some((name.clone(), node.contents(name)?))).collect();
    let response = next.run(request).await;
    if response.status() != StatusCode::OK {
        return response;
    }
    if let Some(vhosts) = caller.only_vhosts.as_ref().filter(|_| is_in_lines(&response)) {
        return of_vhosts(vhosts, response);
    }
    let Some(answer) = json_of(response).await else {
        return ApiError::internal("the part of this node cannot be read").into_response();
    };
    let there = contents.into_iter().filter(|(_, contents)| contents.are_there());
    let vhosts = there.map(|(name, _)| name).collect();
    Json::ok(Part { vhosts, answer }.into_json()).into_response()
}

/// A part in lines, after the vhosts that it is about.
fn of_vhosts(vhosts: &BTreeSet<String>, response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    let first = stream::iter([Ok(Bytes::from(format!("{}\n", json!(vhosts))))]);
    Response::from_parts(parts, Body::from_stream(first.chain(body.into_data_stream())))
}

/// The vhosts that no other node has answered for, and the caller confined to them.
pub(super) fn confined_to_others(
    sender: &Sender,
    answered: &BTreeSet<String>,
) -> (Vec<String>, Arc<Caller>) {
    let mut names = sender.node.vhost_names();
    names.retain(|vhost| !answered.contains(vhost));
    let only_vhosts = Some(Arc::new(names.iter().cloned().collect()));
    (names, Arc::new(Caller { only_vhosts, ..Caller::clone(&sender.caller) }))
}

/// The parts of all nodes; an error answer of this node as it is.
async fn parts(
    sender: &Sender,
    request: Request,
    next: Next,
    limit: Duration,
) -> Result<Parts, Response> {
    let mut request = request;
    *request.uri_mut() = without(request.uri());
    parts_as_asked(sender, request, next, limit).await
}

/// The parts of all nodes, which know the page that is asked for.
async fn parts_as_asked(
    sender: &Sender,
    mut request: Request,
    next: Next,
    limit: Duration,
) -> Result<Parts, Response> {
    let (mut others, mut missing, mut answered) = (Vec::new(), Vec::new(), BTreeSet::new());
    let peers = sender.node.connected_peers();
    let parts = peers.iter().map(|peer| part_of(sender, peer, copy(&request), limit));
    let parts = join_all(parts).await;
    for (peer, part) in peers.into_iter().zip(parts) {
        match part {
            Some(Part { vhosts, answer }) => {
                others.push(answer);
                answered.extend(vhosts);
            }
            None => missing.push(peer),
        }
    }
    let (names, confined) = confined_to_others(sender, &answered);
    let contents: Vec<_> = names.iter().map(|name| sender.node.contents(name)).collect();
    request.extensions_mut().insert(confined);
    let response = next.run(request).await;
    let is_lacking = |contents: &Option<VhostContents>| {
        contents.as_ref().is_none_or(|contents| !contents.are_there())
    };
    let mut vhosts = names.into_iter().zip(contents);
    let lacks = vhosts.find(|(_, contents)| is_lacking(contents)).map(|(name, _)| name);
    if response.status() != StatusCode::OK {
        return Err(response);
    }
    match json_held(response, &sender.allowance).await {
        Some(here) => Ok(Parts { here, others, missing, lacks }),
        None => Err(ApiError::unavailable("the part of this node is too long").into_response()),
    }
}

/// The part of a peer, if the peer answers in time.
async fn part_of(sender: &Sender, peer: &str, request: Request, limit: Duration) -> Option<Part> {
    let request = wire::sent(request, &sender.caller, sender.client, wire::Part::OfVhosts);
    let answer = sender.node.answer_of_peer(peer, request, limit).await.ok()?;
    if answer.status() == StatusCode::OK {
        Part::of_json(json_held(answer, &sender.allowance).await?)
    } else {
        None
    }
}

/// The body of an answer as JSON, in the memory of the request; none if it is none, or there is no memory for it.
async fn json_held(response: Response, allowance: &Allowance) -> Option<Value> {
    let mut body = response.into_body().into_data_stream();
    let mut text = Vec::new();
    while let Some(piece) = body.next().await {
        let piece = piece.ok()?;
        allowance.hold(piece.len() * HTTP_TREE_TIMES).ok()?;
        text.extend_from_slice(&piece);
    }
    serde_json::from_slice(&text).ok()
}

/// The URI of a part.
pub(super) fn without(uri: &Uri) -> Uri {
    let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in pairs.filter(|(name, _)| !OF_THE_WHOLE.contains(&&**name)) {
        query.append_pair(&name, &value);
    }
    let query = query.finish();
    let text =
        if query.is_empty() { uri.path().to_owned() } else { format!("{}?{query}", uri.path()) };
    text.parse().unwrap_or_else(|_| uri.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_sums() {
        let mut sum =
            json!({"publish": 1, "publish_details": {"rate": 0.5}, "name": "a", "s": [1]});
        let more =
            json!({"publish": 2, "publish_details": {"rate": 1}, "ack": 3, "name": "b", "s": [2]});
        add(&mut sum, &more);
        let expected = json!({"publish": 3, "publish_details": {"rate": 1.5}, "name": "a", "s": [1], "ack": 3});
        assert_eq!(sum, expected);
    }

    #[test]
    fn counts_of_scheduled_messages_are_sums() {
        let counts = |counts: [u64; 2], complete| {
            json!({"from": 1, "bucket_ms": 5, "counts": counts, "later": 3, "messages": 9,
                "complete": complete})
        };
        let mut sum = counts([1, 2], true);
        add_counts(&mut sum, &counts([3, 4], false));
        let expected = json!({"from": 1, "bucket_ms": 5, "counts": [4, 6], "later": 6,
            "messages": 18, "complete": false});
        assert_eq!(sum, expected);
    }

    #[test]
    fn parts_are_asked_without_pages_and_order() {
        let uri = |text: &'static str| without(&Uri::from_static(text)).to_string();
        let whole = "/api/queues?page=2&disable_stats=true&sort=name&columns=name";
        assert_eq!(uri(whole), "/api/queues?disable_stats=true");
        assert_eq!(uri("/api/queues?name=a"), "/api/queues");
    }
}
