//! A row of a list as JSON: all its fields, or only the one that a list is sorted by.
//!
//! A list is sorted by one field of thousands of rows, and shows a page of them. Both are formatted by the same code,
//! so that a row stands where its shown value belongs.

use serde_json::{Map, Value};
use server::history::TimeRanges;

/// The fields to format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part<'a> {
    /// All of them.
    Whole,
    /// The one at a path with dots.
    At(&'a str),
}

impl<'a> Part<'a> {
    /// The part of the value of a field; none if the field is left out.
    fn of(self, name: &str) -> Option<Self> {
        let Part::At(path) = self else { return Some(Part::Whole) };
        match path.split_once('.') {
            Some((first, rest)) => (first == name).then_some(Part::At(rest)),
            None => (path == name).then_some(Part::Whole),
        }
    }

    /// The ranges of time that the part needs of those that a request asks for; none if it needs no history.
    pub(crate) fn ranges(self, asked: &TimeRanges) -> Option<TimeRanges> {
        match self {
            Part::Whole => Some(*asked),
            Part::At(path) if path.ends_with("_details.rate") || path == "idle_since" => {
                Some(TimeRanges::default())
            }
            Part::At(path) => path.contains("_details").then_some(*asked),
        }
    }
}

/// A row, or an object in it.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    part: Part<'a>,
    fields: Map<String, Value>,
}

impl<'a> Row<'a> {
    /// A row without fields yet.
    pub(crate) fn new(part: Part<'a>) -> Self {
        Self { part, fields: Map::new() }
    }

    /// Puts a field, unless it is left out.
    pub(crate) fn put(&mut self, name: &str, value: impl FnOnce() -> Value) {
        self.put_some(name, || Some(value()));
    }

    /// Puts a field that has a value, unless it is left out.
    pub(crate) fn put_some(&mut self, name: &str, value: impl FnOnce() -> Option<Value>) {
        if self.part.of(name).is_some()
            && let Some(value) = value()
        {
            self.fields.insert(name.to_owned(), value);
        }
    }

    /// Puts a field whose value is an object, unless it is left out.
    pub(crate) fn put_object(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        if let Some(part) = self.part.of(name) {
            let mut object = Row::new(part);
            write(&mut object);
            self.fields.insert(name.to_owned(), Value::Object(object.fields));
        }
    }

    /// True if the first name of the path fits; a whole row includes every field.
    pub(crate) fn includes(&self, fits: impl FnOnce(&str) -> bool) -> bool {
        match self.part {
            Part::Whole => true,
            Part::At(path) => fits(path.split_once('.').map_or(path, |(first, _)| first)),
        }
    }

    /// The fields of the row.
    pub(crate) fn into_fields(self) -> Map<String, Value> {
        self.fields
    }

    /// The row as a JSON object.
    pub(crate) fn into_json(self) -> Value {
        Value::Object(self.fields)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use server::history::TimeRange;

    use super::*;

    fn row(part: Part<'_>) -> Value {
        let mut row = Row::new(part);
        row.put("name", || json!("q"));
        row.put("messages", || json!(7));
        row.put_object("stats", |stats| {
            stats.put("publish", || json!(3));
            stats.put("publish_details", || json!({"rate": 0.5}));
        });
        row.into_json()
    }

    #[test]
    fn row_has_the_field_at_the_path_only() {
        assert_eq!(row(Part::At("messages")), json!({"messages": 7}));
        let rate = json!({"stats": {"publish_details": {"rate": 0.5}}});
        assert_eq!(row(Part::At("stats.publish_details.rate")), rate);
        assert_eq!(row(Part::At("stats"))["stats"], row(Part::Whole)["stats"]);
        assert_eq!(row(Part::At("stats.nope")), json!({"stats": {}}));
        assert_eq!(row(Part::At("nope")), json!({}));
    }

    #[test]
    fn part_asks_for_the_history_that_it_shows() {
        let range = TimeRange { age_ms: 60_000, step_ms: 5000 };
        let asked = TimeRanges { lengths: Some(range), ..TimeRanges::default() };
        assert_eq!(Part::Whole.ranges(&asked), Some(asked));
        assert_eq!(Part::At("messages_details.avg").ranges(&asked), Some(asked));
        assert_eq!(Part::At("messages_details").ranges(&asked), Some(asked));
        for rate in ["messages_details.rate", "message_stats.ack_details.rate", "idle_since"] {
            assert_eq!(Part::At(rate).ranges(&asked), Some(TimeRanges::default()));
        }
        assert_eq!(Part::At("messages").ranges(&asked), None);
    }
}
