//! Health checks of a node as one of a cluster. A node without a cluster leads everything and passes all of them.

use axum::extract::State;
use axum::routing::get;
use broker::Pattern;
use serde_json::{Value, json};
use server::requests::Leader;

use super::failed;
use crate::api::replicas;
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, NameInVhost, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/api/health/checks/is-in-service", Scope::Here, get(is_in_service))
        .route("/api/health/checks/ready-to-serve-clients", Scope::Here, get(is_ready))
        .route("/api/health/checks/metadata-store/initialized", Scope::Here, get(metadata))
        .route("/api/health/checks/metadata-store/initialized/with-data", Scope::Here, get(metadata))
        .route("/api/health/checks/node-is-quorum-critical", Scope::Here, get(is_quorum_critical))
        .route("/api/health/checks/reached-target-cluster-size", Scope::Here, get(has_target_size))
        .route("/api/health/checks/leads/{vhost}", Scope::Here, get(leads))
        .route(
            "/api/health/checks/quorum-queues-without-elected-leaders/all-vhosts", Scope::Here,
            get(all_leaderless),
        )
        .route(
            "/api/health/checks/quorum-queues-without-elected-leaders/all-vhosts/pattern/{pattern}", Scope::Here,
            get(all_matching),
        )
        .route(
            "/api/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}", Scope::Here,
            get(leaderless),
        )
        .route(
            "/api/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}/pattern/{pattern}", Scope::Here,
            get(matching),
        )
}

fn passed() -> Json {
    Json::ok(json!({"status": "ok"}))
}

fn because(reason: impl Into<Value>) -> Json {
    failed(json!({"status": "failed", "reason": reason.into()}))
}

/// Passes while the node accepts AMQP clients.
async fn is_in_service(State(node): State<SharedNode>) -> Json {
    match node.condition().are_listeners_suspended {
        true => because("node is in maintenance mode"),
        false => passed(),
    }
}

/// Passes while the node accepts AMQP clients and knows a leader of users and vhosts.
async fn is_ready(State(node): State<SharedNode>) -> Json {
    if node.condition().are_listeners_suspended {
        return because("node is in maintenance mode");
    }
    metadata(State(node)).await
}

/// Passes while the node knows a leader of users and vhosts.
async fn metadata(State(node): State<SharedNode>) -> Json {
    match node.leader_of_metadata() {
        Leader::None => because(
            "users and vhosts have no leader: fewer than a majority of the nodes are connected",
        ),
        Leader::Here | Leader::Node(_) => passed(),
    }
}

/// Fails if a vhost, or the metadata, would have no majority without this node. A member counts if its leader hears it: a
/// node that is up may have a replica that is being rebuilt.
async fn is_quorum_critical(State(node): State<SharedNode>) -> Json {
    if !node.is_in_cluster() {
        return Json::ok(json!({"status": "ok", "reason": "single node cluster"}));
    }
    let own = node.snapshot().name;
    let connected = node.connected_peers();
    let replicas = replicas::of_cluster(&node).await;
    let groups: Vec<Group> = replicas.iter().filter_map(Group::led).collect();
    let has_leader =
        |vhost: &String| groups.iter().any(|group| !group.is_metadata && group.vhost == *vhost);
    let leaderless = node.vhost_names().into_iter().filter(|vhost| !has_leader(vhost));
    let needed = groups.iter().filter(|group| group.needs(&own, &connected));
    let needed = needed.map(|group| group.vhost.clone());
    let critical: Vec<Value> = leaderless
        .chain(needed)
        .map(|vhost| json!({"virtual_host": vhost, "type": "vhost", "readable_name": format!("vhost '{vhost}'")}))
        .collect();
    if critical.is_empty() && node.leader_of_metadata() != Leader::None {
        return passed();
    }
    let reason = "There are vhosts that would have no majority of their nodes if this node stopped";
    failed(json!({"status": "failed", "reason": reason, "queues": critical}))
}

/// Passes while as many nodes run as `cluster_formation.target_cluster_size_hint` says.
async fn has_target_size(State(node): State<SharedNode>) -> Json {
    let target = node.cluster().target_size;
    let online = node.connected_peers().len() + 1;
    if online >= target {
        return passed();
    }
    let reason = format!("target cluster size not reached: {online} of {target} nodes are online");
    failed(json!({"status": "failed", "reason": reason, "online": online, "target": target}))
}

/// A vhost, or the metadata, as its leader tells.
#[derive(Debug)]
struct Group {
    vhost: String,
    /// True for users, vhosts and parameters. A vhost may be called as they are.
    is_metadata: bool,
    voters: Vec<String>,
    heard: Vec<String>,
}

impl Group {
    /// The group of a replica, if it leads.
    fn led(replica: &Value) -> Option<Self> {
        let names = |field| {
            let names = replica.get(field)?.as_array()?.iter();
            names.map(|name| name.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        };
        let is_leader = replica.get("state")?.as_str()? == "leader";
        let vhost = replica.get("vhost")?.as_str()?.to_owned();
        let is_metadata = replicas::is_of_metadata(replica);
        let (voters, heard) = (names("voters")?, names("heard")?);
        is_leader.then_some(Self { vhost, is_metadata, voters, heard })
    }

    /// True if the voters that are heard are no majority without this node, which is connected to these others: links
    /// tell sooner than the leader that a node is gone.
    fn needs(&self, node: &str, connected: &[String]) -> bool {
        let others = self.heard.iter().filter(|voter| connected.contains(voter)).count();
        self.voters.iter().any(|voter| voter == node) && others <= self.voters.len() / 2
    }
}

/// Passes on the node that leads the vhost, for load balancers that prefer this node.
async fn leads(State(node): State<SharedNode>, Name(vhost): Name) -> Result<Json, ApiError> {
    if node.vhost_placement(&vhost).is_none() {
        return Err(ApiError::not_found());
    }
    Ok(match node.leader_of_vhost(&vhost) {
        Leader::Here => passed(),
        Leader::Node(leader) => because(format!("node '{leader}' leads vhost '{vhost}'")),
        Leader::None => because(format!("vhost '{vhost}' has no leader")),
    })
}

async fn all_leaderless(State(node): State<SharedNode>) -> Json {
    without_leader(&node, &node.vhost_names(), None)
}

async fn all_matching(
    State(node): State<SharedNode>,
    Name(pattern): Name,
) -> Result<Json, ApiError> {
    Ok(without_leader(&node, &node.vhost_names(), Some(&filter(&pattern)?)))
}

async fn leaderless(State(node): State<SharedNode>, Name(vhost): Name) -> Json {
    without_leader(&node, &[vhost], None)
}

async fn matching(
    State(node): State<SharedNode>,
    NameInVhost { vhost, name: pattern }: NameInVhost,
) -> Result<Json, ApiError> {
    Ok(without_leader(&node, &[vhost], Some(&filter(&pattern)?)))
}

/// The pattern in a path or a query, which heeds case.
pub(crate) fn filter(pattern: &str) -> Result<Pattern, ApiError> {
    let filter = Pattern::filter(&format!("(?-i){pattern}"));
    filter.map_err(|error| ApiError::bad_request(format!("Invalid pattern: {error}")))
}

/// Fails for the queues of vhosts without a leader, as far as their names match.
fn without_leader(node: &SharedNode, vhosts: &[String], pattern: Option<&Pattern>) -> Json {
    let leaderless = vhosts.iter().filter(|vhost| node.leader_of_vhost(vhost) == Leader::None);
    let queues = leaderless.filter_map(|vhost| node.queue_keys(vhost)).flatten();
    let wanted = queues.filter(|queue| pattern.is_none_or(|pattern| pattern.matches(&queue.name)));
    let queues: Vec<Value> = wanted
        .map(|queue| json!({"name": *queue.name, "virtual_host": *queue.vhost, "type": queue.kind.as_str()}))
        .collect();
    if queues.is_empty() {
        return passed();
    }
    failed(
        json!({"status": "failed", "reason": "Queues without an elected leader", "queues": queues}),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_is_needed_for_a_majority_of_those_that_are_heard() {
        let group = |voters: &str, heard: &str| {
            let names = |letters: &str| letters.chars().map(String::from).collect();
            Group {
                vhost: "v".to_owned(),
                is_metadata: false,
                voters: names(voters),
                heard: names(heard),
            }
        };
        let needs = |group: Group, node: &str, connected: &str| {
            group.needs(node, &connected.chars().map(String::from).collect::<Vec<_>>())
        };
        assert!(!needs(group("abc", "abc"), "a", "bc"));
        assert!(needs(group("abc", "abc"), "a", "b"));
        assert!(needs(group("abc", "ab"), "a", "bc") && needs(group("abc", "ab"), "b", "ac"));
        assert!(!needs(group("abc", "ab"), "c", "ab"));
        // A replica that is being rebuilt does not vote: the other two stand alone.
        assert!(needs(group("bc", "bc"), "b", "ac"));
        assert!(!needs(group("bc", "bc"), "a", "bc"));
        assert!(!needs(group("abcde", "abcd"), "a", "bcde"));
        assert!(needs(group("abcde", "abc"), "a", "bcde"));
    }

    #[test]
    fn leader_of_a_group_is_read() {
        let replica =
            json!({"vhost": "v", "state": "leader", "voters": ["a", "b"], "heard": ["a"]});
        let group = Group::led(&replica).unwrap();
        assert_eq!((&*group.vhost, group.voters.len(), group.heard.len()), ("v", 2, 1));
        assert!(Group::led(&json!({"vhost": "v", "state": "follower"})).is_none());
    }
}
