//! The member of one group on this node, owned by the replicator, with its stage between two turns.

mod members;
mod service;
mod standstill;
mod ticks;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use replication::{
    ClockBounds, ClockReading, Committed, Frame, FrameError, Member, MemberId, NodeId,
    ProposeError, Proposed, QuarantineReason, Role, TurnClock, TurnResult,
};
use storage::{
    Applier, EntryFacts, EntryIndex, LogError, Prepared, RealDirectory, Term, WriteBatch, Written,
};

use self::service::{Effects, Service, effects};
use self::standstill::Standstill;
use super::apply::ApplyQueue;
use super::barrier::Barriers;
use super::disk_watch::DiskWatch;
use super::member_log::MemberLog;
use super::nodes::Nodes;
use super::preparation::{Preparation, ShipmentNeed};
use super::report::Report;
use super::status::{ReplicaState, ReplicaStatus};
use super::target::{Deposition, ReplicaTarget};
use super::transfer::Transfer;
use crate::disk::vhost_files::VhostId;
use crate::limits::{
    ENTRIES_PER_DIGEST, EXIT_DISK, FULL_DISK_RETRY_INTERVAL, LOCK_RETRY_MS, UNAPPLIED_BYTES_MAX,
};

/// The time after which a vhost whose lock is held for long is tried again.
const SOON: Duration = Duration::from_millis(LOCK_RETRY_MS);

/// A batch of the vhost on its way.
#[derive(Clone, Copy, Debug)]
enum Batch {
    /// None was taken.
    None,
    /// One was taken and is not proposed yet.
    Taken { has_more: bool },
    /// One is proposed, and is durable with this entry.
    Proposed { index: EntryIndex, written: Written, has_more: bool },
}

/// A member of a group with the vhost it belongs to.
#[derive(Debug)]
pub(in crate::replicas) struct Replica {
    target: Arc<dyn ReplicaTarget>,
    member: Member<MemberLog>,
    applier: Applier<RealDirectory>,
    queue: ApplyQueue,
    watch: Arc<DiskWatch>,
    /// The leader that the vhost knows, until it is told.
    new_leader: Option<Arc<str>>,
    /// The lost leader, if the vhost was told of none since the last turn; the member may have heard it again meanwhile.
    forgotten_leader: Option<MemberId>,
    /// Stalls of the disk when the vhost began to serve clients.
    stalls: u64,
    service: Service,
    /// The records of the batch that was taken.
    records: WriteBatch,
    batch: Batch,
    standstill: Standstill,
    /// The newest entry that a majority has, as told since the batch was proposed.
    durable: Option<EntryIndex>,
    /// True if the vhost has reported work since a batch was last taken.
    is_dirty: bool,
    /// Shipments that are being prepared, one for each node.
    preparations: Vec<Preparation>,
    /// Times at which files were offered to members.
    offered: BTreeMap<MemberId, Instant>,
    /// Files of the leader that the replica needs.
    wanted: Option<(ShipmentNeed, Option<NodeId>)>,
    /// True if a learner may have become level, or a member be of a node that is not of the cluster any more.
    looks_at_members: bool,
    /// A learner that is being made a voter.
    promoting: Option<MemberId>,
    /// The transfer of the lead to another node.
    transfer: Option<Transfer>,
    barriers: Barriers,
    /// Time at which the disk had no room for the write of the turn that is under way.
    full_since: Option<Instant>,
    /// True if a turn has work.
    has_work: bool,
    /// The thread that creates the next file of the log.
    preparation: Option<JoinHandle<io::Result<Prepared<RealDirectory>>>>,
    /// The thread that compacts the log.
    compaction: Option<JoinHandle<()>>,
    /// Number of the last tick of the node that the member has had; none before it takes part in its group.
    ticked: Option<u64>,
    /// Entries until the next digest.
    entries_to_digest: u32,
    /// Committed batches since the last compaction check.
    pub(in crate::replicas) entries: u32,
}

/// The wish of a replica after it was advanced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::replicas) enum Next {
    /// Wait until something happens.
    Idle,
    /// To be advanced again after this time.
    After(Duration),
    /// To be opened anew.
    Reopen,
    /// To be rebuilt: it must not be used any more.
    Rebuild,
}

/// The clocks of the node, to be read within a turn.
#[derive(Clone, Copy)]
pub(in crate::replicas) struct Clocks<'a> {
    /// Reads the own clocks, and the wall clock just after.
    pub(in crate::replicas) read: &'a dyn Fn() -> (ClockReading, u64),
    /// Bounds for the clocks of other nodes.
    pub(in crate::replicas) bounds: &'a ClockBounds,
}

impl<'a> Clocks<'a> {
    fn now(self) -> TurnClock<'a> {
        let (now, wall_after_us) = (self.read)();
        TurnClock { now, wall_after_us, bounds: self.bounds }
    }
}

impl Replica {
    /// Starts to drive a member, whose writes `watch` watches. `report` is called with news of the vhost.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub(in crate::replicas) fn start(
        target: Arc<dyn ReplicaTarget>,
        member: Member<MemberLog>,
        watch: Arc<DiskWatch>,
        report: Box<dyn Fn(Report) + Send>,
    ) -> io::Result<Self> {
        let applier = member.log().applier();
        let queue = ApplyQueue::start(Arc::clone(&target), applier.clone(), report)?;
        Ok(Self {
            target,
            member,
            applier,
            queue,
            watch,
            new_leader: None,
            forgotten_leader: None,
            stalls: 0,
            service: Service::Follows,
            records: WriteBatch::default(),
            batch: Batch::None,
            standstill: Standstill::default(),
            durable: None,
            is_dirty: false,
            preparations: Vec::new(),
            offered: BTreeMap::new(),
            wanted: None,
            looks_at_members: false,
            promoting: None,
            transfer: None,
            barriers: Barriers::default(),
            full_since: None,
            has_work: true,
            preparation: None,
            compaction: None,
            ticked: None,
            entries_to_digest: ENTRIES_PER_DIGEST,
            entries: 0,
        })
    }

    pub(in crate::replicas) fn id(&self) -> VhostId {
        self.target.id()
    }

    pub(in crate::replicas) fn name(&self) -> &str {
        self.target.name()
    }

    pub(in crate::replicas) fn member(&self) -> &Member<MemberLog> {
        &self.member
    }

    /// Creates the next file of the log on a thread of its own, once one is needed, and passes it to the log when it is
    /// there. `wake` is called when it is.
    pub(in crate::replicas) fn prepare(&mut self, wake: impl FnOnce() + Send + 'static) {
        if !self.is_between_turns() {
            return;
        }
        if let Some(thread) = self.preparation.take_if(|thread| thread.is_finished()) {
            let prepared = thread.join().expect("a file is created or not, without a panic");
            if let Err(error) = &prepared {
                tracing::warn!(vhost = self.name(), %error, "cannot make the next log file yet");
            }
            self.member.log_mut().install_next_segment(prepared.ok());
        }
        let Some(preparation) = self.member.log_mut().prepare_next_segment() else { return };
        let run = move || {
            let prepared = preparation.run();
            wake();
            prepared
        };
        match std::thread::Builder::new().name("log-file".to_owned()).spawn(run) {
            Ok(thread) => self.preparation = Some(thread),
            // Without a thread, this file is created when it is needed; the next one is tried again.
            Err(_) => self.member.log_mut().install_next_segment(None),
        }
    }

    /// Compacts the log on a thread of its own, if that is worthwhile. `done` is called at the end. False if there is
    /// nothing to do; `done` is not called then.
    pub(in crate::replicas) fn compact(&mut self, done: impl FnOnce() + Send + 'static) -> bool {
        // While records still end with the pages of a purged or deleted queue, the record of the purge must be kept: the
        // log does not know yet that they have ended.
        if self.target.progress().pages().is_ending() || !self.is_between_turns() {
            return false;
        }
        let Some(compaction) = self.member.log().compaction() else { return false };
        let name = self.name().to_owned();
        let run = move || {
            match compaction.run() {
                Ok(done) => tracing::debug!(
                    vhost = name,
                    files = done.files,
                    bytes_before = done.bytes_before,
                    bytes_after = done.bytes_after,
                    "log compacted"
                ),
                Err(error) => tracing::warn!(vhost = name, %error, "log not compacted"),
            }
            done();
        };
        self.compaction = std::thread::Builder::new().name("compaction".to_owned()).spawn(run).ok();
        self.compaction.is_some()
    }

    /// Waits for the threads that work on the files of the log.
    fn end_file_work(&mut self) {
        if let Some(thread) = self.preparation.take() {
            // The file that it has created is not listed; the next opening removes it.
            let _ = thread.join();
        }
        if let Some(thread) = self.compaction.take() {
            thread.join().expect("a compaction reports its failure instead of panicking");
        }
    }

    fn is_between_turns(&self) -> bool {
        self.full_since.is_none()
    }

    /// The last entry that was applied.
    pub(in crate::replicas) fn applied(&self) -> EntryIndex {
        self.applier.applied()
    }

    fn is_leading(&self) -> bool {
        matches!(self.service, Service::Leads(_))
    }

    /// Notes that the vhost has records.
    pub(in crate::replicas) fn set_dirty(&mut self) {
        self.is_dirty = true;
        self.has_work = true;
    }

    /// Takes a frame, unless the replica cannot take any now; the sender sends it again then. False if the replica need
    /// not be advanced because of it.
    pub(in crate::replicas) fn receive(
        &mut self,
        from: NodeId,
        frame: &Bytes,
    ) -> Result<bool, FrameError> {
        if !self.is_between_turns() || self.queue.waiting_bytes() > UNAPPLIED_BYTES_MAX {
            return Ok(false);
        }
        let received = self.member.receive(from, frame);
        self.has_work |= received.as_ref().map_or(true, |needs_turn| *needs_turn);
        if let Err(FrameError::NewerIncarnation { incarnation, .. }) = received {
            let text = format!("its group has a newer incarnation of this member, {incarnation}");
            self.quarantine(QuarantineReason::Diverged(text));
        }
        received
    }

    /// Notes that a member has the files up to an entry.
    pub(in crate::replicas) fn shipped(&mut self, member: MemberId, index: EntryIndex) {
        if self.is_between_turns() {
            self.member.shipped(member, index);
            self.has_work = true;
        }
    }

    /// The files of the leader that the replica needs, once.
    pub(in crate::replicas) fn take_wanted(&mut self) -> Option<(ShipmentNeed, Option<NodeId>)> {
        self.wanted.take()
    }

    /// The term in which this node serves the vhost.
    pub(in crate::replicas) fn leads_in(&self) -> Option<u64> {
        match self.service {
            Service::Leads(term) => Some(term.0),
            Service::Follows | Service::Promotes(_) | Service::Deposed => None,
        }
    }

    /// Notes that the link to a node is there anew, or is silent, or has dropped a frame.
    pub(in crate::replicas) fn link_changed(&mut self, member: MemberId) {
        if self.is_between_turns() {
            self.member.link_lost(member);
        }
    }

    /// Notes that the process of a node is gone, or that the node is silent for the shortest election time.
    pub(in crate::replicas) fn peer_lost(&mut self, member: MemberId, nodes: &Nodes) {
        if self.is_between_turns() {
            self.member.peer_lost(member);
            self.has_work = true;
        }
        // The vhost may know it as the leader from before it was opened anew, and the member no leader yet.
        if self.member.leader().is_none() && self.target.leader() == nodes.name_of_member(member) {
            self.target.set_leader(None);
            self.forgotten_leader = Some(member);
        }
    }

    /// Notes that the vhost serves clients in this term.
    pub(in crate::replicas) fn promoted(&mut self, term: Term) {
        if self.service == Service::Promotes(term) {
            self.service = Service::Leads(term);
            self.stalls = self.watch.leads(&self.target);
            self.set_dirty();
            tracing::info!(vhost = self.name(), term = term.0, "this node leads the vhost");
        }
    }

    /// Makes this replica lead only if no other can.
    pub(in crate::replicas) fn set_reluctant(&mut self, is_reluctant: bool) {
        self.member.set_reluctant(is_reluctant);
    }

    /// Ends the part of the replica in its group: it differs from that of the leader.
    pub(in crate::replicas) fn quarantine(&mut self, reason: QuarantineReason) {
        self.member.quarantine(reason);
        self.has_work = true;
    }

    /// Takes a batch of the vhost, and takes the member through a turn. Frames that were sent leave with `flush`: this
    /// calls it before the disk is written and after it, and the caller when all replicas were advanced.
    pub(in crate::replicas) fn advance(
        &mut self,
        clocks: Clocks<'_>,
        nodes: &Nodes,
        frames: &mut Vec<Frame>,
        send: &mut dyn FnMut(&mut Vec<Frame>),
        flush: &dyn Fn(),
    ) -> Next {
        if self.is_leading() && self.watch.stalls() > self.stalls {
            self.service = Service::Deposed;
        }
        if self.service == Service::Deposed && self.is_between_turns() {
            return Next::Reopen;
        }
        let retry = self.report_durable();
        let mut locked = None;
        let has_writes = if let Some(since) = self.full_since {
            let wait = FULL_DISK_RETRY_INTERVAL.saturating_sub(since.elapsed());
            if !wait.is_zero() {
                return Next::After(wait);
            }
            true
        } else {
            // A turn comes all the same: a leader whose vhost is busy for long is alive, and must tell the others.
            locked = self.step_transfer().or_else(|| self.take_batch());
            // Read after the batch was taken: members that follow cut the times of records at that of their entry.
            let clock = &clocks.now();
            self.propose(clock);
            self.step_members(clock, nodes);
            if !std::mem::take(&mut self.has_work) {
                return locked.or(retry).map_or(Next::Idle, Next::After);
            }
            let has_writes = self.member.begin(clock, frames);
            send(frames);
            has_writes
        };
        if has_writes {
            flush();
            if !self.write() {
                return Next::After(FULL_DISK_RETRY_INTERVAL);
            }
        }
        let mut result = self.member.end(frames);
        send(frames);
        if has_writes {
            // Another member waits for the answer.
            flush();
        }
        if self.service == Service::Deposed {
            return Next::Reopen;
        }
        self.offer(std::mem::take(&mut result.needs_snapshot), frames);
        send(frames);
        if result.quarantine.is_some() {
            self.follow(result, nodes);
            return Next::Rebuild;
        }
        self.follow(result, nodes);
        match (self.service, self.report_durable().or(locked)) {
            (Service::Deposed, _) => Next::Reopen,
            (_, Some(wait)) => Next::After(wait),
            (_, None) if self.has_work || self.can_take() => Next::After(Duration::ZERO),
            (_, None) => Next::Idle,
        }
    }

    /// True if a batch can be taken.
    fn can_take(&self) -> bool {
        self.is_leading() && self.is_dirty && matches!(self.batch, Batch::None)
    }

    /// Takes the next batch. Returns the time after which to try again.
    fn take_batch(&mut self) -> Option<Duration> {
        if self.can_take() {
            let Some(has_more) = self.target.take_batch(&mut self.records) else {
                return Some(SOON);
            };
            self.is_dirty = false;
            if !self.records.is_empty() {
                self.batch = Batch::Taken { has_more };
            }
        }
        None
    }

    /// Proposes the batch that was taken.
    fn propose(&mut self, clock: &TurnClock<'_>) {
        let Batch::Taken { has_more } = self.batch else { return };
        // The member may lead no more since the last turn, by a frame or a tick: the end of this turn deposes the vhost.
        let Some(axis) = self.member.axis() else {
            self.has_work = true;
            return;
        };
        let bytes = self.records.bytes() as u64;
        let durable = self.records.last();
        match self.member.propose(&mut self.records, axis.at(clock.now.monotonic_us)) {
            Ok(Proposed::Entry(index) | Proposed::Nothing(index)) => {
                self.records.clear();
                self.durable = None;
                let written = Written { durable, bytes, records: 0 };
                self.batch = Batch::Proposed { index, written, has_more };
                self.has_work = true;
            }
            // The role will change, or entries be committed: then the batch is proposed, or given up.
            Err(
                ProposeError::NotLeading
                | ProposeError::Transferring
                | ProposeError::Behind { .. }
                | ProposeError::ChangePending
                | ProposeError::Refused(_),
            ) => {}
        }
    }

    /// Writes and syncs what the turn has. False if the disk has no room.
    fn write(&mut self) -> bool {
        let vhost = self.target.name();
        self.watch.begin();
        let written = self.member.write();
        let stalls = self.watch.finish();
        if self.is_leading() && stalls > self.stalls {
            self.service = Service::Deposed;
        }
        match written {
            Ok(()) => {
                if self.full_since.take().is_some() {
                    self.target.progress().set_out_of_room(false);
                    self.member.recovered();
                    tracing::info!(vhost, "the disk has room again");
                }
                true
            }
            Err(error) if error.is_full() => {
                if !self.target.progress().set_out_of_room(true) {
                    self.member.stalled();
                    tracing::error!(
                        vhost,
                        "the disk is full, and so is the reserve: {error}; this node takes no part in the vhost until \
                         there is room"
                    );
                }
                if self.is_leading() {
                    self.watch.leads_no_more(self.id());
                    self.target.set_leader(None);
                    self.target.depose(Deposition::DiskFull);
                    self.service = Service::Deposed;
                }
                self.full_since = Some(Instant::now());
                false
            }
            Err(error) => exit(vhost, &error),
        }
    }

    /// Follows from the end of a turn.
    fn follow(&mut self, result: TurnResult, nodes: &Nodes) {
        let TurnResult { role, committed, durable, axis, quarantine, has_more, offer, .. } = result;
        if let Some(offer) = offer {
            self.wanted = Some((ShipmentNeed::Behind, Some(offer.from.node())));
        }
        self.has_work |= has_more;
        if let Some(axis) = axis {
            let origin = format!("{:?}", axis.origin);
            tracing::info!(vhost = self.name(), origin, "the axis of time is continued");
        }
        for Committed { entry, facts } in committed {
            self.entries += 1;
            self.entries_to_digest = self.entries_to_digest.saturating_sub(1);
            match effects(self.service, entry.term, facts.is_some()) {
                Effects::Due => self.queue.apply(entry),
                Effects::There => {
                    let facts: EntryFacts = facts.unwrap_or_default();
                    self.applier.applied_by_leader(entry.index, &facts);
                }
                Effects::AfterReopening => {}
            }
        }
        if let Some(reason) = quarantine {
            let (QuarantineReason::Damaged(why) | QuarantineReason::Diverged(why)) = reason;
            tracing::error!(
                vhost = self.name(),
                "the replica of this node must be rebuilt and takes no part in the vhost: {why}"
            );
        }
        if durable.is_some() {
            self.durable = durable;
        }
        match role {
            Some(role) => self.take_role(role, nodes),
            // Frames that were on their way may have told of the same leader again, before the turn could tell of none.
            None if self.forgotten_leader.is_some() => {
                let leader = self.member.leader();
                self.target.set_leader(leader.and_then(|leader| nodes.name_of_member(leader)));
            }
            None => {}
        }
        self.forgotten_leader = None;
        if self.entries_to_digest == 0 && self.is_leading() {
            self.entries_to_digest = ENTRIES_PER_DIGEST;
            self.target.log_digest();
        }
    }

    /// The node that leads the vhost, if this one has come to know one since the last call.
    pub(in crate::replicas) fn take_new_leader(&mut self) -> Option<Arc<str>> {
        self.new_leader.take()
    }

    /// The part of this node in the group, for metrics.
    pub(in crate::replicas) fn status(&self, nodes: &Nodes) -> ReplicaStatus {
        let member = &self.member;
        let state = match (self.service, member.role()) {
            (_, Role::Quarantined) => ReplicaState::Quarantined,
            (Service::Leads(_), _) => ReplicaState::Leader,
            (Service::Promotes(_), _) => ReplicaState::Promoting,
            (Service::Deposed, _) => ReplicaState::Deposed,
            (Service::Follows, Role::Candidate) => ReplicaState::Candidate,
            (Service::Follows, Role::Leader { .. } | Role::Follower { .. }) => {
                ReplicaState::Follower
            }
        };
        let last = member.last_index();
        let (voters, learners) = member.members();
        let lag = |other: MemberId| {
            let matched = member.matched(other)?;
            Some((nodes.name_of_member(other)?, last.0.saturating_sub(matched.0)))
        };
        let others = voters.iter().chain(&learners).filter(|other| other.node() != nodes.me);
        let heard = voters.iter().filter(|voter| member.is_heard(**voter));
        let names = |members: Vec<MemberId>| {
            members.into_iter().filter_map(|member| nodes.name_of_member(member)).collect()
        };
        ReplicaStatus {
            vhost: self.name().into(),
            state,
            term: member.term().0,
            committed: member.delivered().0,
            written: last.0,
            applied: self.applied().0,
            compacted: member.log().first_index().0.saturating_sub(1),
            unapplied_bytes: self.queue.waiting_bytes() as u64,
            stands_still: self.is_leading() && self.standstill.is_told(),
            lags: others.copied().filter_map(lag).collect(),
            is_voter: member.is_voter(),
            heard: names(heard.copied().collect()),
            voters: names(voters),
        }
    }

    fn take_role(&mut self, role: Role, nodes: &Nodes) {
        let leader = match role {
            Role::Leader { .. } => Some(Arc::clone(&nodes.my_name)),
            Role::Follower { leader } => leader.and_then(|leader| nodes.name_of_member(leader)),
            Role::Candidate | Role::Quarantined => None,
        };
        tracing::debug!(vhost = self.name(), ?role, "role of the member");
        match (role, self.service) {
            (Role::Leader { term, is_active: true }, Service::Follows) => {
                let axis = self.member.axis().expect("a leader has an axis");
                self.service = Service::Promotes(term);
                self.queue.promote(term, axis.offset_us());
            }
            (Role::Leader { term, .. }, Service::Promotes(of) | Service::Leads(of))
                if term == of => {}
            (_, Service::Promotes(_) | Service::Leads(_)) => {
                match self.transfer.take() {
                    Some(transfer) => {
                        tracing::info!(vhost = self.name(), "the lead of the vhost is transferred");
                        transfer.end(Ok(()));
                    }
                    None => {
                        let vhost = self.name();
                        tracing::warn!(vhost, "this node does not lead the vhost any more");
                    }
                }
                self.watch.leads_no_more(self.id());
                self.service = Service::Deposed;
            }
            (_, Service::Follows | Service::Deposed) => {}
        }
        self.new_leader.clone_from(&leader);
        self.target.set_leader(leader);
    }

    /// Reports to the vhost what a majority has. Returns the time after which to try again.
    fn report_durable(&mut self) -> Option<Duration> {
        let Batch::Proposed { index, written, has_more } = self.batch else { return None };
        if !self.is_leading() || self.durable.is_none_or(|durable| durable < index) {
            return None;
        }
        if !self.target.batch_durable(written) {
            return Some(SOON);
        }
        self.batch = Batch::None;
        self.is_dirty |= has_more;
        None
    }

    /// Ends the service of the vhost and closes the log.
    pub(in crate::replicas) fn end(mut self) {
        self.watch.leads_no_more(self.id());
        self.target.depose(Deposition::LeaderChanged);
        self.end_file_work();
        self.queue.end();
        close(self.target.name(), self.member);
    }

    /// Closes the log when the node stops.
    pub(in crate::replicas) fn stop(mut self) {
        self.watch.leads_no_more(self.id());
        self.end_file_work();
        self.queue.end();
        close(self.target.name(), self.member);
    }

    /// True if everything that the vhost has is on its way, or cannot be.
    pub(in crate::replicas) fn is_quiet(&self) -> bool {
        !self.is_leading() || (!self.is_dirty && matches!(self.batch, Batch::None))
    }
}

fn close(vhost: &str, member: Member<MemberLog>) {
    if let Err(error) = member.into_log().close() {
        tracing::error!(vhost, "log was not closed cleanly: {error}");
    }
}

fn exit(vhost: &str, error: &LogError) -> ! {
    tracing::error!(
        vhost,
        "the log cannot be written, so that nothing more can be confirmed: {error}; the broker ends"
    );
    std::process::exit(EXIT_DISK);
}
