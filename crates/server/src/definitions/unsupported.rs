//! Items of definitions that need what Leveret does not have: streams, exchange types of plugins, policy keys of
//! federation and of mirrored queues.

use broker::{ExchangeType, PolicyKey, QueueType};
use serde_json::{Map, Value};

/// A thing that an item needs and Leveret does not have.
#[derive(PartialEq, Debug)]
pub(super) enum Lack {
    /// The item as a whole cannot be made, for this reason.
    Item(String),
    /// The item can be made without some of its fields: as it is then, and the reason.
    Fields(Value, String),
}

/// The first thing that an item of a family needs and Leveret does not have.
pub(super) fn lack(family: &str, item: &Value) -> Option<Lack> {
    match family {
        "queues" => queue(item),
        "exchanges" => exchange(item),
        "policies" => policy(item, &["definition"]),
        "parameters" if item.get("component")? == "operator_policy" => {
            policy(item, &["value", "definition"])
        }
        "vhosts" => vhost(item),
        _ => None,
    }
}

/// The reason for which a runtime parameter of a component has no effect.
pub(super) fn no_component(component: &str) -> String {
    match component {
        "shovel" => "Leveret has no shovels".to_owned(),
        "federation-upstream" | "federation-upstream-set" => {
            "Leveret follows no other broker (federation)".to_owned()
        }
        other => format!("Leveret has no component '{other}'"),
    }
}

fn queue(item: &Value) -> Option<Lack> {
    let argument = item.get("arguments").and_then(|arguments| arguments.get("x-queue-type"));
    let kind = argument.or_else(|| item.get("type"))?.as_str().filter(|kind| !kind.is_empty())?;
    match QueueType::parse(kind.as_bytes()) {
        Some(_) => None,
        None => Some(Lack::Item(format!("Leveret has no queues of type '{kind}'"))),
    }
}

fn exchange(item: &Value) -> Option<Lack> {
    let kind = item.get("type")?.as_str().filter(|kind| !kind.is_empty())?;
    match ExchangeType::from_name(kind) {
        Some(_) => None,
        None => Some(Lack::Item(format!("Leveret has no exchanges of type '{kind}'"))),
    }
}

/// A policy whose definition, at this path, has keys that Leveret does not have.
fn policy(item: &Value, path: &[&str]) -> Option<Lack> {
    let definition = at(item, path)?.as_object()?;
    let is_unknown = |key: &&String| PolicyKey::from_name(key).is_none();
    let unknown: Vec<&str> = definition.keys().filter(is_unknown).map(String::as_str).collect();
    if unknown.is_empty() {
        return None;
    }
    let reason = format!("Leveret has no policy keys '{}'", unknown.join("', '"));
    let mut less = item.clone();
    let known = object_at(&mut less, path)?;
    known.retain(|key, _| !unknown.contains(&key.as_str()));
    match known.is_empty() {
        true => Some(Lack::Item(reason)),
        false => Some(Lack::Fields(less, reason)),
    }
}

/// A vhost whose queues are of another type unless their declarations name one.
fn vhost(item: &Value) -> Option<Lack> {
    const KEY: &str = "default_queue_type";
    let path: &[&str] = if item.get("metadata").is_some() { &["metadata"] } else { &[] };
    let kind = at(item, path)?.get(KEY)?.as_str()?;
    if matches!(kind, "" | "undefined") || QueueType::parse(kind.as_bytes()).is_some() {
        return None;
    }
    let reason = format!("Leveret has no queues of type '{kind}', which is the default type");
    let mut less = item.clone();
    object_at(&mut less, path)?.remove(KEY);
    Some(Lack::Fields(less, reason))
}

fn at<'a>(item: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(item, |value, key| value.get(key))
}

fn object_at<'a>(item: &'a mut Value, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    path.iter().try_fold(item, |value, key| value.get_mut(key))?.as_object_mut()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn whole(family: &str, item: &Value) -> Option<String> {
        match lack(family, item) {
            Some(Lack::Item(reason)) => Some(reason),
            _ => None,
        }
    }

    #[test]
    fn items_of_other_types_are_left_out() {
        let stream = Some("Leveret has no queues of type 'stream'".to_owned());
        assert_eq!(whole("queues", &json!({"type": "stream"})), stream);
        let argument = json!({"type": "classic", "arguments": {"x-queue-type": "stream"}});
        assert_eq!(whole("queues", &argument), stream);
        for item in [json!({"type": "quorum"}), json!({"type": ""}), json!({"type": 5}), json!(5)] {
            assert_eq!(lack("queues", &item), None, "{item}");
        }
        let history = whole("exchanges", &json!({"type": "x-recent-history"}));
        assert_eq!(history.as_deref(), Some("Leveret has no exchanges of type 'x-recent-history'"));
        assert_eq!(lack("exchanges", &json!({"type": "topic"})), None);
    }

    #[test]
    fn policy_keeps_the_keys_that_leveret_has() {
        let item = json!({"name": "p", "definition": {"ha-mode": "all", "max-length": 1}});
        let less = json!({"name": "p", "definition": {"max-length": 1}});
        let reason = "Leveret has no policy keys 'ha-mode'".to_owned();
        assert_eq!(lack("policies", &item), Some(Lack::Fields(less, reason.clone())));
        let alone =
            json!({"component": "operator_policy", "value": {"definition": {"ha-mode": "all"}}});
        assert_eq!(lack("parameters", &alone), Some(Lack::Item(reason)));
        assert_eq!(lack("policies", &json!({"definition": {}})), None);
    }

    #[test]
    fn vhost_is_made_without_its_default_queue_type() {
        let reason = "Leveret has no queues of type 'stream', which is the default type".to_owned();
        for (item, less) in [
            (json!({"default_queue_type": "stream"}), json!({})),
            (json!({"metadata": {"default_queue_type": "stream"}}), json!({"metadata": {}})),
        ] {
            assert_eq!(lack("vhosts", &item), Some(Lack::Fields(less, reason.clone())));
        }
        assert_eq!(lack("vhosts", &json!({"metadata": {"default_queue_type": "quorum"}})), None);
    }
}
