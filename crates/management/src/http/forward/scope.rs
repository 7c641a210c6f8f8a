//! The nodes that can answer a request, by its path.

use percent_encoding::percent_decode_str;

use crate::api::{bindings, parameters, policies};

/// The nodes that can answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Scope {
    /// Every node: the node that was asked answers.
    Here,
    /// The node that leads users, vhosts and global parameters.
    Metadata,
    /// The node that leads this vhost.
    Vhost(String),
    /// The node of this name.
    Node(String),
    /// The node that knows the object.
    Anywhere,
    /// All nodes do something.
    Everywhere,
    /// All nodes have a part of the list. A name is looked for at these paths.
    List(&'static [&'static str]),
    /// All nodes have a part of the totals.
    Overview,
    /// All nodes have a part of the scheduled messages.
    Scheduled,
    /// All nodes have a part of the numbers of scheduled messages.
    ScheduledCounts,
    /// All nodes have a part of the definitions.
    Definitions,
    /// All nodes have a part of the findings.
    Findings,
    /// All nodes have a part of the dead-letter map.
    DeadLetterMap,
}

/// The paths at which the filter of most lists looks for a name.
const NAME: &[&str] = &["name"];

/// The scope of a request to `path`.
pub(super) fn of(path: &str, is_change: bool) -> Scope {
    let Some(path) = path.strip_prefix("/api/") else { return Scope::Here };
    let segments: Vec<&str> = path.split('/').collect();
    let vhost = |segment: &str| Scope::Vhost(decoded(segment));
    if is_change {
        match segments[..] {
            [
                "users" | "permissions" | "topic-permissions" | "vhost-limits" | "user-limits"
                | "global-parameters" | "cluster-name" | "definitions" | "all-configuration",
            ]
            | ["users", _]
            | [
                "permissions" | "topic-permissions" | "vhost-limits" | "user-limits"
                | "global-parameters",
                _,
                ..,
            ]
            | ["vhosts", _]
            | ["vhosts", _, "deletion" | "members", ..]
            | ["queues", "quorum", "replicas", "on", _, "grow" | "shrink"]
            | ["parameters", "vhost-limits", ..]
            | ["nodes", _]
            | ["feature-flags", "all", "enable"] => return Scope::Metadata,
            ["connections", "username", _] | ["rebalance", "queues"] => return Scope::Everywhere,
            _ => {}
        }
    }
    match segments[..] {
        ["overview"] => Scope::Overview,
        ["channels"] => Scope::List(&["name", "connection_details.user_provided_name"]),
        ["queues" | "exchanges" | "vhosts" | "dead-letter-queues"]
        | ["queues", "detailed"]
        | ["users", _, "queues"] => Scope::List(NAME),
        ["connections"] | ["connections", "username", _] => {
            Scope::List(&["name", "user_provided_name"])
        }
        ["scheduled"] => Scope::Scheduled,
        ["scheduled-counts"] => Scope::ScheduledCounts,
        ["definitions" | "all-configuration"] => Scope::Definitions,
        ["dead-letter-map"] => Scope::DeadLetterMap,
        ["health", "findings"]
        | ["health", "checks", "findings"]
        | ["health", "checks", "findings", _] => Scope::Findings,
        ["deprecated-features", "used"] => Scope::List(NAME),
        ["bindings"] => Scope::List(bindings::FOUND_BY),
        ["policies" | "operator-policies"] => Scope::List(policies::FOUND_BY),
        ["parameters"] | ["parameters", _] => Scope::List(parameters::FOUND_BY),
        ["consumers"] => Scope::List(&["queue.name"]),
        ["replicas"] => Scope::List(&["vhost"]),
        ["queues", "quorum", name, _, "status"]
        | ["queues", "quorum", name, _, "replicas", "add" | "delete"] => vhost(name),
        ["redrives"] => Scope::List(&["id"]),
        ["connections" | "channels" | "redrives", _] | ["connections", _, "channels"] => {
            Scope::Anywhere
        }
        [
            "queues"
            | "exchanges"
            | "bindings"
            | "policies"
            | "operator-policies"
            | "consumers"
            | "definitions"
            | "scheduled"
            | "scheduled-counts"
            | "aliveness-test"
            | "dead-letter-map"
            | "dead-letter-queues"
            | "dead-letter-history",
            name,
            ..,
        ]
        | ["parameters", _, name, ..]
        | ["vhosts", name, "channels" | "connections" | "leader" | "barrier"]
        | ["vhosts", name]
        | ["health", "findings", name] => vhost(name),
        ["vhosts", _, "start", name]
        | ["nodes", name, ..]
        | ["auth", "attempts", name, ..]
        | ["reset", name] => Scope::Node(decoded(name)),
        _ => Scope::Here,
    }
}

/// False for what every node knows of a vhost: its settings and its nodes.
pub(super) fn is_of_contents(path: &str) -> bool {
    path.strip_prefix("/api/vhosts/").is_none_or(|rest| rest.contains('/'))
}

/// A decoded segment of a path.
fn decoded(segment: &str) -> String {
    percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_go_to_the_nodes_that_can_answer() {
        let get = |path| of(path, false);
        let change = |path| of(path, true);
        let vhost = |name: &str| Scope::Vhost(name.to_owned());
        assert_eq!(get("/api/queues/%2F/q"), vhost("/"));
        assert_eq!(change("/api/queues/a%2Bb+c/q/contents"), vhost("a+b+c"));
        assert_eq!(get("/api/vhosts/v%26w"), vhost("v&w"));
        assert_eq!(get("/api/vhosts/v/connections"), vhost("v"));
        assert_eq!(change("/api/parameters/policy/v/p"), vhost("v"));
        for path in [
            "/api/users/u",
            "/api/users/bulk-delete",
            "/api/vhosts/v",
            "/api/vhosts/v/deletion/protection",
            "/api/vhosts/v/members/a@h",
            "/api/queues/quorum/replicas/on/a@h/grow",
            "/api/queues/quorum/replicas/on/a@h/shrink",
            "/api/permissions/v/u",
            "/api/global-parameters/p",
            "/api/cluster-name",
            "/api/definitions",
            "/api/parameters/vhost-limits/v/limits",
        ] {
            assert_eq!(change(path), Scope::Metadata, "{path}");
        }
        assert_eq!(get("/api/definitions"), Scope::Definitions);
        assert_eq!(get("/api/queues/%C3%A9%zz%+1%2/q"), vhost("\u{e9}%zz%+1%2"));
        for path in ["/api/bindings", "/api/policies", "/api/parameters/operator_policy"] {
            assert!(matches!(get(path), Scope::List(_)), "{path}");
        }
        for path in ["/api/users/u", "/api/permissions", "/metrics", "/"] {
            assert_eq!(get(path), Scope::Here, "{path}");
        }
        assert_eq!(get("/api/queues"), Scope::List(&["name"]));
        assert_eq!(get("/api/queues/detailed"), Scope::List(&["name"]));
        let channels = Scope::List(&["name", "connection_details.user_provided_name"]);
        assert_eq!(get("/api/channels"), channels);
        assert_eq!(get("/api/scheduled"), Scope::Scheduled);
        assert_eq!(get("/api/scheduled/v"), vhost("v"));
        assert_eq!(get("/api/dead-letter-queues"), Scope::List(&["name"]));
        assert_eq!(get("/api/connections/c"), Scope::Anywhere);
        assert_eq!(change("/api/connections/username/u"), Scope::Everywhere);
        assert_eq!(change("/api/nodes/a@h/actions"), Scope::Node("a@h".to_owned()));
        assert_eq!(get("/api/queues/quorum/v/q/status"), vhost("v"));
        assert_eq!(change("/api/queues/quorum/v/q/replicas/add"), vhost("v"));
        assert_eq!(change("/api/queues/quorum/replicas/on/replicas/delete"), vhost("replicas"));
        assert_eq!(change("/api/rebalance/queues"), Scope::Everywhere);
        assert_eq!(change("/api/nodes/a@h"), Scope::Metadata);
        assert_eq!(change("/api/feature-flags/all/enable"), Scope::Metadata);
        assert_eq!(change("/api/feature-flags/quorum_queue/enable"), Scope::Here);
        assert_eq!(change("/api/vhosts/v/leader"), vhost("v"));
        assert_eq!(change("/api/vhosts/v/barrier"), vhost("v"));
        assert!(!is_of_contents("/api/vhosts/v"));
        assert!(is_of_contents("/api/vhosts/v/connections") && is_of_contents("/api/queues/v/q"));
    }
}
