//! The part of a node in a list of all nodes, read row by row.

use axum::body::BodyDataStream;
use axum::response::Response;
use futures::StreamExt as _;
use serde_json::Value;
use server::peers::request::json_of;

use super::gather::Part;
use super::wire::is_in_lines;
use crate::api::{PartCounts, Place, Query};
use crate::limits::LIST_LINE_BYTES_MAX;

/// A part cannot be read to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Broken;

/// A row in its place.
#[derive(Debug)]
pub(super) struct PlacedRow {
    pub(super) place: Place,
    pub(super) row: Value,
}

/// The rows of a node, of which the first is read.
#[derive(Debug)]
pub(super) struct PartRows {
    rows: Source,
    pub(super) counts: PartCounts,
    pub(super) first: Option<PlacedRow>,
}

/// The source of rows.
#[derive(Debug)]
enum Source {
    /// A part in lines.
    Lines(Lines),
    /// All rows of a node that knows only whole lists, or of a list that has no query.
    Items(std::vec::IntoIter<Value>),
}

/// JSON in lines.
#[derive(Debug)]
struct Lines {
    body: BodyDataStream,
    unread: Vec<u8>,
    /// The place in `unread` of the next line.
    at: usize,
}

impl Lines {
    async fn next(&mut self) -> Result<Value, Broken> {
        let mut searched = self.at;
        loop {
            let rest = self.unread.get(searched..).unwrap_or_default();
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let end = searched + end;
                let line = self.unread.get(self.at..end).unwrap_or_default();
                let value = serde_json::from_slice(line).map_err(|_| Broken)?;
                self.at = end + 1;
                return Ok(value);
            }
            self.unread.drain(..self.at);
            self.at = 0;
            searched = self.unread.len();
            if searched > LIST_LINE_BYTES_MAX {
                return Err(Broken);
            }
            let Some(Ok(piece)) = self.body.next().await else { return Err(Broken) };
            self.unread.extend_from_slice(&piece);
        }
    }
}

impl PartRows {
    /// The rows in the answer of this node.
    pub(super) async fn here(
        response: Response,
        query: &Query,
        found_by: &[&str],
    ) -> Result<Self, Broken> {
        if is_in_lines(&response) {
            return Self::of_lines(Lines::of(response), query).await;
        }
        let Some(Value::Array(items)) = json_of(response).await else { return Err(Broken) };
        Ok(Self::of_items(items, query, found_by))
    }

    /// The rows in the answer of another node, and the vhosts that they are about.
    pub(super) async fn of_peer(
        response: Response,
        query: &Query,
        found_by: &[&str],
    ) -> Result<(Vec<String>, Self), Broken> {
        if is_in_lines(&response) {
            let mut lines = Lines::of(response);
            let vhosts = serde_json::from_value(lines.next().await?).map_err(|_| Broken)?;
            return Ok((vhosts, Self::of_lines(lines, query).await?));
        }
        let part = json_of(response).await.and_then(Part::of_json).ok_or(Broken)?;
        let Value::Array(items) = part.answer else { return Err(Broken) };
        Ok((part.vhosts, Self::of_items(items, query, found_by)))
    }

    async fn of_lines(mut lines: Lines, query: &Query) -> Result<Self, Broken> {
        let counts = lines.next().await?;
        let count = |name| counts.get(name)?.as_u64()?.try_into().ok();
        let filtered = count("filtered_count").ok_or(Broken)?;
        let total = count("total_count").ok_or(Broken)?;
        let counts = PartCounts { filtered, total };
        let mut part = Self { rows: Source::Lines(lines), counts, first: None };
        part.advance(query).await?;
        Ok(part)
    }

    fn of_items(items: Vec<Value>, query: &Query, found_by: &[&str]) -> Self {
        let (items, counts) = query.part_of_items(items, found_by);
        let mut items = items.into_iter();
        let first = items.next().map(|row| PlacedRow { place: query.place(&row), row });
        Self { rows: Source::Items(items), counts, first }
    }

    /// Reads the next row.
    pub(super) async fn advance(&mut self, query: &Query) -> Result<(), Broken> {
        let row = match &mut self.rows {
            Source::Lines(lines) => Some(lines.next().await?).filter(|row| !row.is_null()),
            Source::Items(items) => items.next(),
        };
        self.first = row.map(|row| PlacedRow { place: query.place(&row), row });
        Ok(())
    }
}

impl Lines {
    fn of(response: Response) -> Self {
        Self { body: response.into_body().into_data_stream(), unread: Vec::new(), at: 0 }
    }
}
