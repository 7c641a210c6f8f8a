//! Memory of the node by use.

use serde_json::Value;

use crate::command::Call;
use crate::failure::{Failure, USAGE};
use crate::http::path;
use crate::term::Term;

/// A unit of memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) enum Unit {
    Bytes,
    Megabytes,
    Gigabytes,
}

impl Unit {
    /// A number of bytes in this unit.
    pub(in crate::commands) fn of(self, bytes: u64) -> String {
        #[expect(clippy::cast_precision_loss, reason = "it is rounded to four places anyway")]
        let bytes_f = bytes as f64;
        let rounded = |factor: f64| (bytes_f / factor * 10_000.0).round() / 10_000.0;
        match self {
            Self::Bytes => format!("{bytes} bytes"),
            Self::Megabytes => format!("{:?} mb", rounded(1e6)),
            Self::Gigabytes => format!("{:?} gb", rounded(1e9)),
        }
    }
}

/// The unit in the options.
pub(in crate::commands) fn unit(call: &Call<'_>) -> Result<Unit, Failure> {
    match call.options.text("unit").map(str::to_lowercase).as_deref() {
        None | Some("gb") => Ok(Unit::Gigabytes),
        Some("mb") => Ok(Unit::Megabytes),
        Some("bytes") => Ok(Unit::Bytes),
        Some(other) => Err(Failure::arguments(
            USAGE,
            format!("\"unit '{other}' is not supported. Please use one of: bytes, mb, gb\""),
        )),
    }
}

/// Memory of a node.
pub(in crate::commands) struct Memory {
    /// Memory of the process.
    pub(in crate::commands) total_bytes: u64,
    /// The parts that are not empty, largest first.
    pub(in crate::commands) parts: Vec<(String, u64)>,
    /// The answer of the node.
    pub(in crate::commands) all: Value,
}

impl Memory {
    /// Asks a node for the parts of its memory.
    pub(in crate::commands) fn of(call: &Call<'_>, node: &Value) -> Result<Self, Failure> {
        let name = Term::of(node.get("name")).shown();
        let mut answer = call.node.api.get(&path(&["nodes", &name, "memory"]))?;
        let used = node.get("mem_used").and_then(Value::as_u64).unwrap_or_default();
        Ok(Self::new(answer["memory"].take(), used))
    }

    /// The parts in the answer of a node that uses this memory.
    fn new(all: Value, used: u64) -> Self {
        let strategy = all.get("strategy").and_then(Value::as_str).unwrap_or_default();
        let total = all.get("total").and_then(|total| total.get(strategy));
        let total_bytes = total.and_then(Value::as_u64).unwrap_or(used);
        let part = |(name, bytes): (&String, &Value)| Some((name.clone(), bytes.as_u64()?));
        let listed = all.as_object().into_iter().flatten();
        let mut parts: Vec<(String, u64)> = listed.filter_map(part).collect();
        parts.retain(|(_, bytes)| *bytes > 0);
        parts.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        Self { total_bytes, parts, all }
    }

    /// A part in per cent of the whole, with two places.
    pub(in crate::commands) fn per_cent(&self, bytes: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "it is rounded to two places anyway")]
        let share = bytes as f64 / self.total_bytes.max(1) as f64;
        (share * 10_000.0).round() / 100.0
    }

    /// A line for each part; `per_cent` is the sign behind its share.
    pub(in crate::commands) fn lines(&self, unit: Unit, per_cent: &str) -> String {
        let line = |(name, bytes): &(String, u64)| {
            format!("{name}: {} ({}{per_cent})", unit.of(*bytes), self.per_cent(*bytes))
        };
        self.parts.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn units() {
        assert_eq!(Unit::Gigabytes.of(50_000_000), "0.05 gb");
        assert_eq!(Unit::Megabytes.of(77_344_812), "77.3448 mb");
        assert_eq!(Unit::Bytes.of(5), "5 bytes");
        assert_eq!(Unit::Gigabytes.of(0), "0.0 gb");
    }

    #[test]
    fn parts_are_sorted_and_sum_up_to_the_whole() {
        let all = json!({"binary": 250, "code": 500, "other_system": 250, "plugins": 0,
            "strategy": "rss", "total": {"rss": 1000, "erlang": 900}});
        let memory = Memory::new(all, 0);
        assert_eq!(memory.total_bytes, 1000);
        assert_eq!(
            memory.lines(Unit::Bytes, " %"),
            "code: 500 bytes (50 %)\nbinary: 250 bytes (25 %)\nother_system: 250 bytes (25 %)"
        );
        let unknown = Memory::new(Value::Null, 3);
        assert_eq!((unknown.total_bytes, unknown.parts.len()), (3, 0));
    }
}
