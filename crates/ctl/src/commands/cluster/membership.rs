//! The nodes of a cluster: a node joins, is forgotten, or goes on without the others.

use serde_json::{Value, json};

use crate::arguments::Switch;
use crate::command::{Call, Command, Section};
use crate::commands::node::lifecycle::{START_TIMEOUT, deadline, poll, timed_out};
use crate::failure::{Failure, UNAVAILABLE, USAGE};
use crate::format::Output;
use crate::http::{HttpError, path};

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Cluster,
        "join_cluster",
        "join_cluster [--disc] <node>",
        "Makes the node one of the cluster of another one; its own vhosts must be empty, and they, its users, permissions and parameters are replaced by those of the cluster",
        join,
    )
    .slow()
    .words(1, 1)
    .switches(&[Switch::flag("disc")])
    .banner(|call| format!("Clustering node {} with {}", call.node.name(), call.word(0))),
    Command::new(
        Section::Cluster,
        "forget_cluster_node",
        "forget_cluster_node <node>",
        "Takes a node that is not up out of the cluster",
        forget,
    )
    .words(1, 1)
    .switches(&[Switch::flag("offline")])
    .check(|call| match call.has("offline") {
        // COMPAT: forget_cluster_node --offline: refused; force_standalone_khepri_boot does what it is for.
        true => Err(Failure::plain(USAGE, OFFLINE)),
        false => Ok(()),
    })
    .banner(|call| format!("Removing node {} from the cluster", call.word(0))),
    Command::new(
        Section::Cluster,
        "force_standalone_khepri_boot",
        "force_standalone_khepri_boot",
        "Lets the node go on alone with what it has, where the majority of its cluster is lost for good",
        stand_alone,
    )
    .slow()
    .banner(|call| format!("Forcing node {} to go on without the other nodes ...", call.node.name())),
];

const OFFLINE: &str = "Error: 'forget_cluster_node --offline' is not available: a node that is stopped forgets no other \
                       one. While a majority of the nodes is up, run the command without --offline on any node of the \
                       cluster. If the majority is lost for good, run 'force_standalone_khepri_boot' on a node that is \
                       left.";

/// The failure with the reason of a node that cannot do that.
fn refused(error: HttpError) -> Failure {
    if let HttpError::Refused { status: 409, reason } = error {
        Failure::error(UNAVAILABLE, reason)
    } else {
        error.into()
    }
}

fn forget(call: &Call<'_>) -> Result<Output, Failure> {
    match call.node.api.remove(&path(&["nodes", call.word(0)])) {
        Ok(true) => Ok(Output::Done),
        Ok(false) => Err(Failure::error(UNAVAILABLE, "The node selected is not in the cluster")),
        Err(error) => Err(refused(error)),
    }
}

/// Joins, and waits until a node that runs has started anew as one of the cluster.
fn join(call: &Call<'_>) -> Result<Output, Failure> {
    let seed = call.word(0);
    let name = seed.rsplit_once(':').map_or(seed, |(name, _)| name);
    let action = json!({"action": "join_cluster", "node": seed});
    start_anew(call, "join_cluster", &action, &|nodes| nodes.contains(&name))
}

/// Leaves the others, and waits until a node that runs has started anew without them.
fn stand_alone(call: &Call<'_>) -> Result<Output, Failure> {
    let action = json!({"action": "stand_alone"});
    start_anew(call, "force_standalone_khepri_boot", &action, &|nodes| nodes.len() == 1)
}

/// Asks the node for an action with which it starts anew, and waits until a node that runs lists the nodes that
/// `is_done` accepts.
fn start_anew(
    call: &Call<'_>,
    operation: &str,
    action: &Value,
    is_done: &dyn Fn(&[&str]) -> bool,
) -> Result<Output, Failure> {
    let is_stopped =
        matches!(call.node.api.get("/api/whoami"), Err(HttpError::Refused { status: 503, .. }));
    let at = path(&["nodes", call.node.name(), "actions"]);
    call.node.api.post(&at, action).map_err(refused)?;
    if is_stopped {
        return Ok(Output::Done);
    }
    let lists = || {
        // The node has another token after each start.
        let nodes = (call.find)().ok()?.api.get("/api/nodes").ok()?;
        let name = |node| Value::get(node, "name").and_then(Value::as_str);
        is_done(&nodes.as_array()?.iter().filter_map(name).collect::<Vec<_>>()).then_some(())
    };
    let done = poll(deadline(call, START_TIMEOUT), lists);
    let why = format!("{} has not started anew", call.node.api.url());
    done.map(|()| Output::Done).ok_or_else(|| timed_out(call, operation, &why))
}
