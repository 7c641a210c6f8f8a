//! Maintenance commands, most of which Leveret does not need.

use serde_json::{Value, json};

use super::diagnostics::{failed, is_down};
use super::lifecycle::act;
use crate::arguments::Switch;
use crate::columns::{Column, selected};
use crate::command::{Call, Command, Section, Tools};
use crate::commands::answer::number;
use crate::failure::{Failure, SOFTWARE, UNAVAILABLE};
use crate::format::{Output, json_of};
use crate::http::{HttpError, path};
use crate::pids::Pids;
use crate::printable::in_line;
use crate::rows::rows_of;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Cluster,
        "has_reached_target_cluster_size",
        "has_reached_target_cluster_size",
        "Fails while fewer nodes run than cluster_formation.target_cluster_size_hint says",
        has_target_size,
    )
    .banner(|call| {
        let node = call.node.name();
        format!("Checking if target cluster size has been reached on node {node} ...")
    })
    .also_of(Tools::DIAGNOSTICS)
    .also_of(Tools::UPGRADE),
    Command::new(
        Section::VirtualHosts,
        "reconcile_vhosts",
        "reconcile_vhosts",
        "Passes if the node runs: every vhost runs with it",
        |_| Ok(Output::Done),
    )
    .banner(|_| {
        "Will try to initiate virtual host reconciliation on all reachable cluster nodes..."
            .to_owned()
    }),
    Command::new(
        Section::VirtualHosts,
        "restart_vhost",
        "restart_vhost [--vhost <vhost>]",
        "Does nothing: every vhost runs with the node",
        restart_vhost,
    )
    .banner(|call| {
        format!("Trying to restart vhost '{}' on node '{}' ...", call.vhost(), call.node.name())
    }),
    Command::new(
        Section::Operations,
        "force_gc",
        "force_gc",
        "Does nothing: Leveret has no garbage collection",
        |_| Ok(Output::Done),
    )
    .banner(|call| {
        let node = call.node.name();
        format!("Will ask all processes on node {node} to schedule a full sweep GC")
    }),
    Command::new(
        Section::Operations,
        "suspend_listeners",
        "suspend_listeners",
        "Stops accepting AMQP clients; open connections stay",
        |call| act(call, "suspend_listeners"),
    )
    .banner(|call| {
        let node = call.node.name();
        format!(
            "Will suspend client connection listeners on node {node}. The node will no longer \
             accept client connections!"
        )
    }),
    Command::new(
        Section::Operations,
        "resume_listeners",
        "resume_listeners",
        "Accepts AMQP clients again",
        |call| act(call, "resume_listeners"),
    )
    .banner(|call| {
        let node = call.node.name();
        format!(
            "Will resume client connection listeners on node {node}. The node will now accept \
             client connections"
        )
    }),
    Command::new(
        Section::Nodes,
        "rotate_logs",
        "rotate_logs",
        "Does nothing: log files are rotated by size",
        |_| {
            let text = "This command does not rotate logs anymore [deprecated]";
            Err(Failure::error(UNAVAILABLE, text))
        },
    ),
    Command::new(
        Section::Monitoring,
        "list_node_auth_attempt_stats",
        "list_node_auth_attempt_stats",
        "Lists the numbers of successful and failed logins",
        list_attempts,
    )
    .everywhere()
    .words(0, usize::MAX)
    .columns(ATTEMPTS)
    .banner(|call| {
        format!("Listing authentication\n attempts for node \"{}\" ...", call.node.name())
    }),
    Command::new(
        Section::Monitoring,
        "check_if_node_is_mirror_sync_critical",
        "check_if_node_is_mirror_sync_critical",
        "Does nothing, as in RabbitMQ",
        |_| Ok(Output::passed("ok")),
    )
    .diagnostics()
    .banner(|_| {
        "This command is DEPRECATED and is a no-op. It will be removed in a future version."
            .to_owned()
    }),
    Command::new(
        Section::Monitoring,
        "check_certificate_expiration",
        "check_certificate_expiration [--within <time>] [--unit <days | weeks | months | years>]",
        "Fails if a certificate of a listener expires soon, by default within four weeks",
        check_certificates,
    )
    .diagnostics()
    .switches(&[Switch::integer("within"), Switch::text("unit")])
    .banner(|call| {
        let node = call.node.name();
        format!("Checking certificate expiration for all certificates on node {node} ...")
    }),
];

const ATTEMPTS: &[Column] = &[
    Column::atom("protocol"),
    Column::same("auth_attempts"),
    Column::same("auth_attempts_failed"),
    Column::same("auth_attempts_succeeded"),
];

fn has_target_size(call: &Call<'_>) -> Result<Output, Failure> {
    let node = call.node.name();
    let Some(answer) = failed(call, "reached-target-cluster-size")? else {
        let text = format!("Target cluster size has been reached on node {node}");
        return Ok(Output::passed(text));
    };
    let (online, target) = (number(&answer, "online"), number(&answer, "target"));
    let text = format!(
        "Target cluster size on node {node} has not been reached: {online} of {target} nodes are online"
    );
    Err(Failure::error(UNAVAILABLE, text))
}

fn restart_vhost(call: &Call<'_>) -> Result<Output, Failure> {
    let (vhost, node) = (call.vhost(), call.node.name());
    match call.node.api.find(&path(&["vhosts", vhost]))? {
        Some(found) if !is_down(&found) => Ok(Output::message(format!(
            "Vhost '{}' is already running on node '{node}'",
            in_line(vhost)
        ))),
        Some(_) => Err(Failure::error(
            SOFTWARE,
            format!(
                "Vhost '{vhost}' is down on node '{node}': its files could not be read at the start of the node. \
                 `leveretctl doctor` has the reason. Stop the node, restore the files, and start it again."
            ),
        )),
        None => Err(Failure::error(
            SOFTWARE,
            format!(
                "Failed to start vhost '{vhost}' on node '{node}'Reason: \
                 {{:no_such_vhost, \"{vhost}\"}}"
            ),
        )),
    }
}

fn check_certificates(call: &Call<'_>) -> Result<Output, Failure> {
    let within = call.options.integer("within").unwrap_or(4).to_string();
    let unit = call.options.text("unit").unwrap_or("weeks");
    let at = path(&["health", "checks", "certificate-expiration", &within, unit]);
    match call.node.api.get(&at) {
        Ok(_) => {
            Ok(Output::passed(format!("No certificates are expiring within {within} {unit}.")))
        }
        Err(HttpError::Refused { status: 503, .. }) => {
            let text = format!("Certificates of listeners expire within {within} {unit}.");
            Err(Failure::error(UNAVAILABLE, text))
        }
        Err(error) => Err(error.into()),
    }
}

fn list_attempts(call: &Call<'_>) -> Result<Output, Failure> {
    let attempts = call.node.api.get(&path(&["auth", "attempts", call.node.name()]))?;
    let usual = ["protocol", "auth_attempts", "auth_attempts_failed", "auth_attempts_succeeded"];
    let columns = selected(call.words, ATTEMPTS, &usual);
    let nobody = Pids::default();
    let row = |one: &Value| columns.iter().map(|column| column.cell(one, &nobody)).collect();
    let rows = rows_of(&attempts, row);
    let told = json!({"node": call.node.name(), "attempts": json_of(&rows), "result": "ok"});
    Ok(Output::Listed(rows.into(), told))
}
