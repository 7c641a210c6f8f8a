//! Findings from facts that are written down.

use broker::{Name, WarningKind};
use server::requests::ServerCertificate;
use server::snapshot::cluster::{ClusterSnapshot, PeerLink, PeerSnapshot};
use server::snapshot::condition::{ClockStep, NodeCondition};
use server::snapshot::node::{Identity, IoTotals, Listener, NodeSnapshot, ProcessSnapshot};
use server::snapshot::replication::{ReplicaSnapshot, ReplicationSnapshot};

use super::*;

const GIB: u64 = 1 << 30;

fn node() -> NodeFacts {
    let node = NodeSnapshot {
        name: "leveret@host".to_owned(),
        leveret_version: "1",
        record_level: 2,
        cluster_record_level: 2,
        identity: Identity::default(),
        cluster_name: "cluster".to_owned(),
        durability: "fsync",
        listeners: Vec::new(),
        mechanisms: Vec::new(),
        uptime_ms: 1,
        resident_bytes: Some(GIB),
        memory_watermark_bytes: Some(4 * GIB),
        memory_watermark: server::snapshot::node::MemoryWatermark::Relative(0.6),
        memory_alarm: false,
        disk_free_bytes: Some(40 * GIB),
        disk_free_limit_bytes: GIB,
        disk_alarm: false,
        blocks_publishers: false,
    };
    let process = ProcessSnapshot {
        id: 1,
        fd_used: Some(100),
        fd_total: Some(1000),
        threads: None,
        threads_max: None,
        processors: 2,
        data_dir: String::new(),
        config_files: Vec::new(),
        log_files: Vec::new(),
        code_bytes: None,
        unsent_bytes: 0,
        io: IoTotals::default(),
    };
    NodeFacts {
        node,
        process,
        certificates: Vec::new(),
        condition: NodeCondition::default(),
        cluster: ClusterFacts::default(),
    }
}

fn certificate(expires_in_s: Option<i64>) -> ServerCertificate {
    let listener = Listener { protocol: "https", address: ([127, 0, 0, 1], 15_671).into() };
    ServerCertificate { listener, file: "server.pem".to_owned(), expires_in_s }
}

/// A queue with a consumer.
fn queue(name: &str, change: impl FnOnce(&mut QueueView)) -> QueueView {
    let mut queue = QueueView { name: Name::from(name), ..QueueView::sum() };
    (queue.levels.consumers, queue.levels.consumer_capacity_ppm) = (1, 1_000_000);
    change(&mut queue);
    queue
}

fn vhost(queues: Vec<(QueueView, QueueRates)>) -> VhostFacts {
    VhostFacts { name: "/".to_owned(), queues, ..VhostFacts::default() }
}

fn of_vhost(vhost: VhostFacts) -> Vec<Finding> {
    find(&Facts { node: None, vhosts: vec![vhost] })
}

fn of_node(change: impl FnOnce(&mut NodeFacts)) -> Vec<(FindingKind, Severity, String)> {
    let mut facts = node();
    change(&mut facts);
    let findings = find(&Facts { node: Some(facts), vhosts: Vec::new() });
    findings.into_iter().map(|one| (one.kind, one.severity, one.text)).collect()
}

fn texts(findings: &[Finding]) -> Vec<(Severity, &str)> {
    findings.iter().map(|one| (one.severity, one.text.as_str())).collect()
}

#[test]
fn healthy_broker_has_no_findings() {
    let rates = QueueRates { messages: 5.0, delivered: 1.0, ..QueueRates::default() };
    let facts =
        Facts { node: Some(node()), vhosts: vec![vhost(vec![(queue("busy", |_| ()), rates)])] };
    assert!(find(&facts).is_empty());
    assert!(find(&Facts::default()).is_empty());
}

#[test]
fn losing_queues_are_one_finding_with_their_rate() {
    let losing =
        |name: &str, lost| (queue(name, |_| ()), QueueRates { lost, ..QueueRates::default() });
    let idle = losing("idle", 0.0);
    let mut facts = vhost(vec![losing("emails", 4.0), losing("payments", 30.0), idle]);
    facts.without_route = vec!["emails".to_owned(), "idle".to_owned(), "payments".to_owned()];
    let findings = of_vhost(facts);
    assert_eq!(
        texts(&findings),
        [
            (Severity::Error, "2 queues lose dead letters (34/s)."),
            (
                Severity::Warning,
                "1 queue has a dead-letter exchange that leads to no queue: dead letters would be lost."
            ),
        ]
    );
    let names: Vec<_> = findings[0].resources.iter().map(|one| (&*one.name, one.rate)).collect();
    assert_eq!(names, [("payments", Some(30.0)), ("emails", Some(4.0))]);
    assert_eq!((findings[0].count, findings[0].rate), (2, Some(34.0)));
    assert_eq!(findings[1].resources[0].name, "idle");
}

#[test]
fn dead_letters_of_at_least_once_wait_instead_of_being_lost() {
    let keeps = queue("keeps", |q| {
        q.rules.keeps_dead_letters = true;
        q.levels.pending.messages = 3;
    });
    let mut facts = vhost(vec![(keeps, QueueRates::default())]);
    facts.without_route = vec!["keeps".to_owned()];
    let findings = of_vhost(facts);
    assert_eq!(
        texts(&findings),
        [(Severity::Warning, "1 queue keeps dead letters that reach no queue.")]
    );
    assert_eq!(findings[0].resources[0].detail, "3 dead letters");
}

#[test]
fn messages_kept_at_the_delivery_limit_are_a_finding() {
    let keeps = queue("keeps", |q| q.levels.pending.messages = 3);
    assert!(!keeps.rules.has_dead_letter_exchange);
    let findings = of_vhost(vhost(vec![(keeps, QueueRates::default())]));
    assert_eq!(
        texts(&findings),
        [(Severity::Warning, "1 queue keeps dead letters that reach no queue.")]
    );
    assert_eq!(findings[0].resources[0].detail, "3 dead letters");
}

#[test]
fn warnings_of_the_dead_letter_map_are_findings() {
    let warning = |kind, severity, queue: &str| MapWarningFact {
        kind,
        severity,
        queue: queue.to_owned(),
        messages: 5000,
    };
    let mut facts = vhost(Vec::new());
    facts.map_warnings = vec![
        warning(WarningKind::NoConsumer, Severity::Warning, "orders.dead"),
        warning(WarningKind::NoConsumer, Severity::Info, "empty"),
        warning(WarningKind::Limit, Severity::Warning, "small"),
        warning(WarningKind::Loop, Severity::Warning, "circle"),
    ];
    let findings = of_vhost(facts);
    let found: Vec<&str> = findings.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(
        found,
        [
            "5,000 messages wait in 1 queue that receives dead letters and has no consumer.",
            "1 queue receives dead letters under a length limit that drops or refuses some.",
            "1 cycle of dead letters without a rejection: messages that would return to a queue in which they \
             died are dropped.",
        ]
    );
    let [orders] = &findings[0].resources[..] else { panic!("{findings:?}") };
    assert_eq!((&*orders.name, &*orders.detail), ("orders.dead", "5,000 messages"));
}

#[test]
fn ten_thousand_queues_are_one_finding() {
    let full = |n: u64| {
        let queue = queue(&format!("q{n:05}"), |q| {
            q.rules.max_length = Some(0);
            q.rules.overflow = broker::Overflow::RejectPublish;
        });
        (queue, QueueRates { refused: 1.0, ..QueueRates::default() })
    };
    let findings = of_vhost(vhost((0..10_000).map(full).collect()));
    assert_eq!(
        texts(&findings),
        [(Severity::Warning, "10,000 queues are full and refuse publishes (10,000/s).")]
    );
    assert_eq!(findings[0].count, 10_000);
    let names: Vec<_> = findings[0].resources.iter().map(|one| &*one.name).collect();
    assert_eq!(names, ["q00000", "q00001", "q00002", "q00003", "q00004"]);
}

#[test]
fn full_queues_drop_or_refuse() {
    let full = |name: &str| queue(name, |q| q.rules.max_length = Some(0));
    let drops = QueueRates { over_limit: 0.4, ..QueueRates::default() };
    let mut refuses = full("refuses");
    refuses.rules.overflow = broker::Overflow::RejectPublishDlx;
    let all = vec![
        (full("drops"), drops),
        (full("idle"), QueueRates::default()),
        (refuses, QueueRates::default()),
    ];
    assert_eq!(
        texts(&of_vhost(vhost(all))),
        [
            (Severity::Warning, "1 queue is full and refuses publishes (0/s)."),
            (Severity::Warning, "1 queue is full and drops its oldest messages (0.4/s)."),
            (Severity::Info, "1 queue is full: the next message removes the oldest."),
        ]
    );
}

#[test]
fn growing_queues_without_consumers_are_found() {
    let lonely =
        |name: &str| queue(name, |q| (q.levels.consumers, q.levels.ready.messages) = (0, 1805));
    let grows = QueueRates { messages: 5.0, ..QueueRates::default() };
    let fetched = QueueRates { delivered: 1.0, ..grows };
    let mut waits = lonely("expires");
    waits.rules.has_ttl = true;
    let all = vec![
        (lonely("grows"), grows),
        (lonely("fetched"), fetched),
        (waits, grows),
        (lonely("rests"), QueueRates::default()),
    ];
    let findings = of_vhost(vhost(all));
    assert_eq!(
        texts(&findings),
        [(Severity::Warning, "1 queue grows and has no consumer (5.0/s).")]
    );
    assert_eq!(findings[0].resources[0].detail, "1,805 messages");
}

#[test]
fn consumers_at_their_prefetch_limit_are_found() {
    let full = |name: &str| {
        queue(name, |q| {
            (q.levels.consumer_capacity_ppm, q.levels.ready.messages) = (499_999, 1);
        })
    };
    let mut empty = full("empty");
    empty.levels.ready.messages = 0;
    let acks = QueueRates { acknowledged: 1.0, ..QueueRates::default() };
    let busy = vec![
        (full("stuck"), QueueRates::default()),
        (full("busy"), acks),
        (full("behind"), QueueRates { messages: 1.0, ..acks }),
        (empty, QueueRates::default()),
    ];
    let found = of_vhost(vhost(busy));
    let found: Vec<_> =
        found.iter().map(|one| (one.severity, one.count, &*one.resources[0].name)).collect();
    assert_eq!(found, [(Severity::Warning, 2, "behind"), (Severity::Info, 1, "busy")]);
}

#[test]
fn overdue_messages_are_found() {
    let late = queue("late", |q| q.levels.overdue_us = 3_500_000);
    let on_time = queue("on time", |q| q.levels.overdue_us = 900_000);
    let rates = QueueRates::default();
    assert_eq!(
        texts(&of_vhost(vhost(vec![(late, rates), (on_time, rates)]))),
        [(Severity::Warning, "1 queue has messages that should have expired up to 3.5 s ago.")]
    );
}

#[test]
fn clients_that_are_stopped_or_lose_publishes_are_found() {
    let mut facts = vhost(Vec::new());
    let client_name = Some("shop".to_owned());
    facts.blocked = vec![BlockedConnection { name: "a -> b".to_owned(), client_name }];
    facts.reached = vec![ReachedLimit { limit: "max-queues", maximum: 1000 }];
    facts.unroutable_rate = 12.3;
    facts.unroutable = vec![("orders".to_owned(), 12.0), ("logs".to_owned(), 0.3)];
    let findings = of_vhost(facts);
    assert_eq!(
        texts(&findings),
        [
            (Severity::Error, "1 connection is blocked: an alarm stops publishers."),
            (Severity::Warning, "Publishes to 2 exchanges reach no queue and are dropped (12/s)."),
            (
                Severity::Warning,
                "1 limit of a vhost is reached: further connections or queues are refused."
            ),
        ]
    );
    assert_eq!(findings[0].resources[0].detail, "shop");
    assert_eq!(findings[2].resources[0].detail, "max-queues 1,000");
}

#[test]
fn alarms_tell_limit_and_use() {
    let alarms = of_node(|facts| {
        facts.node.disk_alarm = true;
        facts.node.disk_free_limit_bytes = 900 * GIB;
        facts.node.memory_alarm = true;
        facts.node.resident_bytes = Some(5 * GIB);
    });
    let texts: Vec<_> = alarms.iter().map(|(_, severity, text)| (*severity, &**text)).collect();
    assert_eq!(
        texts,
        [
            (Severity::Error, "Publishers are blocked: memory alarm, 4 GiB limit, 5 GiB used."),
            (Severity::Error, "Publishers are blocked: disk alarm, 900 GiB limit, 40 GiB free."),
        ]
    );
}

#[test]
fn shortages_are_found_before_the_alarm() {
    let kinds = |change: fn(&mut NodeFacts)| -> Vec<FindingKind> {
        of_node(change).into_iter().map(|(kind, _, _)| kind).collect()
    };
    assert_eq!(kinds(|f| f.node.resident_bytes = Some(4 * GIB - 1)), [FindingKind::MemoryShort]);
    assert_eq!(kinds(|f| f.node.disk_free_bytes = Some(GIB + 1)), [FindingKind::DiskShort]);
    assert_eq!(kinds(|f| f.process.fd_used = Some(901)), [FindingKind::DescriptorsShort]);
    assert!(kinds(|f| f.process.fd_used = Some(900)).is_empty());
}

#[test]
fn certificates_are_found_before_and_after_their_end() {
    let found = of_node(|facts| {
        let days = |days: i64| certificate(Some(days * 24 * 3600));
        facts.certificates = vec![days(31), days(3), days(30), days(-1), certificate(None)];
    });
    let texts: Vec<_> = found.iter().map(|(_, severity, text)| (*severity, &**text)).collect();
    assert_eq!(
        texts,
        [
            (Severity::Error, "1 certificate has expired."),
            (Severity::Warning, "1 certificate file cannot be read."),
            (Severity::Warning, "2 certificates expire soon, the first in 3 d."),
        ]
    );
}

#[test]
fn troubles_of_disk_and_clock_are_found() {
    let texts = |condition: NodeCondition| -> Vec<String> {
        of_node(|facts| facts.condition = condition).into_iter().map(|(_, _, text)| text).collect()
    };
    let step = |ago_ms| NodeCondition {
        clock_step: Some(ClockStep { step_ms: -7_500_000, ago_ms }),
        ..NodeCondition::default()
    };
    assert_eq!(
        texts(step(60_000)),
        [
            "The clock of the system was set back by 2 h 5 min, 1 min ago. Deadlines are not affected."
        ]
    );
    assert!(texts(step(3_600_001)).is_empty());
    let writes = |slowest_write_us, running_write_us| NodeCondition {
        slowest_write_us,
        running_write_us,
        ..NodeCondition::default()
    };
    assert!(texts(writes(999_999, 0))[..].is_empty());
    assert!(texts(writes(1_500_000, 0))[0].contains("a write took 1.5 s"));
    assert!(texts(writes(0, 9_000_000))[0].contains("has been running for 9 s"));
    let broken = NodeCondition {
        vhosts_without_room: vec!["a".to_owned(), "b".to_owned()],
        unwritten_pages: vec![("a".to_owned(), 7)],
        damaged_vhosts: vec![("a".to_owned(), 1)],
        vhosts_down: vec![("b".to_owned(), "disk error".to_owned())],
        are_listeners_suspended: true,
        ..NodeCondition::default()
    };
    assert_eq!(
        texts(broken),
        [
            "2 vhosts find no room on the disk: nothing more is confirmed.",
            "1 vhost is down: files cannot be read. Stop the node and restore them, or delete the vhost.",
            "1 vhost was restored from a damaged log at the last start; messages may be lost.",
            "1 vhost keeps messages of long queues in memory that the disk did not take.",
            "The AMQP listeners are suspended: clients cannot connect.",
        ]
    );
}

#[test]
fn rates_are_short() {
    for (rate, text) in
        [(0.0, "0/s"), (0.01, "<0.1/s"), (0.4, "0.4/s"), (9.96, "10/s"), (1805.2, "1,805/s")]
    {
        assert_eq!(rate_in_words(rate), text);
    }
}

fn peer(name: &str) -> PeerSnapshot {
    PeerSnapshot {
        name: name.to_owned(),
        link: Some(PeerLink {
            local: ([127, 0, 0, 1], 1).into(),
            remote: ([127, 0, 0, 1], 2).into(),
            record_level: 2,
            rtt_us: None,
            clock_skew_ms: Some(3),
            queued_bytes: 0,
        }),
        ..PeerSnapshot::default()
    }
}

fn of_cluster(cluster: ClusterFacts) -> Vec<(&'static str, Severity, String)> {
    let facts = Facts { node: Some(NodeFacts { cluster, ..node() }), ..Facts::default() };
    let shown = |it: Finding| (it.kind.as_str(), it.severity, it.text);
    find(&facts).into_iter().map(shown).collect()
}

#[test]
fn whole_cluster_has_no_findings() {
    let cluster = ClusterSnapshot { peers: vec![peer("b@h"), peer("c@h")], ..Default::default() };
    assert_eq!(of_cluster(ClusterFacts { cluster, ..ClusterFacts::default() }), []);
}

#[test]
fn nodes_vhosts_and_clocks_of_a_cluster_are_found() {
    let away = PeerSnapshot {
        link: None,
        problem: Some("it has another secret".to_owned()),
        ..peer("b@h")
    };
    let mut wrong = PeerSnapshot { is_doubled: true, ..peer("c@h") };
    wrong.link.as_mut().unwrap().clock_skew_ms = Some(-60_000);
    let replica = ReplicaSnapshot::empty("quarantined");
    let standing = ReplicaSnapshot { stands_still: true, ..ReplicaSnapshot::empty("leader") };
    let replication =
        ReplicationSnapshot { replicas: vec![replica, standing], ..Default::default() };
    let cluster = ClusterSnapshot { peers: vec![away, wrong], replication, ..Default::default() };
    let (leaderless, is_metadata_leaderless) = (vec!["v".to_owned()], true);
    let facts =
        ClusterFacts { cluster, leaderless, is_metadata_leaderless, ..ClusterFacts::default() };
    let found = of_cluster(facts);
    let kinds: Vec<_> = found.iter().map(|(kind, severity, _)| (*kind, *severity)).collect();
    assert_eq!(
        kinds,
        [
            ("metadata_without_leader", Severity::Error),
            ("vhost_without_leader", Severity::Error),
            ("vhost_stands_still", Severity::Error),
            ("node_doubled", Severity::Error),
            ("node_unreachable", Severity::Warning),
            ("replica_not_rebuilt", Severity::Warning),
            ("clocks_differ", Severity::Warning),
        ]
    );
    assert_eq!(
        found[0].2,
        "Users, vhosts and parameters have no leader, and cannot be changed: 2 of 3 nodes are connected."
    );
    assert_eq!(found[4].2, "Node 'b@h' is not connected: it has another secret.");
}

#[test]
fn full_disk_of_a_replica_stops_no_vhost() {
    let vhosts_without_room = vec!["here".to_owned(), "there".to_owned()];
    let condition = NodeCondition { vhosts_without_room, ..NodeCondition::default() };
    let led_elsewhere = vec!["there".to_owned()];
    let cluster = ClusterFacts { led_elsewhere, ..ClusterFacts::default() };
    let facts = NodeFacts { condition, cluster, ..node() };
    let found = find(&Facts { node: Some(facts), ..Facts::default() });
    let texts: Vec<&str> = found.iter().map(|one| &*one.text).collect();
    assert_eq!(
        texts,
        [
            "1 vhost finds no room on the disk: nothing more is confirmed.",
            "1 replica finds no room on the disk of this node: its vhost goes on with the other nodes.",
        ]
    );
}

#[test]
fn drained_node_is_told_how_to_come_back() {
    let condition = NodeCondition {
        is_drained: true,
        are_listeners_suspended: true,
        ..NodeCondition::default()
    };
    let facts = Facts { node: Some(NodeFacts { condition, ..node() }), ..Facts::default() };
    let [finding] = &*find(&facts) else { panic!("{:?}", find(&facts)) };
    assert_eq!(finding.kind.command(), Some("rabbitmq-upgrade revive"));
}
