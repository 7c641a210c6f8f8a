//! Leads of the vhosts of a cluster.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::quorum_queue::QuorumQueue;
use crate::arguments::Switch;
use crate::command::{Call, Command, Section, Tools};
use crate::commands::node::status::{all_nodes, shown};
use crate::failure::{Failure, UNAVAILABLE, USAGE};
use crate::format::{Formatter, Output, Row, json_of};
use crate::http::{HttpError, escaped, path};
use crate::printable::in_line;
use crate::term::Term;

/// Types of queues that `rebalance` takes; a vhost is transferred with all its queues.
const TYPES: [&str; 4] = ["all", "classic", "quorum", "stream"];

/// The pattern of all queues and vhosts.
pub(in crate::commands) const ALL: &str = ".*";

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Cluster,
        "transfer_leader",
        "transfer_leader <vhost> [<node>]",
        "Lets another node lead a vhost, whichever node leads it now",
        transfer,
    )
    .slow()
    .words(1, 2)
    .banner(|call| format!("Transferring the lead of vhost '{}' ...", call.word(0))),
    Command::new(
        Section::Cluster,
        "transfer_leadership",
        "transfer_leadership [--vhost <vhost>] <queue> <node> [--timeout <timeout>]",
        "Lets another node lead the vhost of a quorum queue",
        transfer_of_queue,
    )
    .slow()
    .of(Tools::QUEUES)
    .words(2, 2)
    .banner(|call| {
        let (queue, node, vhost) = (call.word(0), call.word(1), call.vhost());
        format!(
            "Transferring leadership of quorum queue {queue} to node {node}...\nThe node leads vhost '{vhost}' with all its \
             queues then."
        )
    }),
    Command::new(
        Section::Cluster,
        "rebalance",
        "rebalance <all|classic|quorum|stream> [--vhost-pattern <pattern>] [--queue-pattern <pattern>]",
        "Lets other nodes lead vhosts, with all their queues, until each node leads no more than its share",
        rebalance,
    )
    .slow()
    .of(Tools::QUEUES)
    .words(1, 1)
    .switches(&[Switch::text("vhost-pattern"), Switch::text("queue-pattern")])
    .formatter(Formatter::PrettyTable)
    .check(|call| {
        if !TYPES.contains(&call.word(0)) {
            let (wrong, types) = (call.word(0), TYPES.join(", "));
            let text = format!("type {wrong} is not supported. Try one of: {types}");
            return Err(Failure::arguments(USAGE, text));
        }
        check_queue_pattern(call, "have its leader, and are transferred together")
    })
    .banner(|call| format!("Re-balancing leaders of vhosts, with {} queues...", call.word(0))),
];

/// Checks that a pattern selects all queues, because those of a vhost `are` alike.
pub(in crate::commands) fn check_queue_pattern(call: &Call<'_>, are: &str) -> Result<(), Failure> {
    match call.options.text("queue-pattern") {
        None | Some(ALL) => Ok(()),
        Some(pattern) => Err(Failure::arguments(
            USAGE,
            format!(
                "--queue-pattern '{pattern}' is not supported: the queues of a vhost {are}. Select vhosts with \
                 --vhost-pattern"
            ),
        )),
    }
}

/// The failure of a request with a pattern for vhosts.
pub(in crate::commands) fn refused_pattern(error: HttpError, pattern: &str) -> Failure {
    let HttpError::Refused { status: 400, reason } = error else { return error.into() };
    let text = format!("--vhost-pattern '{pattern}' is no regular expression: {reason}");
    Failure::arguments(USAGE, text)
}

fn transfer_of_queue(call: &Call<'_>) -> Result<Output, Failure> {
    let problem = |text: &str| Failure::error(UNAVAILABLE, text);
    let (vhost, to) = (call.vhost(), call.word(1));
    QuorumQueue::named(call)?
        .check(&|_| problem("Cannot transfer leadership of a non-quorum queue"))?;
    let placement = call.node.api.get(&path(&["vhosts", vhost]))?;
    let members = placement.get("members").and_then(Value::as_array);
    if shown(&placement, "leader") == to {
        return Err(problem("The target node is already the leader of this queue"));
    }
    if !members.into_iter().flatten().any(|member| member.as_str() == Some(to)) {
        return Err(problem("unknown_member"));
    }
    let answer = call.node.api.post(&path(&["vhosts", vhost, "leader"]), &json!({"node": to}))?;
    Ok(Output::Text(shown(&answer, "leader")))
}

fn transfer(call: &Call<'_>) -> Result<Output, Failure> {
    let vhost = call.word(0);
    let at = path(&["vhosts", vhost, "leader"]);
    let body = call.words.get(1).map_or_else(|| json!({}), |node| json!({"node": node}));
    let answer = call.node.api.post(&at, &body)?;
    let leader = answer.get("leader").and_then(Value::as_str).unwrap_or_default();
    let done = format!("Node {leader} leads vhost '{}' now", in_line(vhost));
    Ok(Output::Both(done, json!({"vhost": vhost, "leader": leader})))
}

fn rebalance(call: &Call<'_>) -> Result<Output, Failure> {
    let pattern = call.options.text("vhost-pattern").unwrap_or(ALL);
    if leads(&call.node.api.get(VHOSTS)?, &[]).is_empty() {
        let text = "No vhost has a leader: fewer than a majority of the nodes are up and connected";
        return Err(Failure::error(UNAVAILABLE, text));
    }
    let at = format!("/api/rebalance/queues?vhost_pattern={}", escaped(pattern));
    call.node.api.post(&at, &json!({})).map_err(|error| refused_pattern(error, pattern))?;
    let nodes = all_nodes(call)?;
    let names: Vec<String> = nodes.iter().map(|node| shown(node, "name")).collect();
    let row = |(node, count): (String, u64)| {
        vec![
            ("Node name".to_owned(), Term::text(node)),
            ("Number of vhosts led".to_owned(), Term::of(Some(&json!(count)))),
        ]
    };
    let table = leads(&call.node.api.get(VHOSTS)?, &names);
    let rows: Vec<Row> = table.into_iter().map(row).collect();
    let told = json!({"node": call.node.name(), "value": json_of(&rows), "result": "ok"});
    Ok(Output::Listed(rows.into(), told))
}

/// The vhosts with the fields that `leads` needs.
const VHOSTS: &str = "/api/vhosts?columns=name,leader&disable_stats=true";

/// Numbers of vhosts that each node leads; 0 for a node of these that leads none.
fn leads(vhosts: &Value, nodes: &[String]) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<String, u64> = nodes.iter().map(|node| (node.clone(), 0)).collect();
    let leader = |vhost: &Value| vhost.get("leader").and_then(Value::as_str).map(str::to_owned);
    for leader in vhosts.as_array().into_iter().flatten().filter_map(leader) {
        *counts.entry(leader).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leads_are_counted_by_node() {
        let vhosts = json!([{"leader": "a"}, {"leader": "b"}, {"leader": "a"}, {"leader": null}]);
        let counts = leads(&vhosts, &["a".to_owned(), "c".to_owned()]);
        let counts: Vec<_> = counts.into_iter().collect();
        assert_eq!(counts, [("a".to_owned(), 2), ("b".to_owned(), 1), ("c".to_owned(), 0)]);
        assert!(leads(&json!([{"leader": null}]), &[]).is_empty());
    }
}
