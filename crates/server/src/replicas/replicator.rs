//! The replicator: the thread that drives the members of all vhosts.
//!
//! A turn of a member writes and syncs what came in since its last one, so that batches grow with the load. Frames of
//! other nodes, work of vhosts and reports of other threads gather in the meantime.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use replication::{
    ClockBounds, ClockPing, ClockReading, Frame, FrameClass, FrameError, FrameHeader, GroupId,
    Member, NodeId, QuarantineReason, RunId,
};

use super::disk_watch::DiskWatch;
use super::nodes::Nodes;
use super::replica::{Clocks, MemberLog, Next, Replica};
use super::report::Report;
use super::status::Statuses;
use super::target::{Reopens, ReplicaTarget};
use crate::clock::Clock;
use crate::disk::vhost_files::VhostId;
use crate::limits::{COMPACTION_CHECK_BATCHES, EXIT_DISK, FRAMES_BYTES_MAX};

/// Duration of a tick.
const TICK: Duration = Duration::from_micros(replication::limits::TICK_US);

/// Time between two pings to a node.
const PING_INTERVAL: Duration = Duration::from_millis(100);

/// Time between two statuses of a replica.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// Time after which a node stops although a majority has not taken what it has.
const STOP_WITHOUT_MAJORITY: Duration = Duration::from_secs(2);

/// Ticks that a member gets at once after the thread has slept: it must not jump to an election.
const TICKS_AT_ONCE_MAX: u32 = 2;

/// The links to other nodes.
pub(crate) trait FrameSender: fmt::Debug + Send + Sync {
    /// Sends a frame to a node. Never waits. False if the frame is dropped, because the link is down or too much waits
    /// for it.
    fn send(&self, node: NodeId, frame: Bytes, class: FrameClass) -> bool;

    /// True if some other node has another vhost under this id, or none: then it gets no leader.
    fn differs(&self, vhost: VhostId) -> bool;
}

/// A change of the link to a node.
#[derive(Clone, Copy, Debug)]
enum LinkChange {
    /// Connected anew, or silent: frames may be lost.
    Changed,
    /// The process of the node is gone.
    Lost,
}

/// Work from other threads.
#[derive(Default, Debug)]
struct Work {
    new: Vec<(Arc<dyn ReplicaTarget>, Member<MemberLog>)>,
    dirty: Vec<VhostId>,
    /// Frames, each with the own monotonic clock at its arrival, in microseconds.
    frames: Vec<(NodeId, Bytes, u64)>,
    frame_bytes: usize,
    links: Vec<(NodeId, LinkChange)>,
    reports: Vec<(VhostId, Report)>,
    looks_for_space: bool,
    founded: bool,
    stopping: bool,
}

impl Work {
    fn is_empty(&self) -> bool {
        self.new.is_empty()
            && self.dirty.is_empty()
            && self.frames.is_empty()
            && self.links.is_empty()
            && self.reports.is_empty()
            && !self.looks_for_space
            && !self.founded
    }
}

/// Hands work to the replicator's thread.
#[derive(Debug)]
pub(crate) struct Replicator {
    nodes: Nodes,
    clock: Clock,
    run: RunId,
    work: Mutex<Work>,
    changed: Condvar,
    /// True while a compaction is running.
    compacting: AtomicBool,
    sender: OnceLock<Arc<dyn FrameSender>>,
    reopener: OnceLock<Weak<dyn Reopens>>,
    watch: Arc<DiskWatch>,
    statuses: Statuses,
}

impl Replicator {
    /// Starts the thread. `run` is an id that no earlier process of this node had. A write that takes longer than
    /// `disk_stall_timeout` ends the lead of this node.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub(crate) fn start(
        nodes: Nodes,
        clock: Clock,
        run: RunId,
        disk_stall_timeout: Duration,
    ) -> io::Result<(Arc<Self>, JoinHandle<()>)> {
        let replicator = Arc::new(Self {
            nodes,
            clock,
            run,
            work: Mutex::default(),
            changed: Condvar::new(),
            compacting: AtomicBool::new(false),
            sender: OnceLock::new(),
            reopener: OnceLock::new(),
            watch: DiskWatch::start(disk_stall_timeout)?,
            statuses: Statuses::default(),
        });
        let runs = Arc::clone(&replicator);
        let thread = std::thread::Builder::new()
            .name("replicator".to_owned())
            .spawn(move || Thread::new(runs).run())?;
        Ok((replicator, thread))
    }

    /// The nodes of the cluster.
    pub(crate) fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Statuses of the replicas, at most a second old.
    pub(crate) fn statuses(&self) -> &Statuses {
        &self.statuses
    }

    /// Writes that the disk did not answer in time, since the start.
    pub(crate) fn disk_stalls(&self) -> u64 {
        self.watch.stalls()
    }

    /// Sets the links to other nodes; until then, no frame leaves.
    pub(crate) fn set_sender(&self, sender: Arc<dyn FrameSender>) {
        let is_first = self.sender.set(sender).is_ok();
        assert!(is_first, "a node has one set of links");
    }

    /// Sets the function that opens replicas anew.
    pub(crate) fn set_reopener(&self, reopener: Weak<dyn Reopens>) {
        let is_first = self.reopener.set(reopener).is_ok();
        assert!(is_first, "a node has one registry of vhosts");
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

    /// The members may vote from now on.
    pub(crate) fn founded(&self) {
        self.push(|work| work.founded = true);
    }

    /// Takes over the member of a vhost.
    pub(crate) fn add(&self, target: Arc<dyn ReplicaTarget>, member: Member<MemberLog>) {
        self.push(|work| work.new.push((target, member)));
    }

    /// Reports that a vhost has records to write; called once until they are taken.
    pub(crate) fn wake(&self, vhost: VhostId) {
        self.push(|work| work.dirty.push(vhost));
    }

    /// A frame of another node. It is dropped if too many wait; its sender sends it again.
    pub(crate) fn frame(&self, from: NodeId, frame: Bytes) {
        let received_us = self.clock.time().as_micros();
        self.push(|work| {
            if work.frame_bytes + frame.len() <= FRAMES_BYTES_MAX {
                work.frame_bytes += frame.len();
                work.frames.push((from, frame, received_us));
            }
        });
    }

    /// A link to a node is there anew, or is silent.
    pub(crate) fn link_changed(&self, node: NodeId) {
        self.push(|work| work.links.push((node, LinkChange::Changed)));
    }

    /// The process of a node is gone.
    pub(crate) fn node_lost(&self, node: NodeId) {
        self.push(|work| work.links.push((node, LinkChange::Lost)));
    }

    /// News of a vhost from another thread.
    fn report(&self, vhost: VhostId, report: Report) {
        self.push(|work| work.reports.push((vhost, report)));
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

/// The state of the replicator's thread.
struct Thread {
    shared: Arc<Replicator>,
    replicas: BTreeMap<VhostId, Replica>,
    bounds: ClockBounds,
    /// True once the members may vote: every node has met every other one.
    is_founded: bool,
    /// Time of the next tick.
    next_tick: Instant,
    /// Time of the next pings.
    next_ping: Instant,
    /// Time at which the statuses are told next.
    next_telling: Instant,
    /// Time at which the node began to stop.
    stopping_since: Option<Instant>,
    /// Replicas to look at, with the time of the next look.
    due: BTreeMap<VhostId, Instant>,
}

impl Thread {
    fn new(shared: Arc<Replicator>) -> Self {
        Self {
            shared,
            replicas: BTreeMap::new(),
            bounds: ClockBounds::default(),
            is_founded: false,
            next_tick: Instant::now() + TICK,
            next_ping: Instant::now(),
            next_telling: Instant::now(),
            stopping_since: None,
            due: BTreeMap::new(),
        }
    }

    fn run(mut self) {
        let mut frames = Vec::new();
        loop {
            let now = Instant::now();
            let next = self
                .due
                .values()
                .min()
                .copied()
                .map_or(self.next_tick, |due| due.min(self.next_tick));
            let work = self.shared.next_work(next.saturating_duration_since(now));
            let stopping = work.stopping;
            self.take(work);
            self.tick();
            self.ping();
            self.advance(&mut frames);
            self.tell();
            let since = stopping.then(|| *self.stopping_since.get_or_insert_with(Instant::now));
            let is_late = since.is_some_and(|since| since.elapsed() > STOP_WITHOUT_MAJORITY);
            if stopping && (is_late || self.replicas.values().all(Replica::is_quiet)) {
                std::mem::take(&mut self.replicas).into_values().for_each(Replica::stop);
                self.shared.watch.end();
                return;
            }
        }
    }

    /// Notes that a replica must be looked at now.
    fn touch(due: &mut BTreeMap<VhostId, Instant>, vhost: VhostId) {
        due.insert(vhost, Instant::now());
    }

    fn take(&mut self, work: Work) {
        for (target, member) in work.new {
            let id = target.id();
            let name = target.name().to_owned();
            let shared = Arc::clone(&self.shared);
            let report = move |report| shared.report(id, report);
            let watch = Arc::clone(&self.shared.watch);
            match Replica::start(target, member, watch, Box::new(report)) {
                Ok(replica) => {
                    let before = self.replicas.insert(id, replica);
                    assert!(before.is_none(), "a vhost has one replica on a node");
                    Self::touch(&mut self.due, id);
                }
                Err(error) => {
                    tracing::error!(vhost = name, %error, "cannot start a thread for a replica; the broker ends");
                    std::process::exit(EXIT_DISK);
                }
            }
        }
        for (node, change) in work.links {
            for (id, replica) in &mut self.replicas {
                let (voters, learners) = replica.member().members();
                let of_node =
                    voters.into_iter().chain(learners).filter(|member| member.node() == node);
                for member in of_node {
                    match change {
                        LinkChange::Changed => replica.link_changed(member),
                        LinkChange::Lost => replica.peer_lost(member),
                    }
                }
                Self::touch(&mut self.due, *id);
            }
        }
        for (from, frame, received_us) in work.frames {
            self.receive(from, &frame, received_us);
        }
        for (vhost, report) in work.reports {
            let Some(replica) = self.replicas.get_mut(&vhost) else { continue };
            match report {
                Report::Promoted(term) => replica.promoted(term),
                // The replica looks for the file when it is advanced.
                Report::FilePrepared => {}
                Report::Diverged(problem) => {
                    replica.quarantine(QuarantineReason::Diverged(problem));
                }
            }
            Self::touch(&mut self.due, vhost);
        }
        for vhost in work.dirty {
            if let Some(replica) = self.replicas.get_mut(&vhost) {
                replica.set_dirty();
                Self::touch(&mut self.due, vhost);
            }
        }
        self.is_founded |= work.founded;
        if work.looks_for_space {
            self.replicas.values_mut().for_each(|replica| compact(&self.shared, replica));
        }
    }

    fn receive(&mut self, from: NodeId, frame: &Bytes, received_us: u64) {
        let group = match FrameHeader::read(frame) {
            Ok(header) => header.group,
            Err(error) => return self.refused(from, "", &error),
        };
        let nodes = &self.shared.nodes;
        if group == GroupId::NODES {
            match ClockPing::decode(frame, nodes.cluster, from, nodes.me) {
                Ok(ping) => self.bounds.observe(from, ping.reading, received_us),
                Err(error) => self.refused(from, "", &error),
            }
            return;
        }
        if !self.is_founded {
            return;
        }
        let GroupId(id) = group;
        // A replica that is being opened anew gets the frames again.
        let Some(replica) = self.replicas.get_mut(&VhostId(id)) else { return };
        let received = replica.receive(from, frame);
        let name = received.as_ref().err().map(|_| replica.name().to_owned());
        if let (Err(error), Some(name)) = (received, name) {
            self.refused(from, &name, &error);
        }
        Self::touch(&mut self.due, VhostId(id));
    }

    /// A frame is refused; nothing of it has any effect.
    fn refused(&self, from: NodeId, vhost: &str, error: &FrameError) {
        self.shared.statuses.refused(error);
        let named = self.shared.nodes.names.get(&from);
        let peer = named.map_or("", |name| &**name);
        tracing::warn!(peer, vhost, %error, "a frame is refused");
    }

    /// Tells the status of every replica, once in a while.
    fn tell(&mut self) {
        let now = Instant::now();
        if now < self.next_telling {
            return;
        }
        self.next_telling = now + STATUS_INTERVAL;
        for (id, replica) in &self.replicas {
            self.shared.statuses.note(*id, replica.status(&self.shared.nodes));
        }
    }

    fn tick(&mut self) {
        let now = Instant::now();
        let mut ticks = 0;
        while self.next_tick <= now && ticks < TICKS_AT_ONCE_MAX {
            ticks += 1;
            self.next_tick += TICK;
            let sender = self.shared.sender.get();
            let takes_part = |id| self.is_founded && sender.is_none_or(|links| !links.differs(id));
            for (id, replica) in self.replicas.iter_mut().filter(|(id, _)| takes_part(**id)) {
                replica.tick();
                Self::touch(&mut self.due, *id);
            }
        }
        if self.next_tick <= now {
            self.next_tick = now + TICK;
        }
    }

    /// Tells the other nodes the clocks of this one.
    fn ping(&mut self) {
        let now = Instant::now();
        if now < self.next_ping {
            return;
        }
        self.next_ping = now + PING_INTERVAL;
        let (nodes, Some(sender)) = (&self.shared.nodes, self.shared.sender.get()) else { return };
        for node in nodes.names.keys().filter(|node| **node != nodes.me) {
            let (cluster, from, to) = (nodes.cluster, nodes.me, *node);
            let ping = ClockPing { cluster, from, to, reading: self.shared.reading() };
            sender.send(to, ping.encode(), FrameClass::Control);
        }
    }

    fn advance(&mut self, frames: &mut Vec<Frame>) {
        if !self.is_founded {
            return;
        }
        let now = Instant::now();
        let due: Vec<VhostId> =
            self.due.iter().filter(|(_, at)| **at <= now).map(|(id, _)| *id).collect();
        for id in due {
            self.due.remove(&id);
            let Some(replica) = self.replicas.get_mut(&id) else { continue };
            let read = || self.shared.bounded_reading();
            let clocks = Clocks { read: &read, bounds: &self.bounds };
            let sender = self.shared.sender.get();
            let mut lost = Vec::new();
            let mut send = |frames: &mut Vec<Frame>| match sender {
                Some(sender) => frames.drain(..).for_each(|frame| {
                    let node = frame.to.node();
                    if !sender.send(node, frame.to_bytes(), frame.class) {
                        lost.push(frame.to);
                    }
                }),
                None => frames.clear(),
            };
            match replica.advance(clocks, &self.shared.nodes, frames, &mut send) {
                Next::Idle => {}
                Next::After(wait) => {
                    self.due.insert(id, Instant::now() + wait);
                }
                Next::Reopen => {
                    let replica = self.replicas.remove(&id).expect("a replica that was advanced");
                    self.reopen(replica);
                    continue;
                }
            }
            let Some(replica) = self.replicas.get_mut(&id) else { continue };
            if let Some(leader) = replica.leader() {
                self.shared.statuses.leads(id, leader);
            }
            lost.into_iter().for_each(|member| replica.link_changed(member));
            let shared = Arc::clone(&self.shared);
            replica.prepare(move || shared.report(id, Report::FilePrepared));
            if replica.entries >= COMPACTION_CHECK_BATCHES {
                replica.entries = 0;
                compact(&self.shared, replica);
            }
        }
    }

    /// Opens a replica anew on a thread of its own; the other members of its group do without it meanwhile.
    fn reopen(&self, replica: Replica) {
        let shared = Arc::clone(&self.shared);
        let run = move || {
            let (id, name) = (replica.id(), replica.name().to_owned());
            replica.end();
            // Without a registry, the node is gone.
            let Some(reopener) = shared.reopener.get().and_then(Weak::upgrade) else { return };
            if let Err(problem) = reopener.reopen(id) {
                tracing::error!(
                    vhost = name,
                    "the replica cannot be opened anew: {problem}; the broker ends"
                );
                std::process::exit(EXIT_DISK);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("reopen".to_owned()).spawn(run) {
            tracing::error!(%error, "cannot start a thread for a replica; the broker ends");
            std::process::exit(EXIT_DISK);
        }
    }
}

/// Compacts a log, unless another one is being compacted.
fn compact(shared: &Arc<Replicator>, replica: &mut Replica) {
    if shared.compacting.swap(true, Ordering::AcqRel) {
        return;
    }
    let done = {
        let shared = Arc::clone(shared);
        move || shared.compacting.store(false, Ordering::Release)
    };
    if !replica.compact(done) {
        shared.compacting.store(false, Ordering::Release);
    }
}
