//! Severities of findings, warnings and edges.

use broker::Severity;
use serde_json::Value;

/// The severity of this name.
pub(crate) fn severity_of_name(name: &str) -> Option<Severity> {
    let mut all = [Severity::Error, Severity::Warning, Severity::Info].into_iter();
    all.find(|one| one.as_str() == name)
}

/// The severity of a finding or a warning, or of an edge, which may have none.
pub(crate) fn severity(item: &Value) -> Severity {
    let name = item.get("severity").and_then(Value::as_str);
    name.and_then(severity_of_name).unwrap_or(Severity::Info)
}
