//! The node as its peers see it, and its peers as the management API shows them.

use std::sync::Weak;
use std::sync::atomic::Ordering;

use crate::auth::User;
use crate::auth::user_slots::{ClientCounts, UserCounts};
use crate::cluster::{Facts, Links, LocalNode};
use crate::limits::{USER_NAME_BYTES_MAX, USERS_TOLD_MAX};
use crate::membership::ids::NodeId;
use crate::node::Node;
use crate::node::alarms::alarm::Alarm;
use crate::node::alarms::known::Alarms;
use crate::snapshot::cluster::{ClusterSnapshot, PeerFacts, PeerLink, PeerSnapshot};
use crate::snapshot::replication::ReplicationSnapshot;

/// The node, for links; nothing after its end.
#[derive(Debug)]
pub(crate) struct NodeForLinks(pub(crate) Weak<Node>);

impl LocalNode for NodeForLinks {
    fn facts(&self) -> Facts {
        let Some(node) = self.0.upgrade() else { return Facts::default() };
        let (now, process) = (node.snapshot(), node.process());
        Facts {
            rabbitmq_version: now.identity.version,
            leveret_version: now.leveret_version.to_owned(),
            os_pid: process.id.into(),
            uptime_ms: now.uptime_ms,
            processors: process.processors as u64,
            memory_bytes: now.resident_bytes,
            memory_watermark_bytes: now.memory_watermark_bytes,
            memory_alarm: now.memory_alarm,
            disk_free_bytes: now.disk_free_bytes,
            disk_free_limit_bytes: now.disk_free_limit_bytes,
            disk_alarm: now.disk_alarm,
            fd_used: process.fd_used,
            fd_total: process.fd_total,
        }
    }

    fn users(&self) -> UserCounts {
        let Some(node) = self.0.upgrade() else { return UserCounts::new() };
        // A name that was taken before there was a bound has limits for each node.
        let is_told = |user: &str| {
            let user = node.auth.user(user).filter(|user| user.name.len() <= USER_NAME_BYTES_MAX);
            user.is_some_and(|user| !user.limits.is_empty())
        };
        node.user_slots.counts(is_told, USERS_TOLD_MAX)
    }

    fn alarm_told(&self) {
        if let Some(node) = self.0.upgrade() {
            node.alarms.note_change_elsewhere();
        }
    }

    fn nodes_told(&self) {
        if let Some(node) = self.0.upgrade() {
            node.follow_nodes();
        }
    }

    fn followed(&self, peer: NodeId, position: u64) {
        let Some(node) = self.0.upgrade() else { return };
        if let Some(metadata) = &node.metadata {
            metadata.peer_followed(peer, position);
            node.look_at_record_levels();
        }
    }
}

impl Node {
    /// The clients that a user has at other nodes, for the limits of the user; none without limits.
    pub(crate) fn clients_elsewhere(&self, user: &User) -> ClientCounts {
        match &self.cluster {
            Some(links) if !user.limits.is_empty() => links.clients_elsewhere(&user.name),
            _ => ClientCounts::default(),
        }
    }
}

/// The peers as the management API shows them.
pub(crate) fn snapshot(links: &Links, alarms: &Alarms) -> ClusterSnapshot {
    let now_us = links.clock.time().as_micros();
    let peers = links.peers();
    let peers = peers.iter().map(|peer| {
        let blocks = alarms.counting_of(peer.id);
        let state = peer.state.lock();
        let read = |number: &std::sync::atomic::AtomicU64| number.load(Ordering::Relaxed);
        let link = state.current.as_ref().map(|link| PeerLink {
            local: link.local,
            remote: link.remote,
            record_level: link.record_level,
            rtt_us: state.rtt_us,
            clock_skew_ms: state.skew.ms(),
            queued_bytes: link.output.bytes() as u64,
        });
        PeerSnapshot {
            name: peer.node.name.clone(),
            link,
            problem: state.problem().map(str::to_owned),
            is_doubled: state.is_doubled(now_us),
            facts: state.facts.as_ref().map(shown),
            memory_alarm_blocks: blocks.is_some_and(Alarm::is_of_memory),
            disk_alarm_blocks: blocks.is_some_and(Alarm::is_of_disk),
            down_us: state.down_us(now_us),
            sent_bytes: read(&peer.traffic.sent_bytes),
            received_bytes: read(&peer.traffic.received_bytes),
            dropped_frames: read(&peer.traffic.dropped_frames),
            lost_links: read(&peer.traffic.lost_links),
        }
    });
    let refused = links.refused().into_iter().map(|(code, count)| (code.as_str(), count));
    ClusterSnapshot {
        peers: peers.collect(),
        is_founded: links.is_founded(),
        record_level: links.record_level(),
        target_size: 1,
        refused_links: refused.collect(),
        // The node counts them.
        relayed_connections: 0,
        replication: ReplicationSnapshot::default(),
    }
}

fn shown(facts: &Facts) -> PeerFacts {
    PeerFacts {
        rabbitmq_version: facts.rabbitmq_version.clone(),
        leveret_version: facts.leveret_version.clone(),
        os_pid: facts.os_pid,
        uptime_ms: facts.uptime_ms,
        processors: facts.processors,
        memory_bytes: facts.memory_bytes,
        memory_watermark_bytes: facts.memory_watermark_bytes,
        memory_alarm: facts.memory_alarm,
        disk_free_bytes: facts.disk_free_bytes,
        disk_free_limit_bytes: facts.disk_free_limit_bytes,
        disk_alarm: facts.disk_alarm,
        fd_used: facts.fd_used,
        fd_total: facts.fd_total,
    }
}
