//! Replicas of vhosts that are not complete.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::command::Call;
use crate::commands::node::status::shown;
use crate::failure::{Failure, UNAVAILABLE};
use crate::format::Output;

/// Checks that every node that has a replica of a vhost votes for it, or has voted before it went down.
///
/// # Errors
/// The vhosts and the nodes whose replicas do not vote yet.
pub(in crate::commands) fn check_are_complete(call: &Call<'_>) -> Result<Output, Failure> {
    let node = call.node.name();
    let vhosts = call.node.api.get("/api/vhosts?columns=name,members&disable_stats=true")?;
    let replicas = call.node.api.get("/api/replicas")?;
    let incomplete = incomplete(&vhosts, &replicas);
    if incomplete.is_empty() {
        let text = format!("Node {node} reported no queues with promotable replicas");
        return Ok(Output::passed(text));
    }
    Err(Failure::lines(UNAVAILABLE, incomplete.iter().map(line)))
}

/// The sentence about a vhost, or about users, vhosts and parameters, and the node whose replica does not vote.
fn line((vhost, node): &(Option<String>, String)) -> String {
    match vhost {
        Some(vhost) => format!("vhost '{vhost}' hasn't finished synchronization with {node}."),
        None => {
            format!("Users, vhosts and parameters haven't finished synchronization with {node}.")
        }
    }
}

/// Vhosts with the nodes whose replicas do not vote: those that say so themselves, and those that a leader does not count.
/// None instead of a vhost stands for users, vhosts and parameters.
fn incomplete(vhosts: &Value, replicas: &Value) -> BTreeSet<(Option<String>, String)> {
    let rows = |all: &Value| all.as_array().cloned().unwrap_or_default();
    let replicas = rows(replicas);
    let is =
        |of: &Value, field: &str, value: &str| of.get(field).and_then(Value::as_str) == Some(value);
    let own = replicas.iter().filter(|replica| {
        is(replica, "membership", "non_voter") || is(replica, "state", "quarantined")
    });
    let is_of_metadata = |replica: &Value| is(replica, "group", "metadata");
    let vhost = |replica: &Value| (!is_of_metadata(replica)).then(|| shown(replica, "vhost"));
    let mut all: BTreeSet<_> =
        own.map(|replica| (vhost(replica), shown(replica, "node"))).collect();
    for vhost in rows(vhosts) {
        let name = shown(&vhost, "name");
        let leads = |one: &&Value| is(one, "vhost", &name) && is(one, "state", "leader");
        let leader = replicas.iter().filter(|one| !is_of_metadata(one)).find(leads);
        let Some(voters) = leader.and_then(|leader| leader.get("voters")?.as_array()) else {
            continue;
        };
        let members = vhost.get("members").and_then(Value::as_array).into_iter().flatten();
        let missing = members.filter(|member| !voters.contains(member)).filter_map(Value::as_str);
        all.extend(missing.map(|node| (Some(name.clone()), node.to_owned())));
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(vhosts: &Value, replicas: &Value) -> Vec<String> {
        incomplete(vhosts, replicas)
            .into_iter()
            .map(|(vhost, node)| format!("{} {node}", vhost.as_deref().unwrap_or("-")))
            .collect()
    }

    #[test]
    fn replica_that_does_not_vote_is_incomplete() {
        let replica = |node: &str, state: &str, membership: &str| json!({"vhost": "v", "node": node, "state": state, "membership": membership, "voters": ["a", "b"]});
        let whole = [replica("a", "leader", "voter"), replica("b", "follower", "voter")];
        let vhost = |members: &[&str]| json!([{"name": "v", "members": members}]);
        assert_eq!(names(&vhost(&["a", "b"]), &json!(whole)), [""; 0]);
        let learner = [whole[0].clone(), replica("b", "follower", "non_voter")];
        assert_eq!(names(&vhost(&["a", "b"]), &json!(learner)), ["v b"]);
        let lost = [whole[0].clone(), replica("b", "quarantined", "voter")];
        assert_eq!(names(&vhost(&["a", "b"]), &json!(lost)), ["v b"]);
        // The new member has not told anything yet.
        assert_eq!(names(&vhost(&["a", "b", "c"]), &json!(whole)), ["v c"]);
        // Without a leader nobody knows who is missing.
        assert_eq!(names(&vhost(&["a", "b", "c"]), &json!([whole[1]])), [""; 0]);
        assert_eq!(names(&json!([]), &json!([])), [""; 0]);
    }

    #[test]
    fn replica_of_users_and_vhosts_is_not_that_of_a_vhost_with_its_name() {
        let replica = |node: &str, group: &str, state: &str, membership: &str, voters: &[&str]| json!({"vhost": "metadata", "group": group, "node": node, "state": state, "membership": membership, "voters": voters});
        let replicas = json!([
            replica("a", "metadata", "leader", "voter", &["a"]),
            replica("b", "metadata", "follower", "non_voter", &["a"]),
            replica("a", "vhost", "leader", "voter", &["a", "b"]),
            replica("b", "vhost", "follower", "voter", &["a", "b"]),
        ]);
        let vhosts = json!([{"name": "metadata", "members": ["a", "b"]}]);
        assert_eq!(names(&vhosts, &replicas), ["- b"]);
        let lines: Vec<String> = incomplete(&vhosts, &replicas).iter().map(line).collect();
        assert_eq!(
            lines,
            ["Users, vhosts and parameters haven't finished synchronization with b."]
        );
    }
}
