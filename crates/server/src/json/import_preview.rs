//! The preview of an import of definitions in JSON, and previews that nodes of a cluster put together.

use serde_json::{Map, Value, json};

use crate::requests::{
    Difference, FamilyPreview, ImportChange, ImportItem, ImportItems, ImportPreview, PreviewedItem,
};

/// The changes by family, in an object with the names of the families.
pub fn preview_to_json(preview: &ImportPreview) -> Value {
    let families = preview.families.iter();
    families.map(|(name, family)| ((*name).to_owned(), family_to_json(family))).collect()
}

fn family_to_json(family: &FamilyPreview) -> Value {
    let FamilyPreview { new, equal, changed, kept, skipped, items } = family;
    json!({
        "new": new,
        "equal": equal,
        "changed": changed,
        "kept": kept,
        "skipped": skipped,
        "items": items.iter().map(item_to_json).collect::<Vec<_>>(),
    })
}

fn item_to_json(item: &PreviewedItem) -> Value {
    let mut fields = item.identity.clone();
    fields.insert("change".to_owned(), json!(item.change.as_str()));
    if let Some(reason) = &item.reason {
        fields.insert("reason".to_owned(), json!(reason));
    }
    if !item.differences.is_empty() {
        let differences: Vec<Value> = item.differences.iter().map(difference_to_json).collect();
        fields.insert("differences".to_owned(), json!(differences));
    }
    Value::Object(fields)
}

/// A missing value has no field.
fn difference_to_json(difference: &Difference) -> Value {
    let mut fields = Map::from_iter([("field".to_owned(), json!(difference.field))]);
    for (name, value) in [("before", &difference.before), ("after", &difference.after)] {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value.clone());
        }
    }
    Value::Object(fields)
}

/// Adds the changes that another node previews, from its JSON; at most `items_max` items of each kind are kept. None if
/// the JSON is no preview.
pub(crate) fn add_preview(preview: &mut ImportPreview, part: &Value, items_max: u64) -> Option<()> {
    for (name, family) in &mut preview.families {
        let part = part.get(*name)?;
        let counts = [
            ("new", &mut family.new),
            ("equal", &mut family.equal),
            ("changed", &mut family.changed),
            ("kept", &mut family.kept),
            ("skipped", &mut family.skipped),
        ];
        for (name, count) in counts {
            // Another node may tell any number.
            *count = count.saturating_add(part.get(name)?.as_u64()?);
        }
        for item in part.get("items")?.as_array()? {
            let item = item_of_json(item)?;
            let of_kind = family.items.iter().filter(|known| known.change == item.change);
            if (of_kind.count() as u64) < items_max {
                family.items.push(item);
            }
        }
    }
    Some(())
}

fn item_of_json(json: &Value) -> Option<PreviewedItem> {
    let mut identity = json.as_object()?.clone();
    let change = identity.remove("change")?;
    let change = ImportChange::ALL.into_iter().find(|one| change == one.as_str())?;
    let differences = match identity.remove("differences") {
        None => Vec::new(),
        Some(differences) => {
            differences.as_array()?.iter().map(difference_of_json).collect::<Option<_>>()?
        }
    };
    let reason = identity.remove("reason").and_then(|reason| reason.as_str().map(str::to_owned));
    Some(PreviewedItem { change, identity, reason, differences })
}

fn difference_of_json(json: &Value) -> Option<Difference> {
    Some(Difference {
        field: json.get("field")?.as_str()?.to_owned(),
        before: json.get("before").cloned(),
        after: json.get("after").cloned(),
    })
}

/// The items that an import refuses or leaves out, as a list.
pub fn import_items_to_json(items: &ImportItems) -> Value {
    let one = |item: &ImportItem| {
        let mut fields = item.identity.clone();
        fields.insert("family".to_owned(), json!(item.family));
        if let Some(number) = item.number {
            fields.insert("item".to_owned(), json!(number));
        }
        fields.insert("reason".to_owned(), json!(item.reason));
        fields.insert("unsupported".to_owned(), json!(item.is_unsupported));
        Value::Object(fields)
    };
    items.named.iter().map(one).collect()
}

/// Items of definitions of `vhost` that another node names, from its JSON.
pub(crate) fn import_items_of_json(vhost: &str, named: &Value, total: &Value) -> ImportItems {
    let one = |item: &Value| {
        let mut identity = item.as_object()?.clone();
        // Definitions of a vhost name it nowhere, and number their items by themselves.
        identity.insert("vhost".to_owned(), json!(vhost));
        identity.remove("item");
        let is_unsupported = identity.remove("unsupported") == Some(Value::Bool(true));
        let mut text =
            |name: &str| identity.remove(name).and_then(|text| text.as_str().map(str::to_owned));
        let (family, reason) = (text("family")?, text("reason")?);
        Some(ImportItem { family, number: None, identity, reason, is_unsupported })
    };
    let named: Vec<_> = named.as_array().into_iter().flatten().filter_map(one).collect();
    let total = total.as_u64().unwrap_or_default().max(named.len() as u64);
    ImportItems { named, total }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preview(names: &[&str]) -> ImportPreview {
        let item = |name: &&str| PreviewedItem {
            change: ImportChange::Changed,
            identity: Map::from_iter([("name".to_owned(), json!(name))]),
            reason: Some("none".to_owned()),
            differences: vec![Difference {
                field: "durable".to_owned(),
                before: Some(Value::Null),
                after: None,
            }],
        };
        let items: Vec<_> = names.iter().map(item).collect();
        let changed = items.len() as u64;
        let family = FamilyPreview { new: 1, changed, items, ..FamilyPreview::default() };
        ImportPreview { families: vec![("queues", family)] }
    }

    #[test]
    fn previews_of_nodes_are_added() {
        let mut sum = preview(&["a"]);
        let part = preview_to_json(&preview(&["b", "c"]));
        assert_eq!(add_preview(&mut sum, &part, 2), Some(()));
        let mut expected = preview(&["a", "b"]);
        expected.families[0].1.new = 2;
        expected.families[0].1.changed = 3;
        assert_eq!(sum, expected);
    }

    #[test]
    fn preview_of_a_node_that_is_none_is_refused() {
        let family = |items: Value| json!({"queues": {"new": 0, "equal": 0, "changed": 0, "kept": 0, "skipped": 0, "items": items}});
        for part in [json!({}), json!({"queues": {"new": 1}}), family(json!([{"change": "odd"}]))] {
            assert_eq!(add_preview(&mut preview(&[]), &part, 2), None, "{part}");
        }
        assert_eq!(add_preview(&mut preview(&[]), &family(json!([])), 2), Some(()));
    }
}
