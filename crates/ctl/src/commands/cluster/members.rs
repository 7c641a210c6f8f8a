//! Replicas of quorum queues, which are those of their vhosts: `rabbitmq-queues add_member`, `grow`, `shrink`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::leadership::{ALL, check_queue_pattern, refused_pattern};
use super::quorum_queue::{QuorumQueue, unsupported};
use crate::arguments::Switch;
use crate::command::{Call, Command, Section, Tools};
use crate::commands::node::status::{all_nodes, shown};
use crate::failure::{Failure, UNAVAILABLE, USAGE};
use crate::format::{Output, Row};
use crate::http::{HttpError, path};
use crate::term::Term;

/// RabbitMQ's answer to the name of a node that is not one of the cluster.
const NO_MEMBER: &str = "Node is not a cluster member";

/// RabbitMQ's answer where a replica is the only one.
const LAST_NODE: &str = "last_node";

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Cluster,
        "add_member",
        "add_member [--vhost <vhost>] <queue> <node> [--membership <promotable|voter>] [--timeout <timeout>]",
        "Adds a replica of the vhost of a quorum queue on a node",
        add,
    )
    .of(Tools::QUEUES)
    .words(2, 2)
    .switches(&[Switch::text("membership")])
    .check(check_membership)
    .banner(|call| banner(call, "Adding a member for")),
    Command::new(
        Section::Cluster,
        "delete_member",
        "delete_member [--vhost <vhost>] <queue> <node>",
        "Removes the replica of the vhost of a quorum queue from a node",
        remove,
    )
    .of(Tools::QUEUES)
    .words(2, 2)
    .banner(|call| banner(call, "Removing a replica of")),
    Command::new(
        Section::Cluster,
        "grow",
        "grow <node> <all | even> [--vhost-pattern <pattern>] [--queue-pattern <pattern>] \
         [--membership <promotable|voter>]",
        "Adds a replica of each vhost on a node",
        grow,
    )
    .of(Tools::QUEUES)
    .words(2, 2)
    .switches(&[
        Switch::text("vhost-pattern"),
        Switch::text("queue-pattern"),
        Switch::text("membership"),
        Switch::flag("errors-only"),
    ])
    .check(|call| {
        let strategy = call.word(1);
        if !["all", "even"].contains(&strategy) {
            return Err(unknown(&format!("strategy '{strategy}'")));
        }
        check_queue_pattern(call, "have its replicas")?;
        check_membership(call)
    })
    .banner(|call| format!("Growing {} queues on {}...", call.word(1), call.word(0))),
    Command::new(
        Section::Cluster,
        "shrink",
        "shrink <node> [--errors-only]",
        "Removes the replicas of all vhosts from a node, except those that are the only ones",
        shrink,
    )
    .of(Tools::QUEUES)
    .words(1, 1)
    .switches(&[Switch::flag("errors-only")])
    .banner(|call| format!("Shrinking queues on {}...", call.word(0))),
];

fn banner(call: &Call<'_>, doing: &str) -> String {
    let (queue, node, vhost) = (call.word(0), call.word(1), call.vhost());
    format!(
        "{doing} queue {queue} on node {node}...\nThe replica is one of vhost '{vhost}' with all its queues."
    )
}

fn unknown(what: &str) -> Failure {
    Failure::arguments(USAGE, format!("\"{what} is not recognised.\""))
}

/// Each replica votes once it has everything.
fn check_membership(call: &Call<'_>) -> Result<(), Failure> {
    match call.options.text("membership") {
        None | Some("promotable" | "voter") => Ok(()),
        Some(other) => Err(unknown(&format!("voter status '{other}'"))),
    }
}

/// Checks that a node is one of the cluster.
fn check_node(call: &Call<'_>, name: &str) -> Result<(), Failure> {
    if all_nodes(call)?.iter().any(|node| shown(node, "name") == name) {
        return Ok(());
    }
    let text = format!("Error: node {name} is not a member of the cluster");
    Err(Failure::Message { code: USAGE, text, shows_usage: true })
}

fn add(call: &Call<'_>) -> Result<Output, Failure> {
    check_node(call, call.word(1))?;
    let (vhost, queue) = (call.vhost(), call.word(0));
    QuorumQueue::named(call)?.check(&unsupported)?;
    let at = path(&["vhosts", vhost, "members", call.word(1)]);
    match call.node.api.put(&at, &json!({})) {
        Err(HttpError::Refused { status: 404, .. }) => Err(QuorumQueue::missing(vhost, queue)),
        Err(error) => Err(error.into()),
        Ok(()) => Ok(Output::Done),
    }
}

fn remove(call: &Call<'_>) -> Result<Output, Failure> {
    let (vhost, queue) = (call.vhost(), call.word(0));
    QuorumQueue::named(call)?.check(&unsupported)?;
    match call.node.api.remove(&path(&["vhosts", vhost, "members", call.word(1)])) {
        Ok(true) => Ok(Output::Done),
        Ok(false) => Err(QuorumQueue::missing(vhost, queue)),
        // As in RabbitMQ, a node that does not exist loses none.
        Err(HttpError::Refused { status: 400, reason }) if reason == NO_MEMBER => Ok(Output::Done),
        Err(HttpError::Refused { status: 503, reason }) if reason == LAST_NODE => {
            Err(Failure::error(UNAVAILABLE, LAST_NODE))
        }
        Err(error) => Err(error.into()),
    }
}

fn grow(call: &Call<'_>) -> Result<Output, Failure> {
    let node = call.word(0);
    check_node(call, node)?;
    let (before, queues) = (members(call)?, quorum_queues(call)?);
    let pattern = call.options.text("vhost-pattern").unwrap_or(ALL);
    let body = json!({"strategy": call.word(1), "vhost_pattern": pattern, "queue_pattern": ALL});
    let at = path(&["queues", "quorum", "replicas", "on", node, "grow"]);
    call.node
        .api
        .post_text(&at, &body.to_string())
        .map_err(|error| refused_pattern(error, pattern))?;
    let after = members(call)?;
    let has_come = |(vhost, members): (String, BTreeSet<String>)| {
        let is_new = members.contains(node) && !before.get(&vhost)?.contains(node);
        is_new.then_some((vhost, Ok(members.len())))
    };
    Ok(rows(call, queues, after.into_iter().filter_map(has_come).collect()))
}

fn shrink(call: &Call<'_>) -> Result<Output, Failure> {
    let node = call.word(0);
    let (before, queues) = (members(call)?, quorum_queues(call)?);
    if !call.node.api.remove(&path(&["queues", "quorum", "replicas", "on", node, "shrink"]))? {
        return Err(Failure::error(UNAVAILABLE, format!("{{:node_not_running, :{node}}}")));
    }
    let mut after = members(call)?;
    let has_gone = |(vhost, had): (String, BTreeSet<String>)| {
        let members = after.remove(&vhost)?;
        let result = match members.contains(node) {
            true => Err("the last node cannot be removed"),
            false => Ok(members.len()),
        };
        had.contains(node).then_some((vhost, result))
    };
    Ok(rows(call, queues, before.into_iter().filter_map(has_gone).collect()))
}

/// The nodes that have each vhost, or are to have it.
fn members(call: &Call<'_>) -> Result<BTreeMap<String, BTreeSet<String>>, Failure> {
    let vhosts = call.node.api.get("/api/vhosts?columns=name,members&disable_stats=true")?;
    let of = |vhost: &Value| {
        let members = vhost.get("members").and_then(Value::as_array).into_iter().flatten();
        let names = members.filter_map(Value::as_str).map(str::to_owned).collect();
        (shown(vhost, "name"), names)
    };
    Ok(vhosts.as_array().into_iter().flatten().map(of).collect())
}

/// Names of the quorum queues of each vhost.
fn quorum_queues(call: &Call<'_>) -> Result<BTreeMap<String, Vec<String>>, Failure> {
    let all = call.node.api.get("/api/queues?columns=vhost,name,type&disable_stats=true")?;
    let mut queues: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for queue in all.as_array().into_iter().flatten() {
        if shown(queue, "type") == "quorum" {
            queues.entry(shown(queue, "vhost")).or_default().push(shown(queue, "name"));
        }
    }
    Ok(queues)
}

/// A row for each quorum queue of vhosts with the number of their replicas, or the reason why these stay. A vhost without
/// such queues has a row without the name of one.
fn rows(
    call: &Call<'_>,
    mut queues: BTreeMap<String, Vec<String>>,
    changed: BTreeMap<String, Result<usize, &str>>,
) -> Output {
    let only_errors = call.has("errors-only");
    let mut rows: Vec<Row> = Vec::new();
    for (vhost, result) in changed {
        if only_errors && result.is_ok() {
            continue;
        }
        let (size, result) = match result {
            Ok(size) => (size, "ok".to_owned()),
            Err(reason) => (1, format!("error: {reason}")),
        };
        for name in queues.remove(&vhost).unwrap_or_else(|| vec![String::new()]) {
            rows.push(vec![
                ("vhost".to_owned(), Term::text(&vhost)),
                ("name".to_owned(), Term::text(name)),
                ("size".to_owned(), Term::of(Some(&json!(size)))),
                ("result".to_owned(), Term::text(&result)),
            ]);
        }
    }
    rows.into()
}
