//! The links of this node: its peers, what was sent and refused, and what the node remembers of its cluster.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use replication::levels::{LevelProblem, check_level, risen};
use tokio::sync::{Notify, watch};

use super::logged_problems::LoggedProblems;
use super::streams::Streams;
use crate::auth::user_slots::UserCounts;
use crate::clock::Clock;
use crate::cluster::frames::control::{Control, Facts, Introduction};
use crate::cluster::frames::wire::Channel;
use crate::cluster::handshake::hello::{CheckContext, Hello, NONCE_BYTES, Secret, Side};
use crate::cluster::levels::check_peer;
use crate::cluster::peer::contact::Contact;
use crate::cluster::peer::events::{LinkEvents, LocalNode, LostCause};
use crate::cluster::peer::replaced::ReplacementRate;
use crate::cluster::peer::{OpenLink, Peer};
use crate::cluster::purpose::{PROTOCOL, Purpose};
use crate::cluster::refusal::{Refusal, RefusalCode};
use crate::cluster::remote_end::RemoteEnd;
use crate::config::{self, ClusterOptions};
use crate::disk::data_dir::DataDirError;
use crate::disk::json_files::cluster_file::{self, ClusterFileError};
use crate::disk::json_files::node_file::NodeFileError;
use crate::disk::reset;
use crate::disk::stand_alone::StandAloneError;
use crate::limits::{LINK_HANDSHAKE_TIMEOUT, LINK_PING_INTERVAL, LINK_SILENCE};
use crate::membership::founding::{
    ClusterRecord, DiskProblem, Founding, PeerStatement, RecordProblem, StatementEffect,
};
use crate::membership::ids::{ClusterId, DiskId, NodeId};
use crate::membership::node_list::NodeList;
use crate::tls::{Tls, TlsError};

/// The class of a frame.
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
    #[error("the nodes of the cluster are not known yet")]
    Undiscovered,
    #[error("node '{node}' does not take this node into its cluster: {reason}")]
    NotAdmitted { node: String, reason: String },
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error(transparent)]
    RecordLevel(#[from] LevelProblem),
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    #[error("cannot tell what the data directory has: {0}")]
    Content(String),
    #[error("this node cannot go on alone: {0}")]
    StandAlone(#[from] StandAloneError),
    #[error("cannot prepare the data directory for another cluster: {0}")]
    Reset(std::io::Error),
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
    /// The other nodes, in the order of the configuration or of the list. Changes under the lock of the founding.
    peers: RwLock<Arc<[Arc<Peer>]>>,
    /// Told when there are other peers.
    pub(crate) peers_changed: watch::Sender<()>,
    founding: Mutex<Founding>,
    /// The level of record kinds in the record of the founding, for those that ask often.
    record_level: AtomicU16,
    /// True once the record of another cluster is on the disk, for the next start.
    has_joined: AtomicBool,
    /// Set when the links start.
    pub(crate) events: OnceLock<Arc<dyn LinkEvents>>,
    pub(crate) local: OnceLock<Arc<dyn LocalNode>>,
    pub(crate) tls: OnceLock<Arc<Tls>>,
    pub(crate) stopping: watch::Sender<bool>,
    /// Refused links since the start, by code.
    pub(in crate::cluster) refused: [AtomicU64; RefusalCode::ALL.len()],
    /// Problems that were logged, by the peer, with the time.
    pub(super) problems: Mutex<LoggedProblems>,
    next_number: AtomicU64,
    /// Position of the log of the metadata up to which these have taken effect here.
    pub(crate) followed: AtomicU64,
    /// Told when peers must get the facts about this node at once.
    pub(crate) facts_due: Notify,
    pub(crate) users: ToldUsers,
    pub(crate) streams: Streams,
}

/// The counts of clients of this node, as peers know them.
#[derive(Default, Debug)]
pub(crate) struct ToldUsers {
    /// Held while peers are told: all get the counts in the same order.
    pub(in crate::cluster) told: Mutex<UserCounts>,
    /// Told when the counts may be others than before.
    pub(crate) due: Arc<Notify>,
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
                Some(record) if record.cluster != ClusterId::UNKNOWN => {
                    Err(RecordProblem::NoCluster(record.cluster).into())
                }
                Some(_) | None => Ok(None),
            };
        }
        if let Some(known) = &known {
            check_level(options.record_level, known.record_level)?;
        }
        let links = Self::with_record(options, name, data_dir, clock, home, known.clone())?;
        let founding = links.founding.lock();
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
        drop(founding);
        Ok(Some(links))
    }

    /// The links of node `name` with what it remembers. Writes nothing.
    ///
    /// # Errors
    /// [`ClusterError`], a sentence for the operator.
    pub(in crate::cluster) fn with_record(
        options: &ClusterOptions,
        name: &str,
        data_dir: &Path,
        clock: Clock,
        home: Option<&Path>,
        known: Option<ClusterRecord>,
    ) -> Result<Arc<Self>, ClusterError> {
        if options.nodes.is_empty() {
            return Err(ClusterError::Undiscovered);
        }
        let secret = options.read_secret(home).map_err(ClusterError::Secret)?;
        let names: Vec<&str> = options.nodes.iter().map(|node| node.name.as_str()).collect();
        let mut ids = BTreeMap::new();
        for name in &names {
            if let Some(other) = ids.insert(NodeId::of(name), *name) {
                return Err(ClusterError::SameId(other.to_owned(), (*name).to_owned()));
            }
        }
        let fresh = DiskId::first(getrandom::u64()?);
        let replacement = options.replaces_lost_member.then(getrandom::u64).transpose()?;
        let founding = Founding::new(name, &names, known, fresh, replacement)?;
        let now_us = clock.time().as_micros();
        let others = options.nodes.iter().filter(|node| node.name != name);
        let peers = others.map(|node| Arc::new(Peer::new(node.clone(), now_us))).collect();
        Ok(Arc::new(Self {
            name: name.to_owned(),
            own: NodeId::of(name),
            secret: Secret::new(&secret),
            clock,
            data_dir: data_dir.to_owned(),
            peers: RwLock::new(peers),
            peers_changed: watch::Sender::new(()),
            record_level: AtomicU16::new(founding.record().record_level),
            founding: Mutex::new(founding),
            has_joined: AtomicBool::new(false),
            events: OnceLock::new(),
            local: OnceLock::new(),
            tls: OnceLock::new(),
            stopping: watch::Sender::new(false),
            refused: Default::default(),
            problems: Mutex::default(),
            next_number: AtomicU64::new(1),
            followed: AtomicU64::new(0),
            facts_due: Notify::new(),
            users: ToldUsers::default(),
            streams: Streams::default(),
            options: options.clone(),
        }))
    }

    /// The links of a node that takes no part, which only dial. Writes nothing. The nodes are those of the options.
    ///
    /// # Errors
    /// [`ClusterError`], a sentence for the operator.
    pub(crate) fn unstarted(
        options: &ClusterOptions,
        data_dir: &Path,
        clock: Clock,
        record: ClusterRecord,
    ) -> Result<Arc<Self>, ClusterError> {
        let (name, home) = (record.node.clone(), config::cluster::home());
        let record = Some(record);
        let links = Self::with_record(options, &name, data_dir, clock, home.as_deref(), record)?;
        if options.has_tls() {
            let tls = Tls::for_links(&options.tls, LINK_HANDSHAKE_TIMEOUT)?;
            let is_first = links.tls.set(Arc::new(tls)).is_ok();
            assert!(is_first, "the links are new");
        }
        Ok(links)
    }

    /// Id of the cluster.
    pub(crate) fn cluster(&self) -> ClusterId {
        self.founding.lock().record().cluster
    }

    /// The other nodes of the cluster, as they are now.
    pub(crate) fn peers(&self) -> Arc<[Arc<Peer>]> {
        Arc::clone(&self.peers.read())
    }

    /// The peer with this id.
    pub(crate) fn peer(&self, id: NodeId) -> Option<Arc<Peer>> {
        self.peers.read().iter().find(|peer| peer.id == id).cloned()
    }

    /// The record on the disk.
    pub(crate) fn record(&self) -> ClusterRecord {
        self.founding.lock().record().clone()
    }

    /// Puts the record of another cluster on the disk, for the next start; from then on this node takes no part in the one
    /// that it knows. False if that one is founded already.
    ///
    /// # Errors
    /// [`ClusterError`]: the disk refuses.
    pub(crate) fn write_joined(&self, record: &ClusterRecord) -> Result<bool, ClusterError> {
        let founding = self.founding.lock();
        if founding.is_founded() {
            return Ok(false);
        }
        let written = join_at_start(&self.data_dir, record);
        // A write that fails may have put the record on the disk.
        if !matches!(written, Err(ClusterError::Reset(_))) {
            self.has_joined.store(true, Ordering::Release);
        }
        written.map(|()| true)
    }

    /// The nodes as the metadata list them, empty until they are known.
    pub(crate) fn nodes(&self) -> Arc<NodeList> {
        Arc::clone(&self.founding.lock().record().nodes)
    }

    /// The nodes that the metadata are to list, if this node goes on without the others.
    pub(crate) fn nodes_due(&self) -> Option<Arc<NodeList>> {
        let founding = self.founding.lock();
        let record = founding.record();
        record.are_nodes_due.then(|| Arc::clone(&record.nodes))
    }

    /// Notes, durably, that the metadata list them.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn nodes_are_listed(&self) -> Result<(), NodeFileError> {
        let mut founding = self.founding.lock();
        founding.nodes_are_listed();
        cluster_file::write(&self.data_dir, founding.record())
    }

    /// The level of record kinds of the cluster: newer ones must not be written.
    pub(crate) fn record_level(&self) -> u16 {
        self.record_level.load(Ordering::Acquire)
    }

    /// Takes the level of record kinds that the metadata have. True if it is a higher one, which is on the disk then.
    ///
    /// # Errors
    /// The file cannot be written; nothing has changed.
    pub(crate) fn raise_record_level(&self, level: u16) -> Result<bool, NodeFileError> {
        let mut founding = self.founding.lock();
        let mut next = founding.clone();
        // A node that is not founded follows nothing that the cluster has.
        if !next.is_founded() || !next.raise_record_level(level) {
            return Ok(false);
        }
        cluster_file::write(&self.data_dir, next.record())?;
        *founding = next;
        self.record_level.store(level, Ordering::Release);
        drop(founding);
        tracing::info!(level, "the level of record kinds of the cluster has risen");
        for peer in self.peers().iter() {
            let link = peer.state.lock().current.clone();
            // It has come since the level was decided.
            if let Some(link) = link
                && let Err(refusal) = check_peer(&peer.node.name, link.record_level, level)
            {
                link.close(LostCause::Refused(refusal));
            }
        }
        Ok(true)
    }

    /// The level to which the cluster can rise now, if it can: that of its lowest node, when all are connected.
    pub(crate) fn level_to_rise_to(&self) -> Option<u16> {
        let own = Some(self.options.record_level);
        let peers = self.peers();
        let peers = peers.iter().map(|peer| peer.record_level());
        risen(self.record_level(), peers.chain([own]))
    }

    /// Names of the nodes that are not connected.
    pub(crate) fn away(&self) -> Vec<String> {
        let peers = self.peers();
        let away = peers.iter().filter(|peer| peer.record_level().is_none());
        away.map(|peer| peer.node.name.clone()).collect()
    }

    /// The disks of all nodes, as far as this one remembers them.
    pub(crate) fn disks(&self) -> BTreeMap<NodeId, DiskId> {
        self.founding.lock().disks()
    }

    /// The list of the nodes as peers are told it; none until it is known.
    pub(super) fn told_nodes(&self) -> Option<Control> {
        let founding = self.founding.lock();
        let record = founding.record();
        (!record.nodes.is_empty())
            .then(|| Control::Nodes(record.nodes_position, NodeList::clone(&record.nodes)))
    }

    /// Takes a list of the nodes, which the metadata had at this position of their log. If it is a newer one, it is on the
    /// disk on return, and all peers are told. Links with new nodes open, and those with forgotten ones close. False if it
    /// is not newer.
    ///
    /// # Errors
    /// The file cannot be written; nothing has changed.
    pub(crate) fn set_nodes(&self, nodes: &NodeList, position: u64) -> Result<bool, NodeFileError> {
        let mut founding = self.founding.lock();
        let mut next = founding.clone();
        // A node that is not founded asks to join, or is told by a founded one that its disk is lost.
        if !next.is_founded() || !next.set_nodes(nodes, position) {
            return Ok(false);
        }
        cluster_file::write(&self.data_dir, next.record())?;
        *founding = next;
        let now_us = self.clock.time().as_micros();
        let before = self.peers();
        let of_list = nodes.to_config(&self.options.nodes);
        let peers = of_list.into_iter().filter(|node| node.name != self.name).map(|node| {
            let known = before.iter().find(|peer| peer.node.has_place_of(&node));
            known.cloned().unwrap_or_else(|| Arc::new(Peer::new(node, now_us)))
        });
        let peers: Arc<[Arc<Peer>]> = peers.collect();
        *self.peers.write() = Arc::clone(&peers);
        drop(founding);
        for gone in before.iter().filter(|peer| !peers.iter().any(|it| Arc::ptr_eq(it, peer))) {
            let name = gone.node.name.clone();
            if nodes.member(&name).is_some() {
                // It has joined again, at another address.
                gone.leave(LostCause::Replaced);
            } else {
                tracing::warn!(peer = %name, "the node is not one of the cluster any more");
                gone.leave(LostCause::Refused(Refusal::Forgotten { name }));
            }
        }
        for new in peers.iter().filter(|peer| !before.iter().any(|it| Arc::ptr_eq(it, peer))) {
            tracing::info!(peer = %new.node.name, "the node is one of the cluster now");
        }
        let introduction = Control::Introduction(self.introduction());
        let nodes = Control::Nodes(position, nodes.clone());
        for peer in peers.iter() {
            peer.tell(&introduction);
            peer.tell(&nodes);
        }
        self.peers_changed.send_replace(());
        Ok(true)
    }

    /// Hands a frame to the link with a peer, which sends it with the next [`Links::flush`] at the latest. Never waits.
    /// False if the frame is dropped, because there is no link or no room; its sender sends it again. Frames that were
    /// accepted arrive in order, or the link is lost.
    ///
    /// # Panics
    /// For a frame of more than [`LINK_FRAME_BYTES_MAX`](crate::limits::LINK_FRAME_BYTES_MAX) bytes.
    pub(crate) fn send(&self, peer: NodeId, frame: Bytes, class: FrameClass) -> bool {
        let channel = match class {
            FrameClass::Ordered => Channel::Ordered,
            FrameClass::Bulk => Channel::Bulk,
        };
        let Some(peer) = self.peer(peer) else { return false };
        let Some(link) = peer.state.lock().current.clone() else { return false };
        let is_sent = link.output.add(channel, frame);
        if !is_sent {
            peer.traffic.dropped_frames.fetch_add(1, Ordering::Relaxed);
        }
        is_sent
    }

    /// Sends the frames that links have, with a ping if there was none for [`LINK_PING_INTERVAL`]: the peer wakes up once
    /// for both.
    pub(crate) fn flush(&self) {
        for peer in self.peers.read().iter() {
            let link = peer.state.lock().current.clone();
            if let Some(link) = link.filter(|link| link.output.has_news()) {
                link.ping_after(LINK_PING_INTERVAL, &self.clock);
                link.output.flush();
            }
        }
    }

    /// True if this node may vote.
    pub(crate) fn is_founded(&self) -> bool {
        self.founding.lock().is_founded()
    }

    /// True if the node has come later than its cluster: it has joined, or has replaced a lost disk.
    pub(crate) fn is_newcomer(&self) -> bool {
        self.founding.lock().record().is_newcomer
    }

    /// Tells all peers up to which position of their log the metadata have taken effect here.
    pub(crate) fn tell_followed(&self, position: u64) {
        self.followed.store(position, Ordering::Release);
        self.peers().iter().for_each(|peer| peer.tell(&Control::Followed(position)));
    }

    /// Tells all peers the facts about this node at once. Does not wait.
    pub(crate) fn tell_facts(&self) {
        self.facts_due.notify_one();
    }

    /// The hello of the next connection that this node dials for `purpose`, or accepts.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub(crate) fn hello(&self, side: Side, purpose: Purpose) -> Result<Hello, getrandom::Error> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce)?;
        let founding = self.founding.lock();
        let record = founding.record();
        Ok(Hello {
            protocol: match side {
                Side::Dialer => Hello::versions(purpose),
                Side::Acceptor => PROTOCOL,
            },
            purpose,
            cluster: record.cluster,
            node: self.own,
            name: self.name.clone(),
            disk: record.disk,
            is_founded: record.is_founded,
            log_format: storage::FORMAT_VERSION,
            record_level: self.options.record_level,
            build: env!("CARGO_PKG_VERSION").to_owned(),
            nonce,
        })
    }

    /// The knowledge by which a hello is judged.
    pub(crate) fn known<'a>(
        &self,
        (peers, nodes): (&'a [Arc<Peer>], &'a NodeList),
        dialed: Option<&'a config::ClusterNode>,
    ) -> CheckContext<'a> {
        let (cluster, record_level) = (self.cluster(), self.record_level());
        CheckContext { cluster, own: self.own, record_level, peers, nodes, dialed }
    }

    /// Checks the proved hello of a listed node that takes part in a stream.
    ///
    /// # Errors
    /// [`Refusal`]: the cluster is not founded, or the node has another disk than is remembered.
    pub(crate) fn check_member(&self, hello: &Hello) -> Result<(), Refusal> {
        let founding = self.founding.lock();
        let has_other_disk = founding.record().peers.get(&hello.name) != Some(&hello.disk);
        if founding.is_founded() && has_other_disk {
            return Err(Refusal::Disk { name: hello.name.clone() });
        }
        if !founding.is_founded() || !hello.is_founded {
            return Err(Refusal::NotFounded);
        }
        Ok(())
    }

    /// The introduction of this node.
    pub(crate) fn introduction(&self) -> Introduction {
        let founding = self.founding.lock();
        Introduction { is_founded: founding.is_founded(), disks: founding.disks() }
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
        let Introduction { is_founded, disks } = introduction;
        let (name, told) = (&peer.node.name, PeerStatement { disk, is_founded, disks });
        check_peer(name, link.record_level, self.record_level())?;
        let (heard, is_newly_founded) = {
            let mut founding = self.founding.lock();
            if self.has_joined.load(Ordering::Acquire) {
                return Err(Refusal::NotFounded);
            }
            let mut next = founding.clone();
            let heard = next.hear(name, &told).map_err(|problem| match problem {
                DiskProblem::PeerLostDisk => Refusal::Disk { name: name.clone() },
                DiskProblem::OwnDiskLost => Refusal::OwnDisk { name: name.clone() },
                DiskProblem::Disagreement { of } => {
                    Refusal::Disagreement { name: name.clone(), of }
                }
                DiskProblem::Forgotten => Refusal::Node { name: name.clone() },
            })?;
            if heard != StatementEffect::Unchanged {
                let written = cluster_file::write(&self.data_dir, next.record());
                written.map_err(|error| Refusal::OwnFile(error.to_string()))?;
            }
            let was_founded = founding.is_founded();
            *founding = next;
            (heard, founding.is_founded() && !was_founded)
        };
        if heard == StatementEffect::TookNewDisk {
            if let Some(events) = self.events.get() {
                events.lost_disk();
            }
            return Err(Refusal::NewDisk { name: name.clone() });
        }
        if heard == StatementEffect::Changed {
            let introduction = Control::Introduction(self.introduction());
            link.tell(&introduction);
            let peers = self.peers();
            let others = peers.iter().filter(|other| other.id != peer.id);
            others.for_each(|other| other.tell(&introduction));
        }
        if is_newly_founded {
            tracing::info!("the cluster is founded: all nodes have met");
            if let Some(events) = self.events.get() {
                events.founded();
            }
        }
        Ok(())
    }

    /// Puts a link into use, after the peer has introduced itself on it. The one that was in use is lost.
    pub(crate) fn connected(&self, peer: &Peer, link: &Arc<OpenLink>) {
        let _in_order = peer.calls.lock();
        let (before, rate) = {
            let (mut state, now_us) = (peer.state.lock(), self.clock.time().as_micros());
            let before = state.open(link, now_us);
            let rate = before.as_ref().map(|_| state.note_replaced(now_us));
            peer.contact.send_replace(Contact::Linked);
            (before, rate)
        };
        if let Some(before) = before {
            before.close(LostCause::Replaced);
            self.tell_lost(peer, &LostCause::Replaced);
        }
        if rate == Some(ReplacementRate::TooOften) {
            tracing::error!(
                "two processes say that they are node '{}', and take each other's links: one runs on a copy of the data \
                 directory of the other one. Stop the copy at once, and remove it",
                peer.node.name
            );
        }
        self.problems.lock().forget(&RemoteEnd::Node(&peer.node.name).to_string());
        if rate != Some(ReplacementRate::TooOftenReported) {
            tracing::info!(peer = %peer.node.name, address = %link.remote, "link is open");
        }
        if let Some(events) = self.events.get() {
            events.connected(peer.id);
        }
        // The new peer has none.
        self.facts_due.notify_one();
    }

    /// Takes a link out of use if it is in use.
    pub(crate) fn lost(&self, peer: &Peer, number: u64, cause: &LostCause) {
        let _in_order = peer.calls.lock();
        let is_lost = {
            let (mut state, now_us) = (peer.state.lock(), self.clock.time().as_micros());
            let is_lost = state.close(number, now_us);
            if is_lost {
                state.note_problem(&cause.to_string());
                let silence =
                    if *cause == LostCause::Silent { LINK_SILENCE } else { Duration::ZERO };
                peer.contact.send_replace(Contact::lost(silence));
            }
            is_lost
        };
        if is_lost {
            self.tell_lost(peer, cause);
        }
    }

    fn tell_lost(&self, peer: &Peer, cause: &LostCause) {
        peer.traffic.lost_links.fetch_add(1, Ordering::Relaxed);
        let is_doubled = || peer.state.lock().is_doubled(self.clock.time().as_micros());
        if *cause == LostCause::Stopping || *cause == LostCause::Replaced && is_doubled() {
            tracing::debug!(peer = %peer.node.name, "link is closed: {cause}");
        } else {
            tracing::warn!(peer = %peer.node.name, "link is lost: {cause}");
        }
        if let Some(events) = self.events.get() {
            events.lost(peer.id, cause);
        }
    }
}

/// Puts the record of a cluster that this node joins on the disk, for the next start. For a founded one the next start
/// also empties the directory: the mark for this comes first, because a node that takes part must have nothing of its own.
///
/// # Errors
/// [`ClusterError`]: the disk refuses.
pub(crate) fn join_at_start(data_dir: &Path, record: &ClusterRecord) -> Result<(), ClusterError> {
    if record.is_founded {
        reset::reset_at_start(data_dir).map_err(ClusterError::Reset)?;
    }
    Ok(cluster_file::write(data_dir, record)?)
}

/// Completes when the node stops, or the peer has left.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // The sender lives as long as the links, or the peer.
    drop(stopping.wait_for(|is| *is).await);
}
