//! Changes among the members of a group, at its leader: transfers of the lead, shipments, learners that become voters.

use std::time::Duration;

use replication::{
    Frame, GroupPlacement, LedGroup, MemberId, MembershipChange, NodeId, Role, TurnClock,
};
use storage::{EntryIndex, LogError, Term};

use crate::leading::preparation::{Preparation, Step};
use crate::leading::transfer::{Progress, Transfer, TransferError};
use crate::limits::OFFER_INTERVAL;
use crate::log::GroupLog;
use crate::output::{Event, Output};
use crate::replica::Replica;
use crate::request::{RequestId, ShipmentNeed, ShipmentRequest};
use crate::service::Service;
use crate::vhost::{BUSY_RETRY, Vhost};

impl<L: GroupLog> Replica<L> {
    /// Begins to transfer the lead: to a node, or to the one that is most up to date. The result is an output if somebody
    /// waits for it.
    pub fn begin_transfer(&mut self, to: Option<NodeId>, request: Option<RequestId>) {
        let refusal = match &self.transfer {
            _ if !self.is_leading() => TransferError::NotLeading,
            Some(_) => TransferError::UnderWay,
            None => {
                self.has_work = true;
                let transfer = Transfer::begin(&self.member, to, request);
                if let Some(transfer) = transfer {
                    self.tell(Event::TransferBegins(transfer.to()));
                    self.transfer = Some(transfer);
                    return;
                }
                TransferError::NoSuccessor
            }
        };
        self.answer_transfer(request, Err(refusal));
    }

    /// Does what can be done now for a transfer of the lead. Returns the time after which to try again.
    pub(crate) fn step_transfer(&mut self, vhost: &mut impl Vhost) -> Option<Duration> {
        let mut transfer = self.transfer.take()?;
        if !self.is_leading() {
            self.answer_transfer(transfer.request, Err(TransferError::NotLeading));
            return None;
        }
        let is_quiet = self.is_quiet();
        match transfer.step(&mut self.member, vhost, is_quiet) {
            Progress::Waits => {}
            Progress::Logged => self.set_dirty(),
            Progress::Locked => {
                self.transfer = Some(transfer);
                return Some(BUSY_RETRY);
            }
            Progress::Over => {
                self.tell(Event::TransferTooLate(transfer.to()));
                self.answer_transfer(transfer.request, Err(TransferError::TooLate));
                return None;
            }
        }
        self.transfer = Some(transfer);
        None
    }

    pub(crate) fn answer_transfer(
        &mut self,
        request: Option<RequestId>,
        result: Result<(), TransferError>,
    ) {
        self.outputs.extend(request.map(|request| Output::Transferred(request, result)));
    }

    /// True if files that end with this entry may take the place of the replica.
    pub fn is_behind(&self, (index, term): (EntryIndex, Term)) -> bool {
        let is_follower = matches!(self.service, Service::Follows) && self.is_between_turns();
        is_follower && self.member.is_behind(index, term)
    }

    /// True if files can be prepared now. A new leader may depend on them: a member that lacks entries is perhaps the one
    /// that is missing for a majority.
    pub fn can_prepare(&self, need: ShipmentNeed) -> bool {
        match need {
            ShipmentNeed::Behind => matches!(self.member.role(), Role::Leader { .. }),
            ShipmentNeed::Replacement => self.is_leading(),
        }
    }

    /// Asks for a barrier. The answer is an output: without an entry if this node does not lead.
    pub fn ask_barrier(&mut self, request: RequestId) {
        if self.is_leading() {
            self.barriers.ask(request);
            self.has_work = true;
        } else {
            self.outputs.push(Output::Barrier(request, None));
        }
    }

    /// Begins to prepare files for a member of another node. The answer is an output.
    pub fn prepare_shipment(&mut self, request: ShipmentRequest) {
        // A node that asks again does not wait for the first answer.
        let before = self.preparations.extract_if(.., |it| it.request.node == request.node);
        let before: Vec<RequestId> = before.map(|it| it.request.id).collect();
        before.into_iter().for_each(|id| self.refuse_shipment(id, "the node has asked again"));
        if self.can_prepare(request.need) {
            self.preparations.push(Preparation::new(request));
            self.has_work = true;
        } else {
            self.refuse_shipment(request.id, "this node does not lead the vhost");
        }
    }

    /// Ends the preparation of files that nobody waits for.
    pub fn cancel_shipment(&mut self, id: RequestId) {
        self.preparations.retain(|preparation| preparation.request.id != id);
    }

    fn refuse_shipment(&mut self, id: RequestId, why: &str) {
        self.outputs.push(Output::Shipment(id, Err(why.to_owned())));
    }

    /// True if this replica leads and has members of nodes that are not of the cluster any more, or are to be without
    /// it: it must be advanced.
    pub fn looks_for_gone(&mut self, placed: &impl GroupPlacement) -> bool {
        let has_gone = self.is_leading() && self.member.has_gone(placed);
        self.looks_at_members |= has_gone;
        has_gone
    }

    /// True if the group does without the member of this node, as its leader tells.
    pub fn is_left_out(&self, led: &LedGroup, placed: &impl GroupPlacement) -> bool {
        !self.is_leading() && self.is_between_turns() && self.member.is_left_out(led, placed)
    }

    /// True if the member of this node is not one of those that its group is to have.
    pub fn is_to_leave(&self, placed: &impl GroupPlacement) -> bool {
        placed.may_be_left_out(self.member.id())
    }

    /// Goes on with the shipments that are being prepared, with learners that can vote, and with members of nodes that
    /// are not of the cluster any more.
    pub(crate) fn step_members(
        &mut self,
        clock: &TurnClock<'_>,
        placed: &impl GroupPlacement,
    ) -> Result<(), LogError> {
        self.step_preparations(clock, placed)?;
        if !self.is_leading() {
            self.promoting = None;
            self.barriers.clear::<L>(&mut self.outputs);
            return Ok(());
        }
        self.tell_promoted();
        if let Some(axis) = self.member.axis() {
            let at_us = axis.at(clock.now.monotonic_us);
            let removal = self.member.tell_removal(at_us);
            let barrier = self.barriers.step(&mut self.member, at_us, &mut self.outputs);
            for index in removal.into_iter().chain(barrier) {
                self.has_work = true;
                self.tell(Event::Proposed(index));
            }
        }
        if std::mem::take(&mut self.looks_at_members) {
            self.look_at_members(clock, placed);
        }
        Ok(())
    }

    fn step_preparations(
        &mut self,
        clock: &TurnClock<'_>,
        placed: &impl GroupPlacement,
    ) -> Result<(), LogError> {
        for mut preparation in std::mem::take(&mut self.preparations) {
            let request = preparation.request;
            if !self.can_prepare(request.need) {
                self.refuse_shipment(request.id, "this node does not lead the vhost");
                continue;
            }
            match preparation.step(&mut self.member, &self.applier, clock, placed)? {
                Step::Waits => self.preparations.push(preparation),
                Step::Changed(change, index) => {
                    self.has_work = true;
                    self.tell(Event::Proposed(index));
                    self.tell(Event::MembersChange(change, index));
                    self.preparations.push(preparation);
                }
                Step::Over(files) => self.outputs.push(Output::Shipment(request.id, files)),
            }
        }
        Ok(())
    }

    /// Looks for members that are to leave, and for learners that can vote.
    fn look_at_members(&mut self, clock: &TurnClock<'_>, placed: &impl GroupPlacement) {
        if let Some(successor) = self.member.successor_of_leaving(placed)
            && self.transfer.is_none()
        {
            // This node does not stay. Nobody waits: it is tried again if it fails.
            self.begin_transfer(Some(successor), None);
        }
        let Some(change) = self.member.next_change(placed) else { return };
        let Some(axis) = self.member.axis() else { return };
        let at_us = axis.at(clock.now.monotonic_us);
        let Ok(index) = self.member.change_members(change, at_us) else { return };
        self.has_work = true;
        self.tell(Event::Proposed(index));
        let member = change.member();
        match change {
            MembershipChange::Promote(learner) => self.promoting = Some(learner),
            MembershipChange::Remove(_) if placed.is_gone(member) => {
                self.tell(Event::ForgottenLeaves(member));
            }
            MembershipChange::Remove(_) => self.tell(Event::MovedLeaves(member)),
            MembershipChange::AddLearner(_) => {}
        }
    }

    /// Tells that a learner votes, once a majority has the change: until then the group needs the members it had.
    fn tell_promoted(&mut self) {
        let is_voter = |member: &mut MemberId| self.member.members().0.contains(member);
        if let Some(member) = self.promoting.take_if(is_voter) {
            self.tell(Event::Votes(member));
        }
    }

    /// Offers files to members for which the log has no entries any more.
    pub(crate) fn offer(&mut self, now_us: u64, needs: Vec<MemberId>, frames: &mut Vec<Frame>) {
        for member in needs {
            let passed_us = self.offered.get(&member).map(|at_us| now_us.saturating_sub(*at_us));
            if passed_us.is_none_or(|us| Duration::from_micros(us) > OFFER_INTERVAL) {
                self.offered.insert(member, now_us);
                let index = EntryIndex(self.member.log().first_index().0.saturating_sub(1));
                let term = self.member.log().term_of(index).unwrap_or(Term(0));
                frames.extend(self.member.offer_snapshot(member, index, term));
                self.tell(Event::Offered(member, index));
            }
        }
    }
}
