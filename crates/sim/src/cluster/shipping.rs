//! A leader helps members that lack files, as the server's replicas do: it changes the members, and seals files.

use replication::{
    EntryLog as _, GroupPlacement as _, MemberId, MembershipChange, NodeId, ReplacementStep, Role,
};
use storage::{EntryIndex, Term};

use super::ids::number_of;
use super::placement::Hasty;
use super::process::{Context, Process, Service};
use super::transfer::{Need, Preparation, Prepared};
use crate::faults::sabotage::Sabotage;
use crate::plan::MEMBERS_MIN;

/// Time between two offers of files to a member, in microseconds.
const OFFER_US: u64 = 1_000_000;

impl Process {
    /// True if files can be prepared now: a new leader may depend on a member that is behind.
    pub(crate) fn can_prepare(&self, need: Need) -> bool {
        match need {
            Need::Behind => matches!(self.member.role(), Role::Leader { .. }),
            Need::Replacement => matches!(self.service, Service::Leads(_)),
        }
    }

    /// A node asks for files.
    pub(crate) fn prepare(&mut self, node: NodeId, need: Need, ctx: &mut Context<'_>) {
        if self.can_prepare(need) {
            self.preparations.retain(|other| other.node != node);
            self.preparations.push(Preparation { node, need, sealed: None });
            if !self.is_writing {
                self.turn(ctx);
            }
        }
    }

    /// A member has the files up to an entry.
    pub(crate) fn shipped(&mut self, member: MemberId, index: EntryIndex, ctx: &mut Context<'_>) {
        if !self.is_writing {
            self.member.shipped(member, index);
            self.turn(ctx);
        }
    }

    /// Goes on with preparations, and with learners that can vote.
    pub(super) fn step_members(&mut self, ctx: &mut Context<'_>) {
        for preparation in std::mem::take(&mut self.preparations) {
            if self.can_prepare(preparation.need)
                && let Some(preparation) = self.step_preparation(preparation, ctx)
            {
                self.preparations.push(preparation);
            }
        }
        if !matches!(self.service, Service::Leads(_)) {
            return;
        }
        self.tell_removal(ctx);
        if std::mem::take(&mut self.looks_at_members) {
            let stays = self.sabotage == Some(Sabotage::LeaverKeepsLead);
            if let Some(successor) = self.member.successor_of_leaving(ctx.placement)
                && !stays
            {
                self.begin_hand_over(successor, ctx);
            }
            if let Some(change) = self.next_change(ctx) {
                self.change_members(change, ctx);
            }
        }
    }

    fn tell_removal(&mut self, ctx: &mut Context<'_>) {
        let Some(axis) = self.member.axis() else { return };
        if let Some(index) = self.member.tell_removal(axis.at(ctx.reading.monotonic_us)) {
            self.proposed(index, ctx);
        }
    }

    fn proposed(&mut self, index: EntryIndex, ctx: &mut Context<'_>) {
        let key = (index.0, self.member.term().0);
        ctx.book.ledger.proposed_at.insert(key, ctx.now_us);
        self.has_work = true;
    }

    fn next_change(&self, ctx: &mut Context<'_>) -> Option<MembershipChange> {
        let change = match self.sabotage {
            Some(Sabotage::LeaverRemovedEarly) => self.member.next_change(&Hasty(ctx.placement)),
            _ => self.member.next_change(ctx.placement),
        }?;
        if let MembershipChange::Remove(member) = change
            && !ctx.placement.is_gone(member)
        {
            let (voters, _) = self.member.members();
            let left = voters.into_iter().filter(|voter| *voter != member).count();
            if left < MEMBERS_MIN {
                ctx.book.violation(format!("{left} voters are left when {member} leaves"));
            }
        }
        Some(change)
    }

    /// Looks for members that are to leave, and for learners that can vote.
    pub(crate) fn look_at_members(&mut self, ctx: &mut Context<'_>) {
        self.looks_at_members = true;
        if !self.is_writing {
            self.turn(ctx);
        }
    }

    /// The preparation, if it is not over.
    fn step_preparation(
        &mut self,
        mut preparation: Preparation,
        ctx: &mut Context<'_>,
    ) -> Option<Preparation> {
        let Preparation { node, need, .. } = preparation;
        // None for a node that is not to have a replica.
        let incarnations = ctx.placement.incarnations(node);
        let member = match need {
            Need::Replacement => match self.member.replacement(node, &incarnations?) {
                ReplacementStep::Ready(member) => member,
                ReplacementStep::Wait => return Some(preparation),
                ReplacementStep::Refused(why) => {
                    ctx.story.tell(ctx.now_us, format_args!("no files for node {node}: {why}"));
                    return None;
                }
                ReplacementStep::Change(change) => {
                    self.change_members(change, ctx);
                    return Some(preparation);
                }
            },
            Need::Behind => self.members().into_iter().filter(|it| it.node() == node).max()?,
        };
        let log = &mut self.member.log_mut().log;
        let sealed = match preparation.sealed {
            Some(sealed) => sealed,
            None => match log.seal() {
                Ok(sealed) => *preparation.sealed.insert(sealed),
                Err(error) if error.is_full() => return None,
                Err(error) => {
                    self.exit(&error, ctx);
                    return None;
                }
            },
        };
        let log = &self.member.log().log;
        let shipment = match need {
            Need::Behind => log.sealed_up_to_applied().expect("the entry was applied from there"),
            Need::Replacement if self.applier.applied() < sealed => return Some(preparation),
            Need::Replacement => log.sealed_up_to(sealed),
        };
        let Some(shipment) = shipment else {
            preparation.sealed = None;
            return Some(preparation);
        };
        let state = self.member.state_behind_files(shipment.plan().index);
        self.prepared.push(Prepared { need, member, shipment, state });
        None
    }

    fn change_members(&mut self, change: MembershipChange, ctx: &mut Context<'_>) {
        let Some(axis) = self.member.axis() else { return };
        let at_us = axis.at(ctx.reading.monotonic_us);
        if let Ok(index) = self.member.change_members(change, at_us) {
            self.proposed(index, ctx);
            let number = ctx.number;
            ctx.story.tell(ctx.now_us, format_args!("node {number} proposes {change:?}"));
        }
    }

    /// Offers files to members for which the log has no entries any more.
    pub(super) fn offer(&mut self, needs: &[MemberId], ctx: &mut Context<'_>) {
        for member in needs {
            let last_us = self.offered.get(member).copied();
            if last_us.is_none_or(|at_us| ctx.now_us - at_us > OFFER_US) {
                self.offered.insert(*member, ctx.now_us);
                let log = self.member.log();
                let index = EntryIndex(log.first_index().0.saturating_sub(1));
                let term = log.term_of(index).unwrap_or_default();
                let to = number_of(*member);
                ctx.story.tell(
                    ctx.now_us,
                    format_args!("node {} offers files up to {index} to node {to}", ctx.number),
                );
                ctx.frames.extend(self.member.offer_snapshot(*member, index, term));
            }
        }
    }

    /// True if files that end with this entry may take the place of the replica.
    pub(crate) fn is_behind(&self, index: EntryIndex, term: Term) -> bool {
        self.service == Service::Follows && self.member.is_behind(index, term)
    }

    /// Members that vote or learn.
    pub(crate) fn members(&self) -> Vec<MemberId> {
        let (mut members, learners) = self.member.members();
        members.extend(learners);
        members
    }
}
