//! Status of the node.

use serde_json::{Map, Value, json};

use super::listeners;
use super::memory::{Memory, Unit, unit};
use crate::arguments::Switch;
use crate::command::{Call, Command, Section};
use crate::commands::answer::number;
use crate::commands::program::plugins::BUILT_IN;
use crate::failure::Failure;
use crate::format::{Formatter, Output};
use crate::printable::in_line;
use crate::term::Term;

const UNIT: &[Switch] = &[Switch::text("unit")];

pub(in crate::commands) const COMMANDS: &[Command] = &[
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
        Section::Configuration,
        "environment",
        "environment",
        "Shows the environment of the node, as Erlang terms",
        |call| {
            let node = own_node(call)?;
            Ok(Output::Both(erlang(&node), json!({"rabbit": node})))
        },
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
            let told = json!({"result": "ok", "value": version});
            Ok(Output::Said(version, told))
        },
    )
    .diagnostics()
    .banner(|call| format!("Asking node {} for its RabbitMQ version...", call.node.name())),
];

/// The node's entry in the list of nodes.
pub(in crate::commands) fn own_node(call: &Call<'_>) -> Result<Value, Failure> {
    let own = |node: &Value| node.get("name").and_then(Value::as_str) == Some(call.node.name());
    Ok(all_nodes(call)?.into_iter().find(own).unwrap_or_default())
}

/// All nodes of the cluster, those that do not run included.
pub(in crate::commands) fn all_nodes(call: &Call<'_>) -> Result<Vec<Value>, Failure> {
    let nodes = call.node.api.get("/api/nodes")?;
    Ok(nodes.as_array().cloned().unwrap_or_default())
}

/// True if a node of the cluster runs.
pub(in crate::commands) fn is_running(node: &Value) -> bool {
    node.get("running") == Some(&Value::Bool(true))
}

pub(in crate::commands) fn shown(of: &Value, name: &str) -> String {
    Term::of(of.get(name)).shown()
}

/// The alarms in force, each as a sentence.
pub(in crate::commands) fn alarms(node: &Value) -> Vec<String> {
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

pub(in crate::commands) fn chapter(title: &str, lines: &[String]) -> String {
    let none = ["(none)".to_owned()];
    let lines = if lines.is_empty() { &none[..] } else { lines };
    format!("{title}\n\n{}\n", lines.join("\n"))
}

pub(in crate::commands) fn status(call: &Call<'_>) -> Result<Output, Failure> {
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
        chapter(
            "Data directory",
            &[format!("Node data directory: {}", in_line(&shown(&node, "db_dir")))],
        ),
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
            &listeners::of_node(&overview).iter().map(listeners::shown).collect::<Vec<_>>(),
        ),
    ];
    let told = told(&overview, &node, &memory.all, vhosts.as_array().map_or(0, Vec::len));
    Ok(Output::Both(chapters.join("\n"), told))
}

/// The status in the form in which programs read that of RabbitMQ. What only Erlang has is 0 or `none`, as over HTTP.
fn told(overview: &Value, node: &Value, memory: &Value, vhosts: usize) -> Value {
    let of = |name: &str| node.get(name).unwrap_or(&Value::Null);
    let list = |name: &str| of(name).as_array().cloned().unwrap_or_default();
    let totals = overview.get("object_totals").unwrap_or(&Value::Null);
    json!({
        "pid": shown(node, "os_pid").parse::<u64>().unwrap_or_default(),
        "os": "Linux",
        "uptime": number(node, "uptime") / 1000,
        "is_under_maintenance": of("being_drained") == &Value::Bool(true),
        "rabbitmq_version": overview.get("rabbitmq_version"),
        "leveret_version": overview.get("leveret_version"),
        "product_name": "",
        "product_version": "",
        "erlang_version": of("erlang_full_version"),
        "crypto_lib_version": of("crypto_lib_version"),
        "processes": {"used": number(node, "proc_used"), "limit": number(node, "proc_total")},
        "run_queue": number(node, "run_queue"),
        "net_ticktime": number(node, "net_ticktime"),
        "enabled_plugin_file": "",
        "active_plugins": BUILT_IN,
        "data_directory": of("db_dir"),
        "raft_data_directory": of("db_dir"),
        "config_files": list("config_files"),
        "log_files": list("log_files"),
        "alarms": resources(node),
        "tags": [],
        "memory": memory,
        "vm_memory_calculation_strategy": of("mem_calculation_strategy"),
        "vm_memory_high_watermark_setting": of("vm_memory_high_watermark_setting"),
        "vm_memory_high_watermark_limit": number(node, "mem_limit"),
        "disk_free_limit": number(node, "disk_free_limit"),
        "disk_free": number(node, "disk_free"),
        "totals": {
            "connection_count": number(totals, "connections"),
            "queue_count": number(totals, "queues"),
            "virtual_host_count": vhosts,
        },
        "listeners": listeners::of_node(overview),
    })
}

/// The alarms in force, each as its resource.
fn resources(node: &Value) -> Vec<Value> {
    let resources = [("mem_alarm", "memory"), ("disk_free_alarm", "disk")];
    let in_force = resources.iter().filter(|(field, _)| node.get(*field) == Some(&json!(true)));
    let alarm = |(_, resource): &(&str, &str)| json!({"node": node.get("name"), "type": "resource_limit", "resource": resource});
    in_force.map(alarm).collect()
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
    texts.map(|text| format!(" * {}", in_line(text))).collect()
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
    let part = |(name, bytes): (&String, &Value)| {
        let bytes = bytes.as_u64()?;
        Some((name.clone(), json!({"bytes": bytes, "percentage": memory.per_cent(bytes)})))
    };
    // The empty parts, too: programs have a field for each.
    let all: Map<String, Value> =
        memory.all.as_object().into_iter().flatten().filter_map(part).collect();
    Ok(Output::Both(memory.lines(unit, "%") + "\n", Value::Object(all)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_for_programs_has_numbers_and_alarms_as_resources() {
        let node = json!({"name": "n@h", "os_pid": "7", "uptime": 61_999, "mem_alarm": false, "disk_free_alarm": true});
        let overview = json!({"rabbitmq_version": "4.3.6", "object_totals": {"queues": 3}});
        let told = told(&overview, &node, &Value::Null, 2);
        let alarm = json!({"node": "n@h", "type": "resource_limit", "resource": "disk"});
        assert_eq!(told["alarms"], json!([alarm]));
        assert_eq!((&told["pid"], &told["uptime"]), (&json!(7), &json!(61)));
        let totals = json!({"connection_count": 0, "queue_count": 3, "virtual_host_count": 2});
        assert_eq!(told["totals"], totals);
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
