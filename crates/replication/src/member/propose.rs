//! Proposals of a leader.

use storage::{EntryContent, EntryFacts, EntryIndex, LogEntry, Term, WriteBatch};

use super::{Member, ProposeError, Proposed, Role};
use crate::engine::Refusal;
use crate::entry_log::EntryLog;
use crate::frame::{Body, Frame, FrameClass, Message, encode_control};
use crate::ids::MemberId;
use crate::limits::{MEMBERS_MAX, UNCOMMITTED_BYTES_MAX, VOTERS_MAX};
use crate::membership::MembershipChange;

impl<L: EntryLog> Member<L> {
    /// Proposes the records of a batch as one entry, at `axis_us` of the group's axis. The batch keeps its content; it is
    /// cleared by its owner after [`Proposed`].
    ///
    /// # Errors
    /// [`ProposeError`]; the batch is unchanged.
    ///
    /// # Panics
    /// If `axis_us` is before the newest entry: an axis never goes back.
    pub fn propose(
        &mut self,
        batch: &mut WriteBatch,
        axis_us: u64,
    ) -> Result<Proposed, ProposeError> {
        self.check_proposal(batch.bytes())?;
        let (index, term) = (EntryIndex(self.engine.last_index() + 1), Term(self.engine.term()));
        let Some((entry, facts)) = batch.seal_as_entry(self.config.group.0, index, term, axis_us)
        else {
            self.proposals.elided();
            return Ok(Proposed::Nothing(EntryIndex(self.engine.last_index())));
        };
        self.accept(&entry, facts);
        Ok(Proposed::Entry(index))
    }

    /// Reason for which nothing can be proposed now.
    pub(super) fn check_proposal(&self, bytes: usize) -> Result<(), ProposeError> {
        self.assert_idle();
        if !matches!(self.told_role, Role::Leader { is_active: true, term } if term.0 == self.engine.term())
            || self.is_silent()
        {
            return Err(ProposeError::NotLeading);
        }
        match self.engine.refusal() {
            Some(Refusal::NotLeading) => return Err(ProposeError::NotLeading),
            Some(Refusal::Transferring) => return Err(ProposeError::Transferring),
            None => {}
        }
        let waiting = self.proposals.bytes();
        if waiting > 0 && waiting.saturating_add(bytes) > UNCOMMITTED_BYTES_MAX {
            return Err(ProposeError::Behind { bytes: waiting });
        }
        Ok(())
    }

    /// Proposes a checked entry.
    pub(super) fn accept(&mut self, entry: &LogEntry, facts: EntryFacts) {
        assert!(entry.axis_us >= self.last_axis_us, "the axis of a group never goes back");
        self.last_axis_us = entry.axis_us;
        let bytes = match &entry.content {
            EntryContent::Records(records) => records.bytes.len(),
            EntryContent::Empty | EntryContent::Membership(_) => 0,
        };
        self.engine.propose(entry);
        self.proposals.push(entry.index, facts, bytes);
    }

    /// Proposes a change of the members, at `axis_us` of the group's axis. It counts once its entry is committed.
    ///
    /// # Errors
    /// [`ProposeError`].
    pub fn change_members(
        &mut self,
        change: MembershipChange,
        axis_us: u64,
    ) -> Result<EntryIndex, ProposeError> {
        self.check_proposal(0)?;
        if self.engine.has_pending_change() {
            return Err(ProposeError::ChangePending);
        }
        let (voters, learners) = self.engine.members();
        let member = change.member().get();
        let (votes, learns) = (voters.contains(&member), learners.contains(&member));
        let refused = match change {
            MembershipChange::AddLearner(_) if votes || learns => Some("it is a member already"),
            MembershipChange::AddLearner(_) if voters.len() + learners.len() >= MEMBERS_MAX => {
                Some("the group has too many members")
            }
            MembershipChange::Promote(_) if !learns => Some("only a learner can be promoted"),
            MembershipChange::Promote(_) if voters.len() >= VOTERS_MAX => {
                Some("the group has too many voters")
            }
            MembershipChange::Remove(_) if !votes && !learns => Some("it is no member"),
            MembershipChange::Remove(_) if voters == [member] => Some("it is the only voter"),
            MembershipChange::AddLearner(_)
            | MembershipChange::Promote(_)
            | MembershipChange::Remove(_) => None,
        };
        if let Some(text) = refused {
            return Err(ProposeError::Refused(text));
        }
        Ok(self.propose_content(EntryContent::Membership(change.encode()), axis_us))
    }

    /// Proposes an entry without content if none follows the last removal of a member yet: the members that are left learn
    /// with it that the removal is committed, and the removed one is not told before. `None` if none is needed, or
    /// possible now.
    pub fn tell_removal(&mut self, axis_us: u64) -> Option<EntryIndex> {
        let is_told = self.removal_told_behind != self.engine.last_index();
        let is_due = !is_told && self.check_proposal(0).is_ok();
        is_due.then(|| self.propose_content(EntryContent::Empty, axis_us))
    }

    /// Proposes an entry without content, at `axis_us` of the group's axis. Once it is committed, everything that the group had
    /// committed before the call is before it: no other member has led meanwhile.
    ///
    /// # Errors
    /// [`ProposeError`].
    pub fn propose_barrier(&mut self, axis_us: u64) -> Result<EntryIndex, ProposeError> {
        self.check_proposal(0)?;
        Ok(self.propose_content(EntryContent::Empty, axis_us))
    }

    /// Proposes a checked entry without records.
    fn propose_content(&mut self, content: EntryContent, axis_us: u64) -> EntryIndex {
        let (index, term) = (EntryIndex(self.engine.last_index() + 1), Term(self.engine.term()));
        let entry = LogEntry { index, term, axis_us, content };
        self.accept(&entry, EntryFacts::default());
        index
    }

    /// Hands leadership over to a voter. Nothing can be proposed until it has it, or an election time has passed. Stop
    /// proposing and wait until all is committed before, so that nothing is lost. Without effect at a follower.
    pub fn transfer(&mut self, to: MemberId) {
        self.assert_idle();
        if self.engine.is_leader() && !self.is_silent() {
            self.engine.transfer(to.get());
            self.settle();
        }
    }

    /// The frame with which a leader offers a member the files up to `index`. `None` if this member does not lead.
    pub fn offer_snapshot(&self, to: MemberId, index: EntryIndex, term: Term) -> Option<Frame> {
        let body = Body::SnapshotOffer { index: index.0, index_term: term.0 };
        let message = Message { term: self.leads?, body };
        let head = encode_control(self.header(to), &message);
        Some(Frame { to, class: FrameClass::Control, head, tail: bytes::Bytes::new() })
    }
}
