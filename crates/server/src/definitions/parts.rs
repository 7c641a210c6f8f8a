//! Parts of definitions, which other nodes of a cluster import.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Document;
use super::plan::{VHOST_LIMITS, families_of_vhosts};

/// The part of definitions of the node that is in one vhost, as definitions of that vhost without limits.
pub(super) fn part_of_vhost(root: &Document, vhost: &str) -> Document {
    retained(root, &|item| vhost_of(item) == Some(vhost) && !is_limits(item))
}

/// The definitions of a vhost without its limits, which are metadata of the node.
pub(super) fn without_limits(root: &Document) -> Document {
    retained(root, &|item| !is_limits(item))
}

/// The parameters in definitions of a vhost that are its limits.
pub(super) fn limits_in(root: &Document) -> impl Iterator<Item = &Value> {
    let parameters = root.get("parameters").and_then(Value::as_array).into_iter().flatten();
    parameters.filter(|item| is_limits(item))
}

/// Names of the vhosts in which definitions of the node have items.
pub(super) fn vhosts_with_items(root: &Document) -> BTreeSet<&str> {
    let families = families_of_vhosts().filter_map(|family| root.get(family)?.as_array());
    families.flatten().filter_map(vhost_of).collect()
}

fn retained(root: &Document, is_wanted: &dyn Fn(&Value) -> bool) -> Document {
    let families = families_of_vhosts().filter_map(|family| {
        let items = root.get(family)?.as_array()?.iter().filter(|item| is_wanted(item));
        Some((family.to_owned(), items.cloned().collect()))
    });
    families.collect()
}

fn vhost_of(item: &Value) -> Option<&str> {
    item.get("vhost").and_then(Value::as_str)
}

fn is_limits(item: &Value) -> bool {
    item.get("component").and_then(Value::as_str) == Some(VHOST_LIMITS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_have_the_contents_of_a_vhost() {
        let limits =
            |vhost: &str| json!({"component": VHOST_LIMITS, "vhost": vhost, "name": "limits"});
        let queue = |vhost: &str| json!({"vhost": vhost, "name": "q"});
        let policy = json!({"component": "operator_policy", "vhost": "v", "name": "p"});
        let root = json!({
            "users": [{"name": "anna"}],
            "vhosts": [{"name": "v"}, {"name": "empty"}],
            "permissions": [{"user": "anna", "vhost": "v"}],
            "parameters": [limits("v"), policy, limits("w")],
            "queues": [queue("v"), queue("w"), queue("x")],
        });
        let Value::Object(root) = root else { unreachable!() };
        assert_eq!(vhosts_with_items(&root), BTreeSet::from(["v", "w", "x"]));
        let expected = json!({"parameters": [policy], "queues": [queue("v")]});
        assert_eq!(Value::Object(part_of_vhost(&root, "v")), expected);
        assert_eq!(limits_in(&root).count(), 2);
        let left = without_limits(&root);
        assert_eq!(left["parameters"], json!([policy]));
        assert!(!left.contains_key("users") && left["queues"].as_array().unwrap().len() == 3);
    }
}
