//! The replicator: the thread that drives the members of all vhosts.
//!
//! A turn of a member writes and syncs what came in since its last one, so that batches grow with the load. Frames of
//! other nodes, work of vhosts and reports of other threads gather in the meantime.

mod elsewhere;
mod thread;
mod ticks;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex, RwLock};
use replica::{ShipmentNeed, TransferError};
use replication::{ClockReading, Member, MemberId, NodeId, QuarantineReason, RunId};
use storage::{EntryIndex, LogSnapshot, RealDirectory, Term};
use tokio::sync::{Notify, oneshot};

use super::disk_watch::DiskWatch;
use super::driver::{BarrierAnswer, FilesRequest, PreparedShipment, TransferAnswer};
use super::electing::may_elect;
use super::member_links::MemberLinks;
use super::member_log::MemberLog;
use super::nodes::Nodes;
use super::rebuild_queue::RebuildQueue;
use super::report::Report;
use super::status::Statuses;
use super::target::{ReplicaRegistry, ReplicaTarget};
use crate::clock::Clock;
use crate::cluster::Links;
use crate::disk::vhost_files::VhostId;
use crate::limits::{CATCH_UP_TIMEOUT, FRAMES_BYTES_MAX};
use crate::membership::placement::Placement;

/// A change of the link to a node.
#[derive(Clone, Copy, Debug)]
enum LinkChange {
    /// Connected anew, or lost: frames may be lost.
    Changed,
    /// The process of the node is gone, or it is silent for the shortest election time.
    Lost,
}

/// Work from other threads.
#[derive(Default, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is another request, made once or again")]
struct Work {
    new: Vec<(Arc<dyn ReplicaTarget>, Member<MemberLog>)>,
    without_member: Vec<Arc<dyn ReplicaTarget>>,
    dirty: Vec<VhostId>,
    /// Frames, each with the own monotonic clock at its arrival, in microseconds.
    frames: Vec<(NodeId, Bytes, u64)>,
    frame_bytes: usize,
    links: Vec<(NodeId, LinkChange)>,
    reports: Vec<(VhostId, Report)>,
    transfers: Vec<(VhostId, Option<NodeId>, TransferAnswer)>,
    shipments: Vec<(VhostId, FilesRequest)>,
    shipped: Vec<(VhostId, MemberId, EntryIndex)>,
    barriers: Vec<(VhostId, BarrierAnswer)>,
    snapshots: Vec<SnapshotRequest>,
    /// Replicas that end, each with a channel that is closed when nothing touches its log any more. A message says that it
    /// goes on.
    ended: Vec<(VhostId, EndCause, Sender<()>)>,
    looks_for_space: bool,
    has_lost_disk: bool,
    has_other_nodes: bool,
    founded: bool,
    vhosts_take_part: bool,
    stopping: bool,
}

/// Asks for the files of a replica, for a backup.
#[derive(Debug)]
struct SnapshotRequest {
    vhost: VhostId,
    /// The entry that the replica must have applied before.
    behind: EntryIndex,
    until: Instant,
    answer: SnapshotAnswer,
}

/// Receives the files of a replica, or the reason why there are none.
type SnapshotAnswer = Sender<Result<LogSnapshot<RealDirectory>, String>>;

/// The reason why a replica ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum EndCause {
    /// Another replica takes the place.
    Replaced,
    /// Files up to this entry take the place, if the replica does not have it.
    Behind((EntryIndex, Term)),
    /// The vhost is deleted.
    Deleted,
}

impl Work {
    fn is_empty(&self) -> bool {
        self.new.is_empty()
            && self.without_member.is_empty()
            && self.dirty.is_empty()
            && self.frames.is_empty()
            && self.links.is_empty()
            && self.reports.is_empty()
            && self.transfers.is_empty()
            && self.shipments.is_empty()
            && self.shipped.is_empty()
            && self.barriers.is_empty()
            && self.snapshots.is_empty()
            && self.ended.is_empty()
            && !self.looks_for_space
            && !self.has_lost_disk
            && !self.has_other_nodes
            && !self.founded
            && !self.vhosts_take_part
    }
}

/// Hands work to the replicator's thread.
#[derive(Debug)]
pub(crate) struct Replicator {
    nodes: RwLock<Arc<Nodes>>,
    clock: Clock,
    run: RunId,
    work: Mutex<Work>,
    changed: Condvar,
    /// True while a compaction is running.
    compacting: AtomicBool,
    links: MemberLinks,
    registry: OnceLock<Arc<dyn ReplicaRegistry>>,
    watch: Arc<DiskWatch>,
    statuses: Statuses,
    /// True while the members of this node lead only if no other can.
    is_reluctant: AtomicBool,
    /// True once the node stops: a replica that has lost the lead is not opened anew.
    is_leaving: AtomicBool,
    rebuilds: RebuildQueue,
    leads: Mutex<BTreeMap<VhostId, Lead>>,
    /// Told when this node, or another one, begins to lead a vhost or stops.
    lead_changes: Notify,
}

/// The leader of a vhost, as this node knows it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Lead {
    leader: Option<NodeId>,
    /// The term in which this node leads.
    term: Option<u64>,
}

impl Replicator {
    /// Starts the thread. `run` is an id that no earlier process of this node had. A write that takes longer than
    /// `disk_stall_timeout` ends the lead of this node. Without links, no frame leaves.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub(crate) fn start(
        nodes: Nodes,
        clock: Clock,
        run: RunId,
        disk_stall_timeout: Duration,
        links: Option<Arc<Links>>,
    ) -> io::Result<(Arc<Self>, JoinHandle<()>)> {
        let replicator = Arc::new(Self {
            nodes: RwLock::new(Arc::new(nodes)),
            clock,
            run,
            work: Mutex::default(),
            changed: Condvar::new(),
            compacting: AtomicBool::new(false),
            links: MemberLinks(links),
            registry: OnceLock::new(),
            watch: DiskWatch::start(disk_stall_timeout)?,
            statuses: Statuses::default(),
            is_reluctant: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
            rebuilds: RebuildQueue::default(),
            leads: Mutex::default(),
            lead_changes: Notify::new(),
        });
        let runs = Arc::clone(&replicator);
        let thread = std::thread::Builder::new()
            .name("replicator".to_owned())
            .spawn(move || thread::Thread::new(runs).run())?;
        Ok((replicator, thread))
    }

    /// The nodes of the cluster, as they are now.
    pub(crate) fn nodes(&self) -> Arc<Nodes> {
        Arc::clone(&self.nodes.read())
    }

    /// Takes the nodes of the cluster from the metadata. The leaders remove the members of those that are gone.
    pub(crate) fn set_nodes(&self, nodes: Nodes) {
        {
            let mut known = self.nodes.write();
            if **known == nodes {
                return;
            }
            *known = Arc::new(nodes);
        }
        self.push(|work| work.has_other_nodes = true);
    }

    /// Statuses of the replicas, at most a second old.
    pub(crate) fn statuses(&self) -> &Statuses {
        &self.statuses
    }

    /// Writes that the disk did not answer in time, since the start.
    pub(crate) fn disk_stalls(&self) -> u64 {
        self.watch.stalls()
    }

    /// True if a vhost with this placement may get a leader soon: this node hears enough of its nodes.
    pub(crate) fn may_elect(&self, placement: Option<&Placement>) -> bool {
        let nodes = self.nodes();
        let is_placed = |name: &str| placement.is_none_or(|placement| placement.has(name));
        let is_member = is_placed(&nodes.my_name);
        let placed = nodes.known.iter().filter(|(_, node)| is_placed(&node.name));
        let hears = |node: NodeId| node == nodes.me || self.links.hears(node);
        may_elect(is_member, placed.map(|(node, _)| hears(*node)))
    }

    /// Sets the registry of the replicas, which opens them anew.
    pub(crate) fn set_registry(&self, registry: Arc<dyn ReplicaRegistry>) {
        let is_first = self.registry.set(registry).is_ok();
        assert!(is_first, "a node has one registry of replicas");
    }

    /// The registry of the replicas.
    pub(crate) fn registry(&self) -> &dyn ReplicaRegistry {
        &**self.registry.get().expect("a node sets its registry before a replica ends")
    }

    /// The clocks of this node.
    pub(crate) fn reading(&self) -> ClockReading {
        self.bounded_reading().0
    }

    /// The clocks of this node, and the wall clock just after.
    fn bounded_reading(&self) -> (ClockReading, u64) {
        let (wall_us, time, wall_after_us) = self.clock.bounded();
        let now = ClockReading { run: self.run, monotonic_us: time.as_micros(), wall_us };
        (now, wall_after_us)
    }

    /// The node has lost its disk, and its members may have voted before: the metadata that its start has begun must be
    /// rebuilt. Its vhosts take no part before it has followed them.
    pub(crate) fn lost_disk(&self) {
        self.push(|work| work.has_lost_disk = true);
    }

    /// The members may vote from now on.
    pub(crate) fn founded(&self) {
        self.push(|work| work.founded = true);
    }

    /// The vhosts take part in their groups from now on: their ids are those of the cluster.
    pub(crate) fn take_part(&self) {
        self.push(|work| work.vhosts_take_part = true);
        self.rebuilds.take_part();
    }

    /// Ends the part of a deleted vhost in its group. After the call, nothing touches its log.
    pub(crate) fn retire(&self, vhost: VhostId) {
        self.end(vhost, EndCause::Deleted);
    }

    /// False if the replica goes on.
    fn end(&self, vhost: VhostId, cause: EndCause) -> bool {
        let (done, goes_on) = channel();
        self.push(|work| work.ended.push((vhost, cause, done)));
        // Closed, without a value, when the replica has ended; or when the node has stopped.
        goes_on.recv().is_err()
    }

    /// Takes over the member of a vhost.
    pub(crate) fn add(&self, target: Arc<dyn ReplicaTarget>, member: Member<MemberLog>) {
        self.push(|work| work.new.push((target, member)));
    }

    /// Takes over a vhost that has no member on this node, and must know which node leads it.
    pub(crate) fn add_without_member(&self, target: Arc<dyn ReplicaTarget>) {
        self.push(|work| work.without_member.push(target));
    }

    /// Reports that a vhost has records to write; called once until they are taken.
    pub(crate) fn wake(&self, vhost: VhostId) {
        self.push(|work| work.dirty.push(vhost));
    }

    /// Frames of another node. Those are dropped for which too many wait; their sender sends them again.
    pub(crate) fn frames(&self, from: NodeId, frames: Vec<Bytes>) {
        let received_us = self.clock.time().as_micros();
        self.push(|work| {
            for frame in frames {
                if work.frame_bytes + frame.len() <= FRAMES_BYTES_MAX {
                    work.frame_bytes += frame.len();
                    work.frames.push((from, frame, received_us));
                }
            }
        });
    }

    /// A link to a node is there anew, or is silent.
    pub(crate) fn link_changed(&self, node: NodeId) {
        self.push(|work| work.links.push((node, LinkChange::Changed)));
    }

    /// The process of a node is gone, or it is silent for the shortest election time.
    pub(crate) fn node_lost(&self, node: NodeId) {
        self.push(|work| work.links.push((node, LinkChange::Lost)));
    }

    /// News of a vhost from another thread.
    fn report(&self, vhost: VhostId, report: Report) {
        self.push(|work| work.reports.push((vhost, report)));
    }

    /// Lets the replica of a vhost be rebuilt from the files of its leader: one of its files is damaged.
    pub(crate) fn damaged(&self, vhost: VhostId, problem: String) {
        self.report(vhost, Report::Unusable(QuarantineReason::Damaged(problem)));
    }

    /// Transfers the lead of a vhost to a node, or to the one that is most up to date. The vhost takes no commands until
    /// the other node leads, or this one goes on.
    ///
    /// # Errors
    /// The reason why this node leads on, or has not led.
    pub(crate) async fn transfer(
        &self,
        vhost: VhostId,
        to: Option<NodeId>,
    ) -> Result<(), TransferError> {
        let (answer, result) = oneshot::channel();
        self.push(|work| work.transfers.push((vhost, to, answer)));
        // Without an answer, the replica has lost the lead, or is gone.
        result.await.unwrap_or(Err(TransferError::NotLeading))
    }

    /// Lets a replica be rebuilt; `leader` may lead the vhost.
    pub(crate) fn want(&self, vhost: VhostId, need: ShipmentNeed, leader: Option<NodeId>) {
        self.rebuilds.want(vhost, need, leader);
    }

    /// The replicas that are to be rebuilt.
    pub(crate) fn rebuilds(&self) -> &RebuildQueue {
        &self.rebuilds
    }

    /// The node that leads a vhost, as far as this one knows.
    pub(crate) fn leader_of(&self, vhost: VhostId) -> Option<NodeId> {
        self.leads.lock().get(&vhost)?.leader
    }

    /// Waits until a lead has changed since the last call. One task may wait.
    pub(crate) async fn lead_changed(&self) {
        self.lead_changes.notified().await;
    }

    /// The term in which this node leads a vhost.
    pub(crate) fn leads_in(&self, vhost: VhostId) -> Option<u64> {
        self.leads.lock().get(&vhost)?.term
    }

    /// Prepares the files of a vhost that this node leads for the member of another node; or returns `known`, if these are
    /// files for the same member.
    ///
    /// # Errors
    /// A sentence for the operator of that node.
    pub(crate) async fn prepare_shipment(
        &self,
        vhost: VhostId,
        node: NodeId,
        need: ShipmentNeed,
        known: Option<Arc<PreparedShipment>>,
    ) -> Result<Arc<PreparedShipment>, String> {
        let (answer, result) = oneshot::channel();
        let request = FilesRequest { node, need, known, answer };
        self.push(|work| work.shipments.push((vhost, request)));
        let lost = || Err("this node does not lead the vhost".to_owned());
        result.await.unwrap_or_else(|_| lost())
    }

    /// The index of an entry behind everything that a vhost had confirmed before the call, which this node leads. None if it
    /// does not lead, or has ceased to meanwhile.
    pub(crate) async fn barrier(&self, vhost: VhostId) -> Option<EntryIndex> {
        let (answer, index) = oneshot::channel();
        self.push(|work| work.barriers.push((vhost, answer)));
        index.await.ok()
    }

    /// The files of the replica of a vhost or of the metadata, up to the last entry that was applied, for a backup. Waits
    /// for the write that is under way, and until the entry `behind` is applied.
    ///
    /// # Errors
    /// A sentence: there is no replica now, or it lacks the entry for longer than [`CATCH_UP_TIMEOUT`], or its end cannot be
    /// read.
    pub(crate) fn snapshot(
        &self,
        vhost: VhostId,
        behind: EntryIndex,
    ) -> Result<LogSnapshot<RealDirectory>, String> {
        let (answer, taken) = channel();
        let until = Instant::now() + CATCH_UP_TIMEOUT;
        let request = SnapshotRequest { vhost, behind, until, answer };
        self.push(|work| work.snapshots.push(request));
        let lost = "the replica of this node is being rebuilt or opened anew, or the node stops";
        taken.recv().unwrap_or_else(|_| Err(lost.to_owned()))
    }

    /// Notes that a member has the files up to an entry.
    pub(crate) fn shipped(&self, vhost: VhostId, member: MemberId, index: EntryIndex) {
        self.push(|work| work.shipped.push((vhost, member, index)));
    }

    /// Ends a replica, which is about to be replaced. After the call, nothing touches its log.
    pub(crate) fn end_replica(&self, vhost: VhostId) {
        self.end(vhost, EndCause::Replaced);
    }

    /// Ends a replica that is about to be replaced by files up to an entry that it does not have. False if it goes on, or
    /// is being opened.
    pub(crate) fn end_replica_behind(&self, vhost: VhostId, end: (EntryIndex, Term)) -> bool {
        self.end(vhost, EndCause::Behind(end))
    }

    /// Makes the members of this node lead only if no other can, or as all others.
    pub(crate) fn set_reluctant(&self, is_reluctant: bool) {
        self.is_reluctant.store(is_reluctant, Ordering::Release);
        self.changed.notify_one();
    }

    /// The node stops: replicas that lose the lead from now on are closed.
    pub(crate) fn leave(&self) {
        self.is_leaving.store(true, Ordering::Release);
    }

    /// Compacts every log that can be, because the disk is nearly full.
    pub(crate) fn look_for_space(&self) {
        self.push(|work| work.looks_for_space = true);
    }

    /// Makes the thread write what it has and end.
    pub(crate) fn stop(&self) {
        self.push(|work| work.stopping = true);
    }

    fn push(&self, add: impl FnOnce(&mut Work)) {
        add(&mut self.work.lock());
        // With the lock released, which the woken thread takes first.
        self.changed.notify_one();
    }

    /// Waits for work, but no longer than `wait`.
    fn next_work(&self, wait: Duration) -> Work {
        let mut work = self.work.lock();
        if work.is_empty() && !work.stopping && !wait.is_zero() {
            self.changed.wait_for(&mut work, wait);
        }
        let stopping = work.stopping;
        let taken = std::mem::take(&mut *work);
        work.stopping = stopping;
        Work { stopping, ..taken }
    }
}
