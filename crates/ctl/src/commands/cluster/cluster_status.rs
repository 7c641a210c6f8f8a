//! Status of the cluster.

use serde_json::{Map, Value, json};

use crate::command::{Call, Command, Section};
use crate::commands::answer::number;
use crate::commands::node::listeners;
use crate::commands::node::status::{alarms, all_nodes, chapter, is_running, shown};
use crate::failure::Failure;
use crate::format::Output;
use crate::printable::in_line;

pub(in crate::commands) const COMMANDS: &[Command] = &[Command::new(
    Section::Cluster,
    "cluster_status",
    "cluster_status [--timeout <timeout>]",
    "Shows the nodes of the cluster",
    cluster_status,
)
.everywhere()
.banner(|call| format!("Cluster status of node {} ...", call.node.name()))];

pub(in crate::commands) fn cluster_status(call: &Call<'_>) -> Result<Output, Failure> {
    let (overview, nodes) = (call.node.api.get("/api/overview")?, all_nodes(call)?);
    let flags = call.node.api.find("/api/feature-flags")?.unwrap_or_default();
    let listeners = listeners::of_cluster(&overview);
    let cluster = ClusterNodes::of(&nodes);
    let listener = |one: &Value| {
        format!("Node: {}, {}", shown(one, "node"), lower_first(&listeners::shown(one)))
    };
    let flag =
        |one: &Value| format!("Flag: {}, state: {}", shown(one, "name"), shown(one, "state"));
    let for_each = |line: &dyn Fn(&Value) -> String| {
        cluster.running.iter().map(|node| line(node)).collect::<Vec<_>>()
    };
    let version = |node: &Value| {
        format!("{}: RabbitMQ {}", shown(node, "name"), shown(node, "rabbitmq_version"))
    };
    let cores = |node: &Value| {
        let processors = number(node, "processors");
        format!("Node: {}, available CPU cores: {processors}", shown(node, "name"))
    };
    let maintenance = |node: &Value| {
        format!("Node: {}, status: {}", shown(node, "name"), maintenance_status(node))
    };
    let alarms: Vec<String> = cluster.running.iter().flat_map(|node| alarms(node)).collect();
    let processors: u64 = cluster.running.iter().map(|node| number(node, "processors")).sum();
    let mut basics = vec![
        format!("Cluster name: {}", in_line(&shown(&overview, "cluster_name"))),
        format!("Total CPU cores available cluster-wide: {processors}"),
    ];
    // RabbitMQ's API does not tell it.
    let level = overview.get("cluster_record_level").filter(|level| level.is_u64());
    basics.extend(level.map(|level| format!("Level of record kinds: {level}")));
    let chapters = [
        chapter("Basics", &basics),
        chapter("Cluster Tags", &[]),
        chapter("Disk Nodes", &cluster.names),
        chapter("Running Nodes", &cluster.running_names()),
        chapter("Versions", &for_each(&version)),
        chapter("CPU Cores", &for_each(&cores)),
        chapter("Maintenance status", &nodes.iter().map(maintenance).collect::<Vec<_>>()),
        chapter("Alarms", &alarms),
        chapter("Network Partitions", &[]),
        chapter("Listeners", &listeners.iter().map(listener).collect::<Vec<_>>()),
        chapter(
            "Feature flags",
            &flags.as_array().into_iter().flatten().map(flag).collect::<Vec<_>>(),
        ),
    ];
    let by_name = |value: &dyn Fn(&Value) -> Value| {
        let each = cluster.running.iter().map(|node| (shown(node, "name"), value(node)));
        Value::Object(each.collect::<Map<_, _>>())
    };
    let maintained =
        nodes.iter().map(|node| (shown(node, "name"), maintenance_status(node).into()));
    let version = |node: &Value| json!({"rabbitmq_name": "RabbitMQ", "rabbitmq_version": node.get("rabbitmq_version"), "erlang_version": node.get("erlang_version")});
    let all = json!({
        "alarms": alarms,
        "cluster_name": overview.get("cluster_name"),
        "cluster_record_level": level,
        "cluster_tags": [],
        "cpu_cores": by_name(&|node| json!(number(node, "processors"))),
        "disk_nodes": cluster.names,
        "ram_nodes": [],
        "running_nodes": cluster.running_names(),
        "partitions": {},
        "versions": by_name(&version),
        "maintenance_status": maintained.collect::<Map<_, Value>>(),
        "listeners": by_name(&|node| of_node(&listeners, node)),
        "feature_flags": flags,
    });
    Ok(Output::Both(chapters.join("\n"), all))
}

/// RabbitMQ's words for the maintenance of a node.
fn maintenance_status(node: &Value) -> &'static str {
    match node.get("being_drained").and_then(Value::as_bool) {
        Some(true) => "marked for maintenance",
        Some(false) => "not under maintenance",
        // The node does not answer.
        None => "unknown",
    }
}

/// The listeners of a node.
fn of_node(listeners: &[Value], node: &Value) -> Value {
    let name = node.get("name");
    listeners.iter().filter(|one| one.get("node") == name).cloned().collect()
}

/// The nodes of a cluster, and those of them that run.
struct ClusterNodes<'a> {
    names: Vec<String>,
    running: Vec<&'a Value>,
}

impl<'a> ClusterNodes<'a> {
    fn of(nodes: &'a [Value]) -> Self {
        Self {
            names: nodes.iter().map(|node| shown(node, "name")).collect(),
            running: nodes.iter().filter(|node| is_running(node)).collect(),
        }
    }

    fn running_names(&self) -> Vec<String> {
        self.running.iter().map(|node| shown(node, "name")).collect()
    }
}

fn lower_first(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_a_cluster_are_all_and_those_that_run() {
        let nodes = [
            json!({"name": "a@h", "running": true, "processors": 2}),
            json!({"name": "b@h", "running": false}),
        ];
        let cluster = ClusterNodes::of(&nodes);
        assert_eq!((cluster.names.len(), cluster.running_names()), (2, vec!["a@h".to_owned()]));
    }

    #[test]
    fn listeners_are_grouped_by_their_node() {
        let listener = |node: &str, port: u16| json!({"node": node, "port": port});
        let all = [listener("a@h", 1), listener("b@h", 2), listener("a@h", 3)];
        let of = |node: &str| of_node(&all, &json!({"name": node}));
        assert_eq!(of("a@h"), json!([listener("a@h", 1), listener("a@h", 3)]));
        assert_eq!((of("b@h"), of("c@h")), (json!([listener("b@h", 2)]), json!([])));
    }

    #[test]
    fn maintenance_of_a_node_is_that_which_it_tells() {
        let status = |node: Value| maintenance_status(&node);
        assert_eq!(status(json!({"being_drained": true})), "marked for maintenance");
        assert_eq!(status(json!({"being_drained": false})), "not under maintenance");
        assert_eq!(status(json!({})), "unknown");
    }
}
