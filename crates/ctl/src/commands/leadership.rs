//! Leads of the vhosts of a cluster.

use serde_json::{Value, json};

use crate::arguments::Switch;
use crate::command::{Call, Command, Section, Tools};
use crate::failure::{Failure, USAGE};
use crate::format::Output;
use crate::http::path;

/// Types of queues that `rebalance` takes; a vhost is transferred with all its queues.
const TYPES: [&str; 4] = ["all", "classic", "quorum", "stream"];

pub(super) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Cluster,
        "transfer_leader",
        "transfer_leader <vhost> [<node>]",
        "Lets another node lead a vhost that this node leads",
        transfer,
    )
    .slow()
    .words(1, 2)
    .banner(|call| format!("Transferring the lead of vhost '{}' ...", call.word(0))),
    Command::new(
        Section::Cluster,
        "rebalance",
        "rebalance <all|classic|quorum|stream> [--vhost-pattern <pattern>] [--queue-pattern <pattern>]",
        "Lets other nodes lead vhosts until this node leads no more than its share",
        |call| {
            call.node.api.post("/api/rebalance/queues", &json!({}))?;
            Ok(Output::Done)
        },
    )
    .slow()
    .of(Tools::QUEUES)
    .words(1, 1)
    .switches(&[Switch::text("vhost-pattern"), Switch::text("queue-pattern")])
    .check(|call| match TYPES.contains(&call.word(0)) {
        true => Ok(()),
        false => {
            let (wrong, types) = (call.word(0), TYPES.join(", "));
            let text = format!("type {wrong} is not supported. Try one of: {types}");
            Err(Failure::arguments(USAGE, text))
        }
    }),
];

fn transfer(call: &Call<'_>) -> Result<Output, Failure> {
    let vhost = call.word(0);
    let at = path(&["vhosts", vhost, "leader"]);
    let body = call.words.get(1).map_or_else(|| json!({}), |node| json!({"node": node}));
    let answer = call.node.api.post(&at, &body)?;
    let leader = answer.get("leader").and_then(Value::as_str).unwrap_or_default();
    let done = format!("Node {leader} leads vhost '{vhost}' now");
    Ok(Output::Both(done, json!({"vhost": vhost, "leader": leader})))
}
