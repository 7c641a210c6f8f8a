//! Turns: what leaves before the own write, the write, and what leaves after it.

use bytes::Bytes;
use storage::{EntryContent, EntryIndex, HardState, LogError, SavedClock, Term};

use super::pending::{Pending, Turn};
use super::{Committed, Member, QuarantineReason, Role, TurnResult};
use crate::clock::{Axis, KnownClocks, LeaderClock, NewAxis, TurnClock};
use crate::engine::Outgoing;
use crate::entry_log::EntryLog;
use crate::frame::{
    Body, Frame, FrameClass, FrameHeader, FrameKind, encode_append, encode_control,
};
use crate::ids::{MemberId, NodeId};
use crate::limits::{
    COMMIT_HINT_ENTRIES, COMMIT_HINT_TICKS, COMMITTED_BYTES_PER_TURN, SAVED_CLOCK_ERROR_US,
    TOLD_MARGIN_US,
};
use crate::membership::MembershipChange;

impl<L: EntryLog> Member<L> {
    /// Begins a turn: frames that leave before anything is written go to `out`. True if there is something to write;
    /// [`Member::write`] may be left out otherwise.
    ///
    /// # Panics
    /// If a turn is under way.
    pub fn begin(&mut self, clock: &TurnClock<'_>, out: &mut Vec<Frame>) -> bool {
        self.assert_idle();
        self.turned_at = self.ticks;
        let mut pending = Box::new(Pending { is_written: true, ..Pending::default() });
        if self.quarantine.is_none() {
            self.campaign_as_requested();
            self.restore_clock(clock);
            self.begin_axis(clock);
            self.read_clock(clock);
            self.apply_next_change();
        }
        if self.quarantine.is_none() {
            pending.known = self.known_clocks(clock);
            if self.engine.has_ready() {
                let mut work = self.engine.ready();
                let messages = std::mem::take(&mut work.messages);
                work.vote = work.vote.filter(|vote| *vote != (self.saved.term.0, self.saved.vote));
                match work.vote {
                    Some(_) => pending.held = messages,
                    None => self.send(messages, &pending.known, out),
                }
                pending.work = Some(work);
            }
            let vote = pending.work.as_ref().and_then(|work| work.vote);
            pending.hard_state = self.hard_state_to_save(vote);
            let has_entries = pending.work.as_ref().is_some_and(|work| !work.entries.is_empty());
            pending.is_written = pending.hard_state.is_none() && !has_entries;
        }
        if self.quarantine.is_some() {
            pending.is_written = self.is_quarantine_saved;
        }
        let has_writes = !pending.is_written;
        self.turn = Turn::Begun(pending);
        has_writes
    }

    /// Finds the axis that was saved before the process began on the own clock, once: the wall clock may be set later.
    fn restore_clock(&mut self, clock: &TurnClock<'_>) {
        let Some(SavedClock { term, wall_ahead_us }) = self.saved.clock else { return };
        if self.restored.is_none() && self.read_clock.is_none() {
            let axis_us = clock.now.wall_us.saturating_add_signed(wall_ahead_us.saturating_neg());
            let offset_us = Axis::through(axis_us, clock.now.monotonic_us).offset_us();
            let (node, run) = (self.config.me.node(), clock.now.run);
            self.restored = Some(LeaderClock { term, node, run, offset_us });
        }
    }

    /// Reads the axis beside the own wall clock, to save both.
    fn read_clock(&mut self, clock: &TurnClock<'_>) {
        let me = self.config.me.node();
        let newest = self.clocks.last_key_value();
        let Some((term, axis)) =
            newest.and_then(|(term, known)| Some((*term, known.on_own_clock(me, clock)?)))
        else {
            return;
        };
        let axis_us = axis.at(clock.now.monotonic_us);
        // The later reading of the wall clock: what is restored from it is late, not early.
        let wall_ahead_us = Axis::through(clock.wall_after_us, axis_us).offset_us();
        self.read_clock = Some(SavedClock { term, wall_ahead_us });
    }

    /// True if the axis must be saved: it is another one, or the wall clock was set.
    fn is_clock_new(&self) -> bool {
        match (self.read_clock, self.saved.clock) {
            (Some(read), Some(saved)) => {
                let moved_us = read.wall_ahead_us.abs_diff(saved.wall_ahead_us);
                read.term != saved.term || moved_us > SAVED_CLOCK_ERROR_US
            }
            (read, _) => read.is_some(),
        }
    }

    /// A new leader continues the axis, before its first entry leaves.
    fn begin_axis(&mut self, clock: &TurnClock<'_>) {
        let (Some(term), None) = (self.leads, self.axis) else {
            return;
        };
        let me = self.config.me.node();
        let told = self.told.values().filter_map(|told| told.clock);
        let told: Vec<LeaderClock> = self.clocks.values().copied().chain(told).collect();
        let saved = self.told.values().filter_map(|told| told.saved);
        let saved: Vec<LeaderClock> = self.restored.into_iter().chain(saved).collect();
        let known = KnownClocks { told: &told, saved: &saved };
        let (voters, _) = self.members();
        let nodes: Vec<NodeId> = voters.into_iter().map(MemberId::node).collect();
        let last_term = match self.first_of_term {
            0 | 1 => 0,
            first => {
                let before = self.engine.log().term_of(EntryIndex(first - 1));
                before.map_or(0, |term| term.0)
            }
        };
        let floor_us = self.last_axis_us;
        let new = NewAxis::of_new_leader(me, clock, known, last_term, floor_us, &nodes);
        let (run, offset_us) = (clock.now.run, new.axis.offset_us());
        self.axis = Some(new.axis);
        self.new_axis = Some(new);
        self.add_clock(LeaderClock { term, node: me, run, offset_us });
        self.told.clear();
        self.last_axis_us = new.axis.at(clock.now.monotonic_us);
        self.engine.stamp_first_entry(self.last_axis_us);
    }

    /// The axes of earlier leaders on the own clock, to tell candidates. None unless some ask.
    fn known_clocks(&self, clock: &TurnClock<'_>) -> Vec<LeaderClock> {
        if self.asked.is_empty() {
            return Vec::new();
        }
        let (node, run) = (self.config.me.node(), clock.now.run);
        let on_own_clock = |known: &LeaderClock| {
            let axis = known.on_own_clock(node, clock)?;
            let offset_us = axis.offset_us().saturating_sub(TOLD_MARGIN_US);
            Some(LeaderClock { node, run, offset_us, ..*known })
        };
        self.clocks.values().filter_map(on_own_clock).collect()
    }

    /// The hard state, if it must be saved now: a vote leaves, members or axis have changed, or the commit is far.
    fn hard_state_to_save(&self, vote: Option<(u64, u64)>) -> Option<HardState> {
        let (voters, learners) = self.engine.members();
        let are_members_new = voters != self.saved.voters || learners != self.saved.learners;
        let ahead = self.delivered.saturating_sub(self.saved.commit.0);
        let is_old = self.ticks - self.saved_at >= COMMIT_HINT_TICKS;
        let is_commit_far = ahead >= COMMIT_HINT_ENTRIES || (ahead > 0 && is_old);
        let is_clock_new = self.is_clock_new();
        if vote.is_none() && !are_members_new && !is_commit_far && !is_clock_new {
            return None;
        }
        let (term, vote) = vote.unwrap_or((self.saved.term.0, self.saved.vote));
        let commit = EntryIndex(self.delivered.max(self.changed_by));
        let clock = self.read_clock.or(self.saved.clock);
        let (voters, learners) = (voters.to_vec(), learners.to_vec());
        Some(HardState { term: Term(term), vote, commit, voters, learners, clock })
    }

    /// Writes what the turn has to write, durably. After [`LogError::Full`] it may be called again.
    ///
    /// # Errors
    /// [`LogError`]: nothing that waits for the write may leave; after any but `Full` the member is of no use any more.
    ///
    /// # Panics
    /// If no turn is under way.
    pub fn write(&mut self) -> Result<(), LogError> {
        let Turn::Begun(pending) = &mut self.turn else {
            panic!("a turn is begun before it is written");
        };
        if pending.is_written {
            return Ok(());
        }
        let mut has_entries = false;
        let log = self.engine.log_mut();
        if let Some(reason) = &self.quarantine {
            log.disqualify(reason.text())?;
            self.is_quarantine_saved = true;
            pending.is_written = true;
            return Ok(());
        }
        if let Some(state) = pending.hard_state.take() {
            if let Err(error) = log.save_hard_state(&state) {
                pending.hard_state = Some(state);
                return Err(error);
            }
            self.saved = state;
            self.saved_at = self.ticks;
        }
        let entries = pending.work.as_ref().map(|work| work.entries.as_slice()).unwrap_or_default();
        if let Some(first) = entries.first() {
            if first.index <= log.last_index() {
                log.truncate_after(EntryIndex(first.index.0 - 1))?;
            }
            match log.append(entries) {
                Ok(_) => {}
                Err(LogError::Entry(fault)) => {
                    pending.work = None;
                    let text = format!("the leader's entries do not follow the log: {fault}");
                    self.quarantine(QuarantineReason::Diverged(text));
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
            self.last_axis_us = entries.last().map_or(self.last_axis_us, |entry| entry.axis_us);
            has_entries = true;
        }
        pending.is_written = true;
        if has_entries {
            self.forget_clocks();
        }
        Ok(())
    }

    /// Ends the turn: frames that have waited for the write go to `out`.
    ///
    /// # Panics
    /// If no turn is under way, or it is not written.
    pub fn end(&mut self, out: &mut Vec<Frame>) -> TurnResult {
        let Turn::Begun(pending) = std::mem::replace(&mut self.turn, Turn::Idle) else {
            panic!("a turn is begun before it ends");
        };
        let mut result = TurnResult::default();
        if self.quarantine.is_none() {
            assert!(pending.is_written, "a turn is written before it ends");
            self.send(pending.held, &pending.known, out);
            if let Some(work) = pending.work {
                let messages = self.engine.persisted(work);
                self.send(messages, &pending.known, out);
            }
            if self.is_stalled {
                self.engine.step_down();
            }
            self.settle();
            self.deliver(&mut result.committed);
            self.engine.late_ticks();
            self.settle();
        }
        self.asked.clear();
        self.report(&mut result);
        result
    }

    /// Passes on what is committed.
    fn deliver(&mut self, out: &mut Vec<Committed>) {
        let committed = self.engine.committed();
        if committed <= self.delivered {
            return;
        }
        let (from, to) = (EntryIndex(self.delivered + 1), EntryIndex(committed + 1));
        let entries = match self.engine.log().entries(from, to, COMMITTED_BYTES_PER_TURN) {
            Ok(entries) => entries,
            Err(fault) => return self.quarantine(QuarantineReason::Damaged(fault.to_string())),
        };
        for entry in entries {
            let index = entry.index.0;
            if self.engine.changes_members(index) && index != self.changed_by {
                // The next turn saves the members first.
                break;
            }
            let facts = self.proposals.committed(index);
            self.delivered = index;
            self.engine.applied_to(index);
            out.push(Committed { entry, facts });
            self.settle();
        }
        self.engine.log_mut().commit(EntryIndex(self.delivered));
    }

    /// Applies a change of the members that is the next committed entry.
    fn apply_next_change(&mut self) {
        let next = self.delivered + 1;
        let is_due = next <= self.engine.committed() && self.engine.changes_members(next);
        if !is_due || next == self.changed_by {
            return;
        }
        let entries = match self.engine.log().entries(EntryIndex(next), EntryIndex(next + 1), 0) {
            Ok(entries) => entries,
            Err(fault) => return self.quarantine(QuarantineReason::Damaged(fault.to_string())),
        };
        let change = entries.first().and_then(|entry| match &entry.content {
            EntryContent::Membership(change) => MembershipChange::decode(change),
            EntryContent::Records(_) | EntryContent::Empty => None,
        });
        let Some(change) = change else {
            let text = format!("entry {next} changes the members in an unknown way");
            return self.quarantine(QuarantineReason::Diverged(text));
        };
        self.engine.apply_membership(change);
        self.changed_by = next;
        if matches!(change, MembershipChange::Remove(_)) {
            self.removal_told_behind = self.engine.last_index();
        }
        self.settle();
    }

    fn report(&mut self, result: &mut TurnResult) {
        if let Some(fault) = self.engine.take_fault() {
            self.quarantine(QuarantineReason::Damaged(fault.to_string()));
        }
        if self.quarantine.is_some() && !self.is_quarantine_saved {
            // The next turn writes it down before anything follows from it.
            result.has_more = true;
            return;
        }
        let needs = self.engine.take_needs_snapshot();
        result.needs_snapshot = needs.into_iter().filter_map(MemberId::new).collect();
        result.offer = self.offer.take();
        result.axis = self.new_axis.take();
        let role = self.present_role();
        if role != self.told_role {
            self.told_role = role;
            result.role = Some(role);
        }
        if self.quarantine.is_some() && !self.is_quarantine_told {
            self.is_quarantine_told = true;
            result.quarantine.clone_from(&self.quarantine);
        }
        if self.quarantine.is_some() {
            return;
        }
        let (voters, learners) = self.engine.members();
        let is_heard = self.hearing.is_majority(self.me(), voters, self.ticks);
        if matches!(role, Role::Leader { is_active: true, .. }) && is_heard && !self.is_stalled {
            result.durable = self.proposals.take_durable(self.delivered);
        }
        if self.leads.is_some() {
            let is_needed = |member: &&u64| !self.hearing.is_gone(**member, self.ticks);
            let members = voters.iter().chain(learners).filter(is_needed);
            let matched = members.filter_map(|member| self.engine.matched(*member)).min();
            self.needed_from = matched.unwrap_or(0) + 1;
        }
        let needed_from = EntryIndex(self.needed_from);
        self.engine.log_mut().set_needed_from(needed_from);
        result.has_more = self.engine.has_ready()
            || self.engine.committed() > self.delivered
            || self.hard_state_to_save(None).is_some();
    }

    /// Encodes messages. `known` are the axes to tell candidates.
    fn send(&mut self, messages: Vec<Outgoing>, known: &[LeaderClock], out: &mut Vec<Frame>) {
        if self.is_silent() {
            return;
        }
        let leader_clock = self.leads.and_then(|term| self.clocks.get(&term).copied());
        for (to, mut message) in messages {
            let Some(to) = MemberId::new(to) else {
                continue;
            };
            let header = self.header(to);
            match &mut message.body {
                Body::Append(append) => {
                    append.clock = leader_clock;
                    self.part_number += 1;
                    encode_append(header, self.part_number, message.term, append, out);
                    continue;
                }
                Body::Heartbeat { needed_from, clock, .. } => {
                    (*needed_from, *clock) = (self.needed_from, leader_clock);
                }
                Body::VoteAnswer(answer) => {
                    let last_term = self.asked.get(&to.get()).copied().unwrap_or(u64::MAX);
                    answer.clock = known.iter().find(|known| known.term >= last_term).copied();
                    answer.saved = self.restored;
                }
                Body::AppendAnswer { .. }
                | Body::HeartbeatAnswer { .. }
                | Body::Vote(_)
                | Body::TimeoutNow
                | Body::SnapshotOffer { .. } => {}
            }
            let head = encode_control(header, &message);
            out.push(Frame { to, class: FrameClass::Control, head, tail: Bytes::new() });
        }
    }

    /// Header of a frame to a member; kind and length are set when it is encoded.
    pub(super) fn header(&self, to: MemberId) -> FrameHeader {
        FrameHeader {
            kind: FrameKind::Part,
            length: 0,
            bare: 0,
            crc: 0,
            cluster: self.config.cluster,
            group: self.config.group,
            from: self.config.me,
            to,
        }
    }
}
