//! Definitions: users, vhosts, permissions, policies, parameters, exchanges, queues and bindings in
//! RabbitMQ's JSON format, from a file at the start, over HTTP, and back.
//!
//! An import reads all definitions (`plan`), tries them on a scratch vhost to find errors that only the core
//! detects (`validate`), and only then applies them (`apply`). A dry run compares their outcome with the node
//! instead (`preview`). Errors name their items and change nothing (`problems`). Items that need what Leveret does not have
//! (`unsupported`) are errors, or left out if that is asked for. Existing queues and exchanges stay as they
//! are; other existing items are replaced. Names that begin with `amq.` are skipped, as in RabbitMQ. See
//! `docs/reference/definitions.md`.

mod apply;
mod arguments;
mod cluster;
mod difference;
mod export;
mod importing;
mod item;
mod lines;
mod operations;
mod parts;
mod plan;
mod preview;
mod problems;
mod topology;
mod unsupported;
mod validate;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use broker::Lsn;
use serde_json::{Map, Value};

pub(crate) use cluster::{import_in_cluster, import_whole, preview_whole};
pub(crate) use export::{export_all, export_vhost};
pub(crate) use importing::load;
pub(crate) use item::{Place, Scope};

use crate::vhost::VhostHandle;

/// An error that prevents loading a file of definitions.
#[derive(thiserror::Error, Debug)]
pub(crate) enum DefinitionsError {
    #[error("cannot read definitions {path}: {error}")]
    Read { path: PathBuf, error: std::io::Error },
    #[error("definitions {path}: {error}")]
    Json { path: PathBuf, error: serde_json::Error },
    #[error("definitions {path}{problems}")]
    Items { path: PathBuf, problems: String },
}

/// An invalid item, with its place.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[error("{place}: {problem}")]
pub(crate) struct ItemError {
    pub(crate) place: Place,
    pub(crate) problem: Problem,
}

impl ItemError {
    /// The problem before the place, as RabbitMQ words it.
    pub(crate) fn in_rabbitmqs_order(&self) -> String {
        format!("{} ({})", self.problem, self.place)
    }
}

/// A document to import.
pub(crate) type Document = Map<String, Value>;

/// The problem with one item.
type Problem = String;

/// The log position of each changed vhost that must be durable for the definitions to be durable.
pub(crate) type Durable = Vec<(Arc<VhostHandle>, Lsn)>;

/// Reads the file at `path`: its text, and the definitions in the text.
///
/// # Errors
/// [`DefinitionsError`], which names the file.
pub(crate) fn read(path: &Path) -> Result<(Vec<u8>, Document), DefinitionsError> {
    let text = std::fs::read(path)
        .map_err(|error| DefinitionsError::Read { path: path.to_owned(), error })?;
    let definitions = serde_json::from_slice(&text)
        .map_err(|error| DefinitionsError::Json { path: path.to_owned(), error })?;
    Ok((text, definitions))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::importing::{ImportRules, dry_run};
    use super::*;
    use crate::config::Config;
    use crate::node::Node;
    use crate::requests::FamilyPreview;

    /// Starts a node that imports `definitions`; returns the node or the error.
    fn start(test: &str, definitions: &Value) -> Result<Node, String> {
        let folder = std::env::temp_dir().join(format!("leveret-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("definitions.json");
        std::fs::write(&path, definitions.to_string()).unwrap();
        let config = Config {
            data_dir: folder.clone(),
            load_definitions: Some(path.clone()),
            ..Config::default()
        };
        let node = Node::start(&config, Vec::new());
        std::fs::remove_dir_all(&folder).unwrap();
        node.map_err(|error| error.to_string().replace(&*path.to_string_lossy(), "FILE"))
    }

    fn problem(definitions: &Value) -> String {
        start("problem", definitions).unwrap_err()
    }

    #[test]
    fn definitions_are_applied_in_a_working_order() {
        let node = start(
            "order",
            &json!({
                "bindings": [{"vhost": "v", "source": "e", "destination": "q",
                    "destination_type": "queue", "routing_key": "k", "arguments": {}}],
                "queues": [{"vhost": "v", "name": "q", "type": "quorum", "arguments": {}},
                    {"vhost": "v", "name": "amq.gen-skipped"}],
                "policies": [{"vhost": "v", "name": "p", "pattern": ".*", "priority": 1,
                    "definition": {"message-ttl": 1000}}],
                "parameters": [{"vhost": "v", "component": "shovel", "name": "s", "value": {}}],
                "exchanges": [{"vhost": "v", "name": "e", "type": "direct"}],
                "permissions": [{"user": "u", "vhost": "v", "configure": "", "write": "",
                    "read": ".*"}],
                "vhosts": [{"name": "v", "limits": {"max-queues": 1}}],
                "users": [{"name": "u", "password": "secret", "tags": "monitoring, management"}],
                "rabbitmq_version": "4.3.6",
            }),
        )
        .unwrap();
        let user = node.auth.user("u").unwrap();
        assert_eq!(user.tags, ["monitoring", "management"]);
        assert!(user.access("v").is_some() && user.access("/").is_none());
        let handle = node.vhosts.get("v").unwrap();
        let has = |name: &str| handle.read(|vhost, _| vhost.queue(name).is_some());
        assert!(has("q") && !has("amq.gen-skipped"));
        assert!(handle.read(|vhost, _| vhost.exchange("e").is_some()));
    }

    /// Counts of new, equal, changed, kept and skipped items by family, without families that have none.
    fn preview(node: &Node, definitions: &Value) -> Vec<(&'static str, [u64; 5])> {
        let definitions = definitions.as_object().unwrap();
        let told =
            dry_run(node, definitions, Scope::Node, &BTreeSet::new(), ImportRules::default())
                .unwrap();
        let counts = told.families.iter().map(|(name, family)| {
            let FamilyPreview { new, equal, changed, kept, skipped, .. } = family;
            (*name, [*new, *equal, *changed, *kept, *skipped])
        });
        counts.filter(|(_, counts)| counts.iter().sum::<u64>() > 0).collect()
    }

    #[test]
    fn dry_run_after_an_import_finds_everything_equal() {
        let definitions = json!({
            "users": [{"name": "u", "password": "secret", "tags": "monitoring"}],
            "vhosts": [{"name": "v", "limits": {"max-queues": 9}}],
            "permissions": [{"user": "u", "vhost": "v", "configure": "", "write": "", "read": ".*"}],
            "topic_permissions": [{"user": "u", "vhost": "v", "exchange": "x", "write": "", "read": ""}],
            "global_parameters": [{"name": "owner", "value": [1]}],
            "parameters": [
                {"vhost": "v", "component": "vhost-limits", "name": "limits", "value": {"max-queues": 5}},
                {"vhost": "v", "component": "operator_policy", "name": "o",
                    "value": {"pattern": "", "definition": {"expires": 5000}}},
                {"vhost": "v", "component": "shovel", "name": "s", "value": {}},
            ],
            "policies": [{"vhost": "v", "name": "p", "pattern": ".*", "definition": {"max-length": 5}}],
            "exchanges": [{"vhost": "v", "name": "x", "type": "topic"}],
            "queues": [{"vhost": "v", "name": "q", "type": "quorum"}, {"vhost": "v", "name": "amq.q"}],
            "bindings": [{"vhost": "v", "source": "x", "destination": "q",
                "destination_type": "queue", "routing_key": "k", "arguments": {}}],
        });
        let empty = start("dry-run-before", &json!({})).unwrap();
        let before = preview(&empty, &definitions);
        assert!(empty.auth.user("u").is_none() && empty.vhosts.get("v").is_none());
        let node = start("dry-run-after", &definitions).unwrap();
        let after = preview(&node, &definitions);
        assert_eq!(before.len(), 10);
        for ((family, before), (_, after)) in before.into_iter().zip(after) {
            let [new, equal, changed, kept, skipped] = before;
            assert_eq!((equal, changed, kept), (0, 0, 0), "{family}");
            assert_eq!(after, [0, new, 0, 0, skipped], "{family}");
        }
    }

    #[test]
    fn dry_run_tells_replaced_and_kept_items() {
        let definitions = |length: u32| {
            json!({
                "vhosts": [{"name": "v"}],
                "policies": [{"vhost": "v", "name": "p", "pattern": "a",
                    "definition": {"max-length": length}}],
                "queues": [{"vhost": "v", "name": "q", "arguments": {"x-max-length": length}}],
            })
        };
        let node = start("dry-run-kept", &definitions(1)).unwrap();
        assert_eq!(
            preview(&node, &definitions(2)),
            [
                ("vhosts", [0, 1, 0, 0, 0]),
                ("policies", [0, 0, 1, 0, 0]),
                ("queues", [0, 0, 0, 1, 0])
            ]
        );
    }

    #[test]
    fn problems_name_their_place() {
        let in_vhost = |family: &str, item: Value| json!({"vhosts": [{"name": "/"}], "users": [{"name": "u"}], family: [item]});
        let long = "x".repeat(256);
        let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
        for (definitions, expected) in [
            (json!({"users": {}}), "users: must be a list"),
            (json!({"users": [{"name": "a"}, 1]}), "users, item 2: must be an object"),
            (json!({"users": [{"name": 1}]}), "users, item 1: 'name' must be a string"),
            (
                json!({"users": [{"name": "a", "password_hash": "AAAA"}]}),
                "users, item 1: the password hash does not have the length of its algorithm",
            ),
            (json!({"queues": [{"name": "q"}]}), "queues, item 1: 'vhost' is missing"),
            (
                json!({"queues": [{"name": "q", "vhost": "v"}]}),
                "queues, item 1: Please create virtual host \"v\" prior to importing definitions.",
            ),
            (
                in_vhost("queues", json!({"vhost": "/", "name": long})),
                "queues, item 1: 'name' is longer than 255 bytes",
            ),
            (
                in_vhost("queues", json!({"vhost": "/", "name": "q", "type": 5})),
                "queues, item 1: 'type' must be a string",
            ),
            (
                in_vhost("queues", json!({"vhost": "/", "name": "q", "arguments": {&long: 1}})),
                "queues, item 1: an argument's name is too long",
            ),
            (
                in_vhost("queues", json!({"vhost": "/", "name": "q", "arguments": {"deep": deep}})),
                "queues, item 1: 'arguments': tables nested deeper than 32",
            ),
            (
                in_vhost(
                    "permissions",
                    json!({"vhost": "/", "user": "nobody", "configure": "",
                    "write": "", "read": ""}),
                ),
                "permissions, item 1: there is no user 'nobody'",
            ),
            (
                in_vhost(
                    "bindings",
                    json!({"vhost": "/", "source": "amq.topic",
                    "destination": "q", "destination_type": "queue", "routing_key": long}),
                ),
                "bindings, item 1: 'routing_key' is longer than 255 bytes",
            ),
        ] {
            assert_eq!(problem(&definitions), format!("definitions FILE, line 1: {expected}"));
        }
    }
}
