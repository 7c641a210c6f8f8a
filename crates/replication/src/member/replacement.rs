//! Members that a group gets and loses: those of nodes that have joined, next incarnations in place of members whose
//! replica is lost or must not be used any more, and the end of members whose node is forgotten.
//!
//! The next incarnation is added before the old one leaves, so that the group always knows the newest one. It learns,
//! and is promoted when it is nearly level.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use storage::{EntryIndex, HardState};

use super::Member;
use crate::entry_log::EntryLog;
use crate::frame::LedGroup;
use crate::ids::{MemberId, NodeId};
use crate::limits::{LEVEL_ENTRIES, VOTERS_MAX};
use crate::membership::MembershipChange;
use crate::placement::GroupPlacement;

/// The next step towards a new member on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplacementStep {
    /// Propose this change.
    Change(MembershipChange),
    /// Wait: a change is on its way, or removing the old member now could cost the majority.
    Wait,
    /// Let this member begin with the files of the leader.
    Ready(MemberId),
    /// Give up, for this reason.
    Refused(&'static str),
}

impl<L: EntryLog> Member<L> {
    /// The next step towards a new member on `node`, which has none yet, or whose replica is lost. Its incarnation is one
    /// of `incarnations`.
    #[must_use]
    pub fn replacement(&self, node: NodeId, incarnations: &RangeInclusive<u16>) -> ReplacementStep {
        if self.check_proposal(0).is_err() {
            return match self.engine.is_leader() {
                true => ReplacementStep::Wait,
                false => ReplacementStep::Refused("this member does not lead"),
            };
        }
        if self.engine.has_pending_change() {
            return ReplacementStep::Wait;
        }
        let (voters, learners) = self.members();
        let of_node = voters.iter().chain(&learners).copied().filter(|it| it.node() == node);
        let of_node: BTreeSet<MemberId> = of_node.collect();
        let Some(newest) = of_node.last().copied() else {
            return match voters.len() < VOTERS_MAX {
                true => ReplacementStep::Change(MembershipChange::AddLearner(
                    node.member(*incarnations.start()),
                )),
                false => ReplacementStep::Refused("the group has as many members as it can have"),
            };
        };
        if newest == self.config.me {
            return ReplacementStep::Refused("the leader does not replace itself");
        }
        // One that has acknowledged anything had a log that is lost.
        let is_unused = learners.contains(&newest)
            && incarnations.contains(&newest.incarnation())
            && self.engine.matched(newest.get()).is_none_or(|matched| matched == 0);
        if !is_unused {
            let next = newest.incarnation().checked_add(1);
            let next = next.map(|next| next.max(*incarnations.start()));
            return match next.filter(|next| incarnations.contains(next)) {
                Some(next) => {
                    ReplacementStep::Change(MembershipChange::AddLearner(node.member(next)))
                }
                None => ReplacementStep::Refused("the member has no more incarnations"),
            };
        }
        match of_node.first().copied().filter(|oldest| *oldest != newest) {
            None => ReplacementStep::Ready(newest),
            Some(oldest) if self.can_do_without(oldest) => {
                ReplacementStep::Change(MembershipChange::Remove(oldest))
            }
            Some(_) => ReplacementStep::Wait,
        }
    }

    /// The state with which a member begins that gets the files up to the committed entry `index` from this one.
    #[must_use]
    pub fn state_behind_files(&self, index: EntryIndex) -> HardState {
        let (voters, learners) = self.engine.members();
        HardState {
            term: self.term(),
            vote: 0,
            commit: index,
            voters: voters.to_vec(),
            learners: learners.to_vec(),
            clock: self.log().hard_state().clock,
        }
    }

    /// True if a member is of a node that is forgotten, or is not to have it any more.
    #[must_use]
    pub fn has_gone(&self, placement: &impl GroupPlacement) -> bool {
        let (voters, learners) = self.members();
        let mut members = voters.into_iter().chain(learners);
        members.any(|member| placement.is_gone(member) || placement.is_leaving(member))
    }

    /// The next change that the leader is to propose, if it can now: a learner that is nearly level votes, and a member is
    /// removed whose node is forgotten, or is not to have it any more. The latter not before those vote that come in
    /// its place.
    #[must_use]
    pub fn next_change(&self, placement: &impl GroupPlacement) -> Option<MembershipChange> {
        let may_leave = placement.have_all(&self.members().0);
        let is_gone = |member: MemberId| {
            placement.is_gone(member) || may_leave && placement.is_leaving(member)
        };
        let promotion = self.promotable().map(MembershipChange::Promote);
        promotion.or_else(|| self.removal(is_gone))
    }

    /// The node that is to lead in place of this leader, whose node is not to have a member any more.
    #[must_use]
    pub fn successor_of_leaving(&self, placement: &impl GroupPlacement) -> Option<NodeId> {
        let is_leaving =
            placement.is_leaving(self.config.me) && placement.have_all(&self.members().0);
        let mut successors = self.successors().into_iter().filter(|_| is_leaving);
        successors.find(|member| !placement.is_leaving(*member)).map(MemberId::node)
    }

    /// The notice of this leader for a node that has no voter; none if it has one. A member that is removed is needed until
    /// a majority of those that are left knows of it: until then they ask it for its vote.
    #[must_use]
    pub fn told_to(&self, node: NodeId) -> Option<LedGroup> {
        let (voters, learners) = self.engine.members();
        let has_one = |members: &[u64]| {
            let mut nodes = members.iter().filter_map(|it| MemberId::new(*it)).map(MemberId::node);
            nodes.any(|it| it == node)
        };
        let is_known =
            self.delivered > self.removal_told_behind && self.delivered >= self.first_of_term;
        let without = match is_known && !has_one(learners) {
            true => self.delivered(),
            false => EntryIndex(0),
        };
        let led = LedGroup { group: self.config.group, term: self.term(), without };
        (self.engine.is_leader() && !has_one(voters)).then_some(led)
    }

    /// True if the group does without this member, as its leader tells. What a leader told before this member was added is
    /// not taken for its removal.
    #[must_use]
    pub fn is_left_out(&self, led: &LedGroup, placement: &impl GroupPlacement) -> bool {
        let (voters, learners) = self.engine.members();
        let me = self.me();
        let is_member = voters.contains(&me) || learners.contains(&me);
        let is_told = led.without > EntryIndex(0) && self.term() <= led.term;
        placement.may_be_left_out(self.config.me)
            && !self.engine.is_leader()
            && is_told
            && (!is_member || led.without > self.delivered())
    }

    /// The removal of a member whose node is forgotten, if it can be proposed now: a majority of the others was heard.
    #[must_use]
    pub(super) fn removal(&self, is_gone: impl Fn(MemberId) -> bool) -> Option<MembershipChange> {
        if self.check_proposal(0).is_err() || self.engine.has_pending_change() {
            return None;
        }
        let (voters, learners) = self.members();
        let mut members = voters.into_iter().chain(learners);
        let is_gone = |member: MemberId| member != self.config.me && is_gone(member);
        let gone = members.find(|member| is_gone(*member) && self.can_do_without(*member));
        gone.map(MembershipChange::Remove)
    }

    /// True if the voters that are left without a member have a majority that was heard lately.
    fn can_do_without(&self, member: MemberId) -> bool {
        let (voters, _) = self.engine.members();
        let left: Vec<u64> =
            voters.iter().copied().filter(|voter| *voter != member.get()).collect();
        self.hearing.is_majority(self.me(), &left, self.ticks)
    }

    /// A learner that is nearly level and was heard lately: it can vote.
    #[must_use]
    pub(super) fn promotable(&self) -> Option<MemberId> {
        if self.check_proposal(0).is_err() || self.engine.has_pending_change() {
            return None;
        }
        let (_, learners) = self.engine.members();
        let last = self.engine.last_index();
        let is_level = |learner: &u64| {
            let matched = self.engine.matched(*learner).unwrap_or(0);
            matched > 0
                && last - matched <= LEVEL_ENTRIES
                && self.hearing.is_heard(*learner, self.ticks)
        };
        learners.iter().copied().find(is_level).and_then(MemberId::new)
    }
}
