//! The links of this node: its peers, what was sent and refused, and the founding of the cluster.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::control::{Control, Facts, Introduction};
use super::events::{LinkEvents, LocalNode, LostCause};
use super::founding::{DiskProblem, Founding, RecordProblem, Told};
use super::groups;
use super::hello::{Hello, Known, NONCE_BYTES, PROTOCOL, RECORD_LEVEL, Secret};
use super::ids::{DiskId, GroupId, NodeId};
use super::peer::{OpenLink, Peer};
use super::refusal::{Refusal, RefusalCode};
use super::wire::Channel;
use crate::clock::Clock;
use crate::config::ClusterOptions;
use crate::disk::cluster_file::{self, ClusterFileError};
use crate::disk::node_file::NodeFileError;
use crate::limits::{LINK_LOG_INTERVAL, LINK_PROBLEMS_MAX};
use crate::tls::Tls;

/// The class of a frame.
#[cfg_attr(not(test), expect(dead_code, reason = "for the replication of vhosts"))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FrameClass {
    /// Frames that arrive in the order in which they were sent.
    Ordered,
    /// Long frames, in an order of their own, that give way to ordered ones.
    Bulk,
}

/// The reason why a node cannot take part in its cluster.
#[derive(thiserror::Error, Debug)]
pub(crate) enum ClusterError {
    #[error("{0}")]
    Secret(String),
    #[error(transparent)]
    File(#[from] ClusterFileError),
    #[error(transparent)]
    Record(#[from] RecordProblem),
    #[error(transparent)]
    Write(#[from] NodeFileError),
    #[error("the system has no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
    #[error("nodes '{0}' and '{1}' have the same id; rename one of them")]
    SameId(String, String),
    #[error("cannot start the thread for links: {0}")]
    Thread(std::io::Error),
}

/// The links of this node.
pub(crate) struct Links {
    pub(crate) options: ClusterOptions,
    pub(crate) name: String,
    pub(crate) own: NodeId,
    pub(crate) secret: Secret,
    pub(crate) clock: Clock,
    data_dir: PathBuf,
    peers: Vec<Arc<Peer>>,
    founding: Mutex<Founding>,
    /// Set when the links start.
    pub(crate) events: OnceLock<Arc<dyn LinkEvents>>,
    pub(crate) local: OnceLock<Arc<dyn LocalNode>>,
    pub(crate) tls: OnceLock<Arc<Tls>>,
    pub(crate) stopping: watch::Sender<bool>,
    /// Refused links since the start, by code.
    refused: [AtomicU64; RefusalCode::ALL.len()],
    /// Problems that were logged, by the peer, with the time.
    problems: Mutex<BTreeMap<String, (String, Instant)>>,
    next_number: AtomicU64,
}

impl std::fmt::Debug for Links {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Links")
            .field("name", &self.name)
            .field("peers", &self.peers)
            .finish_non_exhaustive()
    }
}

impl Links {
    /// The links of node `name`, which are not started yet. Reads `cluster.json`, or writes a new one; none without a
    /// cluster.
    ///
    /// # Errors
    /// [`ClusterError`], a sentence for the operator.
    pub(crate) fn open(
        options: &ClusterOptions,
        name: &str,
        data_dir: &Path,
        clock: Clock,
        home: Option<&Path>,
    ) -> Result<Option<Arc<Self>>, ClusterError> {
        let known = cluster_file::read(data_dir)?;
        if !options.is_on() {
            return match known {
                Some(record) => Err(RecordProblem::NoCluster(record.cluster).into()),
                None => Ok(None),
            };
        }
        let secret = options.read_secret(home).map_err(ClusterError::Secret)?;
        let names: Vec<&str> = options.nodes.iter().map(|node| node.name.as_str()).collect();
        let mut ids = BTreeMap::new();
        for name in &names {
            if let Some(other) = ids.insert(NodeId::of(name), *name) {
                return Err(ClusterError::SameId(other.to_owned(), (*name).to_owned()));
            }
        }
        let founding = Founding::new(name, &names, known.clone(), DiskId(getrandom::u64()?))?;
        if known.as_ref() != Some(founding.record()) {
            cluster_file::write(data_dir, founding.record())?;
        }
        if !founding.is_founded() {
            let unmet = founding.unmet().join(", ");
            tracing::info!(
                unmet,
                "the cluster is not founded yet: every node must meet every other one once"
            );
        }
        let now_us = clock.time().as_micros();
        let others = options.nodes.iter().filter(|node| node.name != name);
        Ok(Some(Arc::new(Self {
            name: name.to_owned(),
            own: NodeId::of(name),
            secret: Secret::new(&secret),
            clock,
            data_dir: data_dir.to_owned(),
            peers: others.map(|node| Arc::new(Peer::new(node.clone(), now_us))).collect(),
            founding: Mutex::new(founding),
            events: OnceLock::new(),
            local: OnceLock::new(),
            tls: OnceLock::new(),
            stopping: watch::Sender::new(false),
            refused: Default::default(),
            problems: Mutex::default(),
            next_number: AtomicU64::new(1),
            options: options.clone(),
        })))
    }

    /// The other nodes of the cluster, in the order of the configuration.
    pub(crate) fn peers(&self) -> &[Arc<Peer>] {
        &self.peers
    }

    /// The peer with this id.
    pub(crate) fn peer(&self, id: NodeId) -> Option<&Arc<Peer>> {
        self.peers.iter().find(|peer| peer.id == id)
    }

    /// Hands a frame to the link with a peer. Never waits. False if the frame is dropped, because there is no link or no
    /// room; its sender sends it again. Frames that were accepted arrive in order, or the link is lost.
    ///
    /// # Panics
    /// For a frame of more than [`LINK_FRAME_BYTES_MAX`](crate::limits::LINK_FRAME_BYTES_MAX) bytes.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the replication of vhosts"))]
    pub(crate) fn send(&self, peer: NodeId, frame: Bytes, class: FrameClass) -> bool {
        let channel = match class {
            FrameClass::Ordered => Channel::Ordered,
            FrameClass::Bulk => Channel::Bulk,
        };
        let Some(peer) = self.peer(peer) else { return false };
        let Some(link) = peer.state.lock().current.clone() else { return false };
        let is_sent = link.queue.add(channel, frame);
        if !is_sent {
            peer.traffic.dropped_frames.fetch_add(1, Ordering::Relaxed);
        }
        is_sent
    }

    /// True if this node may vote.
    pub(crate) fn is_founded(&self) -> bool {
        self.founding.lock().is_founded()
    }

    /// Sentences about a vhost that some peer does not have in the same way; such a vhost has no leader.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the replication of vhosts"))]
    pub(crate) fn differences(&self, group: GroupId) -> Vec<String> {
        let all = self.peers.iter();
        all.filter_map(|peer| peer.state.lock().differences.get(&group).cloned()).collect()
    }

    /// Tells all peers the vhosts of this node again, after a change.
    pub(crate) fn tell_groups(&self) {
        let introduction = Control::Introduction(self.introduction());
        for peer in &self.peers {
            self.compare_groups(peer);
            if let Some(link) = &peer.state.lock().current {
                link.tell(&introduction);
            }
        }
    }

    /// Number of refused links by code.
    pub(crate) fn refused(&self) -> Vec<(RefusalCode, u64)> {
        let counts = self.refused.iter().map(|count| count.load(Ordering::Relaxed));
        RefusalCode::ALL.into_iter().zip(counts).collect()
    }

    /// Counts and logs a refused link. `with` names the peer, or its address.
    pub(crate) fn note_refusal(&self, with: &str, refusal: &Refusal) {
        self.refused[refusal.code().index()].fetch_add(1, Ordering::Relaxed);
        self.note_problem(with, &format!("no link with {with}: {refusal}"));
    }

    /// Logs a problem with a peer when it is new, and again from time to time.
    pub(crate) fn note_problem(&self, with: &str, text: &str) {
        let (mut problems, now) = (self.problems.lock(), Instant::now());
        problems.retain(|_, (_, at)| now.duration_since(*at) < LINK_LOG_INTERVAL);
        let is_known = problems.get(with).is_some_and(|(known, _)| known == text);
        // Of many strangers not all are logged.
        if is_known || (!problems.contains_key(with) && problems.len() >= LINK_PROBLEMS_MAX) {
            return;
        }
        problems.insert(with.to_owned(), (text.to_owned(), now));
        tracing::warn!("{text}");
    }

    /// The hello of the next link.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub(crate) fn hello(&self) -> Result<Hello, getrandom::Error> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce)?;
        let founding = self.founding.lock();
        let record = founding.record();
        Ok(Hello {
            protocol: PROTOCOL,
            cluster: record.cluster,
            node: self.own,
            name: self.name.clone(),
            disk: record.disk,
            is_founded: record.is_founded,
            log_format: storage::FORMAT_VERSION,
            record_level: RECORD_LEVEL,
            build: env!("CARGO_PKG_VERSION").to_owned(),
            nonce,
        })
    }

    /// The knowledge by which a hello is judged.
    pub(crate) fn known<'a>(&'a self, dialed: Option<&'a crate::config::ClusterNode>) -> Known<'a> {
        let cluster = self.founding.lock().record().cluster;
        Known { cluster, own: self.own, nodes: &self.options.nodes, dialed }
    }

    /// The introduction of this node.
    pub(crate) fn introduction(&self) -> Introduction {
        let groups = self.local.get().map(|local| local.groups()).unwrap_or_default();
        let founding = self.founding.lock();
        Introduction { is_founded: founding.is_founded(), disks: founding.disks(), groups }
    }

    /// Facts about this node.
    pub(crate) fn facts(&self) -> Option<Facts> {
        self.local.get().map(|local| local.facts())
    }

    /// A number for a new link.
    pub(crate) fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes the introduction of a peer with a proved hello. When the disks change, the change is on this node's disk
    /// on return, and all peers are told.
    ///
    /// # Errors
    /// [`Refusal`]: the link must be closed.
    pub(crate) fn hear(
        &self,
        peer: &Peer,
        link: &OpenLink,
        disk: DiskId,
        introduction: Introduction,
    ) -> Result<(), Refusal> {
        let Introduction { is_founded, disks, groups } = introduction;
        let (name, told) = (&peer.node.name, Told { disk, is_founded, disks });
        let (is_changed, is_newly_founded) = {
            let mut founding = self.founding.lock();
            let mut next = founding.clone();
            let is_changed = next.hear(name, &told).map_err(|problem| match problem {
                DiskProblem::PeerLostDisk => Refusal::Disk { name: name.clone() },
                DiskProblem::OwnDiskLost => Refusal::OwnDisk { name: name.clone() },
                DiskProblem::Disagreement { of } => {
                    Refusal::Disagreement { name: name.clone(), of }
                }
            })?;
            if is_changed {
                let written = cluster_file::write(&self.data_dir, next.record());
                written.map_err(|error| Refusal::OwnFile(error.to_string()))?;
            }
            let was_founded = founding.is_founded();
            *founding = next;
            (is_changed, founding.is_founded() && !was_founded)
        };
        peer.state.lock().groups = Some(groups);
        self.compare_groups(peer);
        if is_changed {
            let introduction = Control::Introduction(self.introduction());
            link.tell(&introduction);
            for other in self.peers.iter().filter(|other| other.id != peer.id) {
                if let Some(link) = &other.state.lock().current {
                    link.tell(&introduction);
                }
            }
        }
        if is_newly_founded {
            tracing::info!("the cluster is founded: all nodes have met");
            if let Some(events) = self.events.get() {
                events.founded();
            }
        }
        Ok(())
    }

    /// Compares the vhosts of a peer with those of this node, and logs new differences.
    fn compare_groups(&self, peer: &Peer) {
        let Some(local) = self.local.get() else { return };
        let own = local.groups();
        let mut state = peer.state.lock();
        let Some(theirs) = &state.groups else { return };
        let differences = groups::differences(&own, &peer.node.name, theirs);
        let before = std::mem::replace(&mut state.differences, differences);
        let news = state.differences.iter().filter(|(id, text)| before.get(id) != Some(text));
        news.for_each(|(_, text)| tracing::error!("{text}"));
    }

    /// Puts a link into use, after the peer has introduced itself on it. The one that was in use is lost.
    pub(crate) fn connected(&self, peer: &Peer, link: &Arc<OpenLink>) {
        let _in_order = peer.calls.lock();
        let before = peer.state.lock().open(link, self.clock.time().as_micros());
        if let Some(before) = before {
            before.close(LostCause::Replaced);
            self.tell_lost(peer, &LostCause::Replaced);
        }
        self.problems.lock().remove(&peer.node.name);
        tracing::info!(peer = %peer.node.name, address = %link.remote, "link is open");
        if let Some(events) = self.events.get() {
            events.connected(peer.id);
        }
    }

    /// Takes a link out of use if it is in use.
    pub(crate) fn lost(&self, peer: &Peer, number: u64, cause: &LostCause) {
        let _in_order = peer.calls.lock();
        if peer.state.lock().close(number, self.clock.time().as_micros()) {
            self.tell_lost(peer, cause);
        }
    }

    fn tell_lost(&self, peer: &Peer, cause: &LostCause) {
        peer.traffic.lost_links.fetch_add(1, Ordering::Relaxed);
        if *cause == LostCause::Stopping {
            tracing::debug!(peer = %peer.node.name, "link is closed");
        } else {
            tracing::warn!(peer = %peer.node.name, "link is lost: {cause}");
        }
        if let Some(events) = self.events.get() {
            events.lost(peer.id, cause);
        }
    }
}

/// Completes when the node stops.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // The sender lives as long as the links.
    drop(stopping.wait_for(|is| *is).await);
}
