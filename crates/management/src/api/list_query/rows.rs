//! A list that is written row by row while it is sent, so that it is nowhere as a whole.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt as _, stream};
use serde_json::{Value, json};

use crate::api::list_query::columns::selected;
use crate::http::answer::Json;
use crate::limits::{LIST_BYTES_AT_ONCE, LIST_ROWS_AT_ONCE};

/// An answer to the query of a list.
#[derive(Debug)]
pub(crate) enum List {
    /// A page with its position.
    Page(Value),
    /// All items.
    Rows(Rows),
}

impl IntoResponse for List {
    fn into_response(self) -> Response {
        match self {
            Self::Page(page) => Json::ok(page).into_response(),
            Self::Rows(mut rows) => {
                let kind = if rows.counts.is_some() { PART } else { "application/json" };
                let first = rows.piece().unwrap_or_default();
                // A short list has a length, like any other answer.
                let body = if rows.written == Written::Everything {
                    Body::from(first)
                } else {
                    Body::from_stream(stream::iter([Ok(first.into())]).chain(rows))
                };
                (StatusCode::OK, [(CONTENT_TYPE, kind)], body).into_response()
            }
        }
    }
}

/// Makes the next rows, as many as asked for; null for an object that is gone, none after the last.
type Next = Box<dyn FnMut(usize) -> Option<Vec<Value>> + Send>;

/// All items of a list, which are made while the list is sent.
pub(crate) struct Rows {
    next: Next,
    columns: Option<Vec<String>>,
    written: Written,
    /// There for the part of a node in a list of all nodes: the counts before the rows.
    counts: Option<PartCounts>,
}

/// The numbers of items that a part is made from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PartCounts {
    pub(crate) filtered: usize,
    pub(crate) total: usize,
}

/// The content type of a part: JSON in lines. The counts are first, then follow the rows, and `null` ends the part.
pub(crate) const PART: &str = "application/x-ndjson";

/// The parts of a list that are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Written {
    Nothing,
    Bracket,
    Rows,
    Everything,
}

impl Rows {
    /// The list of the rows that `next` makes, with some columns or all.
    pub(super) fn new(
        columns: Option<Vec<String>>,
        next: impl FnMut(usize) -> Option<Vec<Value>> + Send + 'static,
    ) -> Self {
        Self { next: Box::new(next), columns, written: Written::Nothing, counts: None }
    }

    /// The rows as the part of this node in a list of all nodes.
    pub(super) fn into_part(self, filtered: usize, total: usize) -> Self {
        Self { counts: Some(PartCounts { filtered, total }), ..self }
    }

    /// Writes what is before the rows.
    fn begin(&mut self, text: &mut Vec<u8>) {
        match self.counts {
            None => text.push(b'['),
            Some(PartCounts { filtered, total }) => {
                let counts = json!({"filtered_count": filtered, "total_count": total});
                text.extend_from_slice(format!("{counts}\n").as_bytes());
            }
        }
        self.written = Written::Bracket;
    }

    /// The next piece of the text; none after the last.
    fn piece(&mut self) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        if self.written == Written::Nothing {
            self.begin(&mut text);
        }
        while text.len() < LIST_BYTES_AT_ONCE && self.written != Written::Everything {
            let Some(rows) = (self.next)(LIST_ROWS_AT_ONCE) else {
                text.extend_from_slice(if self.counts.is_some() { b"null\n" } else { b"]" });
                self.written = Written::Everything;
                break;
            };
            for row in rows.into_iter().filter(|row| !row.is_null()) {
                if self.written == Written::Rows && self.counts.is_none() {
                    text.push(b',');
                }
                self.written = Written::Rows;
                let row = selected(row, self.columns.as_deref());
                serde_json::to_writer(&mut text, &row).expect("any value can be written");
                if self.counts.is_some() {
                    text.push(b'\n');
                }
            }
        }
        (!text.is_empty()).then_some(text)
    }
}

impl Stream for Rows {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.piece().map(|text| Ok(text.into())))
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("written", &self.written).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl List {
        /// The whole answer.
        pub(in crate::api) fn into_json(self) -> Value {
            match self {
                Self::Page(page) => page,
                Self::Rows(mut rows) => {
                    let pieces = std::iter::from_fn(|| rows.piece());
                    serde_json::from_slice(&pieces.flatten().collect::<Vec<u8>>()).unwrap()
                }
            }
        }
    }

    fn rows(all: Vec<Value>, columns: Option<&str>) -> Rows {
        let mut all = all.into_iter();
        Rows::new(columns.map(|one| vec![one.to_owned()]), move |count| {
            let some: Vec<Value> = all.by_ref().take(count).collect();
            (!some.is_empty()).then_some(some)
        })
    }

    #[test]
    fn rows_are_written_in_pieces() {
        let all: Vec<Value> = (0..5000).map(|n| json!({"n": n, "text": "x".repeat(60)})).collect();
        let mut list = rows(all.clone(), None);
        let pieces: Vec<Vec<u8>> = std::iter::from_fn(|| list.piece()).collect();
        assert!(pieces.len() > 5 && pieces.iter().all(|one| one.len() < 2 * LIST_BYTES_AT_ONCE));
        assert_eq!(serde_json::from_slice::<Value>(&pieces.concat()).unwrap(), json!(all));
    }

    #[test]
    fn rows_leave_out_what_is_gone() {
        let text = |all| rows(all, Some("n")).piece().map(|text| String::from_utf8(text).unwrap());
        assert_eq!(text(vec![]).as_deref(), Some("[]"));
        assert_eq!(text(vec![Value::Null]).as_deref(), Some("[]"));
        let all = vec![Value::Null, json!({"n": 1, "m": 2}), Value::Null, json!({"n": 3})];
        assert_eq!(text(all).as_deref(), Some(r#"[{"n":1},{"n":3}]"#));
    }
}
