//! Changes among the members of a group, at its leader: transfers of the lead, shipments, learners that become voters.

use std::time::{Duration, Instant};

use replication::{
    Frame, GroupPlacement as _, LedGroup, MemberId, MembershipChange, NodeId, Role, TurnClock,
};
use storage::{EntryIndex, Term};
use tokio::sync::oneshot;

use super::service::Service;
use super::{Replica, SOON, exit};
use crate::replicas::barrier::BarrierAnswer;
use crate::replicas::nodes::Nodes;
use crate::replicas::preparation::{Preparation, Prepared, ShipmentNeed, ShipmentRequest};
use crate::replicas::transfer::{Progress, Transfer, TransferError, TransferRequest};

/// Time between two offers of files to a member.
const OFFER_INTERVAL: Duration = Duration::from_secs(1);

impl Replica {
    /// Begins to transfer the lead to another node.
    pub(in crate::replicas) fn begin_transfer(&mut self, request: TransferRequest) {
        let refusal = match &self.transfer {
            _ if !self.is_leading() => TransferError::NotLeading,
            Some(_) => TransferError::UnderWay,
            None => {
                self.transfer = Transfer::begin(&self.member, request);
                self.has_work = true;
                return;
            }
        };
        // Whoever asked may be gone.
        let _ = request.answer.send(Err(refusal));
    }

    /// Does what can be done now for a transfer of the lead. Returns the time after which to try again.
    pub(super) fn step_transfer(&mut self) -> Option<Duration> {
        let mut transfer = self.transfer.take()?;
        if !self.is_leading() {
            transfer.end(Err(TransferError::NotLeading));
            return None;
        }
        let is_quiet = self.is_quiet();
        match transfer.step(&mut self.member, &*self.target, is_quiet) {
            Progress::Waits => {}
            Progress::Logged => self.set_dirty(),
            Progress::Locked => {
                self.transfer = Some(transfer);
                return Some(SOON);
            }
            Progress::Over => {
                let to = transfer.to().get();
                tracing::warn!(
                    vhost = self.name(),
                    to,
                    "the other node did not take the lead in time; this node leads on"
                );
                transfer.end(Err(TransferError::TooLate));
                return None;
            }
        }
        self.transfer = Some(transfer);
        None
    }

    /// True if files that end with this entry may take the place of the replica.
    pub(in crate::replicas) fn is_behind(&self, (index, term): (EntryIndex, Term)) -> bool {
        let is_follower = matches!(self.service, Service::Follows) && self.is_between_turns();
        is_follower && self.member.is_behind(index, term)
    }

    /// True if files can be prepared now. A new leader may depend on them: a member that lacks entries is perhaps the one
    /// that is missing for a majority.
    fn can_prepare(&self, need: ShipmentNeed) -> bool {
        match need {
            ShipmentNeed::Behind => matches!(self.member.role(), Role::Leader { .. }),
            ShipmentNeed::Replacement => self.is_leading(),
        }
    }

    /// Asks for a barrier. If this node does not lead, the answer is closed.
    pub(in crate::replicas) fn ask_barrier(&mut self, answer: BarrierAnswer) {
        if self.is_leading() {
            self.barriers.ask(answer);
            self.has_work = true;
        }
    }

    /// Begins to prepare files for a member of another node.
    pub(in crate::replicas) fn prepare_shipment(&mut self, request: ShipmentRequest) {
        if self.can_prepare(request.need) {
            // A node that asks again does not wait for the first answer.
            self.preparations.retain(|other| other.node() != request.node);
            self.preparations.push(Preparation::new(request));
            self.has_work = true;
        } else {
            let text = "this node does not lead the vhost".to_owned();
            // Whoever asked may be gone.
            let _ = request.answer.send(Err(text));
        }
    }

    /// True if this replica leads and has members of nodes that are not of the cluster any more, or are to be without
    /// it: it must be advanced.
    pub(in crate::replicas) fn looks_for_gone(&mut self, nodes: &Nodes) -> bool {
        let placement = self.target.placement();
        let placed = nodes.placed(placement.as_deref());
        let has_gone = self.is_leading() && self.member.has_gone(&placed);
        self.looks_at_members |= has_gone;
        has_gone
    }

    /// True if the group does without the member of this node, as its leader tells.
    pub(in crate::replicas) fn is_left_out(&self, led: &LedGroup, nodes: &Nodes) -> bool {
        let placement = self.target.placement();
        !self.is_leading()
            && self.is_between_turns()
            && self.member.is_left_out(led, &nodes.placed(placement.as_deref()))
    }

    /// True if the member of this node is not one of those that its group is to have.
    pub(in crate::replicas) fn is_to_leave(&self, nodes: &Nodes) -> bool {
        let placement = self.target.placement();
        nodes.placed(placement.as_deref()).may_be_left_out(self.member.id())
    }

    /// Goes on with the shipments that are being prepared, with learners that can vote, and with members of nodes that
    /// are not of the cluster any more.
    pub(super) fn step_members(&mut self, clock: &TurnClock<'_>, nodes: &Nodes) {
        let placement = self.target.placement();
        let placed = nodes.placed(placement.as_deref());
        for preparation in std::mem::take(&mut self.preparations) {
            if !self.can_prepare(preparation.need()) {
                continue;
            }
            match preparation.step(&mut self.member, &self.applier, clock, &placed) {
                Ok(Prepared::Waits(preparation)) => self.preparations.push(preparation),
                Ok(Prepared::Changed(preparation)) => {
                    self.has_work = true;
                    self.preparations.push(preparation);
                }
                Ok(Prepared::Over) => {}
                Err(error) => exit(self.target.name(), &error),
            }
        }
        if !self.is_leading() {
            self.promoting = None;
            self.barriers.clear();
            return;
        }
        self.tell_promoted();
        if let Some(axis) = self.member.axis() {
            let at_us = axis.at(clock.now.monotonic_us);
            self.has_work |= self.member.tell_removal(at_us).is_some();
            self.has_work |= self.barriers.step(&mut self.member, at_us);
        }
        if !std::mem::take(&mut self.looks_at_members) {
            return;
        }
        if let Some(successor) = self.member.successor_of_leaving(&placed) {
            self.give_lead_up(successor);
        }
        let Some(change) = self.member.next_change(&placed) else { return };
        if !self.change_members(change, clock) {
            return;
        }
        let member = change.member();
        match change {
            MembershipChange::Promote(learner) => self.promoting = Some(learner),
            MembershipChange::Remove(_) if placed.is_gone(member) => {
                let vhost = self.name();
                tracing::info!(vhost, %member, "a member is removed: its node is forgotten");
            }
            MembershipChange::Remove(_) => {
                let vhost = self.name();
                tracing::info!(vhost, %member, "a member is removed: the vhost is on other nodes");
            }
            MembershipChange::AddLearner(_) => {}
        }
    }

    /// Transfers the lead to the member of another node, because this one does not stay.
    fn give_lead_up(&mut self, successor: NodeId) {
        if self.transfer.is_none() {
            // Nobody waits: it is tried again if it fails.
            let (answer, _) = oneshot::channel();
            self.begin_transfer(TransferRequest { to: Some(successor), answer });
        }
    }

    /// Tells that a learner votes, once a majority has the change: until then the group needs the members it had.
    fn tell_promoted(&mut self) {
        let is_voter = |member: &mut MemberId| self.member.members().0.contains(member);
        if let Some(member) = self.promoting.take_if(is_voter) {
            tracing::info!(vhost = self.name(), %member, "a rebuilt member votes from now on");
        }
    }

    /// Proposes a change of the members; false if that is not possible now.
    fn change_members(&mut self, change: MembershipChange, clock: &TurnClock<'_>) -> bool {
        let Some(axis) = self.member.axis() else { return false };
        let at_us = axis.at(clock.now.monotonic_us);
        let is_proposed = self.member.change_members(change, at_us).is_ok();
        self.has_work |= is_proposed;
        is_proposed
    }

    /// Offers files to members for which the log has no entries any more.
    pub(super) fn offer(&mut self, needs: Vec<MemberId>, frames: &mut Vec<Frame>) {
        let now = Instant::now();
        for member in needs {
            let is_new = self.offered.get(&member).is_none_or(|at| now - *at > OFFER_INTERVAL);
            if is_new {
                self.offered.insert(member, now);
                let index = EntryIndex(self.member.log().first_index().0.saturating_sub(1));
                let term = self.member.log().term_of(index).unwrap_or(Term(0));
                frames.extend(self.member.offer_snapshot(member, index, term));
            }
        }
    }
}
