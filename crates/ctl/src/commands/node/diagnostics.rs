//! Checks of health, for monitoring: silent texts for people, exit codes for programs.

use serde_json::{Map, Value, json};

use super::status::{alarms, all_nodes, own_node};
use crate::command::{Call, Command, Section, Tools};
use crate::commands::cluster::replicas;
use crate::failure::{Failure, UNAVAILABLE};
use crate::format::Output;
use crate::http::{HttpError, path};
use crate::printable::in_line;
use crate::rows::{document, rows_of, same};
use crate::term::Term;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    check("check_running", "Fails if the node does not serve clients", check_running)
        .banner(|call| format!("Checking if RabbitMQ is running on node {} ...", call.node.name())),
    check("is_running", "Tells whether the node serves clients", is_running)
        .banner(|call| format!("Asking node {} for its status ...", call.node.name())),
    check("is_booting", "Tells whether the node is about to start", |call| {
        call.node.api.get("/api/whoami").map(drop).or_else(refused_is_an_answer)?;
        let node = call.node.name();
        let text = format!(
            "RabbitMQ on node {node} is fully booted (check with is_running), stopped or has not \
             started booting yet"
        );
        let told = json!({"result": false, "message": text});
        Ok(Output::Said(text, told))
    })
    .banner(|call| format!("Asking node {} for its boot status ...", call.node.name())),
    check("check_alarms", "Fails if an alarm of any node is in force", check_alarms).banner(|call| {
        format!("Asking node {} to report any local resource alarms ...", call.node.name())
    }),
    check("check_local_alarms", "Fails if an alarm of this node is in force", |call| {
        KnownAlarms { local: alarms(&own_node(call)?), others: Vec::new() }.checked(call)
    })
    .banner(|call| {
        format!("Asking node {} to report any local resource alarms ...", call.node.name())
    }),
    check("alarms", "Lists the alarms in force", |call| {
        let all = KnownAlarms::ask(call)?;
        if all.is_empty() {
            let told = json!({"node": call.node.name(), "alarms": [], "result": "ok"});
            return Ok(Output::Said(no_alarms(call), told));
        }
        Ok(Output::Said(all.sentences().join("\n"), all.told(call.node.name(), "ok")))
    })
    .banner(|call| {
        format!("Asking node {} to report any known resource alarms ...", call.node.name())
    }),
    check("check_virtual_hosts", "Fails if a vhost does not run", check_vhosts)
        .banner(|call| format!("Checking if all vhosts are running on node {} ...", call.node.name())),
    check(
        "check_if_node_is_quorum_critical",
        "Fails if a vhost would have no majority of its nodes without this one",
        |call| {
            let node = call.node.name();
            if call.node.api.get("/api/nodes")?.as_array().is_none_or(|nodes| nodes.len() < 2) {
                return Ok(passed_because(format!(
                    "Node {node} seems to be the only one in a single node cluster, the check does not apply"
                )));
            }
            quorum(call)?;
            Ok(passed_because(format!(
                "Node {node} reported no queues/streams with minimum quorum"
            )))
        },
    )
    .banner(|call| {
        let node = call.node.name();
        format!("Checking if node {node} is critical for quorum of any queues/streams ...")
    })
    .also_of(Tools::QUEUES),
    check(
        "check_if_new_quorum_queue_replicas_have_finished_initial_sync",
        "Fails while a replica of a vhost is new or rebuilt, and does not vote",
        replicas::check_are_complete,
    )
    .banner(|call| {
        let node = call.node.name();
        format!("Checking if node {node} runs promotable replicas of any queues ...")
    })
    .also_of(Tools::QUEUES),
    check(
        "check_if_metadata_store_is_initialized",
        "Fails while the node knows no leader of users and vhosts",
        |call| {
            health(call, "metadata-store/initialized")?;
            let node = call.node.name();
            let text = format!("Metadata store on node {node} has completed its initialization");
            Ok(Output::passed(text))
        },
    )
    .banner(|call| {
        let node = call.node.name();
        format!("Checking if metadata store on node {node} has finished initializing ...")
    }),
    check(
        "check_if_is_in_service",
        "Fails while the node accepts no AMQP clients, because it is drained or its listeners are suspended",
        |call| {
            health(call, "is-in-service")?;
            Ok(Output::passed(format!("Node {} is in service", call.node.name())))
        },
    )
    .banner(|call| format!("Checking if node {} is in service ...", call.node.name())),
    check(
        "check_if_ready_to_serve_clients",
        "Fails while the node accepts no AMQP clients, or knows no leader of users and vhosts",
        |call| {
            health(call, "ready-to-serve-clients")?;
            Ok(Output::passed(format!("Node {} is ready to serve clients", call.node.name())))
        },
    )
    .banner(|call| format!("Checking if node {} is ready to serve clients ...", call.node.name())),
    check("log_location", "Shows where the node writes its log", |call| {
        let node = own_node(call)?;
        let files = node.get("log_files").cloned().unwrap_or_else(|| json!(["<stderr>"]));
        let file = |file: &Value| in_line(file.as_str().unwrap_or_default()).into_owned();
        let lines: Vec<String> = files.as_array().into_iter().flatten().map(file).collect();
        let told = json!({"result": "ok", "node_name": call.node.name(), "paths": files});
        Ok(Output::Said(lines.join("\n"), told))
    })
    .switches(&[crate::arguments::Switch::flag("all").or('a')])
    .banner(|call| format!("Log file location(s) on node {} ...", call.node.name())),
    check("os_env", "Lists the variables of the environment that this tool reads", os_env).banner(|_| {
        "Listing the variables that leveretctl and leveret read from their environment...".to_owned()
    }),
    check(
        "list_policies_that_match",
        "Lists the policies whose pattern matches a queue; the first applies",
        policies_that_match,
    )
    .usage("list_policies_that_match [--vhost <vhost>] <name>")
    .words(1, 1)
    .banner(|call| {
        let (queue, vhost) = (call.word(0), call.vhost());
        format!("Listing policies that match queue '{queue}' in vhost '{vhost}' ...")
    }),
    Command::new(
        Section::Other,
        "node_health_check",
        "node_health_check [--timeout <timeout>]",
        "Does nothing: rabbitmq-diagnostics has checks instead",
        |call| {
            let instead = "This command is DEPRECATED and is a no-op. It will be removed in a future \
                           version. \nUse the checks of rabbitmq-diagnostics instead.";
            let told = json!({"result": "ok", "node": call.node.name()});
            Ok(Output::Said(instead.to_owned(), told))
        },
    )
    .everywhere(),
];

/// A command of `rabbitmq-diagnostics` without words.
const fn check(
    name: &'static str,
    about: &'static str,
    run: fn(&Call<'_>) -> Result<Output, Failure>,
) -> Command {
    Command::new(Section::Monitoring, name, name, about, run).diagnostics()
}

/// A sentence about success, which JSON tells, too.
fn passed_because(text: String) -> Output {
    let told = json!({"message": text, "result": "ok"});
    Output::Said(text, told)
}

/// A refusal counts as an answer.
fn refused_is_an_answer(error: HttpError) -> Result<(), HttpError> {
    if matches!(error, HttpError::Refused { .. }) { Ok(()) } else { Err(error) }
}

fn running_text(call: &Call<'_>) -> String {
    format!("RabbitMQ on node {} is fully booted and running", call.node.name())
}

fn stopped_text(call: &Call<'_>) -> String {
    format!("RabbitMQ on node {} is stopped", call.node.name())
}

fn is_up(call: &Call<'_>) -> Result<bool, Failure> {
    match call.node.api.get("/api/whoami") {
        Ok(_) => Ok(true),
        Err(HttpError::Refused { status: 503, .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Asks a health check.
///
/// # Errors
/// The reason of the check if it fails.
pub(in crate::commands) fn health(call: &Call<'_>, check: &str) -> Result<(), Failure> {
    match failed(call, check)? {
        None => Ok(()),
        Some(answer) => {
            let why = reason(&answer);
            let told = json!({"message": why, "result": "error"});
            Err(Failure::plain(UNAVAILABLE, why).told(told))
        }
    }
}

/// The answer of a health check that fails.
pub(in crate::commands) fn failed(call: &Call<'_>, check: &str) -> Result<Option<Value>, Failure> {
    Ok(call.node.api.failed_check(&format!("/api/health/checks/{check}"))?)
}

fn reason(answer: &Value) -> String {
    Term::of(answer.get("reason")).shown()
}

/// Asks whether every vhost would have a majority of its nodes without this one.
///
/// # Errors
/// The vhosts that would not.
pub(in crate::commands) fn quorum(call: &Call<'_>) -> Result<(), Failure> {
    let Some(answer) = failed(call, "node-is-quorum-critical")? else { return Ok(()) };
    let vhosts = answer.get("queues").and_then(Value::as_array).into_iter().flatten();
    let name = |vhost: &Value| Term::of(vhost.get("readable_name")).shown();
    let vhosts: Vec<String> = vhosts.map(name).collect();
    let head = match vhosts.is_empty() {
        true => reason(&answer),
        false => format!("{}:", reason(&answer)),
    };
    let told =
        json!({"message": reason(&answer), "queues": answer.get("queues"), "result": "error"});
    Err(Failure::lines(UNAVAILABLE, std::iter::once(head).chain(vhosts)).told(told))
}

fn check_running(call: &Call<'_>) -> Result<Output, Failure> {
    match is_up(call)? {
        true => Ok(Output::message(running_text(call))),
        false => Err(Failure::plain(UNAVAILABLE, stopped_text(call))),
    }
}

fn is_running(call: &Call<'_>) -> Result<Output, Failure> {
    let is = is_up(call)?;
    let text = if is { running_text(call) } else { stopped_text(call) };
    let told = json!({"result": is, "message": text});
    Ok(Output::Said(text, told))
}

fn no_alarms(call: &Call<'_>) -> String {
    format!("Node {} reported no alarms, local or clusterwide", call.node.name())
}

/// Alarms as sentences: of the node that is asked, and of the other nodes that run.
struct KnownAlarms {
    local: Vec<String>,
    others: Vec<String>,
}

impl KnownAlarms {
    fn ask(call: &Call<'_>) -> Result<Self, Failure> {
        Ok(Self::of(call.node.name(), all_nodes(call)?))
    }

    fn of(own_name: &str, nodes: Vec<Value>) -> Self {
        let is_own = |node: &Value| node.get("name").and_then(Value::as_str) == Some(own_name);
        let (own, others): (Vec<Value>, _) = nodes.into_iter().partition(is_own);
        let of = |nodes: &[Value]| nodes.iter().flat_map(alarms).collect();
        Self { local: of(&own), others: of(&others) }
    }

    fn is_empty(&self) -> bool {
        self.local.is_empty() && self.others.is_empty()
    }

    fn sentences(&self) -> Vec<String> {
        [&self.local[..], &self.others].concat()
    }

    fn told(&self, node: &str, result: &str) -> Value {
        let message = format!("Node {node} reported alarms");
        json!({"local": self.local, "global": self.others, "message": message, "result": result})
    }

    /// Success if there are none.
    fn checked(&self, call: &Call<'_>) -> Result<Output, Failure> {
        if self.is_empty() {
            return Ok(Output::passed(no_alarms(call)));
        }
        let told = self.told(call.node.name(), "error");
        Err(Failure::error_lines(UNAVAILABLE, self.sentences()).told(told))
    }
}

fn check_alarms(call: &Call<'_>) -> Result<Output, Failure> {
    KnownAlarms::ask(call)?.checked(call)
}

/// True for a vhost that does not run on a node.
pub(in crate::commands) fn is_down(vhost: &Value) -> bool {
    let states = vhost.get("cluster_state").and_then(Value::as_object);
    states.is_some_and(|states| states.values().any(|state| state != "running"))
}

fn check_vhosts(call: &Call<'_>) -> Result<Output, Failure> {
    let vhosts = call.node.api.get("/api/vhosts")?;
    let down: Vec<String> = vhosts
        .as_array()
        .into_iter()
        .flatten()
        .filter(|vhost| is_down(vhost))
        .map(|vhost| Term::of(vhost.get("name")).shown())
        .collect();
    let node = call.node.name();
    if down.is_empty() {
        return Ok(Output::passed(format!("Node {node} reported all vhosts as running")));
    }
    let head = format!("Some virtual hosts on node {node} are down:");
    let told = json!({"down_vhosts": down, "result": "error"});
    Err(Failure::error_lines(UNAVAILABLE, std::iter::once(head).chain(down)).told(told))
}

fn os_env(call: &Call<'_>) -> Result<Output, Failure> {
    let ours = |name: &str| name.starts_with("LEVERET_") || name.starts_with("RABBITMQ_");
    let is_secret = |name: &str| name.contains("PASS");
    let mut all: Vec<(String, String)> = std::env::vars().filter(|(name, _)| ours(name)).collect();
    all.sort();
    for (name, value) in &mut all {
        if is_secret(name) {
            "(not shown)".clone_into(value);
        }
    }
    let line = |(name, value): &(String, String)| format!("{name}={}", in_line(value));
    let lines: Vec<String> = all.iter().map(line).collect();
    let variables: Map<String, Value> =
        all.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
    let told = json!({"node": call.node.name(), "variables": variables, "result": "ok"});
    Ok(Output::Said(lines.join("\n"), told))
}

/// The policy that is in force for a queue.
// COMPAT: policies that match: the one policy in force is listed, not those that it wins against.
fn policies_that_match(call: &Call<'_>) -> Result<Output, Failure> {
    let queue = call.node.api.find(&path(&["queues", call.vhost(), call.word(0)]))?;
    let queue = queue.ok_or_else(|| {
        let why = "object (queue, exchange) not found";
        Failure::no_such_object().told(json!({"message": why, "policies": [], "result": "error"}))
    })?;
    let name = queue.get("policy").and_then(Value::as_str).filter(|name| !name.is_empty());
    let policy = match name {
        Some(name) => call.node.api.find(&path(&["policies", call.vhost(), name]))?,
        None => None,
    };
    let all: Value = policy.into_iter().collect();
    let rows = rows_of(&all, |policy| {
        vec![
            same(policy, "name"),
            same(policy, "pattern"),
            same(policy, "apply-to"),
            document(policy, "definition"),
            same(policy, "priority"),
        ]
    });
    Ok(Output::Listed(rows.into(), json!({"policies": all, "result": "ok"})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_of_other_nodes_are_told_apart() {
        let node = |name: &str, has: bool| json!({"name": name, "mem_alarm": has});
        let alarms = KnownAlarms::of("a@h", vec![node("b@h", true), node("a@h", true)]);
        let told = json!({
            "local": ["Memory alarm on node a@h"],
            "global": ["Memory alarm on node b@h"],
            "message": "Node a@h reported alarms",
            "result": "error",
        });
        assert_eq!(alarms.told("a@h", "error"), told);
        assert_eq!(alarms.sentences(), ["Memory alarm on node a@h", "Memory alarm on node b@h"]);
        assert!(KnownAlarms::of("a@h", vec![node("a@h", false)]).is_empty());
    }
}
