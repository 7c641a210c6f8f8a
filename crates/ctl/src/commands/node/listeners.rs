//! Listeners of the node, and checks that they answer.

use std::collections::BTreeSet;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde_json::{Value, json};

use crate::command::{Call, Command, Section};
use crate::failure::{Failure, UNAVAILABLE};
use crate::format::Output;
use crate::term::Term;

/// Time limit for the answer of a listener.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Monitoring,
        "listeners",
        "listeners [--timeout <timeout>]",
        "Lists the listeners of the node",
        |call| {
            let all = own(call)?;
            let lines: Vec<String> = all.iter().map(shown).collect();
            let told = json!({"result": "ok", "node": call.node.name(), "listeners": all});
            Ok(Output::Both(lines.join("\n"), told))
        },
    )
    .diagnostics()
    .banner(|call| format!("Asking node {} to report its protocol listeners ...", call.node.name())),
    Command::new(
        Section::Monitoring,
        "check_port_listener",
        "check_port_listener <port> [--timeout <timeout>]",
        "Fails if the node does not listen on a port",
        check_port,
    )
    .diagnostics()
    .words(1, 1)
    .check(|call| match call.word(0).parse::<u32>() {
        Ok(port) if port > 0 => Ok(()),
        _ => Err(Failure::bad_argument(Some("Argument must be a positive integer"))),
    })
    .banner(|call| {
        let (node, port) = (call.node.name(), call.word(0));
        format!("Asking node {node} if there's an active listener on port {port} ...")
    }),
    Command::new(
        Section::Monitoring,
        "check_protocol_listener",
        "check_protocol_listener <protocol> [--timeout <timeout>]",
        "Fails if the node does not listen for a protocol",
        check_protocol,
    )
    .diagnostics()
    .words(1, 1)
    .banner(|call| {
        let (node, protocol) = (call.node.name(), call.word(0));
        format!("Asking node {node} if there's an active listener for protocol {protocol} ...")
    }),
    Command::new(
        Section::Monitoring,
        "check_port_connectivity",
        "check_port_connectivity [--address <address>] [--timeout <timeout>]",
        "Connects to every port of the node",
        check_connectivity,
    )
    .diagnostics()
    .switches(&[crate::arguments::Switch::text("address")])
    .banner(|call| {
        format!(
            "Testing TCP connections to all active listeners on node {} using hostname resolution ...",
            call.node.name()
        )
    }),
];

/// The listeners of the node that is asked.
fn own(call: &Call<'_>) -> Result<Vec<Value>, Failure> {
    Ok(of_node(&call.node.api.get("/api/overview")?))
}

/// The listeners of the node that tells an overview.
pub(in crate::commands) fn of_node(overview: &Value) -> Vec<Value> {
    let name = overview.get("node");
    let mut all = of_cluster(overview);
    all.retain(|one| name.is_none() || one.get("node") == name);
    all
}

/// The listeners of an overview, which are those of all nodes, in the form of RabbitMQ's tools.
pub(in crate::commands) fn of_cluster(overview: &Value) -> Vec<Value> {
    let all = overview.get("listeners").and_then(Value::as_array);
    let listener = |one: &Value| {
        let address = Term::of(one.get("ip_address")).shown();
        let address = if address.contains(':') { format!("[{address}]") } else { address };
        let protocol = Term::of(one.get("protocol")).shown();
        json!({
            "node": one.get("node"),
            "interface": address,
            "port": one.get("port"),
            "purpose": purpose(&protocol),
            "protocol": protocol,
        })
    };
    all.into_iter().flatten().map(listener).collect()
}

fn purpose(protocol: &str) -> &'static str {
    match protocol {
        "amqp" => "AMQP 0-9-1",
        "amqp/ssl" => "AMQP 0-9-1 over TLS",
        "http" => "HTTP API",
        "https" => "HTTP API over TLS (HTTPS)",
        "http/prometheus" => "Prometheus exporter API over HTTP",
        "clustering" => "inter-node and CLI tool communication",
        _ => "unknown",
    }
}

/// A listener as a line.
pub(in crate::commands) fn shown(listener: &Value) -> String {
    let text = |name| Term::of(listener.get(name)).shown();
    format!(
        "Interface: {}, port: {}, protocol: {}, purpose: {}",
        text("interface"),
        text("port"),
        text("protocol"),
        text("purpose")
    )
}

fn ports(listeners: &[Value]) -> BTreeSet<u64> {
    listeners.iter().filter_map(|one| one.get("port")?.as_u64()).collect()
}

fn joined<T: ToString>(all: impl IntoIterator<Item = T>) -> String {
    all.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join(", ")
}

fn check_port(call: &Call<'_>) -> Result<Output, Failure> {
    let (node, port) = (call.node.name(), call.word(0));
    let listeners = own(call)?;
    let ports = ports(&listeners);
    if ports.iter().any(|one| one.to_string() == port) {
        let text = format!("A listener for port {port} is running on node {node}.");
        let told = json!({"node": node, "port": port, "result": "ok"});
        return Ok(Output::Said(text, told));
    }
    // COMPAT: lists in the JSON of checks: the ports are numbers, where RabbitMQ's tool makes a text of them.
    let told = json!({
        "missing": port,
        "ports": ports,
        "listeners": listeners,
        "result": "error",
    });
    let text = format!(
        "No listener for port {port} is active on node {node}. Found listeners that use the following \
         ports: {}",
        joined(ports)
    );
    Err(Failure::plain(UNAVAILABLE, text).told(told))
}

/// Protocols for a word: `amqp10` and other names of AMQP.
fn check_protocol(call: &Call<'_>) -> Result<Output, Failure> {
    let (node, protocol) = (call.node.name(), call.word(0));
    let listeners = own(call)?;
    let known: BTreeSet<&str> =
        listeners.iter().filter_map(|one| one.get("protocol")?.as_str()).collect();
    let meant = match protocol {
        "amqp091" | "amqp0.9.1" | "amqp0-9-1" => "amqp",
        "amqps" => "amqp/ssl",
        "management" => "http",
        other => other,
    };
    if known.contains(meant) {
        let text = format!("A listener for protocol {protocol} is running on node {node}.");
        return Ok(Output::Said(text, json!({"node": node, "protocol": protocol, "result": "ok"})));
    }
    let told = json!({
        "missing": protocol,
        "protocols": known,
        "listeners": listeners,
        "result": "error",
    });
    let text = format!(
        "No listener for protocol {protocol} is active on node {node}. Found listeners for the \
         following protocols: {}",
        joined(known)
    );
    Err(Failure::error(UNAVAILABLE, text).told(told))
}

fn check_connectivity(call: &Call<'_>) -> Result<Output, Failure> {
    let node = call.node.name();
    let listeners = own(call)?;
    let mut failed = BTreeSet::new();
    let mut lines = Vec::new();
    for listener in &listeners {
        let Some(port) = listener.get("port").and_then(Value::as_u64) else { continue };
        let host = match call.options.text("address") {
            Some(address) => address.to_owned(),
            None => host_of(&Term::of(listener.get("interface")).shown(), call.node.api.host()),
        };
        lines.push(format!("Will connect to {host}:{port}"));
        if !answers(&host, port) {
            failed.insert(port);
        }
    }
    if !failed.is_empty() {
        let text =
            format!("Connection attempts on the following ports failed: {}", joined(&failed));
        let is_silent = |one: &&Value| {
            one.get("port").and_then(Value::as_u64).is_some_and(|port| failed.contains(&port))
        };
        let failures: Vec<&Value> = listeners.iter().filter(is_silent).collect();
        let told = json!({"node": node, "failures": failures, "result": "error"});
        return Err(Failure::plain(UNAVAILABLE, text).told(told));
    }
    lines.push(format!(
        "Successfully connected to ports {} on node {node} (using node hostname resolution)",
        joined(ports(&listeners))
    ));
    let told = json!({"node": node, "listeners": listeners, "result": "ok"});
    Ok(Output::Said(lines.join("\n"), told))
}

/// Host of a listener; one on all addresses is reached at the node's host.
fn host_of(interface: &str, node: &str) -> String {
    match interface {
        "0.0.0.0" | "[::]" | "" => node.to_owned(),
        address => address.trim_matches(['[', ']']).to_owned(),
    }
}

fn answers(host: &str, port: u64) -> bool {
    let Ok(port) = u16::try_from(port) else { return false };
    let Ok(mut addresses) = (host, port).to_socket_addrs() else { return false };
    addresses.any(|address| TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listener_is_printed_as_by_rabbitmq() {
        let overview = json!({"listeners": [
            {"node": "n", "protocol": "http", "ip_address": "::", "port": 15672},
        ]});
        let all = of_cluster(&overview);
        let lines: Vec<String> = all.iter().map(shown).collect();
        assert_eq!(lines, ["Interface: [::], port: 15672, protocol: http, purpose: HTTP API"]);
        assert_eq!(ports(&all), BTreeSet::from([15672]));
        assert_eq!((host_of("[::]", "h"), host_of("[::1]", "h")), ("h".into(), "::1".into()));
    }

    #[test]
    fn listeners_of_other_nodes_are_left_out() {
        let overview = json!({"node": "a@h", "listeners": [
            {"node": "a@h", "protocol": "amqp", "ip_address": "::", "port": 5672},
            {"node": "b@h", "protocol": "amqp", "ip_address": "::", "port": 5673},
        ]});
        assert_eq!(ports(&of_node(&overview)), BTreeSet::from([5672]));
        assert_eq!(ports(&of_cluster(&overview)), BTreeSet::from([5672, 5673]));
    }
}
