//! The member of one group on this node, with its stage between two turns.

mod members;
mod ticks;
pub(crate) mod turn;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use replication::{FrameError, Member, MemberId, NodeId, QuarantineReason, Role};
use storage::{Applier, EntryIndex, Term, WriteBatch, Written};

use crate::leading::barrier::Barriers;
use crate::leading::preparation::Preparation;
use crate::leading::transfer::Transfer;
use crate::log::GroupLog;
use crate::output::{Event, Output};
use crate::service::Service;
use crate::standstill::Standstill;

/// A batch of the vhost on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Batch {
    /// None was taken.
    None,
    /// One was taken and is not proposed yet.
    Taken { has_more: bool },
    /// One is proposed, and is durable with this entry.
    Proposed { index: EntryIndex, written: Written, has_more: bool },
}

/// Options of a replica.
#[derive(Clone, Copy, Debug)]
pub struct ReplicaOptions {
    /// Entries from one digest of the state to the next.
    pub entries_per_digest: u32,
    /// Octets of committed entries that may wait for their application; with more, no frame is taken.
    pub unapplied_bytes_max: usize,
}

/// The part of this node in the group of a vhost.
pub struct Replica<L: GroupLog> {
    pub(crate) member: Member<L>,
    pub(crate) applier: Applier<L::Directory>,
    pub(crate) options: ReplicaOptions,
    pub(crate) outputs: Vec<Output<L::Directory>>,
    /// The leader that the vhost was told of last.
    leader: Option<NodeId>,
    /// The lost leader, if the vhost was told of none since the last turn; the member may have heard it again meanwhile.
    pub(crate) forgotten_leader: Option<MemberId>,
    /// Stalls of the disk when the vhost began to serve clients.
    stalls: u64,
    pub(crate) service: Service,
    /// The records of the batch that was taken.
    pub(crate) records: WriteBatch,
    pub(crate) batch: Batch,
    pub(crate) standstill: Standstill,
    /// The newest entry that a majority has, as told since the batch was proposed.
    pub(crate) durable: Option<EntryIndex>,
    /// True if the vhost has reported work since a batch was last taken.
    pub(crate) is_dirty: bool,
    /// Shipments that are being prepared, one for each node.
    pub(crate) preparations: Vec<Preparation>,
    /// Times at which files were offered to members, in microseconds.
    pub(crate) offered: BTreeMap<MemberId, u64>,
    /// True if a learner may have become level, or a member be of a node that is not of the cluster any more.
    pub(crate) looks_at_members: bool,
    /// A learner that is being made a voter.
    pub(crate) promoting: Option<MemberId>,
    /// The transfer of the lead to another node.
    pub(crate) transfer: Option<Transfer>,
    pub(crate) barriers: Barriers,
    /// Time at which the disk had no room for the write of the turn that is under way, in microseconds.
    pub(crate) full_since_us: Option<u64>,
    /// True if a turn has work.
    pub(crate) has_work: bool,
    /// The time after which the vhost is tried again whose lock was held for long when the turn began.
    pub(crate) locked: Option<Duration>,
    /// Number of the last tick of the node that the member has had; none before it takes part in its group.
    pub(crate) ticked: Option<u64>,
    /// Entries until the next digest.
    pub(crate) entries_to_digest: u32,
}

impl<L: GroupLog> fmt::Debug for Replica<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { member, service, batch, .. } = self;
        let mut fields = f.debug_struct("Replica");
        fields.field("member", &member.id()).field("service", service).field("batch", batch);
        fields.finish_non_exhaustive()
    }
}

impl<L: GroupLog> Replica<L> {
    /// Begins to drive a member. `leader` is the node that the vhost knows as its leader, from before it was opened anew.
    pub fn new(member: Member<L>, leader: Option<NodeId>, options: ReplicaOptions) -> Self {
        Self {
            applier: member.log().replicated().applier(),
            member,
            options,
            outputs: Vec::new(),
            leader,
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
            looks_at_members: false,
            promoting: None,
            transfer: None,
            barriers: Barriers::default(),
            full_since_us: None,
            has_work: true,
            locked: None,
            ticked: None,
            entries_to_digest: options.entries_per_digest,
        }
    }

    /// Takes what the driver has to do, in order.
    pub fn take_outputs(&mut self) -> Vec<Output<L::Directory>> {
        std::mem::take(&mut self.outputs)
    }

    pub(crate) fn tell(&mut self, event: Event) {
        self.outputs.push(Output::Event(event));
    }

    /// The member.
    pub fn member(&self) -> &Member<L> {
        &self.member
    }

    /// The log, for work on its files: only between two turns.
    ///
    /// # Panics
    /// If a write is under way.
    pub fn log_mut(&mut self) -> &mut L {
        assert!(self.is_between_turns(), "the log has a write that is under way");
        self.member.log_mut()
    }

    /// The log, to close it.
    #[must_use]
    pub fn into_log(self) -> L {
        self.member.into_log()
    }

    /// The part of this node in the service of the vhost.
    pub fn service(&self) -> Service {
        self.service
    }

    /// False while the disk has no room for the write of a turn.
    pub fn is_between_turns(&self) -> bool {
        self.full_since_us.is_none()
    }

    /// The notes of what is applied, for the thread that applies entries.
    pub fn applier(&self) -> &Applier<L::Directory> {
        &self.applier
    }

    /// The last entry that was applied.
    pub fn applied(&self) -> EntryIndex {
        self.applier.applied()
    }

    pub(crate) fn is_leading(&self) -> bool {
        matches!(self.service, Service::Leads(_))
    }

    /// True if everything that the vhost has is on its way, or cannot be.
    pub fn is_quiet(&self) -> bool {
        !self.is_leading() || (!self.is_dirty && matches!(self.batch, Batch::None))
    }

    /// True if work waits and nothing was committed for long.
    pub fn stands_still(&self) -> bool {
        self.is_leading() && self.standstill.is_told()
    }

    /// The term in which this node serves the vhost.
    pub fn leads_in(&self) -> Option<Term> {
        match self.service {
            Service::Leads(term) => Some(term),
            Service::Follows | Service::Promotes(_) | Service::Deposed => None,
        }
    }

    /// Notes that the vhost has records.
    pub fn set_dirty(&mut self) {
        self.is_dirty = true;
        self.has_work = true;
    }

    /// Takes a frame, unless the replica cannot take any now; the sender sends it again then. False if the replica need
    /// not be advanced because of it. `unapplied_bytes` are those of committed entries that wait for their application.
    ///
    /// # Errors
    /// [`FrameError`] if the frame is refused; nothing of it has any effect.
    pub fn receive(
        &mut self,
        from: NodeId,
        frame: &Bytes,
        unapplied_bytes: usize,
    ) -> Result<bool, FrameError> {
        if !self.is_between_turns() || unapplied_bytes > self.options.unapplied_bytes_max {
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
    pub fn shipped(&mut self, member: MemberId, index: EntryIndex) {
        if self.is_between_turns() {
            self.member.shipped(member, index);
            self.has_work = true;
        }
    }

    /// Notes that the link to a node is there anew, or is silent, or has dropped a frame.
    pub fn link_changed(&mut self, member: MemberId) {
        if self.is_between_turns() {
            self.member.link_lost(member);
        }
    }

    /// Notes that the process of a node is gone, or that the node is silent for the shortest election time.
    pub fn peer_lost(&mut self, member: MemberId) {
        if self.is_between_turns() {
            self.member.peer_lost(member);
            self.has_work = true;
        }
        // The vhost may know it as the leader from before it was opened anew, and the member no leader yet.
        if self.member.leader().is_none() && self.leader == Some(member.node()) {
            self.set_leader(None);
            self.forgotten_leader = Some(member);
        }
    }

    /// Tells the vhost the leader.
    pub(crate) fn set_leader(&mut self, leader: Option<NodeId>) {
        self.leader = leader;
        self.outputs.push(Output::Leader(leader));
    }

    /// Notes that the vhost serves clients in this term. `stalls` is called if it does, and returns the stalls of the disk so
    /// far.
    pub fn promoted(&mut self, term: Term, stalls: impl FnOnce() -> u64) {
        if self.service == Service::Promotes(term) {
            self.service = Service::Leads(term);
            self.stalls = stalls();
            self.set_dirty();
            self.tell(Event::Serves(term));
        }
    }

    /// Notes the stalls of the disk so far: a leader whose disk has not answered leads no more, because its clients are gone.
    pub(crate) fn note_stalls(&mut self, stalls: u64) {
        if self.is_leading() && stalls > self.stalls {
            self.service = Service::Deposed;
        }
    }

    /// Makes this replica lead only if no other can.
    pub fn set_reluctant(&mut self, is_reluctant: bool) {
        self.member.set_reluctant(is_reluctant);
    }

    /// Ends the part of the replica in its group: it differs from that of the leader.
    pub fn quarantine(&mut self, reason: QuarantineReason) {
        self.member.quarantine(reason);
        self.has_work = true;
    }

    /// Notes that a majority has the entries up to an index, and that the proposals that became them are durable.
    pub fn set_durable(&mut self, index: EntryIndex) {
        self.durable = Some(index);
    }

    pub(crate) fn take_role(&mut self, role: Role) {
        let leader = match role {
            Role::Leader { .. } => Some(self.member.id()),
            Role::Follower { leader } => leader,
            Role::Candidate | Role::Quarantined => None,
        };
        self.tell(Event::Role(role));
        match (role, self.service) {
            (Role::Leader { term, is_active: true }, Service::Follows) => {
                let axis = self.member.axis().expect("a leader has an axis");
                self.service = Service::Promotes(term);
                self.outputs.push(Output::Promote { term, shift_us: axis.offset_us() });
            }
            (Role::Leader { term, .. }, Service::Promotes(of) | Service::Leads(of))
                if term == of => {}
            (_, Service::Promotes(_) | Service::Leads(_)) => {
                match self.transfer.take() {
                    Some(transfer) => {
                        self.tell(Event::LeadTransferred);
                        self.answer_transfer(transfer.request, Ok(()));
                    }
                    None => self.tell(Event::LeadLost),
                }
                self.outputs.push(Output::ServesNoMore);
                self.service = Service::Deposed;
            }
            (_, Service::Follows | Service::Deposed) => {}
        }
        self.set_leader(leader.map(MemberId::node));
    }
}
