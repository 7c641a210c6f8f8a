//! Exports the definitions of a node or of a vhost; importing them restores the same state.
//!
//! Exclusive queues are left out, and so are names that clients cannot declare, together with the bindings to
//! either.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use broker::PolicyKind;
use broker::access::Permissions;
use serde_json::{Map, Value, json};

use super::topology::{
    BindingDefinition, ExchangeDefinition, QueueDefinition, is_defined, is_reserved,
};
use crate::auth::{TopicPattern, User};
use crate::json::limits::limits_to_json;
use crate::json::policy::policy_to_json;
use crate::json::table::table_to_json;
use crate::json::vhost::vhost_metadata_to_json;
use crate::node::Node;
use crate::snapshot::node::Identity;
use crate::vhost::VhostHandle;

type Object = Map<String, Value>;

/// Exports the definitions of the whole node, with the contents of these vhosts only, or of all.
pub(crate) fn export_all(node: &Node, only_vhosts: Option<&BTreeSet<String>>) -> Value {
    let cluster = node.cluster_name();
    let mut root =
        header(&node.identity.product, "cluster", format!("Definitions of cluster '{cluster}'"));
    root.insert("original_cluster_name".to_owned(), json!(cluster));
    let users = node.auth.users();
    let list = |values: Vec<Value>| Value::Array(values);
    root.insert("users".to_owned(), list(users.iter().map(|one| user(one)).collect()));
    let vhosts = node.vhosts.all();
    root.insert(
        "vhosts".to_owned(),
        list(vhosts.iter().map(|handle| Value::Object(vhost_itself(handle))).collect()),
    );
    let all = |of: &dyn Fn(&User) -> Vec<Value>| list(users.iter().flat_map(|u| of(u)).collect());
    root.insert("permissions".to_owned(), all(&permissions));
    root.insert("topic_permissions".to_owned(), all(&topic_permissions));
    root.insert("global_parameters".to_owned(), list(global_parameters(node)));
    let mut contents: Vec<Contents> = Vec::new();
    let is_wanted = |name: &str| only_vhosts.is_none_or(|only| only.contains(name));
    for handle in vhosts.iter().filter(|handle| is_wanted(handle.name())) {
        contents.push(Contents::of(node, handle.name(), Some(handle.name())));
    }
    for (family, of) in FAMILIES {
        let items = contents.iter_mut().flat_map(|contents| std::mem::take(of(contents)));
        root.insert((*family).to_owned(), list(items.collect()));
    }
    Value::Object(root)
}

/// Exports the definitions of one vhost; none if the vhost does not exist.
pub(crate) fn export_vhost(node: &Node, name: &str) -> Option<Value> {
    let handle = node.vhosts.get(name)?;
    let explanation = format!("Definitions of virtual host '{name}'");
    let mut root = header(&node.identity.product, "single_virtual_host", explanation);
    root.insert("original_vhost_name".to_owned(), json!(name));
    let mut itself = vhost_itself(&handle);
    itself.remove("name");
    root.insert("description".to_owned(), json!(handle.settings().description));
    root.append(&mut itself);
    let mut contents = Contents::of(node, name, None);
    for (family, of) in FAMILIES {
        root.insert((*family).to_owned(), Value::Array(std::mem::take(of(&mut contents))));
    }
    Some(Value::Object(root))
}

fn header(identity: &Identity, format: &str, explanation: String) -> Object {
    let fields = [
        ("rabbit_version", identity.version.clone()),
        ("rabbitmq_version", identity.version.clone()),
        ("product_name", identity.product.clone()),
        ("product_version", identity.version.clone()),
        ("leveret_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("rabbitmq_definition_format", format.to_owned()),
        ("explanation", explanation),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect()
}

/// COMPAT: argon2id in definitions: RabbitMQ imports such a user, who then cannot log in without a new
/// password.
fn user(user: &User) -> Value {
    let (hash, algorithm) = user.password.to_bytes();
    json!({
        "name": user.name,
        "password_hash": STANDARD.encode(hash),
        "hashing_algorithm": algorithm,
        "tags": user.tags,
        "limits": limits_to_json(&user.limits),
    })
}

fn vhost_itself(handle: &VhostHandle) -> Object {
    let settings = handle.settings();
    let metadata = vhost_metadata_to_json(&settings);
    let limits = Value::Object(limits_to_json(&settings.limits));
    let fields = [("name", json!(handle.name())), ("limits", limits), ("metadata", metadata)];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn permissions(user: &User) -> Vec<Value> {
    let all = user.permissions.iter();
    all.map(|(vhost, permissions)| permission(&user.name, vhost, permissions)).collect()
}

pub(super) fn permission(user: &str, vhost: &str, permissions: &Permissions) -> Value {
    json!({
        "user": user,
        "vhost": vhost,
        "configure": permissions.configure.as_str(),
        "write": permissions.write.as_str(),
        "read": permissions.read.as_str(),
    })
}

fn topic_permissions(user: &User) -> Vec<Value> {
    let all = user.topic_permissions.iter().flat_map(|(vhost, patterns)| {
        patterns.iter().map(move |pattern| topic_permission(&user.name, vhost, pattern))
    });
    all.collect()
}

pub(super) fn topic_permission(user: &str, vhost: &str, pattern: &TopicPattern) -> Value {
    json!({
        "user": user,
        "vhost": vhost,
        "exchange": pattern.exchange,
        "write": pattern.write,
        "read": pattern.read,
    })
}

/// The global parameters without the cluster's internal ones, as in RabbitMQ.
fn global_parameters(node: &Node) -> Vec<Value> {
    let all = node.global_parameters.all().into_iter();
    let shown = all.filter(|(name, _)| !name.starts_with("internal"));
    shown.map(|(name, value)| json!({"name": name, "value": value})).collect()
}

/// A family of items in a vhost.
type Family = fn(&mut Contents) -> &mut Vec<Value>;

const FAMILIES: &[(&str, Family)] = &[
    ("parameters", |contents| &mut contents.parameters),
    ("policies", |contents| &mut contents.policies),
    ("exchanges", |contents| &mut contents.exchanges),
    ("queues", |contents| &mut contents.queues),
    ("bindings", |contents| &mut contents.bindings),
];

/// The contents of a vhost, by family.
#[derive(Default)]
struct Contents {
    parameters: Vec<Value>,
    policies: Vec<Value>,
    exchanges: Vec<Value>,
    queues: Vec<Value>,
    bindings: Vec<Value>,
}

impl Contents {
    /// Reads the contents of a vhost; each item has the field `vhost` if `named` is set. A vhost that has
    /// been deleted meanwhile is empty.
    fn of(node: &Node, name: &str, named: Option<&str>) -> Self {
        let Some(handle) = node.vhosts.get(name) else {
            return Self::default();
        };
        let (policies, operator_policies, mut exchanges, mut queues, bindings) =
            handle.read(|vhost, _| {
                let policies = |kind| vhost.policies().iter(kind).cloned().collect::<Vec<_>>();
                let all = || vhost.exchanges().map(|(_, exchange)| exchange);
                let defined = all().filter(|exchange| !is_reserved(&exchange.name));
                let queues = vhost.queues().map(|(_, queue)| queue);
                let bindings = all().flat_map(|source| BindingDefinition::from(vhost, source));
                (
                    policies(PolicyKind::User),
                    policies(PolicyKind::Operator),
                    defined.map(ExchangeDefinition::of).collect::<Vec<_>>(),
                    queues.filter(|q| is_defined(q)).map(QueueDefinition::of).collect::<Vec<_>>(),
                    bindings.collect::<Vec<_>>(),
                )
            });
        exchanges.sort_by(|a, b| a.name.cmp(&b.name));
        queues.sort_by(|a, b| a.name.cmp(&b.name));
        let in_vhost = |mut item: Value| {
            if let (Some(item), Some(named)) = (item.as_object_mut(), named) {
                item.insert("vhost".to_owned(), json!(named));
            }
            item
        };
        let policy = |policy| in_vhost(policy_to_json(policy));
        Self {
            parameters: limits_parameter(&handle)
                .into_iter()
                .chain(operator_policies.iter().map(|policy| parameter(policy)))
                .map(in_vhost)
                .collect(),
            policies: policies.iter().map(|one| policy(one)).collect(),
            exchanges: exchanges.iter().map(|one| in_vhost(exchange(one))).collect(),
            queues: queues.iter().map(|one| in_vhost(queue(one))).collect(),
            bindings: bindings.iter().map(|one| in_vhost(binding(one))).collect(),
        }
    }
}

/// The vhost limits as a runtime parameter, as RabbitMQ also exports them.
fn limits_parameter(handle: &VhostHandle) -> Option<Value> {
    let limits = limits_to_json(&handle.settings().limits);
    let parameter = json!({"component": "vhost-limits", "name": "limits", "value": limits});
    (!limits.is_empty()).then_some(parameter)
}

/// An operator policy as a runtime parameter, as in RabbitMQ.
fn parameter(policy: &broker::Policy) -> Value {
    let mut value = policy_to_json(policy);
    let name = value.as_object_mut().and_then(|value| value.remove("name"));
    json!({"component": "operator_policy", "name": name, "value": value})
}

/// COMPAT: internal exchanges in definitions: RabbitMQ leaves them out but exports their bindings, so that it
/// refuses its own export.
pub(super) fn exchange(exchange: &ExchangeDefinition) -> Value {
    let mut shown = json!({
        "name": exchange.name,
        "type": exchange.kind,
        "durable": exchange.durable,
        "auto_delete": exchange.auto_delete,
        "arguments": table_to_json(exchange.arguments.as_ref()),
    });
    if let Some(shown) = shown.as_object_mut().filter(|_| exchange.internal) {
        shown.insert("internal".to_owned(), json!(true));
    }
    shown
}

pub(super) fn queue(queue: &QueueDefinition) -> Value {
    let arguments = table_to_json(queue.arguments.as_ref());
    json!({
        "name": queue.name,
        "type": arguments.get("x-queue-type"),
        "durable": queue.durable,
        "auto_delete": queue.auto_delete,
        "arguments": arguments,
    })
}

pub(super) fn binding(binding: &BindingDefinition) -> Value {
    json!({
        "source": binding.source,
        "destination": binding.destination,
        "destination_type": if binding.to_queue { "queue" } else { "exchange" },
        "routing_key": binding.routing_key,
        "arguments": table_to_json(binding.arguments.as_ref()),
    })
}
