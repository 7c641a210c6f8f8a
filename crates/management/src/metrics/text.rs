//! Prometheus' text format, written piece by piece.

use std::fmt::Write as _;

use crate::limits::METRICS_BYTES_AT_ONCE;
use crate::metrics::pieces::PieceSender;

/// Type of a family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Grows until a restart.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Counts by upper bound.
    Histogram,
    /// No type in RabbitMQ.
    Untyped,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Untyped => "untyped",
        }
    }
}

/// A value of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value {
    /// A whole number.
    Whole(u64),
    /// Microseconds, written in seconds.
    Micros(u64),
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

/// The part of a name after the prefix, which distinguishes RabbitMQ's endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Namespace {
    /// No namespace.
    #[default]
    Plain,
    /// `detailed_`: families that a query names.
    Detailed,
    /// `cluster_`: families that are equal on all nodes.
    Cluster,
}

impl Namespace {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Detailed => "detailed_",
            Self::Cluster => "cluster_",
        }
    }
}

/// A text in Prometheus' format.
#[derive(Debug)]
pub(super) struct Text {
    out: Out,
    prefix: String,
}

/// The end of a text, and where the pieces before it went.
#[derive(Debug)]
struct Out {
    text: String,
    /// None in tests, which look at the whole text.
    pieces: Option<PieceSender>,
}

impl Out {
    /// Sends the text away when it is long enough.
    fn pass_on(&mut self) {
        if let Some(pieces) = &mut self.pieces
            && self.text.len() >= METRICS_BYTES_AT_ONCE
        {
            pieces.send(std::mem::take(&mut self.text));
        }
    }

    /// True if nobody waits for the rest.
    fn is_unwanted(&self) -> bool {
        self.pieces.as_ref().is_some_and(PieceSender::is_over)
    }
}

impl Text {
    /// An empty text. Every name in it begins with `prefix` and an underscore.
    pub(super) fn new(prefix: &str, pieces: PieceSender) -> Self {
        let out = Out { text: String::new(), pieces: Some(pieces) };
        Self { out, prefix: prefix.to_owned() }
    }

    /// A text that is kept whole.
    #[cfg(test)]
    pub(super) fn whole(prefix: &str) -> Self {
        let out = Out { text: String::new(), pieces: None };
        Self { out, prefix: prefix.to_owned() }
    }

    /// Begins a family in `namespace`.
    pub(super) fn family(
        &mut self,
        namespace: Namespace,
        name: &str,
        kind: Kind,
        help: &str,
    ) -> Samples<'_> {
        let name = format!("{}_{}{name}", self.prefix, namespace.as_str());
        self.family_named(name, kind, help)
    }

    /// Begins a family without a prefix.
    pub(super) fn family_named(&mut self, name: String, kind: Kind, help: &str) -> Samples<'_> {
        // Writing into a string cannot fail.
        let _ = writeln!(self.out.text, "# TYPE {name} {}\n# HELP {name} {help}", kind.as_str());
        Samples { out: &mut self.out, name }
    }

    /// Sends the last piece.
    pub(super) fn finish(self) {
        if let Some(mut pieces) = self.out.pieces {
            pieces.send(self.out.text);
        }
    }

    /// The whole text.
    #[cfg(test)]
    pub(super) fn into_string(self) -> String {
        self.out.text
    }
}

/// The samples of a family.
#[derive(Debug)]
pub(super) struct Samples<'a> {
    out: &'a mut Out,
    name: String,
}

impl Samples<'_> {
    /// Adds a sample. `labels` are [`Labels`], or empty.
    pub(super) fn put(&mut self, labels: &str, value: impl Into<Value>) {
        self.put_part("", labels, value.into());
    }

    fn put_part(&mut self, part: &str, labels: &str, value: Value) {
        if self.out.is_unwanted() {
            return;
        }
        let text = &mut self.out.text;
        text.push_str(&self.name);
        text.push_str(part);
        if !labels.is_empty() {
            text.push('{');
            text.push_str(labels);
            text.push('}');
        }
        text.push(' ');
        let _ = match value {
            Value::Whole(value) => write!(text, "{value}"),
            Value::Micros(micros) => seconds(text, micros),
        };
        text.push('\n');
        self.out.pass_on();
    }

    /// Adds a sample in seconds that may be negative.
    pub(super) fn put_signed_ms(&mut self, labels: &str, millis: i64) {
        let sign = if millis < 0 { "-" } else { "" };
        let millis = millis.unsigned_abs();
        let _ = writeln!(
            self.out.text,
            "{}{{{labels}}} {sign}{}.{:03}",
            self.name,
            millis / 1000,
            millis % 1000
        );
    }

    /// Adds a histogram. `buckets` are upper bounds with cumulative counts; `sum` is the sum of all values.
    pub(super) fn histogram(
        &mut self,
        labels: &str,
        buckets: impl Iterator<Item = (Option<Value>, u64)>,
        sum: Value,
    ) {
        let mut count = 0;
        for (bound, up_to) in buckets {
            let comma = if labels.is_empty() { "" } else { "," };
            let mut labels = format!("{labels}{comma}le=\"");
            let _ = match bound {
                None => write!(labels, "+Inf"),
                Some(Value::Whole(bound)) => write!(labels, "{bound}"),
                Some(Value::Micros(bound)) => seconds(&mut labels, bound),
            };
            labels.push('"');
            self.put_part("_bucket", &labels, up_to.into());
            count = up_to;
        }
        self.put_part("_sum", labels, sum);
        self.put_part("_count", labels, count.into());
    }
}

fn seconds(out: &mut String, micros: u64) -> std::fmt::Result {
    write!(out, "{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// The labels of many objects in one buffer.
#[derive(Default, Debug)]
pub(super) struct Labels {
    text: String,
    ends: Vec<usize>,
}

impl Labels {
    /// Adds the labels of the next object.
    pub(super) fn push(&mut self, pairs: &[(&str, &str)]) {
        put_labels(&mut self.text, pairs);
        self.ends.push(self.text.len());
    }

    /// The labels of each object, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| self.text.get(*start..*end).unwrap_or_default())
    }
}

/// The labels of one object.
pub(super) fn labels(pairs: &[(&str, &str)]) -> String {
    let mut text = String::new();
    put_labels(&mut text, pairs);
    text
}

/// Formats labels. Values are escaped.
fn put_labels(text: &mut String, pairs: &[(&str, &str)]) {
    for (at, (name, value)) in pairs.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(name);
        text.push_str("=\"");
        for c in value.chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                c => text.push(c),
            }
        }
        text.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut all = Labels::default();
        all.push(&[("vhost", "/"), ("queue", "a\"b\\c\nd")]);
        all.push(&[]);
        all.push(&[("x", "")]);
        let expected = ["vhost=\"/\",queue=\"a\\\"b\\\\c\\nd\"", "", "x=\"\""];
        assert_eq!(all.iter().collect::<Vec<_>>(), expected);
        assert_eq!(labels(&[("x", "")]), expected[2]);
    }

    #[test]
    fn family_has_type_help_and_samples() {
        let mut text = Text::whole("rabbitmq");
        let mut samples = text.family(Namespace::Detailed, "ages_seconds", Kind::Gauge, "How old");
        samples.put("", 3);
        samples.put("q=\"a\"", Value::Micros(1_500_000));
        let expected = "# TYPE rabbitmq_detailed_ages_seconds gauge\n\
                        # HELP rabbitmq_detailed_ages_seconds How old\n\
                        rabbitmq_detailed_ages_seconds 3\n\
                        rabbitmq_detailed_ages_seconds{q=\"a\"} 1.500000\n";
        assert_eq!(text.into_string(), expected);
    }

    #[test]
    fn histogram_ends_with_sum_and_count() {
        let mut text = Text::whole("p");
        let buckets = [(Some(Value::Micros(2)), 1), (Some(Value::Whole(7)), 4), (None, 5)];
        let mut samples = text.family(Namespace::Plain, "h", Kind::Histogram, "H");
        samples.histogram("v=\"/\"", buckets.into_iter(), Value::Micros(9));
        let expected = "# TYPE p_h histogram\n# HELP p_h H\n\
                        p_h_bucket{v=\"/\",le=\"0.000002\"} 1\n\
                        p_h_bucket{v=\"/\",le=\"7\"} 4\n\
                        p_h_bucket{v=\"/\",le=\"+Inf\"} 5\n\
                        p_h_sum{v=\"/\"} 0.000009\n\
                        p_h_count{v=\"/\"} 5\n";
        assert_eq!(text.into_string(), expected);
    }
}
