//! Lists of all nodes, merged from parts that are in order: a row of each node is in memory at a time.

use std::collections::BTreeSet;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::future::join_all;
use futures::stream;
use serde_json::Value;

use super::gather::{complete, confined_to_others, without};
use super::part_rows::{Broken, PartRows};
use super::{PartOfList, Sender, copy, wire};
use crate::api::{PartCounts, Query};
use crate::http::answer::ApiError;
use crate::limits::{LIST_BYTES_AT_ONCE, PART_TIMEOUT};

/// Answers with a list of all nodes.
pub(super) async fn list(
    sender: &Sender,
    mut request: Request,
    next: Next,
    found_by: &'static [&'static str],
) -> Response {
    let asked = request.uri().query().unwrap_or_default();
    let query = match Query::parse(asked) {
        Ok(query) => query,
        Err(error) => return error.into_response(),
    };
    let part = PartOfList(query_of_parts(asked, &query, found_by));
    *request.uri_mut() = without(request.uri());
    let peers = sender.node.connected_peers();
    let parts = peers.iter().map(|peer| {
        let request = copy(&request);
        rows_of(sender, peer, request, &part, &query, found_by)
    });
    let parts = join_all(parts).await;
    let (mut rows, mut missing, mut answered) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (peer, part) in peers.into_iter().zip(parts) {
        match part {
            Some((vhosts, part)) => {
                rows.push(part);
                answered.extend(vhosts);
            }
            None => missing.push(peer),
        }
    }
    let (_, confined) = confined_to_others(sender, &answered);
    request.extensions_mut().insert(confined);
    request.extensions_mut().insert(part);
    let response = next.run(request).await;
    if response.status() != StatusCode::OK {
        return response;
    }
    let Ok(here) = PartRows::here(response, &query, found_by).await else {
        return ApiError::internal("the list of this node cannot be read").into_response();
    };
    rows.insert(0, here);
    complete(Merged::of(rows, query).answer().await, &missing)
}

/// The rows of a peer, if the peer answers in time.
async fn rows_of(
    sender: &Sender,
    peer: &str,
    request: Request,
    part: &PartOfList,
    query: &Query,
    found_by: &[&str],
) -> Option<(Vec<String>, PartRows)> {
    let part = wire::Part::OfList(part);
    let request = wire::sent(request, &sender.caller, sender.client, part);
    let answer = sender.node.answer_of_peer(peer, request, PART_TIMEOUT).await.ok()?;
    if answer.status() != StatusCode::OK {
        return None;
    }
    PartRows::of_peer(answer, query, found_by).await.ok()
}

/// The query of the parts of a list. Columns are left out by the nodes only where names tell rows apart.
fn query_of_parts(asked: &str, query: &Query, found_by: &[&str]) -> String {
    let pairs = form_urlencoded::parse(asked.as_bytes());
    let mut of_parts = form_urlencoded::Serializer::new(String::new());
    of_parts.extend_pairs(pairs.filter(|(name, _)| name != "columns"));
    if let Some(columns) = query.columns_of_parts().filter(|_| found_by == ["name"]) {
        of_parts.append_pair("columns", &columns.join(","));
    }
    of_parts.finish()
}

/// The rows of all nodes in the order of the query.
struct Merged {
    parts: Vec<PartRows>,
    query: Query,
    counts: PartCounts,
    last: Option<Value>,
}

impl Merged {
    fn of(parts: Vec<PartRows>, query: Query) -> Self {
        let sum = |of: fn(&PartCounts) -> usize| parts.iter().map(|part| of(&part.counts)).sum();
        let counts = PartCounts {
            filtered: sum(|counts| counts.filtered),
            total: sum(|counts| counts.total),
        };
        Self { parts, query, counts, last: None }
    }

    /// The next row; none after the last.
    async fn next(&mut self) -> Result<Option<Value>, Broken> {
        loop {
            let query = &self.query;
            let unread = self.parts.iter_mut().filter(|part| part.first.is_some());
            let first = unread.min_by(|a, b| match (&a.first, &b.first) {
                (Some(a), Some(b)) => query.order_of(&a.place, &b.place),
                (a, b) => b.is_some().cmp(&a.is_some()),
            });
            let Some(part) = first else { return Ok(None) };
            let Some(placed) = part.first.take() else { return Ok(None) };
            part.advance(query).await?;
            // Nodes may tell the same.
            if self.last.as_ref() == Some(&placed.row) {
                self.counts.filtered -= 1;
                self.counts.total -= 1;
                continue;
            }
            self.last = Some(placed.row.clone());
            return Ok(Some(placed.row));
        }
    }

    async fn answer(mut self) -> Response {
        let Some((start, end)) = self.query.rows_of_page() else { return self.stream() };
        let (mut rows, mut number) = (Vec::new(), 0);
        while number < end {
            match self.next().await {
                Ok(Some(row)) if number >= start => rows.push(row),
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(Broken) => return broken().into_response(),
            }
            number += 1;
        }
        self.query.merged_page(rows, self.counts).into_response()
    }

    /// The whole list, whose rows are read while they are sent.
    fn stream(self) -> Response {
        let pieces = stream::unfold(Some((self, true)), |merged| async {
            let (mut merged, is_first) = merged?;
            match merged.piece(is_first).await {
                Ok((text, true)) => Some((Ok(text), Some((merged, false)))),
                Ok((text, false)) => Some((Ok(text), None)),
                Err(Broken) => Some((Err(axum::Error::new("a node does not send the rest")), None)),
            }
        });
        ([(CONTENT_TYPE, "application/json")], Body::from_stream(pieces)).into_response()
    }

    /// The next piece of the text, and true unless it is the last.
    async fn piece(&mut self, is_first: bool) -> Result<(Bytes, bool), Broken> {
        let mut text = Vec::new();
        let mut separator = if is_first { b'[' } else { b',' };
        while text.len() < LIST_BYTES_AT_ONCE {
            let Some(row) = self.next().await? else {
                if is_first && text.is_empty() {
                    text.push(b'[');
                }
                text.push(b']');
                return Ok((text.into(), false));
            };
            text.push(separator);
            separator = b',';
            let row = self.query.select_columns(row);
            serde_json::to_writer(&mut text, &row).map_err(|_| Broken)?;
        }
        Ok((text.into(), true))
    }
}

fn broken() -> ApiError {
    ApiError::unavailable("a node does not send the rest of its part of the list")
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn now<T>(future: impl Future<Output = T>) -> T {
        let mut context = Context::from_waker(Waker::noop());
        match std::pin::pin!(future).poll(&mut context) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("everything is there"),
        }
    }

    fn part(text: &str) -> Response {
        let kind = [(CONTENT_TYPE, crate::api::PART)];
        // In pieces that do not end with lines.
        let pieces: Vec<_> = text
            .as_bytes()
            .chunks(7)
            .map(|piece| Ok::<_, axum::Error>(Bytes::copy_from_slice(piece)))
            .collect();
        (kind, Body::from_stream(stream::iter(pieces))).into_response()
    }

    fn merged(query: &str, parts: &[&str]) -> String {
        let query = Query::parse(query).unwrap();
        let rows = parts.iter().map(|text| now(PartRows::here(part(text), &query, &["name"])));
        let rows = rows.collect::<Result<_, _>>().unwrap();
        let response = now(Merged::of(rows, query).answer());
        let text = now(axum::body::to_bytes(response.into_body(), usize::MAX)).unwrap();
        String::from_utf8(text.to_vec()).unwrap()
    }

    const A: &str = "{\"filtered_count\":3,\"total_count\":5}\n\
        {\"name\":\"a\",\"vhost\":\"v\",\"n\":1}\n{\"name\":\"c\",\"vhost\":\"v\",\"n\":2}\n\
        {\"name\":\"same\",\"n\":9}\nnull\n";
    const B: &str = "{\"filtered_count\":2,\"total_count\":2}\n\
        {\"name\":\"b\",\"vhost\":\"v\",\"n\":0}\n{\"name\":\"same\",\"n\":9}\nnull\n";

    #[test]
    fn parts_in_order_are_one_list() {
        let names = merged("columns=name", &[A, B]);
        assert!(names.starts_with('[') && names.ends_with(']'));
        let sorted = merged("columns=n&sort=n", &[B, A]);
        assert_eq!(sorted, r#"[{"n":0},{"n":1},{"n":2},{"n":9}]"#);
        assert_eq!(merged("", &["{\"filtered_count\":0,\"total_count\":0}\nnull\n"]), "[]");
    }

    #[test]
    fn page_is_cut_from_merged_parts() {
        let page = merged("columns=n&sort=n&page=2&page_size=2", &[A, B]);
        let page: Value = serde_json::from_str(&page).unwrap();
        assert_eq!(page["items"], serde_json::json!([{"n": 2}, {"n": 9}]));
        assert_eq!((&page["item_count"], &page["page_count"]), (&2.into(), &3.into()));
        let behind = merged("page=9&page_size=2", &[A, B]);
        assert!(behind.contains("page_out_of_range"), "{behind}");
    }

    #[test]
    fn part_that_ends_early_is_an_error() {
        let query = Query::parse("").unwrap();
        let cut = A.strip_suffix("null\n").unwrap();
        let rows = vec![now(PartRows::here(part(cut), &query, &["name"])).unwrap()];
        let response = now(Merged::of(rows, query).answer());
        assert!(now(axum::body::to_bytes(response.into_body(), usize::MAX)).is_err());
    }

    #[test]
    fn parts_are_asked_for_the_columns_that_they_are_merged_by() {
        let of_parts = |asked: &str, found_by: &[&str]| {
            query_of_parts(asked, &Query::parse(asked).unwrap(), found_by)
        };
        let asked = "page=2&columns=messages&sort=messages";
        let expected = "page=2&sort=messages&columns=messages%2Cvhost%2Cname%2Cnode%2Cmessages";
        assert_eq!(of_parts(asked, &["name"]), expected);
        assert_eq!(of_parts(asked, &["vhost"]), "page=2&sort=messages");
    }
}
