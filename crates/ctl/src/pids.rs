//! Ids of connections, channels and queues in the form of Erlang's process ids. Scripts take them from one
//! command and pass them to another.
//!
//! They are derived from the answers of the API: a connection's from the second of its start and the
//! client's port, which no other connection of that second has. An id is stable as long as its object
//! exists.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::failure::Failure;
use crate::node::Node;

/// The ids of the connections of a node.
#[derive(Default, Debug)]
pub(crate) struct Pids {
    node: String,
    /// Time of the start and port of the client, by the name of the connection.
    connections: BTreeMap<String, (u64, u64)>,
}

impl Pids {
    /// Gets the connections of a node.
    pub(crate) fn ask(node: &Node) -> Result<Self, Failure> {
        Ok(Self::of(node.name(), &node.api.get("/api/connections")?))
    }

    /// The ids of these connections.
    pub(crate) fn of(node: &str, connections: &Value) -> Self {
        let number = |one: &Value, key| one.get(key).and_then(Value::as_u64).unwrap_or_default();
        let entry = |one: &Value| {
            let name = one.get("name")?.as_str()?.to_owned();
            Some((name, (number(one, "connected_at") / 1000, number(one, "peer_port"))))
        };
        let connections = connections.as_array().into_iter().flatten().filter_map(entry).collect();
        Self { node: node.to_owned(), connections }
    }

    /// Id of a connection; empty if no connection has this name.
    pub(crate) fn connection(&self, name: &str) -> String {
        self.channel(name, 0)
    }

    /// The id of a channel of a connection.
    pub(crate) fn channel(&self, connection: &str, number: u64) -> String {
        let id = |(second, port)| format!("<{}.{second}.{port}.{number}>", self.node);
        self.connections.get(connection).copied().map(id).unwrap_or_default()
    }

    /// The id of a queue.
    pub(crate) fn queue(&self, vhost: &str, name: &str) -> String {
        // FNV-1a, which is short, and the same on every machine.
        let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        let bytes = vhost.bytes().chain([0]).chain(name.bytes());
        format!("<{}.0.{}.0>", self.node, bytes.fold(0x811c_9dc5, mix))
    }

    /// The name of the connection with an id.
    pub(crate) fn name_of(&self, id: &str) -> Option<&str> {
        self.connections.keys().map(String::as_str).find(|name| self.connection(name) == id)
    }
}

/// True if a text has the form of an id.
pub(crate) fn is_pid(text: &str) -> bool {
    let inner = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    let Some(inner) = inner else { return false };
    let mut parts = inner.rsplitn(4, '.');
    let is_number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u64>().is_ok());
    is_number(parts.next())
        && is_number(parts.next())
        && is_number(parts.next())
        && parts.next().is_some_and(|node| !node.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pid_identifies_its_connection() {
        let one = json!({"name": "1.2.3.4:99 -> 5", "connected_at": 1_795_296_865_458_u64, "peer_port": 99});
        let pids = Pids::of("leveret@box", &json!([one]));
        let id = pids.connection("1.2.3.4:99 -> 5");
        assert_eq!(id, "<leveret@box.1795296865.99.0>");
        assert_eq!(pids.name_of(&id), Some("1.2.3.4:99 -> 5"));
        assert_eq!(pids.channel("1.2.3.4:99 -> 5", 3), "<leveret@box.1795296865.99.3>");
        assert_eq!((pids.connection("other"), pids.name_of("<n@h.1.2.3>")), (String::new(), None));
        assert!(is_pid(&pids.queue("/", "q")) && pids.queue("/", "q") != pids.queue("/", "r"));
    }

    #[test]
    fn pid_form_is_recognised() {
        assert!(is_pid("<rabbit@host.example.org.1.2.3>"));
        for text in ["bogus", "<0.1.2>", "<a.b.1.2>", "<n@h.1.2.3", "", "<>"] {
            assert!(!is_pid(text), "{text}");
        }
    }
}
