//! Compares the items of a family with the existing ones, as JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::limits::{PREVIEWED_DIFFERENCES_MAX, PREVIEWED_ITEMS_MAX, PREVIEWED_VALUE_BYTES_MAX};
use crate::requests::{Difference, FamilyPreview, ImportChange, PreviewedItem};

/// An item as it is and as the definitions have it.
#[derive(Debug)]
pub(super) struct Compared {
    /// The fields that identify the item.
    pub(super) identity: Map<String, Value>,
    /// The existing item; none if there is none.
    pub(super) before: Option<Value>,
    /// The item of the definitions; none if an import leaves it out.
    pub(super) after: Option<Value>,
    /// The reason why the item, or a part of it, is left out.
    pub(super) reason: Option<String>,
}

impl Compared {
    /// The key of the item; items with the same key are one.
    pub(super) fn key(&self) -> String {
        Value::Object(self.identity.clone()).to_string()
    }
}

/// The treatment of existing items that differ from those of the definitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Existing {
    /// Replaces them.
    Replaced,
    /// Keeps them.
    Kept,
}

/// Compares the items of a family. Of several items with the same key, the last one is in force in the end if
/// existing items are replaced, otherwise the first one.
pub(super) fn family(
    items: impl IntoIterator<Item = Compared>,
    existing: Existing,
) -> FamilyPreview {
    let mut by_key: BTreeMap<String, Compared> = BTreeMap::new();
    for item in items {
        let key = item.key();
        if existing == Existing::Replaced || !by_key.contains_key(&key) {
            by_key.insert(key, item);
        }
    }
    let mut preview = FamilyPreview::default();
    for item in by_key.into_values() {
        let Compared { identity, before, after, reason } = item;
        let change = match (&before, &after) {
            (_, None) => ImportChange::Skipped,
            (None, Some(_)) => ImportChange::New,
            (Some(before), Some(after)) if before == after => ImportChange::Equal,
            (Some(_), Some(_)) if existing == Existing::Kept => ImportChange::Kept,
            (Some(_), Some(_)) => ImportChange::Changed,
        };
        let count = match change {
            ImportChange::New => &mut preview.new,
            ImportChange::Equal => &mut preview.equal,
            ImportChange::Changed => &mut preview.changed,
            ImportChange::Kept => &mut preview.kept,
            ImportChange::Skipped => &mut preview.skipped,
        };
        *count += 1;
        if change == ImportChange::Equal || *count > PREVIEWED_ITEMS_MAX {
            continue;
        }
        let differences = match (change, before, after) {
            (ImportChange::Changed | ImportChange::Kept, Some(before), Some(after)) => {
                differences(&before, &after)
            }
            _ => Vec::new(),
        };
        preview.items.push(PreviewedItem { change, identity, reason, differences });
    }
    preview
}

/// The fields that differ, one level into objects.
fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    fields(before, after, |name, before, after| match (before, after) {
        (Some(was @ Value::Object(_)), Some(is @ Value::Object(_))) => {
            fields(was, is, |inner, before, after| {
                found.push(difference(format!("{name}.{inner}"), before, after));
            });
        }
        _ => found.push(difference(name.to_owned(), before, after)),
    });
    found.truncate(PREVIEWED_DIFFERENCES_MAX);
    found
}

/// Calls `differs` for every field that is different in two objects.
fn fields(
    before: &Value,
    after: &Value,
    mut differs: impl FnMut(&str, Option<&Value>, Option<&Value>),
) {
    let none = Map::new();
    let [before, after] = [before, after].map(|value| value.as_object().unwrap_or(&none));
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        let (was, is) = (before.get(name), after.get(name));
        if was != is {
            differs(name, was, is);
        }
    }
}

fn difference(field: String, before: Option<&Value>, after: Option<&Value>) -> Difference {
    // The hash of a password is not shown.
    let is_secret = field == SECRET;
    let shown = |value: Option<&Value>| value.filter(|_| !is_secret).map(bounded);
    Difference { before: shown(before), after: shown(after), field }
}

/// The field of a user whose value is not shown.
pub(super) const SECRET: &str = "password";

/// The value, or the beginning of its text if it is long.
pub(super) fn bounded(value: &Value) -> Value {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match text.char_indices().find(|(at, _)| *at > PREVIEWED_VALUE_BYTES_MAX) {
        None => value.clone(),
        Some((at, _)) => Value::String(format!("{}\u{2026}", text.get(..at).unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(name: &str, before: Option<Value>, after: Option<Value>) -> Compared {
        let identity = Map::from_iter([("name".to_owned(), json!(name))]);
        Compared { identity, before, after, reason: None }
    }

    #[test]
    fn items_are_counted_by_change() {
        let some = |value: i32| Some(json!({"a": value}));
        let items = || {
            vec![
                item("new", None, some(1)),
                item("same", some(1), some(1)),
                item("other", some(1), some(2)),
                item("left out", None, None),
            ]
        };
        let told = family(items(), Existing::Replaced);
        assert_eq!((told.new, told.equal, told.changed, told.kept, told.skipped), (1, 1, 1, 0, 1));
        let told = family(items(), Existing::Kept);
        assert_eq!((told.changed, told.kept), (0, 1));
        assert_eq!(told.items.len(), 3);
    }

    #[test]
    fn repeated_items_count_once() {
        let twice = || {
            let before = Some(json!({"a": 1}));
            [1, 2].map(|a| item("q", before.clone(), Some(json!({ "a": a }))))
        };
        assert_eq!(family(twice(), Existing::Replaced).changed, 1);
        assert_eq!(family(twice(), Existing::Kept).equal, 1);
    }

    #[test]
    fn differences_name_fields_and_values() {
        let before = json!({"pattern": "a", "definition": {"max-length": 1, "expires": 5}});
        let after = json!({"pattern": "b", "definition": {"max-length": 2, "expires": 5}});
        let difference = |field: &str, before, after| Difference {
            field: field.to_owned(),
            before: Some(before),
            after: Some(after),
        };
        assert_eq!(
            differences(&before, &after),
            [
                difference("definition.max-length", json!(1), json!(2)),
                difference("pattern", json!("a"), json!("b")),
            ]
        );
    }

    #[test]
    fn secrets_and_long_values_are_not_shown() {
        let found = differences(&json!({"password": "hash"}), &json!({"password": "other"}));
        assert_eq!((&found[0].before, &found[0].after), (&None, &None));
        let long = "é".repeat(PREVIEWED_VALUE_BYTES_MAX);
        let found = differences(&json!({}), &json!({ "a": long }));
        let shown = found[0].after.as_ref().and_then(Value::as_str).unwrap();
        assert!(shown.len() <= PREVIEWED_VALUE_BYTES_MAX + 8, "{}", shown.len());
    }

    #[test]
    fn only_the_first_items_are_named() {
        let many = (0..1000).map(|at| item(&at.to_string(), None, Some(json!({}))));
        let told = family(many, Existing::Replaced);
        assert_eq!((told.new, told.items.len() as u64), (1000, PREVIEWED_ITEMS_MAX));
    }
}
