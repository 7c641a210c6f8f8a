//! Definitions: users, vhosts, permissions, policies, exchanges, queues and bindings from a file in
//! RabbitMQ's JSON format (spec 5.6).
//!
//! Items are made one after the other; the first that cannot be is named and ends the import, and with
//! it the start of the broker. What exists already stays as it is; names that begin with `amq.` are
//! skipped, as in RabbitMQ.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use amqp::limits::SHORT_STRING_BYTES_MAX;
use amqp::table::{Array, ArrayBuilder, Table, TableBuilder, Value as Field};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use broker::access::{PermissionPattern, Permissions};
use broker::refusal::Refusal;
use broker::{Bind, Command, DeclareExchange, DeclareQueue, PolicyKind};
use management::{PolicyProblem, policy_from_json};
use serde_json::{Map, Value};

use crate::auth::{TopicPattern, User};
use crate::node::Node;
use crate::password::PasswordHash;
use crate::vhosts::VhostCell;

/// Why definitions cannot be taken.
#[derive(thiserror::Error, Debug)]
pub(crate) enum DefinitionsError {
    #[error("cannot read definitions {path}: {error}")]
    Read { path: PathBuf, error: std::io::Error },
    #[error("definitions {path}: {error}")]
    Json { path: PathBuf, error: serde_json::Error },
    #[error("definitions {path}: {what}: {problem}")]
    Item { path: PathBuf, what: String, problem: String },
}

/// What is wrong with one item.
type Problem = String;

/// Takes the definitions in the file at `path`.
///
/// # Errors
/// [`DefinitionsError`], which names the item.
pub(crate) fn load(node: &Node, path: &Path) -> Result<(), DefinitionsError> {
    let text = std::fs::read(path)
        .map_err(|error| DefinitionsError::Read { path: path.to_owned(), error })?;
    let root: Map<String, Value> = serde_json::from_slice(&text)
        .map_err(|error| DefinitionsError::Json { path: path.to_owned(), error })?;
    for (family, import) in FAMILIES {
        let items = match root.get(*family) {
            None => continue,
            Some(Value::Array(items)) => items,
            Some(_) => {
                let (what, problem) = ((*family).to_owned(), "must be a list".to_owned());
                return Err(DefinitionsError::Item { path: path.to_owned(), what, problem });
            }
        };
        for (index, item) in items.iter().enumerate() {
            import(node, &Item(item)).map_err(|problem| DefinitionsError::Item {
                path: path.to_owned(),
                what: format!("{family}, item {}", index + 1),
                problem,
            })?;
        }
        tracing::info!(family, count = items.len(), "definitions imported");
    }
    Ok(())
}

type Import = fn(&Node, &Item<'_>) -> Result<(), Problem>;

/// The families in the order in which they are made (spec 5.6).
const FAMILIES: &[(&str, Import)] = &[
    ("users", user),
    ("vhosts", vhost),
    ("permissions", permission),
    ("exchanges", exchange),
    ("topic_permissions", topic_permission),
    ("policies", |node, item| policy(node, item, item, PolicyKind::User)),
    ("parameters", parameter),
    ("queues", queue),
    ("bindings", binding),
];

/// One item of a family.
#[derive(Clone, Copy)]
struct Item<'a>(&'a Value);

impl<'a> Item<'a> {
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Result<&'a str, Problem> {
        let value = self.get(key).ok_or_else(|| format!("'{key}' is missing"))?;
        value.as_str().ok_or_else(|| format!("'{key}' must be a string"))
    }

    /// A name or a routing key, which AMQP writes as a short string.
    fn short(&self, key: &str) -> Result<&'a str, Problem> {
        let text = self.text(key)?;
        if text.len() > SHORT_STRING_BYTES_MAX {
            return Err(format!("'{key}' is longer than {SHORT_STRING_BYTES_MAX} bytes"));
        }
        Ok(text)
    }

    fn text_or(&self, key: &str, default: &'a str) -> Result<&'a str, Problem> {
        self.get(key).map_or(Ok(default), |_| self.text(key))
    }

    fn flag(&self, key: &str, default: bool) -> Result<bool, Problem> {
        let value = self.get(key).map_or(Some(default), Value::as_bool);
        value.ok_or_else(|| format!("'{key}' must be true or false"))
    }

    fn arguments(&self) -> Result<Table, Problem> {
        match self.get("arguments") {
            None => Ok(Table::default()),
            Some(Value::Object(arguments)) => table(arguments),
            // An empty list is how some tools write no arguments.
            Some(Value::Array(list)) if list.is_empty() => Ok(Table::default()),
            Some(_) => Err("'arguments' must be an object".to_owned()),
        }
    }

    fn pattern(&self, key: &str) -> Result<PermissionPattern, Problem> {
        PermissionPattern::new(self.text(key)?).map_err(|error| format!("'{key}': {error}"))
    }

    fn cell(&self, node: &Node) -> Result<Arc<VhostCell>, Problem> {
        let name = self.text("vhost")?;
        node.vhosts.get(name).ok_or_else(|| {
            format!("Please create virtual host \"{name}\" prior to importing definitions.")
        })
    }
}

fn user(node: &Node, item: &Item<'_>) -> Result<(), Problem> {
    let tags = match item.get("tags") {
        None => Vec::new(),
        Some(Value::String(tags)) => {
            tags.split(',').map(|tag| tag.trim().to_owned()).filter(|t| !t.is_empty()).collect()
        }
        Some(Value::Array(tags)) => {
            let text = |tag: &Value| tag.as_str().map(str::to_owned);
            let tags: Option<Vec<String>> = tags.iter().map(text).collect();
            tags.ok_or_else(|| "'tags' must be strings".to_owned())?
        }
        Some(_) => return Err("'tags' must be a list or a string".to_owned()),
    };
    let password = match item.get("password") {
        Some(_) => PasswordHash::new(item.text("password")?.as_bytes()),
        None => {
            let hash = item.text_or("password_hash", "")?;
            let bytes =
                STANDARD.decode(hash).map_err(|error| format!("'password_hash': {error}"))?;
            let algorithm = item.text_or("hashing_algorithm", "rabbit_password_hashing_sha256")?;
            PasswordHash::from_rabbitmq(&bytes, algorithm)
        }
    };
    let password = password.map_err(|error| error.to_string())?;
    let name = item.text("name")?;
    warn_of_limits(item, name);
    node.auth.put(User::new(name, password, tags));
    Ok(())
}

fn vhost(node: &Node, item: &Item<'_>) -> Result<(), Problem> {
    let name = item.short("name")?;
    warn_of_limits(item, name);
    node.vhosts.create(name).map(|_| ()).map_err(|error| error.to_string())
}

/// Limits of users and vhosts belong to features that are not there.
fn warn_of_limits(item: &Item<'_>, name: &str) {
    if let Some(Value::Object(limits)) = item.get("limits")
        && !limits.is_empty()
    {
        tracing::warn!(name, "limits ignored");
    }
}

fn permission(node: &Node, item: &Item<'_>) -> Result<(), Problem> {
    let permissions = Permissions {
        configure: item.pattern("configure")?,
        write: item.pattern("write")?,
        read: item.pattern("read")?,
    };
    item.cell(node)?;
    let vhost = item.text("vhost")?.to_owned();
    change_user(node, item, |user| {
        user.permissions.insert(vhost, permissions);
    })
}

fn topic_permission(node: &Node, item: &Item<'_>) -> Result<(), Problem> {
    item.pattern("write")?;
    item.pattern("read")?;
    let pattern = TopicPattern {
        exchange: item.text("exchange")?.to_owned(),
        write: item.text("write")?.to_owned(),
        read: item.text("read")?.to_owned(),
    };
    item.cell(node)?;
    let vhost = item.text("vhost")?.to_owned();
    change_user(node, item, |user| {
        let patterns = user.topic_permissions.entry(vhost).or_default();
        patterns.retain(|known| known.exchange != pattern.exchange);
        patterns.push(pattern);
    })
}

fn change_user(
    node: &Node,
    item: &Item<'_>,
    change: impl FnOnce(&mut User),
) -> Result<(), Problem> {
    let name = item.text("user")?;
    let user = node.auth.user(name).ok_or_else(|| format!("there is no user '{name}'"))?;
    let mut user = (*user).clone();
    change(&mut user);
    node.auth.put(user);
    Ok(())
}

/// Of runtime parameters only operator policies mean something yet; others belong to features that
/// are not there.
fn parameter(node: &Node, item: &Item<'_>) -> Result<(), Problem> {
    if item.text("component")? != "operator_policy" {
        tracing::warn!(component = item.text("component")?, "runtime parameter ignored");
        return Ok(());
    }
    let value = item.get("value").ok_or_else(|| "'value' is missing".to_owned())?;
    policy(node, item, &Item(value), PolicyKind::Operator)
}

fn policy(node: &Node, item: &Item<'_>, value: &Item<'_>, kind: PolicyKind) -> Result<(), Problem> {
    let name = item.text("name")?;
    let none = Map::new();
    let policy = policy_from_json(name, value.0.as_object().unwrap_or(&none), kind);
    let policy = policy.map_err(|problem| match problem {
        PolicyProblem::Missing(fields) => format!("'{}' is missing", fields.join("', '")),
        PolicyProblem::Invalid(problems) => problems.join(", "),
    })?;
    item.cell(node)?.with(|vhost, now| vhost.set_policy(now, kind, policy));
    Ok(())
}

fn exchange(node: &Node, item: &Item<'_>) -> Result<(), Problem> {
    let name = item.short("name")?;
    let arguments = item.arguments()?;
    let declare = DeclareExchange {
        exchange: name,
        kind: item.text("type")?,
        passive: false,
        durable: item.flag("durable", true)?,
        auto_delete: item.flag("auto_delete", false)?,
        internal: item.flag("internal", false)?,
        nowait: true,
        arguments: arguments.as_ref(),
    };
    item.cell(node)?.with(|vhost, now| {
        if name.is_empty() || name.starts_with("amq.") || vhost.exchange(name).is_some() {
            return Ok(());
        }
        vhost.execute(now, Command::DeclareExchange(declare)).map_err(text)
    })
}

fn queue(node: &Node, item: &Item<'_>) -> Result<(), Problem> {
    let name = item.short("name")?;
    let mut arguments = item.arguments()?;
    if item.get("type").is_some() && arguments.as_ref().get("x-queue-type").is_none() {
        let kind = item.text("type")?;
        let mut with_type = TableBuilder::new();
        for (key, value) in arguments.as_ref().iter() {
            with_type.insert(key, value);
        }
        with_type.insert("x-queue-type", Field::LongStr(kind.as_bytes()));
        arguments = with_type.finish();
    }
    let declare = DeclareQueue {
        queue: name,
        passive: false,
        durable: item.flag("durable", true)?,
        exclusive: false,
        auto_delete: item.flag("auto_delete", false)?,
        nowait: true,
        arguments: arguments.as_ref(),
    };
    item.cell(node)?.with(|vhost, now| {
        if name.is_empty() || name.starts_with("amq.") || vhost.queue(name).is_some() {
            return Ok(());
        }
        vhost.execute(now, Command::DeclareQueue(declare)).map_err(text)
    })
}

fn binding(node: &Node, item: &Item<'_>) -> Result<(), Problem> {
    let arguments = item.arguments()?;
    let bind = Bind {
        destination: item.short("destination")?,
        source: item.short("source")?,
        routing_key: item.short("routing_key")?,
        nowait: true,
        arguments: arguments.as_ref(),
    };
    let command = match item.text("destination_type")? {
        "queue" => Command::BindQueue(bind),
        "exchange" => Command::BindExchange(bind),
        other => return Err(format!("there is no destination_type '{other}'")),
    };
    item.cell(node)?.with(|vhost, now| vhost.execute(now, command).map_err(text))
}

fn text(refusal: Refusal) -> Problem {
    refusal.explanation
}

/// JSON arguments as RabbitMQ reads them: integers are 64 bits wide.
fn table(object: &Map<String, Value>) -> Result<Table, Problem> {
    let mut table = TableBuilder::new();
    for (key, value) in object {
        if key.len() > SHORT_STRING_BYTES_MAX {
            return Err("an argument's name is too long".to_owned());
        }
        with_field(value, |field| {
            table.insert(key, field);
        })?;
    }
    Ok(table.finish())
}

fn array(list: &[Value]) -> Result<Array, Problem> {
    let mut array = ArrayBuilder::new();
    for value in list {
        with_field(value, |field| {
            array.push(field);
        })?;
    }
    Ok(array.finish())
}

fn with_field(value: &Value, take: impl FnOnce(Field<'_>)) -> Result<(), Problem> {
    match value {
        Value::Null => take(Field::Void),
        Value::Bool(value) => take(Field::Bool(*value)),
        Value::String(text) => take(Field::LongStr(text.as_bytes())),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => take(Field::I64(integer)),
            (None, Some(float)) => take(Field::F64(float)),
            (None, None) => return Err(format!("{number} is out of range")),
        },
        Value::Array(list) => take(Field::Array(array(list)?.as_ref())),
        Value::Object(object) => take(Field::Table(table(object)?.as_ref())),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::Config;

    /// A node that has taken `definitions`, or what it says of them.
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
    fn everything_is_made_in_an_order_that_works() {
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
        let cell = node.vhosts.get("v").unwrap();
        let has = |name: &str| cell.with(|vhost, _| vhost.queue(name).is_some());
        assert!(has("q") && !has("amq.gen-skipped"));
        assert!(cell.with(|vhost, _| vhost.exchange("e").is_some()));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let in_vhost = |family: &str, item: Value| json!({"vhosts": [{"name": "/"}], "users": [{"name": "u"}], family: [item]});
        let long = "x".repeat(256);
        for (definitions, expected) in [
            (json!({"users": {}}), "users: must be a list"),
            (json!({"users": [{"name": "a"}, 1]}), "users, item 2: 'name' is missing"),
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
            assert_eq!(problem(&definitions), format!("definitions FILE: {expected}"));
        }
    }
}
