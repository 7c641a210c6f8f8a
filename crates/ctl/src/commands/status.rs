//! Status of the node.

use serde_json::{Map, Value, json};

use super::listeners;
use super::memory::{Memory, Unit, unit};
use crate::arguments::Switch;
use crate::command::{Call, Command, Section};
use crate::failure::Failure;
use crate::format::{Formatter, Output, Style, formatted};
use crate::term::Term;

const UNIT: &[Switch] = &[Switch::text("unit")];

pub(super) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Monitoring,
        "status",
        "status [--unit <unit>] [--timeout <timeout>]",
        "Shows process, memory, disk, alarms and listeners of the node",
        status,
    )
    .everywhere()
    .switches(UNIT)
    .check(|call| unit(call).map(drop))
    .banner(|call| format!("Status of node {} ...", call.node.name())),
    Command::new(
        Section::Cluster,
        "cluster_status",
        "cluster_status [--timeout <timeout>]",
        "Shows the nodes of the cluster",
        cluster_status,
    )
    .everywhere()
    .banner(|call| format!("Cluster status of node {} ...", call.node.name())),
    Command::new(
        Section::Configuration,
        "environment",
        "environment",
        "Shows the environment of the node, as Erlang terms",
        |call| Ok(Output::Both(erlang(&own_node(call)?), own_node(call)?)),
    )
    .everywhere()
    .formatter(Formatter::Table)
    .banner(|call| format!("Application environment of node {} ...", call.node.name())),
    Command::new(
        Section::Monitoring,
        "memory_breakdown",
        "memory_breakdown [--unit <unit>] [--timeout <timeout>]",
        "Shows the memory use of the node",
        memory_breakdown,
    )
    .diagnostics()
    .switches(UNIT)
    .check(|call| unit(call).map(drop))
    .banner(|call| format!("Reporting memory breakdown on node {}...", call.node.name())),
    Command::new(
        Section::Monitoring,
        "server_version",
        "server_version [--timeout <timeout>]",
        "Shows the compatible version of RabbitMQ",
        |call| {
            let overview = call.node.api.get("/api/overview")?;
            let version = shown(&overview, "rabbitmq_version");
            Ok(Output::Both(version.clone(), json!({"result": "ok", "value": version})))
        },
    )
    .diagnostics()
    .banner(|call| format!("Asking node {} for its RabbitMQ version...", call.node.name())),
    Command::new(
        Section::Monitoring,
        "report",
        "report [--timeout <timeout>]",
        "Shows the status of the node and the objects of each vhost",
        report,
    )
    .everywhere()
    .banner(|call| format!("Reporting server status of node {} ...\n", call.node.name())),
];

/// The node's entry in the list of nodes.
pub(super) fn own_node(call: &Call<'_>) -> Result<Value, Failure> {
    let own = |node: &Value| node.get("name").and_then(Value::as_str) == Some(call.node.name());
    Ok(all_nodes(call)?.into_iter().find(own).unwrap_or_default())
}

/// All nodes of the cluster, those that do not run included.
pub(super) fn all_nodes(call: &Call<'_>) -> Result<Vec<Value>, Failure> {
    let nodes = call.node.api.get("/api/nodes")?;
    Ok(nodes.as_array().cloned().unwrap_or_default())
}

/// True if a node of the cluster runs.
pub(super) fn is_running(node: &Value) -> bool {
    node.get("running") == Some(&Value::Bool(true))
}

fn shown(of: &Value, name: &str) -> String {
    Term::of(of.get(name)).shown()
}

fn number(of: &Value, name: &str) -> u64 {
    of.get(name).and_then(Value::as_u64).unwrap_or_default()
}

/// The alarms in force, each as a sentence.
pub(super) fn alarms(node: &Value) -> Vec<String> {
    let name = shown(node, "name");
    let is = |field| node.get(field) == Some(&Value::Bool(true));
    let mut alarms = Vec::new();
    if is("mem_alarm") {
        alarms.push(format!("Memory alarm on node {name}"));
    }
    if is("disk_free_alarm") {
        alarms.push(format!("Free disk space alarm on node {name}"));
    }
    alarms
}

fn chapter(title: &str, lines: &[String]) -> String {
    let none = ["(none)".to_owned()];
    let lines = if lines.is_empty() { &none[..] } else { lines };
    format!("{title}\n\n{}\n", lines.join("\n"))
}

fn status(call: &Call<'_>) -> Result<Output, Failure> {
    let unit = unit(call)?;
    let (overview, node) = (call.node.api.get("/api/overview")?, own_node(call)?);
    let totals = overview.get("object_totals").unwrap_or(&Value::Null);
    let vhosts = call.node.api.get("/api/vhosts")?;
    let mut runtime = vec![
        format!("OS PID: {}", shown(&node, "os_pid")),
        "OS: Linux".to_owned(),
        format!("Uptime (seconds): {}", number(&node, "uptime") / 1000),
        format!("Is under maintenance?: {}", node.get("being_drained") == Some(&json!(true))),
        format!("RabbitMQ version: {}", shown(&overview, "rabbitmq_version")),
        format!("Node name: {}", shown(&node, "name")),
    ];
    if overview.get("leveret_version").is_some() {
        // Above the node's name, with the other version.
        let own = format!("Leveret version: {}", shown(&overview, "leveret_version"));
        runtime.insert(runtime.len() - 1, own);
    }
    let memory = Memory::of(call, &node)?;
    let chapters = [
        chapter("Runtime", &runtime),
        chapter("Data directory", &[format!("Node data directory: {}", shown(&node, "db_dir"))]),
        chapter("Config files", &listed(&node, "config_files")),
        chapter("Log file(s)", &listed(&node, "log_files")),
        chapter("Alarms", &alarms(&node)),
        chapter(
            "Memory",
            &[
                format!("Total memory used: {}", unit.of(memory.total_bytes)),
                format!("Calculation strategy: {}", shown(&node, "mem_calculation_strategy")),
                watermark(&node, unit),
                memory.lines(unit, " %"),
            ],
        ),
        chapter(
            "Free Disk Space",
            &[
                format!(
                    "Low free disk space watermark: {}",
                    unit.of(number(&node, "disk_free_limit"))
                ),
                format!("Free disk space: {}", unit.of(number(&node, "disk_free"))),
            ],
        ),
        chapter(
            "Totals",
            &[
                format!("Connection count: {}", number(totals, "connections")),
                format!("Queue count: {}", number(totals, "queues")),
                format!("Virtual host count: {}", vhosts.as_array().map_or(0, Vec::len)),
            ],
        ),
        chapter(
            "Listeners",
            &listeners::of(&overview).iter().map(listeners::shown).collect::<Vec<_>>(),
        ),
    ];
    let all = json!({
        "node": node,
        "overview": overview,
        "alarms": alarms(&node),
        "memory": memory.all,
    });
    Ok(Output::Both(chapters.join("\n"), all))
}

/// The memory watermark: the setting, and the bytes that follow from it.
fn watermark(node: &Value, unit: Unit) -> String {
    let computed = unit.of(number(node, "mem_limit"));
    let setting = node.get("vm_memory_high_watermark_setting").unwrap_or(&Value::Null);
    let shown = match (setting.get("relative"), setting.get("absolute").and_then(Value::as_u64)) {
        (Some(share), _) => format!("{share} of available memory"),
        (None, Some(bytes)) => unit.of(bytes),
        // RabbitMQ's API does not tell the setting.
        (None, None) => return format!("Memory high watermark: {computed}\n"),
    };
    format!("Memory high watermark setting: {shown}, computed to: {computed}\n")
}

/// The texts of a list, as lines of a list.
fn listed(node: &Value, name: &str) -> Vec<String> {
    let all = node.get(name).and_then(Value::as_array);
    let texts = all.into_iter().flatten().filter_map(Value::as_str);
    texts.map(|text| format!(" * {text}")).collect()
}

fn cluster_status(call: &Call<'_>) -> Result<Output, Failure> {
    let (overview, nodes) = (call.node.api.get("/api/overview")?, all_nodes(call)?);
    let flags = call.node.api.find("/api/feature-flags")?.unwrap_or_default();
    let name = shown(&overview, "node");
    let listeners = listeners::of(&overview);
    let cluster = ClusterNodes::of(&nodes);
    let of_node = |listener| format!("Node: {name}, {}", lower_first(&listeners::shown(listener)));
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
    let maintenance =
        |node: &Value| format!("Node: {}, status: not under maintenance", shown(node, "name"));
    let alarms: Vec<String> = cluster.running.iter().flat_map(|node| alarms(node)).collect();
    let processors: u64 = cluster.running.iter().map(|node| number(node, "processors")).sum();
    let mut basics = vec![
        format!("Cluster name: {}", shown(&overview, "cluster_name")),
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
        chapter("Maintenance status", &for_each(&maintenance)),
        chapter("Alarms", &alarms),
        chapter("Network Partitions", &[]),
        chapter("Listeners", &listeners.iter().map(of_node).collect::<Vec<_>>()),
        chapter(
            "Feature flags",
            &flags.as_array().into_iter().flatten().map(flag).collect::<Vec<_>>(),
        ),
    ];
    let by_name = |value: &dyn Fn(&Value) -> Value| {
        let each = cluster.running.iter().map(|node| (shown(node, "name"), value(node)));
        Value::Object(each.collect::<Map<_, _>>())
    };
    let version = |node: &Value| json!({"rabbitmq_name": "RabbitMQ", "rabbitmq_version": node.get("rabbitmq_version")});
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
        "maintenance_status": by_name(&|_| json!("not under maintenance")),
        "listeners": {&name: listeners},
        "feature_flags": flags,
    });
    Ok(Output::Both(chapters.join("\n"), all))
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

fn erlang(value: &Value) -> String {
    let pairs = |map: &Map<String, Value>| {
        Term::Pairs(map.iter().map(|(name, v)| (name.clone(), Term::of(Some(v)))).collect())
    };
    let own = value.as_object().map_or_else(|| Term::List(Vec::new()), pairs);
    Term::Pairs(vec![("rabbit".to_owned(), own)]).erlang(0)
}

// COMPAT: memory breakdown: waiting messages, bytes for clients, samples and code are counted apart, and all
// else is one part; RabbitMQ divides memory by kinds of Erlang processes and tables.
fn memory_breakdown(call: &Call<'_>) -> Result<Output, Failure> {
    let unit = unit(call)?;
    let memory = Memory::of(call, &own_node(call)?)?;
    let part = |(name, bytes): &(String, u64)| {
        (name.clone(), json!({"bytes": bytes, "percentage": memory.per_cent(*bytes)}))
    };
    let all: Map<String, Value> = memory.parts.iter().map(part).collect();
    Ok(Output::Both(memory.lines(unit, "%") + "\n", Value::Object(all)))
}

fn report(call: &Call<'_>) -> Result<Output, Failure> {
    let style = Style { has_header: true, is_unicode: true };
    let text = |output: &Output| formatted(output, Formatter::Table, style, call.node.name());
    let mut all = format!("{}\n{}", text(&status(call)?), text(&cluster_status(call)?));
    let lists = ["list_connections", "list_channels", "list_policies", "list_queues"];
    let lists = lists.iter().chain(&["list_exchanges", "list_bindings", "list_permissions"]);
    let vhosts = call.node.api.get("/api/vhosts")?;
    for vhost in vhosts.as_array().into_iter().flatten() {
        let vhost = shown(vhost, "name");
        let words = ["--vhost".to_owned(), vhost.clone()];
        let options = crate::arguments::parse(&words, crate::GLOBAL_SWITCHES);
        let call = Call { words: &[], options: &options, ..*call };
        for name in lists.clone() {
            let Some(command) = crate::help::find(call.tool, &[(*name).to_owned()]) else {
                continue;
            };
            all.push_str(&format!("\n{name} in vhost {vhost}\n{}", text(&(command.run)(&call)?)));
        }
    }
    Ok(Output::Text(all))
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
    fn watermark_is_shown_as_set_and_as_computed() {
        let node = |setting: Value| json!({"mem_limit": 600_000_000, "vm_memory_high_watermark_setting": setting});
        let shown = |setting| watermark(&node(setting), Unit::Gigabytes);
        let relative =
            "Memory high watermark setting: 0.6 of available memory, computed to: 0.6 gb\n";
        assert_eq!(shown(json!({"relative": 0.6})), relative);
        let absolute = "Memory high watermark setting: 0.6 gb, computed to: 0.6 gb\n";
        assert_eq!(shown(json!({"absolute": 600_000_000})), absolute);
        assert_eq!(shown(Value::Null), "Memory high watermark: 0.6 gb\n");
    }
}
