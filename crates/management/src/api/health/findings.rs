//! `/api/health/findings`: the answer to "is anything wrong?", and the same as a health check. RabbitMQ has no
//! such thing.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use broker::{ExchangeId, Severity, WarningKind, words};
use serde_json::{Value, json};
use server::history::{History, TimeRanges};
use server::requests::{Caller, Leader, LimitName as _, VhostLimit, maximum};
use server::snapshot::client::{ConnectionSnapshot, ConnectionState};
use server::snapshot::cluster::PeerSnapshot;
use server::snapshot::fields::{EXCHANGE, QUEUE, VHOST};
use server::snapshot::node::NodeSnapshot;
use server::snapshot::queue::QueueView;

use super::causes::add_causes;
use crate::findings::{
    BlockedConnection, ClusterFacts, Facts, Finding, MapWarningFact, NodeFacts, QueueRates,
    ReachedLimit, Resource, VhostFacts, disk_alarm, disk_alarm_of, find, memory_alarm,
    memory_alarm_of,
};
use crate::http::access::{Management, VhostUser};
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::json::severity::{severity, severity_of_name};
use crate::json::taken::taken;

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/api/health/findings", Scope::Findings, get(show))
        .route("/api/health/findings/{vhost}", Scope::Vhost("vhost"), get(show_vhost))
        .route("/api/health/alarms", Scope::Here, get(alarms))
        .route("/api/health/checks/findings", Scope::Findings, get(check))
        .route("/api/health/checks/findings/{severity}", Scope::Findings, get(check_severity))
}

/// All findings, with status 200.
async fn show(State(node): State<SharedNode>, Management(caller): Management) -> Json {
    let facts = facts(&node, &caller);
    if caller.only_vhosts.is_some() {
        return part(&node, &caller, facts);
    }
    Json::ok(report(&found(&node, &caller, &facts), facts.node.is_some()))
}

/// The findings about one vhost.
async fn show_vhost(
    State(node): State<SharedNode>,
    VhostUser { caller, vhost }: VhostUser,
) -> Result<Json, ApiError> {
    let facts = vhost_facts(&node, &caller, vhost).ok_or_else(ApiError::not_found)?;
    let facts = Facts { node: None, vhosts: vec![facts] };
    Ok(Json::ok(report(&found(&node, &caller, &facts), false)))
}

/// Fails on an error or a warning.
async fn check(State(node): State<SharedNode>, Management(caller): Management) -> Json {
    check_from(&node, &caller, Severity::Warning)
}

/// Fails on findings of this severity, and on more severe ones.
async fn check_severity(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(severity): Name,
) -> Result<Json, ApiError> {
    Ok(check_from(&node, &caller, severity_of(&severity)?))
}

/// The severity of this name.
///
/// # Errors
/// [`ApiError`] if there is none.
fn severity_of(name: &str) -> Result<Severity, ApiError> {
    let wrong = || ApiError::bad_request("severity must be one of: error, warning, info");
    severity_of_name(name).ok_or_else(wrong)
}

fn check_from(node: &SharedNode, caller: &Caller, least: Severity) -> Json {
    let facts = facts(node, caller);
    if caller.only_vhosts.is_some() {
        return part(node, caller, facts);
    }
    checked(&found(node, caller, &facts), least, facts.node.is_some())
}

/// The name of the parts about the node, and about its vhosts.
const NODE_PART: &str = "node";
const VHOSTS_PART: &str = "vhosts";

/// The part of a node in the findings of a cluster.
fn part(node: &SharedNode, caller: &Caller, facts: Facts) -> Json {
    let Facts { node: of_node, vhosts } = facts;
    let only = |of_node| Facts { node: Some(of_node), vhosts: Vec::new() };
    let of_node = of_node.map(|of_node| found(node, caller, &only(of_node)));
    let of_vhosts = found(node, caller, &Facts { node: None, vhosts });
    Json::ok(json!({NODE_PART: of_node, VHOSTS_PART: of_vhosts}))
}

/// The findings with their causes, the most severe first.
fn found(node: &SharedNode, caller: &Caller, facts: &Facts) -> Vec<Value> {
    let mut findings = find(facts);
    add_causes(node, caller, facts, &mut findings);
    findings.iter().map(finding).collect()
}

/// The findings of a cluster: about the node that is asked, and about the vhosts of all. `check` has the last segment of the
/// path of a health check, if it names a severity.
///
/// # Errors
/// [`ApiError`] if this is no severity.
pub(crate) fn merge(
    mut here: Value,
    others: Vec<Value>,
    check: Option<Option<&str>>,
) -> Result<Json, ApiError> {
    let of_node = taken(&mut here, NODE_PART);
    let includes_node = of_node.is_some();
    let mut findings = of_node.unwrap_or_default();
    for mut part in std::iter::once(here).chain(others) {
        findings.extend(taken(&mut part, VHOSTS_PART).unwrap_or_default());
    }
    // The sort is stable: those about the node come before those about vhosts, and the kinds of a node keep their order.
    findings.sort_by_key(severity);
    Ok(match check {
        None => Json::ok(report(&findings, includes_node)),
        Some(None) => checked(&findings, Severity::Warning, includes_node),
        Some(Some(name)) => checked(&findings, severity_of(name)?, includes_node),
    })
}

/// An alarm that blocks publishers.
struct BlockingAlarm {
    resource: &'static str,
    node: String,
    text: String,
    limit_bytes: Option<u64>,
    current_bytes: Option<u64>,
}

impl BlockingAlarm {
    /// The alarms of this node.
    fn of_node(node: &NodeSnapshot) -> Vec<Self> {
        let memory = (node.memory_watermark_bytes, node.resident_bytes);
        let disk = (Some(node.disk_free_limit_bytes), node.disk_free_bytes);
        Self::all(&node.name, (memory_alarm(node), memory), (disk_alarm(node), disk))
    }

    /// The alarms of another node that block publishers on this one.
    fn of_peer(peer: &PeerSnapshot) -> Vec<Self> {
        let Some(facts) = &peer.facts else { return Vec::new() };
        let memory = (facts.memory_watermark_bytes, facts.memory_bytes);
        let disk = (Some(facts.disk_free_limit_bytes), facts.disk_free_bytes);
        Self::all(&peer.name, (memory_alarm_of(peer), memory), (disk_alarm_of(peer), disk))
    }

    fn all(node: &str, memory: AlarmFacts, disk: AlarmFacts) -> Vec<Self> {
        let alarm = |resource, (text, (limit_bytes, current_bytes)): AlarmFacts| {
            Some(Self { resource, node: node.to_owned(), text: text?, limit_bytes, current_bytes })
        };
        [alarm("memory", memory), alarm("disk", disk)].into_iter().flatten().collect()
    }
}

/// The sentence of an alarm that is on; limit and use in bytes.
type AlarmFacts = (Option<String>, (Option<u64>, Option<u64>));

/// The alarms, for users without the tag monitoring, too: an alarm stops their publishers. Numbers and nodes are for
/// monitors.
async fn alarms(State(node): State<SharedNode>, Management(caller): Management) -> Json {
    let mut alarms = BlockingAlarm::of_node(&node.snapshot());
    alarms.extend(node.cluster().peers.iter().flat_map(BlockingAlarm::of_peer));
    Json::ok(json!({"alarms": shown(&alarms, caller.is_monitor())}))
}

fn shown(alarms: &[BlockingAlarm], is_monitor: bool) -> Vec<Value> {
    if is_monitor {
        let shown = |alarm: &BlockingAlarm| {
            json!({
                "resource": alarm.resource,
                "node": alarm.node,
                "text": alarm.text,
                "limit_bytes": alarm.limit_bytes,
                "current_bytes": alarm.current_bytes,
            })
        };
        return alarms.iter().map(shown).collect();
    }
    let is_on = |resource: &&str| alarms.iter().any(|alarm| alarm.resource == *resource);
    let shown = |resource| {
        json!({
            "resource": resource,
            "text": format!("Publishers are blocked: {resource} alarm."),
        })
    };
    ["memory", "disk"].into_iter().filter(is_on).map(shown).collect()
}

fn checked(findings: &[Value], least: Severity, includes_node: bool) -> Json {
    let mut failed = findings.iter().filter(|one| severity(one) <= least);
    // The most severe finding comes first.
    let Some(worst) = failed.next() else { return Json::ok(json!({"status": "ok"})) };
    let worst = worst["text"].as_str().unwrap_or_default();
    let reason = match failed.count() as u64 {
        0 => worst.to_owned(),
        more => format!("{worst} And {}.", words::count(more, "further finding")),
    };
    let mut report = report(findings, includes_node);
    report["status"] = json!("failed");
    report["reason"] = json!(reason);
    Json(StatusCode::SERVICE_UNAVAILABLE, report)
}

fn report(findings: &[Value], includes_node: bool) -> Value {
    let count = |of| findings.iter().filter(|one| severity(one) == of).count();
    let [errors, warnings] = [count(Severity::Error), count(Severity::Warning)];
    let status = match (errors, warnings) {
        (0, 0) => "ok",
        (0, _) => "warning",
        _ => "error",
    };
    json!({
        "status": status,
        "includes_node": includes_node,
        "errors": errors,
        "warnings": warnings,
        "findings": findings,
    })
}

fn finding(finding: &Finding) -> Value {
    json!({
        "kind": finding.kind.as_str(),
        "severity": finding.severity.as_str(),
        "text": finding.text,
        "count": finding.count,
        "rate": finding.rate,
        "resources": finding.resources.iter().map(resource).collect::<Vec<Value>>(),
        "page": finding.kind.page(),
        "command": finding.kind.command(),
        "docs": finding.kind.docs(),
    })
}

fn resource(resource: &Resource) -> Value {
    json!({
        "type": resource.kind.as_str(),
        "vhost": resource.vhost,
        "name": resource.name,
        "rate": resource.rate,
        "detail": resource.detail,
    })
}

/// The facts that the caller may see.
fn facts(node: &SharedNode, caller: &Caller) -> Facts {
    let vhosts = node.vhost_names().into_iter().filter(|vhost| caller.can_enter(vhost));
    Facts {
        node: caller.is_monitor().then(|| NodeFacts {
            node: node.snapshot(),
            process: node.process(),
            certificates: node.certificates(),
            condition: node.condition(),
            cluster: cluster_facts(node),
        }),
        // A vhost deleted meanwhile has no facts.
        vhosts: vhosts.filter_map(|vhost| vhost_facts(node, caller, vhost)).collect(),
    }
}

/// The facts about the cluster; nothing without one.
fn cluster_facts(node: &SharedNode) -> ClusterFacts {
    if !node.is_in_cluster() {
        return ClusterFacts::default();
    }
    let (mut leaderless, mut led_elsewhere) = (Vec::new(), Vec::new());
    for vhost in node.vhost_names() {
        match node.leader_of_vhost(&vhost) {
            Leader::None => leaderless.push(vhost),
            Leader::Node(_) => led_elsewhere.push(vhost),
            Leader::Here => {}
        }
    }
    ClusterFacts {
        cluster: node.cluster(),
        leaderless,
        led_elsewhere,
        is_metadata_leaderless: node.leader_of_metadata() == Leader::None,
    }
}

/// The number of publishes that reached no queue and were dropped.
const DROPPED: &str = "drop_unroutable";

fn vhost_facts(node: &SharedNode, caller: &Caller, name: String) -> Option<VhostFacts> {
    let views = node.queue_views(&name)?;
    let unroutable = node.unroutable_exchanges(&name)?;
    let (queues, unroutable_rate, unroutable) = node.history().read(|history| {
        let with_rates = |queue: QueueView| {
            let rates = queue_rates(history, &name, &queue);
            (queue, rates)
        };
        let queues: Vec<_> = views.into_iter().map(with_rates).collect();
        let rates = history.of_vhost(&name, &TimeRanges::default()).rates;
        let rate = rate_of(&VHOST.map(|field| field.name), &rates, DROPPED);
        let with_rate = |(id, exchange): (ExchangeId, broker::Name)| {
            let rates = history.of_exchange(&name, id, &TimeRanges::default()).rates;
            let rate = rate_of(&EXCHANGE.map(|field| field.name), &rates, DROPPED);
            (rate > 0.0).then(|| (exchange.to_string(), rate))
        };
        (queues, rate, unroutable.into_iter().filter_map(with_rate).collect())
    });
    let mut connections = node.connections(&name)?;
    let reached = reached_limits(node, &name, queues.len(), connections.len());
    connections.retain(|one| caller.can_see_client(&one.client.user));
    let blocked = connections.iter().filter(|one| one.state == ConnectionState::Blocked);
    let (without_route, map_warnings) = of_map(node, &name);
    Some(VhostFacts {
        without_route,
        map_warnings,
        queues,
        unroutable_rate,
        unroutable,
        blocked: blocked.map(blocked_connection).collect(),
        reached,
        name,
    })
}

/// Sorted names of the queues whose dead letters reach no queue at all, and the other warnings of the map.
fn of_map(node: &SharedNode, vhost: &str) -> (Vec<String>, Vec<MapWarningFact>) {
    let Some(map) = node.dead_letter_map(vhost) else { return Default::default() };
    let (mut without_route, mut others) = (Vec::new(), Vec::new());
    for warning in &map.warnings {
        let is_about_sources =
            matches!(warning.kind, WarningKind::ExchangeMissing | WarningKind::Unroutable);
        let target = warning.to_queue.filter(|_| warning.kind != WarningKind::Loop);
        let one = [target.unwrap_or(warning.queue)];
        let queues = if is_about_sources { warning.queues.as_slice() } else { &one };
        for queue in queues.iter().filter_map(|queue| map.queues.get(*queue)) {
            let name = queue.name.to_string();
            if is_about_sources && warning.severity == Severity::Error {
                without_route.push(name);
                continue;
            }
            others.push(MapWarningFact {
                kind: warning.kind,
                severity: warning.severity,
                queue: name,
                messages: queue.messages,
            });
        }
    }
    without_route.sort_unstable();
    (without_route, others)
}

/// The rate of a number by its name.
fn rate_of(names: &[&str], rates: &[f64], name: &str) -> f64 {
    let at = names.iter().position(|one| *one == name);
    at.and_then(|at| rates.get(at)).copied().unwrap_or_default()
}

fn queue_rates(history: &History, vhost: &str, queue: &QueueView) -> QueueRates {
    let rates = history.of_queue(vhost, queue.number, &TimeRanges::default()).rates;
    let names = QUEUE.map(|field| field.name);
    let rate = |name| rate_of(&names, &rates, name);
    let lost = rate("dead_letters_lost") + rate("dead_letter_copies_dropped");
    QueueRates {
        messages: rate("messages"),
        delivered: rate("deliver_get"),
        acknowledged: rate("ack"),
        unacked: rate("messages_unacknowledged"),
        refused: rate("refused"),
        over_limit: rate("dropped_maxlen") + rate("dead_lettered_maxlen"),
        lost: if queue.rules.has_dead_letter_exchange { lost } else { 0.0 },
        dropped: rate("dropped_without_dlx"),
    }
}

fn reached_limits(
    node: &SharedNode,
    vhost: &str,
    queues: usize,
    connections: usize,
) -> Vec<ReachedLimit> {
    let Some(settings) = node.vhost_settings(vhost) else { return Vec::new() };
    let used = [(VhostLimit::MaxQueues, queues), (VhostLimit::MaxConnections, connections)];
    let reached = used.into_iter().filter_map(|(limit, used)| {
        let maximum = maximum(&settings.limits, limit).filter(|max| used as u64 >= *max)?;
        Some(ReachedLimit { limit: limit.as_str(), maximum })
    });
    reached.collect()
}

fn blocked_connection(connection: &ConnectionSnapshot) -> BlockedConnection {
    let client = &connection.client;
    BlockedConnection { name: client.name.clone(), client_name: client.connection_name.clone() }
}

#[cfg(test)]
mod tests {
    use server::snapshot::cluster::PeerFacts;

    use super::*;

    /// A peer that is short of disk space.
    fn peer(name: &str, disk_alarm_blocks: bool) -> PeerSnapshot {
        let facts = PeerFacts {
            disk_alarm: true,
            disk_free_bytes: Some(40 << 30),
            disk_free_limit_bytes: 900 << 30,
            ..PeerFacts::default()
        };
        PeerSnapshot {
            name: name.to_owned(),
            facts: Some(facts),
            disk_alarm_blocks,
            ..PeerSnapshot::default()
        }
    }

    #[test]
    fn alarms_of_peers_are_shown_while_they_block() {
        let peers = [peer("b@h", true), peer("c@h", true), peer("d@h", false)];
        let alarms: Vec<BlockingAlarm> = peers.iter().flat_map(BlockingAlarm::of_peer).collect();
        let text = |name| {
            format!(
                "Publishers are blocked: disk alarm of node '{name}', 900 GiB limit, 40 GiB free."
            )
        };
        let of = |name| {
            json!({
                "resource": "disk", "node": name, "text": text(name),
                "limit_bytes": 900_u64 << 30, "current_bytes": 40_u64 << 30,
            })
        };
        assert_eq!(shown(&alarms, true), [of("b@h"), of("c@h")]);
        // Who is no monitor is told of the resource, once.
        let told = json!({"resource": "disk", "text": "Publishers are blocked: disk alarm."});
        assert_eq!(shown(&alarms, false), [told]);
    }
}
