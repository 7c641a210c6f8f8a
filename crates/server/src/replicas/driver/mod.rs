//! A replica with its vhost, its threads, and those who wait for its answers; owned by the replicator.

mod answers;
mod events;
mod files;

use std::io;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use replica::{
    Deposition, Effects, HandOverTask, Next, Output, Replica, ReplicaOptions, Service,
    ShipmentNeed, Turn, Vhost,
};
use replication::{
    ClockBounds, ClockReading, Frame, FrameError, LedGroup, Member, MemberId, NodeId, Role,
    TurnClock,
};
use storage::{LogError, Term, WriteBatch, Written};

use self::answers::Answers;
pub(crate) use self::answers::PreparedShipment;
pub(super) use self::answers::{BarrierAnswer, FilesRequest, TransferAnswer};
use self::files::FileWork;
use super::apply::ApplyQueue;
use super::disk_watch::DiskWatch;
use super::member_log::MemberLog;
use super::nodes::Nodes;
use super::report::Report;
use super::status::{ReplicaState, ReplicaStatus};
use super::target::ReplicaTarget;
use crate::disk::vhost_files::VhostId;
use crate::limits::{ENTRIES_PER_DIGEST, EXIT_DISK, FULL_DISK_RETRY_INTERVAL, UNAPPLIED_BYTES_MAX};

/// A replica with its vhost.
#[derive(Debug)]
pub(super) struct ReplicaDriver {
    target: Arc<dyn ReplicaTarget>,
    pub(super) replica: Replica<MemberLog>,
    queue: ApplyQueue,
    watch: Arc<DiskWatch>,
    pub(super) answers: Answers,
    files: FileWork,
    /// Start of the driver: the time of the replica counts from there.
    began: Instant,
    /// The leader that the vhost has been told of, until it is taken.
    new_leader: Option<Arc<str>>,
    /// Files of the leader that the replica needs.
    wanted: Option<(ShipmentNeed, NodeId)>,
    /// Committed entries since the last compaction check.
    pub(super) entries: u32,
}

/// The vhost of a replica, without a wait for its lock.
struct Unlocked<'a>(&'a dyn ReplicaTarget);

impl Vhost for Unlocked<'_> {
    fn take_batch(&mut self, batch: &mut WriteBatch) -> Option<bool> {
        self.0.take_batch(batch)
    }

    fn batch_durable(&mut self, written: Written) -> bool {
        self.0.batch_durable(written)
    }

    fn hand_over(&mut self, task: HandOverTask) -> bool {
        self.0.hand_over(task)
    }
}

/// The clocks of the node, to be read within a turn.
#[derive(Clone, Copy)]
pub(super) struct Clocks<'a> {
    /// Reads the own clocks, and the wall clock just after.
    pub(super) read: &'a dyn Fn() -> (ClockReading, u64),
    /// Bounds for the clocks of other nodes.
    pub(super) bounds: &'a ClockBounds,
}

impl<'a> Clocks<'a> {
    fn now(self) -> TurnClock<'a> {
        let (now, wall_after_us) = (self.read)();
        TurnClock { now, wall_after_us, bounds: self.bounds }
    }
}

impl ReplicaDriver {
    /// Starts to drive a member, whose writes `watch` watches. `leader` is the node that the vhost knows as its leader.
    /// `report` is called with news of the vhost.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub(super) fn start(
        target: Arc<dyn ReplicaTarget>,
        member: Member<MemberLog>,
        leader: Option<NodeId>,
        watch: Arc<DiskWatch>,
        report: Box<dyn Fn(Report) + Send>,
    ) -> io::Result<Self> {
        let queue = ApplyQueue::start(Arc::clone(&target), member.log().applier(), report)?;
        let options = ReplicaOptions {
            entries_per_digest: ENTRIES_PER_DIGEST,
            unapplied_bytes_max: UNAPPLIED_BYTES_MAX,
        };
        Ok(Self {
            target,
            replica: Replica::new(member, leader, options),
            queue,
            watch,
            answers: Answers::default(),
            files: FileWork::default(),
            began: Instant::now(),
            new_leader: None,
            wanted: None,
            entries: 0,
        })
    }

    pub(super) fn id(&self) -> VhostId {
        self.target.id()
    }

    pub(super) fn name(&self) -> &str {
        self.target.name()
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Takes a frame. False if the replica need not be advanced because of it.
    pub(super) fn receive(&mut self, from: NodeId, frame: &Bytes) -> Result<bool, FrameError> {
        self.replica.receive(from, frame, self.queue.waiting_bytes())
    }

    /// Notes that the vhost serves clients in this term.
    pub(super) fn promoted(&mut self, term: Term) {
        let Self { replica, watch, target, .. } = self;
        replica.promoted(term, || watch.leads(target));
    }

    /// The files of the leader that the replica needs, once.
    pub(super) fn take_wanted(&mut self) -> Option<(ShipmentNeed, NodeId)> {
        self.wanted.take()
    }

    /// The node that leads the vhost, if this one has come to know one since the last call.
    pub(super) fn take_new_leader(&mut self) -> Option<Arc<str>> {
        self.new_leader.take()
    }

    /// True if this replica leads and has members of nodes that are not of the cluster any more, or are to be without
    /// it: it must be advanced.
    pub(super) fn looks_for_gone(&mut self, nodes: &Nodes) -> bool {
        let placement = self.target.placement();
        self.replica.looks_for_gone(&nodes.placed(placement.as_deref()))
    }

    /// True if the group does without the member of this node, as its leader tells.
    pub(super) fn is_left_out(&self, led: &LedGroup, nodes: &Nodes) -> bool {
        let placement = self.target.placement();
        self.replica.is_left_out(led, &nodes.placed(placement.as_deref()))
    }

    /// True if the member of this node is not one of those that its group is to have.
    pub(super) fn is_to_leave(&self, nodes: &Nodes) -> bool {
        let placement = self.target.placement();
        self.replica.is_to_leave(&nodes.placed(placement.as_deref()))
    }

    /// Takes a batch of the vhost, and takes the member through a turn. Frames that were sent leave with `flush`: this
    /// calls it before the disk is written and after it, and the caller when all replicas were advanced.
    pub(super) fn advance(
        &mut self,
        clocks: Clocks<'_>,
        nodes: &Nodes,
        frames: &mut Vec<Frame>,
        send: &mut dyn FnMut(&mut Vec<Frame>),
        flush: &dyn Fn(),
    ) -> Next {
        self.answers.cancel_shipments(&mut self.replica);
        let now_us = self.now_us();
        let turn = {
            let placement = self.target.placement();
            let placed = nodes.placed(placement.as_deref());
            let (vhost, stalls) = (&mut Unlocked(&*self.target), self.watch.stalls());
            self.replica.begin(now_us, stalls, || clocks.now(), &placed, vhost, frames)
        };
        let turn = turn.unwrap_or_else(|error| exit(self.name(), &error));
        self.carry_out(nodes);
        send(frames);
        match turn {
            Turn::None(next) => return next,
            Turn::Write => {
                flush();
                if !self.write(nodes) {
                    return Next::After(FULL_DISK_RETRY_INTERVAL);
                }
            }
            Turn::End => {}
        }
        let result = self.replica.end(frames);
        send(frames);
        if turn == Turn::Write {
            // Another member waits for the answer.
            flush();
        }
        let now_us = self.now_us();
        let next = self.replica.follow(now_us, result, &mut Unlocked(&*self.target), frames);
        send(frames);
        self.carry_out(nodes);
        next
    }

    /// Writes and syncs what the turn has. False if the disk has no room.
    fn write(&mut self, nodes: &Nodes) -> bool {
        let now_us = self.now_us();
        self.watch.begin();
        let Self { replica, watch, .. } = self;
        let written = replica.write(now_us, || watch.finish());
        let has_written = written.unwrap_or_else(|error| exit(self.name(), &error));
        self.carry_out(nodes);
        has_written
    }

    /// Does what the replica wants done.
    pub(super) fn carry_out(&mut self, nodes: &Nodes) {
        for output in self.replica.take_outputs() {
            match output {
                Output::Leader(leader) => {
                    let leader = leader.and_then(|leader| nodes.name_of(leader));
                    self.new_leader.clone_from(&leader);
                    self.target.set_leader(leader);
                }
                Output::Committed(entry, effects) => {
                    self.entries += 1;
                    match effects {
                        Effects::Due => self.queue.apply(entry),
                        Effects::There | Effects::AfterReopening => {}
                    }
                }
                Output::Promote { term, shift_us } => self.queue.promote(term, shift_us),
                Output::ServesNoMore => self.watch.leads_no_more(self.target.id()),
                Output::Depose(why) => self.target.depose(why),
                Output::LogDigest => self.target.log_digest(),
                Output::OutOfRoom(is_out) => {
                    self.target.progress().set_out_of_room(is_out);
                }
                Output::Wanted(need, leader) => self.wanted = Some((need, leader)),
                Output::Transferred(request, result) => self.answers.transferred(request, result),
                Output::Barrier(request, index) => self.answers.barrier(request, index),
                Output::Shipment(request, files) => self.answers.shipment(request, files),
                Output::Event(event) => events::log(self.target.name(), &event),
            }
        }
    }

    /// Creates the next file of the log on a thread of its own, once one is needed, and passes it to the log when it is
    /// there. `wake` is called when it is.
    pub(super) fn prepare(&mut self, wake: impl FnOnce() + Send + 'static) {
        if self.replica.is_between_turns() {
            self.files.prepare(self.target.name(), self.replica.log_mut(), wake);
        }
    }

    /// Compacts the log on a thread of its own, if that is worthwhile. `done` is called at the end. False if there is
    /// nothing to do; `done` is not called then.
    pub(super) fn compact(&mut self, done: impl FnOnce() + Send + 'static) -> bool {
        // While records still end with the pages of a purged or deleted queue, the record of the purge must be kept: the
        // log does not know yet that they have ended.
        let may_compact =
            !self.target.progress().pages().is_ending() && self.replica.is_between_turns();
        may_compact && self.files.compact(self.target.name(), self.replica.member().log(), done)
    }

    /// The part of this node in the group, for metrics.
    pub(super) fn status(&self, nodes: &Nodes) -> ReplicaStatus {
        let member = self.replica.member();
        let state = match (self.replica.service(), member.role()) {
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
            applied: self.replica.applied().0,
            compacted: member.log().first_index().0.saturating_sub(1),
            unapplied_bytes: self.queue.waiting_bytes() as u64,
            stands_still: self.replica.stands_still(),
            lags: others.copied().filter_map(lag).collect(),
            is_voter: member.is_voter(),
            heard: names(heard.copied().collect()),
            voters: names(voters),
        }
    }

    /// Ends the service of the vhost and closes the log.
    pub(super) fn end(self) {
        self.watch.leads_no_more(self.id());
        self.target.depose(Deposition::LeaderChanged);
        self.close();
    }

    /// Closes the log when the node stops.
    pub(super) fn stop(self) {
        self.watch.leads_no_more(self.id());
        self.close();
    }

    fn close(self) {
        let Self { target, replica, queue, files, .. } = self;
        files.end();
        queue.end();
        if let Err(error) = replica.into_log().close() {
            let vhost = target.name();
            tracing::error!(vhost, "log was not closed cleanly: {error}");
        }
    }
}

fn exit(vhost: &str, error: &LogError) -> ! {
    tracing::error!(
        vhost,
        "the log cannot be written, so that nothing more can be confirmed: {error}; the broker ends"
    );
    std::process::exit(EXIT_DISK);
}
