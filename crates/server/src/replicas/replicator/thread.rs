//! The thread that drives the members.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use replica::{Next, ShipmentNeed};
use replication::{
    ClockBounds, ClockPing, Frame, FrameClass, FrameError, FrameHeader, GroupId, LeadsNotice,
    LedGroup, Member, MemberId, NodeFrame, NodeId, NodePair, QuarantineReason,
};

use super::elsewhere::VhostsElsewhere;
use super::ticks::{TICK, Ticks};
use super::{EndCause, Lead, LinkChange, Replicator, SnapshotRequest, Work};
use crate::clock::own_time;
use crate::disk::vhost_files::VhostId;
use crate::limits::{COMPACTION_CHECK_BATCHES, EXIT_DISK};
use crate::replicas::driver::{BarrierAnswer, Clocks, FilesRequest, ReplicaDriver, TransferAnswer};
use crate::replicas::member_log::MemberLog;
use crate::replicas::nodes::Nodes;
use crate::replicas::report::Report;
use crate::replicas::target::{ReplicaRegistry, ReplicaTarget};

/// Ticks between two heartbeats, and between two pings to a node.
const HEARTBEAT_TICKS: u64 = replication::limits::HEARTBEAT_TICKS as u64;

/// Time between two statuses of a replica.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// Time after which a node stops although a majority has not taken what it has.
const STOP_WITHOUT_MAJORITY: Duration = Duration::from_secs(2);

/// Time without a tick after which other nodes may elect another leader.
const LATE: Duration = Duration::from_micros(
    replication::limits::TICK_US * replication::limits::ELECTION_TICKS_MIN as u64,
);

/// The state of the replicator's thread.
pub(super) struct Thread {
    shared: Arc<Replicator>,
    drivers: BTreeMap<VhostId, ReplicaDriver>,
    bounds: ClockBounds,
    /// True once the members may vote: every node has met every other one.
    is_founded: bool,
    /// True once vhosts have the ids of the cluster; until then, only the metadata have a leader.
    vhosts_take_part: bool,
    ticks: Ticks,
    /// Standstills of this process up to the last tick.
    stood_still: Duration,
    /// True while the members lead only if no other can.
    is_reluctant: bool,
    /// The last heartbeat with which pings have left.
    pinged_beat: u64,
    /// Time at which the statuses are told next.
    next_telling: Instant,
    /// Time at which the node began to stop.
    stopping_since: Option<Instant>,
    /// Replicas to look at, with the time of the next look.
    due: BTreeMap<VhostId, Instant>,
    /// The leaders, as other threads know them.
    leads: BTreeMap<VhostId, Lead>,
    /// The vhosts that have no member here.
    elsewhere: VhostsElsewhere,
    /// Backups that wait for the files of a replica.
    snapshots: Vec<SnapshotRequest>,
}

impl Thread {
    pub(super) fn new(shared: Arc<Replicator>) -> Self {
        Self {
            shared,
            drivers: BTreeMap::new(),
            bounds: ClockBounds::default(),
            is_founded: false,
            vhosts_take_part: false,
            ticks: Ticks::new(Instant::now()),
            stood_still: own_time::stood_still(),
            is_reluctant: false,
            pinged_beat: 0,
            next_telling: Instant::now(),
            stopping_since: None,
            due: BTreeMap::new(),
            leads: BTreeMap::new(),
            elsewhere: VhostsElsewhere::default(),
            snapshots: Vec::new(),
        }
    }

    pub(super) fn run(mut self) {
        let mut frames = Vec::new();
        loop {
            let now = Instant::now();
            let next = self.ticks.plan(now).min(self.next_telling);
            let next = self.due.values().min().map_or(next, |due| next.min(*due));
            let work = self.shared.next_work(next.saturating_duration_since(now));
            let stopping = work.stopping;
            self.take(work);
            self.tick();
            self.ping();
            self.advance(&mut frames);
            self.shared.links.flush();
            self.answer_snapshots();
            self.tell();
            let since = stopping.then(|| *self.stopping_since.get_or_insert_with(Instant::now));
            let is_late = since.is_some_and(|since| since.elapsed() > STOP_WITHOUT_MAJORITY);
            if stopping
                && (is_late || self.drivers.values().all(|driver| driver.replica.is_quiet()))
            {
                std::mem::take(&mut self.drivers).into_values().for_each(ReplicaDriver::stop);
                self.shared.watch.end();
                return;
            }
        }
    }

    /// Answers those that wait for the files of a replica which has what it must have by now.
    fn answer_snapshots(&mut self) {
        let drivers = &self.drivers;
        self.snapshots.retain(|request| {
            // Without a replica, whoever asked learns it from the end of the channel.
            let Some(driver) = drivers.get(&request.vhost) else { return false };
            let answer = match driver.replica.applied() >= request.behind {
                true => driver.replica.member().log().snapshot().map_err(|error| error.to_string()),
                false if Instant::now() > request.until => {
                    Err("the replica of this node did not get in time what its leader has"
                        .to_owned())
                }
                false => return true,
            };
            // The backup may have ended.
            let _ = request.answer.send(answer);
            false
        });
    }

    /// Notes that a replica must be looked at now.
    fn touch(due: &mut BTreeMap<VhostId, Instant>, vhost: VhostId) {
        due.insert(vhost, Instant::now());
    }

    /// Takes over the member of a vhost.
    fn begin(&mut self, target: Arc<dyn ReplicaTarget>, member: Member<MemberLog>) {
        let id = target.id();
        self.elsewhere.remove(id);
        let name = target.name().to_owned();
        let leader = target.leader().and_then(|name| self.shared.nodes().named(&name));
        let shared = Arc::clone(&self.shared);
        let report = move |report| shared.report(id, report);
        let watch = Arc::clone(&self.shared.watch);
        match ReplicaDriver::start(target, member, leader, watch, Box::new(report)) {
            Ok(mut driver) => {
                driver.replica.set_reluctant(self.is_reluctant);
                let before = self.drivers.insert(id, driver);
                assert!(before.is_none(), "a vhost has one replica on a node");
                self.let_take_part(id);
                Self::touch(&mut self.due, id);
            }
            Err(error) => {
                tracing::error!(vhost = name, %error, "cannot start a thread for a replica; the broker ends");
                std::process::exit(EXIT_DISK);
            }
        }
    }

    /// Takes over a vhost without a member, whose leader may be known from before it was opened anew.
    fn begin_without_member(&mut self, target: Arc<dyn ReplicaTarget>) {
        let leader = target.leader().and_then(|name| self.shared.nodes().named(&name));
        if leader.is_some() {
            self.shared.leads.lock().insert(target.id(), Lead { leader, term: None });
        }
        self.elsewhere.add(target, leader, Instant::now());
    }

    fn take(&mut self, work: Work) {
        work.without_member.into_iter().for_each(|target| self.begin_without_member(target));
        work.new.into_iter().for_each(|(target, member)| self.begin(target, member));
        work.links.into_iter().for_each(|(node, change)| self.take_link(node, change));
        for (from, frame, received_us) in work.frames {
            self.receive(from, &frame, received_us);
        }
        for (vhost, report) in work.reports {
            let Some(driver) = self.driver(vhost) else { continue };
            match report {
                Report::Promoted(term) => driver.promoted(term),
                // The replica looks for the file when it is advanced.
                Report::FilePrepared => {}
                Report::Unusable(reason) => driver.replica.quarantine(reason),
            }
            Self::touch(&mut self.due, vhost);
        }
        self.take_requests(work.transfers, work.shipments, work.barriers);
        for (vhost, member, index) in work.shipped {
            if let Some(driver) = self.driver(vhost) {
                driver.replica.shipped(member, index);
                Self::touch(&mut self.due, vhost);
            }
        }
        self.snapshots.extend(work.snapshots);
        for (vhost, cause, done) in work.ended {
            if let EndCause::Behind(end) = cause {
                let driver = self.drivers.get(&vhost);
                if !driver.is_some_and(|driver| driver.replica.is_behind(end)) {
                    // Whoever asked may be gone.
                    let _ = done.send(());
                    continue;
                }
            }
            self.due.remove(&vhost);
            if cause == EndCause::Deleted {
                self.elsewhere.remove(vhost);
                // Of a replica that is being rebuilt there is nothing but the status.
                self.shared.statuses.forget(vhost);
            }
            let Some(driver) = self.remove(vhost) else { continue };
            match cause {
                EndCause::Replaced | EndCause::Behind(_) => {
                    end(move || driver.end(), move || drop(done));
                }
                EndCause::Deleted => end(move || driver.stop(), move || drop(done)),
            }
        }
        for vhost in work.dirty {
            if let Some(driver) = self.driver(vhost) {
                driver.replica.set_dirty();
                Self::touch(&mut self.due, vhost);
            }
        }
        if work.has_lost_disk
            && let Some(metadata) = self.driver(VhostId::METADATA)
        {
            let why = "the disk of this node was lost".to_owned();
            metadata.replica.quarantine(QuarantineReason::Damaged(why));
            Self::touch(&mut self.due, VhostId::METADATA);
        }
        if work.has_other_nodes {
            // Members of nodes that are gone are to be removed.
            self.drivers.keys().for_each(|id| Self::touch(&mut self.due, *id));
        }
        if work.founded || work.vhosts_take_part {
            self.is_founded |= work.founded;
            self.vhosts_take_part |= work.vhosts_take_part;
            let ids: Vec<VhostId> = self.drivers.keys().copied().collect();
            for id in ids {
                self.let_take_part(id);
                Self::touch(&mut self.due, id);
            }
        }
        if work.looks_for_space {
            self.drivers.values_mut().for_each(|driver| compact(&self.shared, driver));
        }
    }

    /// Passes requests on to their replicas. Without a replica, whoever asked learns it from the end of the channel.
    fn take_requests(
        &mut self,
        transfers: Vec<(VhostId, Option<NodeId>, TransferAnswer)>,
        shipments: Vec<(VhostId, FilesRequest)>,
        barriers: Vec<(VhostId, BarrierAnswer)>,
    ) {
        for (vhost, to, answer) in transfers {
            if let Some(driver) = self.driver(vhost) {
                let request = driver.answers.wait_for_transfer(answer);
                driver.replica.begin_transfer(to, Some(request));
                Self::touch(&mut self.due, vhost);
            }
        }
        for (vhost, request) in shipments {
            if let Some(driver) = self.driver(vhost) {
                let request = driver.answers.wait_for_shipment(request);
                driver.replica.prepare_shipment(request);
                Self::touch(&mut self.due, vhost);
            }
        }
        for (vhost, answer) in barriers {
            if let Some(driver) = self.driver(vhost) {
                let request = driver.answers.wait_for_barrier(answer);
                driver.replica.ask_barrier(request);
                Self::touch(&mut self.due, vhost);
            }
        }
    }

    /// The link to a node, or the node itself, has changed.
    fn take_link(&mut self, node: NodeId, change: LinkChange) {
        // Whoever asks whether a node may stop must not count one that has ended.
        self.next_telling = Instant::now();
        if matches!(change, LinkChange::Lost) {
            self.forget_leads(Some(node));
        }
        let number = self.ticks.number();
        for (id, driver) in &mut self.drivers {
            driver.replica.catch_up(number);
            let (voters, learners) = driver.replica.member().members();
            let of_node = voters.into_iter().chain(learners).filter(|member| member.node() == node);
            for member in of_node {
                match change {
                    LinkChange::Changed => driver.replica.link_changed(member),
                    LinkChange::Lost => driver.replica.peer_lost(member),
                }
            }
            Self::touch(&mut self.due, *id);
        }
    }

    /// A replica that has had all ticks so far.
    fn driver(&mut self, id: VhostId) -> Option<&mut ReplicaDriver> {
        let driver = self.drivers.get_mut(&id)?;
        driver.replica.catch_up(self.ticks.number());
        Some(driver)
    }

    /// Takes a replica away.
    fn remove(&mut self, id: VhostId) -> Option<ReplicaDriver> {
        self.ticks.need(id, None);
        self.drivers.remove(&id)
    }

    /// Lets a replica take part in its group if it may.
    fn let_take_part(&mut self, id: VhostId) {
        let (number, takes_part) = (self.ticks.number(), self.takes_part(id));
        if let Some(driver) = self.drivers.get_mut(&id).filter(|_| takes_part) {
            driver.replica.take_part(number);
            self.ticks.need(id, driver.replica.needed_tick());
        }
    }

    /// True if the vhost, or the metadata, may have a leader.
    fn takes_part(&self, id: VhostId) -> bool {
        self.is_founded && (self.vhosts_take_part || id == VhostId::METADATA)
    }

    fn receive(&mut self, from: NodeId, frame: &Bytes, received_us: u64) {
        let group = match FrameHeader::read(frame) {
            Ok(header) => header.group,
            Err(error) => return self.refused(from, "", &error),
        };
        if group == GroupId::NODES {
            let nodes = self.shared.nodes();
            let pair = NodePair { cluster: nodes.cluster, from, to: nodes.me };
            match NodeFrame::decode(frame, pair) {
                Ok(NodeFrame::Ping(ping)) => self.bounds.observe(from, ping.reading, received_us),
                Ok(NodeFrame::Leads(notice)) => self.take_leads(from, &notice.led, &nodes),
                Err(error) => self.refused(from, "", &error),
            }
            return;
        }
        let GroupId(id) = group;
        if !self.takes_part(VhostId(id)) {
            return;
        }
        // A replica that is being opened anew gets the frames again.
        let id = VhostId(id);
        let Some(driver) = self.driver(id) else { return };
        let (received, needed) = (driver.receive(from, frame), driver.replica.needed_tick());
        self.ticks.need(id, needed);
        if !matches!(received, Ok(false)) {
            Self::touch(&mut self.due, id);
        }
        if let Err(error) = received {
            let name = self.drivers[&id].name().to_owned();
            self.refused(from, &name, &error);
        }
    }

    /// A frame is refused; nothing of it has any effect.
    fn refused(&self, from: NodeId, vhost: &str, error: &FrameError) {
        self.shared.statuses.refused(error);
        let peer = self.shared.nodes().name_of(from).unwrap_or_default();
        tracing::warn!(%peer, vhost, %error, "a frame is refused");
    }

    /// Tells the status of every replica, once in a while.
    fn tell(&mut self) {
        let now = Instant::now();
        if now < self.next_telling {
            return;
        }
        self.next_telling = now + STATUS_INTERVAL;
        let nodes = self.shared.nodes();
        let number = self.ticks.number();
        for (id, driver) in &mut self.drivers {
            driver.replica.catch_up(number);
            self.shared.statuses.note(*id, driver.status(&nodes));
            if driver.looks_for_gone(&nodes) {
                Self::touch(&mut self.due, *id);
            }
        }
    }

    fn tick(&mut self) {
        self.forget_leads(None);
        let (now, stood_still) = own_time::reading();
        // The process says itself for how long it stood still.
        let standstill = stood_still.saturating_sub(self.stood_still);
        self.stood_still = stood_still;
        let late = self.ticks.elapse(now).saturating_sub(standstill);
        let longest_write_ms = self.shared.watch.take_longest_ms();
        if late > LATE {
            tracing::warn!(
                late_ms = late.as_millis(),
                longest_write_ms,
                "replication had no turn for so long that other nodes may have elected other leaders: the disk or the \
                 processors are too slow"
            );
        }
        let (number, is_reluctant) =
            (self.ticks.number(), self.shared.is_reluctant.load(Ordering::Acquire));
        let due = match is_reluctant == self.is_reluctant {
            true => self.ticks.due(),
            false => self.drivers.keys().copied().collect(),
        };
        self.is_reluctant = is_reluctant;
        for id in due {
            let driver = self.drivers.get_mut(&id).expect("a tick is needed by a replica");
            let needs_turn = driver.replica.tick_to(number);
            driver.replica.set_reluctant(is_reluctant);
            self.ticks.need(id, driver.replica.needed_tick());
            if needs_turn {
                Self::touch(&mut self.due, id);
            }
        }
    }

    /// Tells the other nodes the clocks of this one.
    fn ping(&mut self) {
        // With the heartbeats: they leave together.
        let beat = self.ticks.number() / HEARTBEAT_TICKS;
        if beat == self.pinged_beat {
            return;
        }
        self.pinged_beat = beat;
        let (nodes, links) = (self.shared.nodes(), &self.shared.links);
        for to in nodes.others() {
            let pair = NodePair { cluster: nodes.cluster, from: nodes.me, to };
            let ping = ClockPing { nodes: pair, reading: self.shared.reading() };
            links.send(to, ping.encode(), FrameClass::Control);
        }
        if nodes.tell_leads {
            self.tell_leads(&nodes);
        }
    }

    /// Tells the nodes that have no voter of a vhost which ones this node leads.
    fn tell_leads(&self, nodes: &Nodes) {
        let vhosts = self.drivers.iter().filter(|(id, _)| **id != VhostId::METADATA);
        let led: Vec<&ReplicaDriver> =
            vhosts.map(|(_, driver)| driver).filter(|it| it.replica.leads_in().is_some()).collect();
        for to in nodes.others() {
            let pair = NodePair { cluster: nodes.cluster, from: nodes.me, to };
            let told: Vec<LedGroup> =
                led.iter().filter_map(|driver| driver.replica.member().told_to(to)).collect();
            for led in told.chunks(replication::limits::LEADS_PER_NOTICE_MAX) {
                let notice = LeadsNotice { nodes: pair, led: led.to_vec() };
                self.shared.links.send(to, notice.encode(), FrameClass::Control);
            }
        }
    }

    /// Another node leads these groups, which have no voter here as far as it knows.
    fn take_leads(&mut self, from: NodeId, told: &[LedGroup], nodes: &Nodes) {
        let (now, name) = (Instant::now(), nodes.name_of(from));
        for led in told {
            let id = VhostId(led.group.0);
            if self.elsewhere.tell(id, (from, name.clone()), led.term.0, now) {
                self.shared.leads.lock().insert(id, Lead { leader: Some(from), term: None });
            }
            let is_left_out = |driver: &ReplicaDriver| driver.is_left_out(led, nodes);
            if self.takes_part(id) && self.drivers.get(&id).is_some_and(is_left_out) {
                self.leave(id);
            }
        }
    }

    /// Vhosts elsewhere whose leader is gone, or silent, have none.
    fn forget_leads(&mut self, gone: Option<NodeId>) {
        for id in self.elsewhere.leaderless(Instant::now(), gone) {
            self.shared.leads.lock().remove(&id);
        }
    }

    /// Ends a replica that its group does without, and removes its files.
    fn leave(&mut self, id: VhostId) {
        let driver = self.remove(id).expect("a replica that was looked at");
        self.due.remove(&id);
        self.leads.remove(&id);
        self.shared.leads.lock().remove(&id);
        self.shared.statuses.forget(id);
        self.open_again(driver, |registry, id| registry.leave(id));
    }

    fn advance(&mut self, frames: &mut Vec<Frame>) {
        let (now, nodes) = (Instant::now(), self.shared.nodes());
        // What followed from inputs does not wait for the writes of other vhosts.
        for id in self.due.keys() {
            if let Some(driver) = self.drivers.get_mut(id) {
                driver.carry_out(&nodes);
            }
        }
        if !self.is_founded {
            // All are advanced once the members may vote.
            self.due.clear();
            return;
        }
        let due: Vec<VhostId> =
            self.due.iter().filter(|(_, at)| **at <= now).map(|(id, _)| *id).collect();
        for id in due {
            self.due.remove(&id);
            let number = self.ticks.number();
            let Some(driver) = self.drivers.get_mut(&id) else { continue };
            driver.replica.tick_to(number);
            let read = || self.shared.bounded_reading();
            let clocks = Clocks { read: &read, bounds: &self.bounds };
            let (links, mut lost) = (&self.shared.links, Vec::new());
            let mut send = |frames: &mut Vec<Frame>| {
                for frame in frames.drain(..) {
                    if !links.send(frame.to.node(), frame.to_bytes(), frame.class) {
                        lost.push(frame.to);
                    }
                }
            };
            let flush = || links.flush();
            match driver.advance(clocks, &nodes, frames, &mut send, &flush) {
                Next::Idle => {}
                Next::After(wait) => {
                    self.due.insert(id, Instant::now() + wait);
                }
                Next::Reopen => {
                    let driver = self.remove(id).expect("a replica that was advanced");
                    let leader = driver.replica.member().leader().map(MemberId::node);
                    let leader = leader.filter(|leader| *leader != nodes.me);
                    self.note_lead(id, Lead { leader, term: None });
                    self.reopen(driver);
                    continue;
                }
                Next::Rebuild if driver.is_to_leave(&nodes) => {
                    self.leave(id);
                    continue;
                }
                Next::Rebuild => {
                    let driver = self.remove(id).expect("a replica that was advanced");
                    self.shared.statuses.note(id, driver.status(&nodes));
                    let shared = Arc::clone(&self.shared);
                    end(
                        move || driver.end(),
                        move || shared.want(id, ShipmentNeed::Replacement, None),
                    );
                    continue;
                }
            }
            let Some(driver) = self.drivers.get_mut(&id) else { continue };
            self.ticks.need(id, driver.replica.needed_tick());
            let leader = driver.replica.member().leader().map(MemberId::node);
            let lead = Lead { leader, term: driver.replica.leads_in().map(|term| term.0) };
            if let Some((need, leader)) = driver.take_wanted() {
                self.shared.want(id, need, Some(leader));
            }
            if let Some(leader) = driver.take_new_leader() {
                self.shared.statuses.leads(id, &leader);
            }
            lost.into_iter().for_each(|member| driver.replica.link_changed(member));
            let shared = Arc::clone(&self.shared);
            driver.prepare(move || shared.report(id, Report::FilePrepared));
            if driver.entries >= COMPACTION_CHECK_BATCHES {
                driver.entries = 0;
                compact(&self.shared, driver);
            }
            self.note_lead(id, lead);
        }
    }

    /// Lets other threads know the leader of a vhost.
    fn note_lead(&mut self, id: VhostId, lead: Lead) {
        if self.leads.insert(id, lead) != Some(lead) {
            self.shared.leads.lock().insert(id, lead);
            self.shared.lead_changes.notify_one();
            // Whoever asks for the leader must not wait for long to see the new one.
            self.next_telling = self.next_telling.min(Instant::now() + TICK);
        }
    }

    /// Opens a replica anew on a thread of its own; the other members of its group do without it meanwhile.
    fn reopen(&self, driver: ReplicaDriver) {
        self.open_again(driver, |registry, id| registry.reopen(id));
    }

    /// Ends a replica on a thread of its own and opens it again.
    fn open_again(
        &self,
        driver: ReplicaDriver,
        open: fn(&dyn ReplicaRegistry, VhostId) -> Result<(), String>,
    ) {
        let shared = Arc::clone(&self.shared);
        let run = move || {
            let (id, name) = (driver.id(), driver.name().to_owned());
            driver.end();
            if shared.is_leaving.load(Ordering::Acquire) {
                return;
            }
            if let Err(problem) = open(shared.registry(), id) {
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

/// Ends a replica on a thread of its own, and calls `then` when nothing touches its log any more.
fn end(ends: impl FnOnce() + Send + 'static, then: impl FnOnce() + Send + 'static) {
    let run = move || {
        ends();
        then();
    };
    if let Err(error) = std::thread::Builder::new().name("replica-end".to_owned()).spawn(run) {
        tracing::error!(%error, "cannot start a thread for a replica; the broker ends");
        std::process::exit(EXIT_DISK);
    }
}

/// Compacts a log, unless another one is being compacted.
fn compact(shared: &Arc<Replicator>, driver: &mut ReplicaDriver) {
    if shared.compacting.swap(true, Ordering::AcqRel) {
        return;
    }
    let done = {
        let shared = Arc::clone(shared);
        move || shared.compacting.store(false, Ordering::Release)
    };
    if !driver.compact(done) {
        shared.compacting.store(false, Ordering::Release);
    }
}
