//! Other nodes of the cluster in `/api/nodes`: their names, whether they are running, and what they told of themselves.

use axum::http::Method;
use serde_json::{Map, Value, json};
use server::peers::request::{json_of, request_of_node, segment};
use server::snapshot::cluster::{PeerFacts, PeerSnapshot};

use crate::http::extract::SharedNode;
use crate::limits::PART_TIMEOUT;

/// Asks a peer for its maintenance; none if it does not answer.
pub(super) async fn is_drained(node: &SharedNode, peer: &PeerSnapshot) -> Option<bool> {
    peer.link.as_ref()?;
    let name = segment(&peer.name);
    let path = format!("/api/nodes/{name}?columns=being_drained&disable_stats=true");
    let request = request_of_node(Method::GET, &path, Vec::new());
    let answer = node.answer_of_peer(&peer.name, request, PART_TIMEOUT).await.ok()?;
    json_of(answer).await?.get("being_drained")?.as_bool()
}

/// A peer as a node. One that cannot be reached has its name, and the reason as far as known. `is_drained` is what it told of
/// its maintenance.
pub(super) fn to_json(
    peer: &PeerSnapshot,
    is_drained: Option<bool>,
    disable_stats: bool,
) -> Map<String, Value> {
    let mut json = Map::new();
    let mut put = |name: &str, value: Value| json.insert(name.to_owned(), value);
    put("name", json!(peer.name));
    put("type", json!("disc"));
    put("running", json!(peer.link.is_some()));
    if let Some(is_drained) = is_drained {
        put("being_drained", json!(is_drained));
    }
    if disable_stats {
        return json;
    }
    put("partitions", json!([]));
    if let Some(problem) = &peer.problem {
        put("link_problem", json!(problem));
    }
    if let Some(link) = &peer.link {
        put("record_level", json!(link.record_level));
    }
    let Some(facts) = &peer.facts else { return json };
    let PeerFacts { rabbitmq_version, leveret_version, .. } = facts;
    put("rabbitmq_version", json!(rabbitmq_version));
    put("leveret_version", json!(leveret_version));
    put("os_pid", json!(facts.os_pid.to_string()));
    put("uptime", json!(facts.uptime_ms));
    put("processors", json!(facts.processors));
    put("mem_calculation_strategy", json!("rss"));
    put("mem_alarm", json!(facts.memory_alarm));
    put("disk_free_limit", json!(facts.disk_free_limit_bytes));
    put("disk_free_alarm", json!(facts.disk_alarm));
    // Clients expect 32 bits.
    let fd_total = facts.fd_total.map(|total| total.min(u32::MAX.into()));
    let numbers = [
        ("mem_used", facts.memory_bytes),
        ("mem_limit", facts.memory_watermark_bytes),
        ("disk_free", facts.disk_free_bytes),
        ("fd_used", facts.fd_used),
        ("fd_total", fd_total),
    ];
    for (name, number) in numbers {
        if let Some(number) = number {
            put(name, json!(number));
        }
    }
    json
}

/// The links of this node with its peers, as `cluster_links`.
pub(super) fn links(peers: &[PeerSnapshot]) -> Value {
    let shown = |peer: &PeerSnapshot| {
        let link = peer.link.as_ref()?;
        Some(json!({
            "name": peer.name,
            "peer_addr": link.remote.ip().to_string(),
            "peer_port": link.remote.port(),
            "sock_addr": link.local.ip().to_string(),
            "sock_port": link.local.port(),
            "send_bytes": peer.sent_bytes,
            "recv_bytes": peer.received_bytes,
            "rtt_us": link.rtt_us,
            "clock_skew_ms": link.clock_skew_ms,
        }))
    };
    peers.iter().filter_map(shown).collect()
}

/// The memory of a peer: its sum.
pub(super) fn memory(peer: &PeerSnapshot) -> Map<String, Value> {
    let all = peer.facts.as_ref().and_then(|facts| facts.memory_bytes).unwrap_or_default();
    let total = json!({"erlang": all, "rss": all, "allocated": all});
    Map::from_iter([("strategy".to_owned(), json!("rss")), ("total".to_owned(), total)])
}

#[cfg(test)]
mod tests {
    use server::snapshot::cluster::PeerLink;

    use super::*;

    #[test]
    fn link_tells_its_round_trip_time_and_the_clock_of_the_peer() {
        let link = PeerLink {
            local: "127.0.0.1:1".parse().unwrap(),
            remote: "127.0.0.1:2".parse().unwrap(),
            record_level: 2,
            rtt_us: Some(250),
            clock_skew_ms: Some(-3),
            queued_bytes: 0,
        };
        let peer = PeerSnapshot {
            name: "b@h".to_owned(),
            link: Some(link),
            sent_bytes: 7,
            received_bytes: 8,
            ..PeerSnapshot::default()
        };
        let told = to_json(&peer, Some(true), false);
        assert_eq!((&told["record_level"], &told["being_drained"]), (&json!(2), &json!(true)));
        assert_eq!(
            links(&[peer]),
            json!([{
                "name": "b@h", "peer_addr": "127.0.0.1", "peer_port": 2, "sock_addr": "127.0.0.1", "sock_port": 1,
                "send_bytes": 7, "recv_bytes": 8, "rtt_us": 250, "clock_skew_ms": -3,
            }])
        );
    }

    #[test]
    fn peer_without_a_link_has_its_name_and_the_reason() {
        let away = PeerSnapshot {
            name: "b@h".to_owned(),
            problem: Some("it has another secret".to_owned()),
            down_us: 1,
            lost_links: 1,
            ..PeerSnapshot::default()
        };
        assert_eq!(
            Value::Object(to_json(&away, None, false)),
            json!({
                "name": "b@h", "type": "disc", "running": false, "partitions": [],
                "link_problem": "it has another secret",
            })
        );
        assert_eq!(links(&[away]), json!([]));
    }
}
