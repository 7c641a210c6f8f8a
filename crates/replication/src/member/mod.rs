//! One member of a group: its log, its engine, its links' frames, its axis of time.

mod hand_over;
mod hearing;
mod pending;
mod proposals;
mod propose;
mod receive;
mod replacement;
mod turn;
mod types;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use storage::{EntryContent, EntryError, EntryIndex, HardState, SavedClock, Term};

use self::hearing::Hearing;
use self::pending::Turn;
use self::proposals::Proposals;
use self::types::CampaignRequest;
use crate::clock::{Axis, LeaderClock, NewAxis};
use crate::engine::{Engine, EngineRole};
use crate::entry_log::EntryLog;
use crate::frame::Assembly;
use crate::ids::{MemberId, NodeId};
use crate::limits::{
    CAMPAIGNS_MAX, COMMITTED_BYTES_PER_TURN, HEARTBEAT_TICKS, IDLE_TURN_TICKS, RANK_TICKS,
    TOLD_TICKS,
};

pub use hand_over::{HandOver, HandOverStep};
pub use replacement::ReplacementStep;
pub use types::{
    BeginError, CommitNews, Committed, MemberConfig, ProposeError, Proposed, QuarantineReason,
    Role, SnapshotOffer, TurnResult,
};

/// A campaign after the loss of a leader.
#[derive(Clone, Copy, Debug)]
struct Campaign {
    /// Ticks until it begins.
    wait: u32,
    /// Campaigns that may follow.
    left: u32,
}

/// The axis as a voter has told it.
#[derive(Clone, Copy, Debug)]
struct ReportedAxis {
    clock: Option<LeaderClock>,
    saved: Option<LeaderClock>,
    tick: u64,
}

/// One member of a group. See the [crate](crate) for how it is driven.
///
/// Ticks, frames and proposals come between two turns. A turn is [`begin`](Self::begin), [`write`](Self::write),
/// [`end`](Self::end), in this order; anything else within one panics.
pub struct Member<L: EntryLog> {
    config: MemberConfig,
    engine: Engine<L>,
    turn: Turn,
    /// Messages of other nodes that are not whole.
    assemblies: BTreeMap<NodeId, Assembly>,
    /// Number of the last message that was cut into parts.
    part_number: u64,
    /// Ticks since the beginning.
    ticks: u64,
    /// The tick at which the last turn began.
    turned_at: u64,
    /// Term that this member leads.
    leads: Option<u64>,
    hearing: Hearing,
    proposals: Proposals,
    campaign: Option<Campaign>,
    /// The request of the leader to campaign in its place, until the next turn.
    requested: Option<CampaignRequest>,
    /// Clocks of the leaders of terms that are not before that of the last written entry.
    clocks: BTreeMap<u64, LeaderClock>,
    /// Members that ask for a vote in this turn, with the term of their last entry.
    asked: BTreeMap<u64, u64>,
    /// Axes that voters have told, one for each node.
    told: BTreeMap<NodeId, ReportedAxis>,
    /// The axis that was saved before the process began, on the own clock; none before the first turn.
    restored: Option<LeaderClock>,
    /// The axis beside the own wall clock, as the last turn knew it.
    read_clock: Option<SavedClock>,
    /// The axis while this member leads.
    axis: Option<Axis>,
    new_axis: Option<NewAxis>,
    /// Time of the newest entry.
    last_axis_us: u64,
    /// The last change of the members that has an effect: they are saved before it is passed on as committed, because the
    /// log may note on disk what is.
    changed_by: u64,
    /// Last entry of the log when the last removal of a member was applied: an entry behind it tells its receivers that the
    /// removal is committed.
    removal_told_behind: u64,
    /// Last entry that was passed on.
    delivered: u64,
    /// First entry of the present term, at its leader.
    first_of_term: u64,
    /// First entry that the leader's members need.
    needed_from: u64,
    saved: HardState,
    /// Tick at which the hard state was saved last.
    saved_at: u64,
    told_role: Role,
    offer: Option<SnapshotOffer>,
    quarantine: Option<QuarantineReason>,
    /// True once the log says so, too.
    is_quarantine_saved: bool,
    is_quarantine_told: bool,
    is_stalled: bool,
}

impl<L: EntryLog> fmt::Debug for Member<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("me", &self.config.me)
            .field("engine", &self.engine)
            .field("delivered", &self.delivered)
            .finish_non_exhaustive()
    }
}

impl<L: EntryLog> Member<L> {
    /// Begins with a log that was opened: entries up to the commit of its hard state are applied.
    ///
    /// # Errors
    /// [`BeginError`].
    pub fn open(config: MemberConfig, log: L) -> Result<Self, BeginError> {
        let saved = log.hard_state().clone();
        if saved.voters.is_empty() {
            // A member that joins begins with the founders, or with the members of the files that it got.
            return Err(BeginError::Contradiction("nobody votes in the group".to_owned()));
        }
        let applied = saved.commit.0;
        let (first, last) = (log.first_index().0, log.last_index().0);
        if applied + 1 < first || applied > last {
            let text = format!("entry {applied} is committed, and there are {first} to {last}");
            return Err(BeginError::Contradiction(text));
        }
        let last_term = log.term_of(EntryIndex(last))?;
        if last_term > saved.term {
            let text = format!("entry {last} is of term {last_term}, and {} was saved", saved.term);
            return Err(BeginError::Contradiction(text));
        }
        let memberships = changes_behind(&log, applied, last)?;
        // A change is proposed when the one before is applied: its entry proves that the one before is committed.
        let committed = memberships.iter().nth_back(1).copied().unwrap_or(applied);
        let newest =
            (last >= first).then(|| log.entries(EntryIndex(last), EntryIndex(last + 1), 0));
        let newest = newest.transpose()?.unwrap_or_default();
        let last_axis_us = newest.first().map_or(0, |entry| entry.axis_us);
        let me = config.me.get();
        let mut engine = Engine::new(me, config.seed, log, applied, committed, memberships)
            .map_err(|error| BeginError::Contradiction(error.0))?;
        engine.set_tells_commits(config.tells_commits);
        Ok(Self {
            config,
            engine,
            turn: Turn::Idle,
            assemblies: BTreeMap::new(),
            part_number: 0,
            ticks: 0,
            turned_at: 0,
            leads: None,
            hearing: Hearing::default(),
            proposals: Proposals::default(),
            campaign: None,
            requested: None,
            clocks: BTreeMap::new(),
            asked: BTreeMap::new(),
            told: BTreeMap::new(),
            restored: None,
            read_clock: None,
            axis: None,
            new_axis: None,
            last_axis_us,
            changed_by: 0,
            removal_told_behind: 0,
            delivered: applied,
            first_of_term: 0,
            needed_from: 0,
            saved,
            saved_at: 0,
            told_role: Role::Follower { leader: None },
            offer: None,
            quarantine: None,
            is_quarantine_saved: false,
            is_quarantine_told: false,
            is_stalled: false,
        })
    }

    /// Notes how many ticks the driver has counted before the first one of this member. Members with the same count act at
    /// the same ticks.
    pub fn begin_at_tick(&mut self, ticks: u64) {
        (self.ticks, self.turned_at) = (ticks, ticks);
    }

    /// A tick, every 50 ms of real time. A thread that has slept gives at most two at once, so that it does not jump
    /// to an election. False if no turn is needed because of it: a member without work has one every
    /// [`IDLE_TURN_TICKS`] at least.
    pub fn tick(&mut self) -> bool {
        self.assert_idle();
        let is_quiet = self.quiet_ticks() > 0;
        self.ticks += 1;
        let ticks = self.ticks;
        self.told.retain(|_, told| ticks - told.tick <= TOLD_TICKS);
        if self.is_silent() {
            return true;
        }
        self.tick_campaign();
        let gives_up = self.gives_up();
        let has_effect = self.engine.tick(self.ticks) || gives_up || self.campaign.is_some();
        self.settle();
        let needs_turn = has_effect || self.ticks >= self.turned_at + IDLE_TURN_TICKS;
        assert!(!is_quiet || !needs_turn, "a quiet tick needs no turn");
        needs_turn
    }

    /// The next ticks that surely have no effect on others and need no turn, if nothing else happens to this member. A
    /// driver may give them later, before the next input.
    #[must_use]
    pub fn quiet_ticks(&self) -> u64 {
        if self.is_silent() || self.campaign.is_some() {
            return 0;
        }
        let to_idle_turn = (self.turned_at + IDLE_TURN_TICKS).saturating_sub(self.ticks + 1);
        to_idle_turn.min(self.engine.quiet_ticks(self.ticks))
    }

    /// Steps down at a heartbeat if no majority was heard for an election time: the engine asks only once in that time, and
    /// clients wait meanwhile. True if it has.
    fn gives_up(&mut self) -> bool {
        let is_beat = self.ticks.is_multiple_of(HEARTBEAT_TICKS as u64);
        let (voters, _) = self.engine.members();
        let gives_up = is_beat
            && self.engine.is_leader()
            && self.hearing.is_cut_off(self.me(), voters, self.ticks);
        if gives_up {
            self.engine.step_down();
        }
        gives_up
    }

    fn tick_campaign(&mut self) {
        let Some(campaign) = self.campaign.take() else {
            return;
        };
        if self.engine.leader() != 0 {
            return;
        }
        let Campaign { wait, left } = campaign;
        if wait > 0 {
            self.campaign = Some(Campaign { wait: wait - 1, left });
            return;
        }
        self.engine.campaign();
        if left > 0 {
            let (voters, _) = self.engine.members();
            let wait = u32::try_from(voters.len()).expect("few voters") * RANK_TICKS;
            self.campaign = Some(Campaign { wait, left: left - 1 });
        }
    }

    /// Notes that the process of a member is gone: its node has reset the link; or that the node is silent for the shortest
    /// election time. If it was the leader, this member forgets it, and campaigns after 50 ms for each voter before it, as
    /// all others do. Voters that hear the leader refuse.
    pub fn peer_lost(&mut self, member: MemberId) {
        self.assert_idle();
        self.link_lost(member);
        self.hearing.lost(member.get());
        if self.engine.leader() != member.get() || self.is_silent() {
            return;
        }
        self.engine.forget_leader();
        let (voters, _) = self.engine.members();
        let others = voters.iter().filter(|voter| **voter != member.get());
        if let Some(rank) = others.clone().position(|voter| *voter == self.me()) {
            let wait = u32::try_from(rank).expect("few voters") * RANK_TICKS;
            self.campaign = Some(Campaign { wait, left: CAMPAIGNS_MAX - 1 });
        }
        if self.campaign.is_some_and(|campaign| campaign.wait == 0) {
            self.tick_campaign();
        }
        self.settle();
    }

    /// Notes that a link to a member was lost or begins anew, and frames perhaps with it: a leader asks what the member
    /// has before it continues.
    pub fn link_lost(&mut self, member: MemberId) {
        self.assert_idle();
        self.assemblies.remove(&member.node());
        self.engine.unreachable(member.get());
    }

    /// Makes this member lead only if no other can: it is being rebuilt, or has much to apply.
    pub fn set_reluctant(&mut self, is_reluctant: bool) {
        self.engine.set_reluctant(is_reluctant);
    }

    /// Notes that the disk does not answer, or has not answered for long: the member steps down, and
    /// neither ticks nor tells anything durable until [`Member::recovered`]. May come within a turn.
    pub fn stalled(&mut self) {
        self.is_stalled = true;
        if matches!(self.turn, Turn::Idle) {
            self.engine.step_down();
            self.settle();
        }
    }

    /// Notes that the disk answers again.
    pub fn recovered(&mut self) {
        self.is_stalled = false;
    }

    /// Ends the part of this replica in its group: it neither votes nor leads nor acknowledges, until it is rebuilt
    /// as another incarnation. The next turn writes that down, for later processes, and tells. The first reason counts.
    pub fn quarantine(&mut self, reason: QuarantineReason) {
        if self.quarantine.is_none() {
            self.quarantine = Some(reason);
            self.leads = None;
            self.axis = None;
            self.proposals.clear();
        }
    }

    /// Notes that a member has the files up to `index`: the leader continues behind them.
    pub fn shipped(&mut self, member: MemberId, index: EntryIndex) {
        self.assert_idle();
        self.engine.shipped(member.get(), index.0);
    }

    /// The role, as the last turn told it.
    #[must_use]
    pub fn role(&self) -> Role {
        self.told_role
    }

    /// Newest term that this member has seen.
    #[must_use]
    pub fn term(&self) -> Term {
        Term(self.engine.term())
    }

    /// The id of this member.
    #[must_use]
    pub fn id(&self) -> MemberId {
        self.config.me
    }

    /// The leader, if one is known.
    #[must_use]
    pub fn leader(&self) -> Option<MemberId> {
        MemberId::new(self.engine.leader())
    }

    /// The axis while this member leads.
    #[must_use]
    pub fn axis(&self) -> Option<Axis> {
        self.axis
    }

    /// Last entry that was passed on as committed.
    #[must_use]
    pub fn delivered(&self) -> EntryIndex {
        EntryIndex(self.delivered)
    }

    /// Last entry of the log, written or not.
    #[must_use]
    pub fn last_index(&self) -> EntryIndex {
        EntryIndex(self.engine.last_index())
    }

    /// Members that vote and members that learn.
    #[must_use]
    pub fn members(&self) -> (Vec<MemberId>, Vec<MemberId>) {
        let ids = |ids: &[u64]| ids.iter().copied().filter_map(MemberId::new).collect();
        let (voters, learners) = self.engine.members();
        (ids(voters), ids(learners))
    }

    /// True if this member votes, as far as it knows.
    #[must_use]
    pub fn is_voter(&self) -> bool {
        self.engine.members().0.contains(&self.me())
    }

    /// True if this member leads and has heard lately from `member`, or is it itself.
    #[must_use]
    pub fn is_heard(&self, member: MemberId) -> bool {
        let is_me = member == self.config.me;
        self.engine.is_leader() && (is_me || self.hearing.is_heard(member.get(), self.ticks))
    }

    /// Last entry that a member is known to have. `None` if this member does not lead, or the other is none.
    #[must_use]
    pub fn matched(&self, member: MemberId) -> Option<EntryIndex> {
        self.engine.matched(member.get()).filter(|_| self.engine.is_leader()).map(EntryIndex)
    }

    /// True if files up to this committed entry may take the place of the log. A log that has the entry itself has all
    /// before it, too, and perhaps more that was acknowledged; entries behind another one in its place are committed
    /// nowhere.
    #[must_use]
    pub fn is_behind(&self, index: EntryIndex, term: Term) -> bool {
        match self.log().term_of(index) {
            Ok(own) => own != term,
            Err(EntryError::Unavailable { .. }) => true,
            Err(
                EntryError::Compacted { .. }
                | EntryError::Damaged { .. }
                | EntryError::Fault(_)
                | EntryError::Io { .. },
            ) => false,
        }
    }

    /// Reason for which the replica must be rebuilt.
    #[must_use]
    pub fn quarantine_reason(&self) -> Option<&QuarantineReason> {
        self.quarantine.as_ref()
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> &L {
        self.engine.log()
    }

    /// The log, for compactions, segments and shipments: entries and hard state are the member's.
    pub fn log_mut(&mut self) -> &mut L {
        self.engine.log_mut()
    }

    /// Ends the member and gives its log back.
    #[must_use]
    pub fn into_log(self) -> L {
        self.engine.into_log()
    }

    fn me(&self) -> u64 {
        self.config.me.get()
    }

    /// True if nothing may leave this member.
    fn is_silent(&self) -> bool {
        self.quarantine.is_some() || self.is_stalled
    }

    fn assert_idle(&self) {
        assert!(matches!(self.turn, Turn::Idle), "a turn is under way");
    }

    /// After everything that may have changed term or role.
    fn settle(&mut self) {
        let leads = self.engine.is_leader().then(|| self.engine.term());
        if leads == self.leads {
            return;
        }
        if self.leads.is_some() && self.axis.is_none() {
            // Elected and deposed within one turn: it has begun no axis, and its first entry goes into the log all the same.
            self.engine.stamp_first_entry(self.last_axis_us);
        }
        self.proposals.clear();
        self.hearing.begin(self.ticks);
        (self.axis, self.new_axis) = (None, None);
        self.leads = leads;
        if leads.is_some() {
            self.first_of_term = self.engine.last_index();
        }
    }

    /// True if a turn has something to send, to write, to pass on or to tell.
    fn has_news(&self) -> bool {
        self.engine.has_ready()
            || self.engine.lacks_entries()
            || self.delivered < self.engine.last_index()
            || self.proposals.has_untold()
            || self.present_role() != self.told_role
            || self.quarantine.is_some() != self.is_quarantine_told
    }

    /// The role now.
    fn present_role(&self) -> Role {
        if self.quarantine.is_some() {
            return Role::Quarantined;
        }
        match self.engine.role() {
            EngineRole::Leader => {
                let is_active = self.axis.is_some() && self.delivered >= self.first_of_term;
                Role::Leader { term: self.term(), is_active }
            }
            EngineRole::Candidate => Role::Candidate,
            EngineRole::Follower => Role::Follower { leader: self.leader() },
        }
    }
}

/// Entries behind `applied` that change the members.
fn changes_behind<L: EntryLog>(
    log: &L,
    applied: u64,
    last: u64,
) -> Result<BTreeSet<u64>, BeginError> {
    let mut changes = BTreeSet::new();
    let mut from = applied + 1;
    while from <= last {
        let entries =
            log.entries(EntryIndex(from), EntryIndex(last + 1), COMMITTED_BYTES_PER_TURN)?;
        for entry in &entries {
            if matches!(entry.content, EntryContent::Membership(_)) {
                changes.insert(entry.index.0);
            }
            from = entry.index.0 + 1;
        }
        assert!(!entries.is_empty(), "the log reads at least one entry");
    }
    Ok(changes)
}
