//! The consensus engine, `raft` of TiKV, behind guards.
//!
//! [`Member`](crate::Member) is its only user. A panic in the engine means that an assumption of it is broken; it is
//! never caught. The guards, each in one place:
//!
//! 1. A leader that applies its own removal steps down in the same turn ([`Engine::apply_membership`]): the engine
//!    looks for its own progress afterwards, and panics.
//! 2. A turn is persisted as a whole before the engine goes on, messages of a leader leave before its own write, all
//!    others after it ([`Engine::ready`], [`Engine::persisted`]). The engine never sees a snapshot: files are
//!    shipped beside it.
//! 3. Election times come from our seed ([`Engine::settle`], [`Timeouts`]).
//! 4. Only a leader proposes, one entry at a time, and only what cannot be dropped ([`Engine::refusal`]); proposals of
//!    others have no encoding, and cannot be forwarded.
//! 5. Messages have an encoding of our own (`frame`), and what contradicts the own log is found before the
//!    engine would end the process for it ([`Engine::contradiction`]).

mod convert;
mod store;
mod timeouts;

use std::collections::BTreeSet;
use std::fmt;

use raft::eraftpb::{ConfChange, ConfChangeType, Entry, Message as RaftMessage, MessageType};
use raft::{Config, RawNode, Ready, StateRole};
use storage::{EntryContent, EntryError, LogEntry};

use self::store::Store;
use self::timeouts::Timeouts;
use crate::entry_log::EntryLog;
use crate::frame::{Body, Message};
use crate::limits::{
    APPEND_BYTES_MAX, COMMITTED_PER_READY, ELECTION_TICKS_MAX, ELECTION_TICKS_MIN, HEARTBEAT_TICKS,
    IN_FLIGHT_MAX, RELUCTANT_FACTOR,
};
use crate::member::CommitNews;
use crate::membership::MembershipChange;

/// Role of a member, as the engine sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EngineRole {
    Leader,
    Follower,
    Candidate,
}

/// Reason for which a proposal would be dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// Another member leads, or none.
    NotLeading,
    /// Leadership is being handed over.
    Transferring,
}

/// A message and its receiver.
pub(crate) type Outgoing = (u64, Message);

/// Work of a turn.
pub(crate) struct Work {
    ready: Ready,
    /// Messages that leave before anything is written.
    pub(crate) messages: Vec<Outgoing>,
    /// Entries to append, perhaps over a suffix that they contradict.
    pub(crate) entries: Vec<LogEntry>,
    /// Term and vote, if they or the commit have changed.
    pub(crate) vote: Option<(u64, u64)>,
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "work with {} entries, vote {:?}", self.entries.len(), self.vote)
    }
}

/// Reason for which the engine cannot begin with a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CannotBegin(pub(crate) String);

/// Members that vote and members that learn, in ascending order.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Members {
    voters: Vec<u64>,
    learners: Vec<u64>,
}

impl Members {
    fn of<L: EntryLog>(raw: &RawNode<Store<L>>) -> Self {
        let conf = raw.raft.prs().conf().to_conf_state();
        let (mut voters, mut learners) = (conf.voters, conf.learners);
        voters.sort_unstable();
        learners.sort_unstable();
        Self { voters, learners }
    }
}

/// The engine of one member.
pub(crate) struct Engine<L: EntryLog> {
    raw: RawNode<Store<L>>,
    members: Members,
    me: u64,
    timeouts: Timeouts,
    is_reluctant: bool,
    /// Number of the last tick.
    tick_number: u64,
    /// Ticks that wait until unwritten entries are written.
    deferred_ticks: u32,
    tells_commits: CommitNews,
    /// The newest commit of which a message to all was made.
    told_commit: u64,
}

impl<L: EntryLog> fmt::Debug for Engine<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (role, term) = (self.role(), self.term());
        f.debug_struct("Engine").field("role", &role).field("term", &term).finish_non_exhaustive()
    }
}

impl<L: EntryLog> Engine<L> {
    /// Begins with a log of which the entries up to `applied` are applied, and those up to `committed` are known to
    /// be committed. `memberships` are the entries behind `applied` that change the members.
    pub(crate) fn new(
        me: u64,
        seed: u64,
        log: L,
        applied: u64,
        committed: u64,
        memberships: BTreeSet<u64>,
    ) -> Result<Self, CannotBegin> {
        let config = Config {
            id: me,
            election_tick: ELECTION_TICKS_MIN,
            heartbeat_tick: HEARTBEAT_TICKS,
            applied,
            max_size_per_msg: APPEND_BYTES_MAX,
            max_inflight_msgs: IN_FLIGHT_MAX,
            check_quorum: true,
            pre_vote: true,
            min_election_tick: ELECTION_TICKS_MIN,
            // The engine asserts that the time we set is below it.
            max_election_tick: ELECTION_TICKS_MAX * RELUCTANT_FACTOR + 1,
            // The member counts what is not committed, so that a proposal is never dropped (guard 4).
            max_uncommitted_size: raft::NO_LIMIT,
            max_committed_size_per_ready: COMMITTED_PER_READY,
            ..Config::default()
        };
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let raw = RawNode::new(&config, Store::new(log, committed, memberships), &logger)
            .map_err(|error| CannotBegin(error.to_string()))?;
        let timeouts = Timeouts::new(seed);
        let members = Members::of(&raw);
        let mut engine = Self {
            raw,
            members,
            me,
            timeouts,
            is_reluctant: false,
            tick_number: 0,
            deferred_ticks: 0,
            tells_commits: CommitNews::AtOnce,
            told_commit: 0,
        };
        engine.settle();
        Ok(engine)
    }

    pub(crate) fn log(&self) -> &L {
        &self.raw.store().log
    }

    pub(crate) fn log_mut(&mut self) -> &mut L {
        &mut self.raw.mut_store().log
    }

    pub(crate) fn into_log(self) -> L {
        self.raw.raft.r.raft_log.store.log
    }

    pub(crate) fn role(&self) -> EngineRole {
        match self.raw.raft.state {
            StateRole::Leader => EngineRole::Leader,
            StateRole::Follower => EngineRole::Follower,
            StateRole::Candidate | StateRole::PreCandidate => EngineRole::Candidate,
        }
    }

    pub(crate) fn is_leader(&self) -> bool {
        self.role() == EngineRole::Leader
    }

    pub(crate) fn term(&self) -> u64 {
        self.raw.raft.term
    }

    /// The leader of this term, 0 if none is known.
    pub(crate) fn leader(&self) -> u64 {
        self.raw.raft.leader_id
    }

    /// Last entry, written or not.
    pub(crate) fn last_index(&self) -> u64 {
        self.raw.raft.raft_log.last_index()
    }

    /// Last entry that is committed and written.
    pub(crate) fn committed(&self) -> u64 {
        self.raw.raft.raft_log.committed.min(self.raw.raft.raft_log.persisted)
    }

    /// Members that vote and members that learn, in ascending order.
    pub(crate) fn members(&self) -> (&[u64], &[u64]) {
        debug_assert_eq!(self.members, Members::of(&self.raw), "only entries change the members");
        (&self.members.voters, &self.members.learners)
    }

    /// Last entry that a member is known to have, at the leader.
    pub(crate) fn matched(&self, member: u64) -> Option<u64> {
        self.raw.raft.prs().get(member).map(|progress| progress.matched)
    }

    /// Guard 3, after everything that may have changed the term, the role or the leader.
    fn settle(&mut self) {
        let raft = &mut self.raw.raft;
        let ticks =
            self.timeouts.ticks((raft.term, raft.state as u8, raft.leader_id), self.is_reluctant);
        raft.set_randomized_election_timeout(ticks);
    }

    /// Sets when this member, as the leader, tells the others of commits.
    pub(crate) fn set_tells_commits(&mut self, when: CommitNews) {
        self.tells_commits = when;
        self.raw.skip_bcast_commit(when == CommitNews::AtTick);
    }

    /// Tells the others of the commit, if no message to all has done so. False if there is nothing to tell. A member
    /// that does not get it learns the commit from a heartbeat.
    fn tell_commit(&mut self) -> bool {
        let has_news = self.has_untold_commit();
        if has_news {
            self.told_commit = self.raw.raft.raft_log.committed;
            self.raw.raft.bcast_append();
        }
        has_news
    }

    fn has_untold_commit(&self) -> bool {
        self.tells_commits == CommitNews::AtTick
            && self.is_leader()
            && self.raw.raft.raft_log.committed > self.told_commit
    }

    /// Makes this member campaign only when no other has for long.
    pub(crate) fn set_reluctant(&mut self, is_reluctant: bool) {
        if std::mem::replace(&mut self.is_reluctant, is_reluctant) != is_reluctant {
            self.settle();
        }
    }

    /// A tick. While entries are unwritten, it waits for the end of the turn: a campaign must not begin on entries that
    /// a crash could take. False if the next turn has nothing to do because of it.
    ///
    /// A leader whose heartbeat is due waits with it for a `number` that [`HEARTBEAT_TICKS`] divides: all groups of a node
    /// send theirs at once, so that these share the wake-ups at both ends.
    pub(crate) fn tick(&mut self, number: u64) -> bool {
        self.tick_number = number;
        if self.has_unwritten() {
            self.deferred_ticks = (self.deferred_ticks + 1).min(2);
            return true;
        }
        let has_told = self.tell_commit();
        let is_led = self.is_leader();
        let is_beat_due = self.raw.raft.heartbeat_elapsed() + 1 >= HEARTBEAT_TICKS;
        if is_led && is_beat_due && !number.is_multiple_of(HEARTBEAT_TICKS as u64) {
            return has_told;
        }
        let has_effect = self.raw.tick();
        if has_effect && !is_led {
            self.timeouts.redraw();
        }
        self.settle();
        has_effect || has_told
    }

    /// The next ticks after this number that surely have no effect, if nothing else happens.
    pub(crate) fn quiet_ticks(&self, number: u64) -> u64 {
        if self.has_unwritten() || self.has_untold_commit() {
            return 0;
        }
        let raft = &self.raw.raft;
        let (timeout, to_beat) = match self.is_leader() {
            // A leader asks whether a majority has answered.
            true => {
                let beats = HEARTBEAT_TICKS as u64;
                (raft.election_timeout(), beats - 1 - number % beats)
            }
            false => (raft.randomized_election_timeout(), u64::MAX),
        };
        to_beat.min(timeout.saturating_sub(raft.election_elapsed + 1) as u64)
    }

    fn has_unwritten(&self) -> bool {
        !self.raw.raft.raft_log.unstable_entries().is_empty()
    }

    /// Campaigns now, unless this member does not vote.
    pub(crate) fn campaign(&mut self) {
        if self.raw.raft.promotable() && !self.has_unwritten() {
            // An error means that nothing was begun.
            let _ = self.raw.campaign();
            self.settle();
        }
    }

    /// Forgets the leader, whose node is gone: otherwise this member would refuse its vote to a successor for an
    /// election time.
    pub(crate) fn forget_leader(&mut self) {
        let term = self.term();
        self.raw.raft.become_follower(term, 0);
        self.settle();
    }

    /// Steps down, if this member leads or campaigns.
    pub(crate) fn step_down(&mut self) {
        if self.role() != EngineRole::Follower {
            self.forget_leader();
        }
    }

    /// Notes that messages to a member were lost: a leader probes what it has.
    pub(crate) fn unreachable(&mut self, member: u64) {
        self.raw.report_unreachable(member);
    }

    /// Continues with the entry behind `index` for a member that has files up to there.
    pub(crate) fn shipped(&mut self, member: u64, index: u64) {
        let last = self.last_index();
        if self.is_leader()
            && let Some(progress) = self.raw.raft.mut_prs().get_mut(member)
            && progress.matched < index
            && index <= last
        {
            progress.become_probe();
            progress.next_idx = index + 1;
        }
    }

    /// Guard 5: what in a message contradicts the own log. The engine would end the process.
    ///
    /// `Err`: the sender has a fault. `Ok(Some)`: this replica lacks what it had, or has what no member may.
    pub(crate) fn contradiction(
        &self,
        message: &Message,
    ) -> Result<Option<&'static str>, &'static str> {
        let log = &self.raw.raft.raft_log;
        let is_current = message.term >= self.term();
        match &message.body {
            Body::Append(append) if is_current => {
                if self.is_leader() && message.term == self.term() {
                    return Err("two leaders in one term");
                }
                let previous = (append.previous, append.previous_term);
                let entries = append.entries.iter().map(|entry| (entry.index.0, entry.term.0));
                let last = log.last_index();
                if entries.chain([previous]).any(|(index, term)| term == 0 && index > last) {
                    // The engine takes an entry that is not there for one of term 0, and would append behind it.
                    return Err("an entry that has no term");
                }
                let is_other = |entry: &&LogEntry| {
                    entry.index.0 <= log.committed
                        && log
                            .term(entry.index.0)
                            .is_ok_and(|term| term != 0 && term != entry.term.0)
                };
                let other =
                    append.entries.iter().filter(|e| e.index.0 >= log.first_index()).find(is_other);
                Ok(other.map(|_| "the leader has another entry in place of a committed one"))
            }
            Body::Heartbeat { commit, .. } if is_current => {
                if self.is_leader() && message.term == self.term() {
                    return Err("two leaders in one term");
                }
                let lacks = *commit > log.last_index();
                Ok(lacks.then_some("the log lacks entries that this member has acknowledged"))
            }
            Body::AppendAnswer { index, is_rejected: false, .. }
                if self.is_leader() && message.term == self.term() && *index > log.last_index() =>
            {
                Err("an answer to an entry that does not exist")
            }
            Body::Append(_)
            | Body::AppendAnswer { .. }
            | Body::Heartbeat { .. }
            | Body::HeartbeatAnswer { .. }
            | Body::Vote(_)
            | Body::VoteAnswer(_)
            | Body::TimeoutNow
            | Body::SnapshotOffer { .. } => Ok(None),
        }
    }

    /// Takes a message in which [`Engine::contradiction`] has found nothing.
    pub(crate) fn step(&mut self, from: u64, message: Message) {
        if matches!(message.body, Body::TimeoutNow) && self.has_unwritten() {
            // The leader asks again, or its transfer ends.
            return;
        }
        if matches!(message.body, Body::Vote(_)) && self.term() == 0 && self.last_index() > 0 {
            // A refusal would have no term, which the engine takes for a fault of its own. Entries without a term are
            // the content of a log from before the group.
            return;
        }
        let Some(message) = convert::to_engine_message(from, self.me, message) else {
            return;
        };
        // Errors mean that the message has no effect: its sender is no member any more.
        let _ = self.raw.step(message);
        self.settle();
    }

    /// Guard 4: the reason for which a proposal would be dropped now.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        let raft = &self.raw.raft;
        if !self.is_leader() || raft.prs().get(self.me).is_none() {
            Some(Refusal::NotLeading)
        } else if raft.lead_transferee.is_some() {
            Some(Refusal::Transferring)
        } else {
            None
        }
    }

    /// Proposes an entry with the next index and this term.
    ///
    /// # Panics
    /// If there is a [`Engine::refusal`], or the entry is not the next.
    pub(crate) fn propose(&mut self, entry: &LogEntry) {
        let is_change = matches!(entry.content, EntryContent::Membership(_));
        assert!(!is_change || !self.has_pending_change(), "one change at a time");
        let (index, term) = (self.last_index() + 1, self.term());
        assert_eq!((entry.index.0, entry.term.0), (index, term), "the entry is the next one");
        let mut message = RaftMessage { from: self.me, ..RaftMessage::default() };
        message.set_msg_type(MessageType::MsgPropose);
        message.entries = vec![convert::to_engine(entry)].into();
        self.raw.raft.step(message).expect("a leader takes a proposal");
        assert_eq!(self.last_index(), index, "an entry gets the predicted index");
        // The message with the entry has the commit.
        self.told_commit = self.raw.raft.raft_log.committed;
    }

    /// True if a change of the members was proposed and is not applied.
    pub(crate) fn has_pending_change(&self) -> bool {
        self.raw.raft.has_pending_conf()
    }

    /// True if an entry that is not applied changes the members.
    pub(crate) fn changes_members(&self, index: u64) -> bool {
        self.raw.store().changes_members(index)
    }

    /// Guard 1, and the change itself. An unchanged group is no error: the entry may be applied again after a
    /// restart.
    pub(crate) fn apply_membership(&mut self, change: MembershipChange) {
        let (voters, _) = self.members();
        let removed = matches!(change, MembershipChange::Remove(_)).then(|| change.member().get());
        // The engine does not allow a group without voters.
        if voters.iter().any(|voter| Some(*voter) != removed) {
            self.raw.apply_conf_change(&engine_change(change)).expect("one change at a time");
            self.members = Members::of(&self.raw);
        }
        let (voters, _) = self.members();
        if self.is_leader() && !voters.contains(&self.me) {
            self.step_down();
        }
        self.settle();
    }

    /// Notes that the entries up to `index` are applied.
    pub(crate) fn applied_to(&mut self, index: u64) {
        self.raw.mut_store().applied(index);
        self.raw.advance_apply_to(index);
    }

    /// Begins to hand leadership over to a voter.
    pub(crate) fn transfer(&mut self, to: u64) {
        self.raw.transfer_leader(to);
    }

    /// Ends a transfer: this leader takes proposals again, although the other member may still campaign.
    pub(crate) fn abort_transfer(&mut self) {
        self.raw.raft.abort_leader_transfer();
    }

    /// Gives the first entry of a new leader its time, before anything of it leaves.
    pub(crate) fn stamp_first_entry(&mut self, axis_us: u64) {
        let raft = &mut self.raw.raft;
        let context = convert::context(axis_us, None, &[]);
        let stamp = |entry: &mut Entry| {
            if entry.context.is_empty() {
                entry.context = context.clone();
                return context.len();
            }
            0
        };
        let unstable = &mut raft.r.raft_log.unstable;
        let added: usize = unstable.entries.iter_mut().map(stamp).sum();
        unstable.entries_size += added;
        for message in &mut raft.msgs {
            for entry in message.entries.iter_mut() {
                stamp(entry);
            }
        }
    }

    /// True if there is anything to send, write or report.
    pub(crate) fn has_ready(&self) -> bool {
        self.raw.has_ready()
    }

    /// True if a member lacks entries that the log has no more, or one could not be read.
    pub(crate) fn lacks_entries(&self) -> bool {
        self.raw.store().has_news()
    }

    /// Guard 2, first half: begins a turn.
    pub(crate) fn ready(&mut self) -> Work {
        let mut ready = self.raw.ready();
        assert!(ready.snapshot().is_empty(), "snapshots are shipped beside the engine");
        let messages = outgoing(&ready.take_messages());
        let entries = ready.entries().iter().map(convert::to_log).collect();
        let vote = ready.hs().map(|hs| (hs.term, hs.vote));
        Work { ready, messages, entries, vote }
    }

    /// Guard 2, second half: ends a turn of which everything is durable. Returns the messages that waited for it.
    pub(crate) fn persisted(&mut self, mut work: Work) -> Vec<Outgoing> {
        self.raw.mut_store().appended(&work.entries);
        let mut messages = outgoing(&work.ready.take_persisted_messages());
        let mut light = self.raw.advance_append(work.ready);
        messages.extend(outgoing(&light.take_messages()));
        self.settle();
        messages
    }

    /// Ticks that have waited for the end of the turn.
    pub(crate) fn late_ticks(&mut self) {
        for _ in 0..std::mem::take(&mut self.deferred_ticks) {
            self.tick(self.tick_number);
        }
    }

    /// Members for which the log has no entries any more. One that has got files meanwhile says so with its commit: the
    /// leader continues there.
    pub(crate) fn take_needs_snapshot(&mut self) -> BTreeSet<u64> {
        let mut needs = self.raw.store().take_needs_snapshot();
        let first = self.log().first_index().0;
        needs.retain(|member| {
            let progress = self.raw.raft.prs().get(*member);
            let commit = progress.map_or(0, |progress| progress.committed_index);
            let has_files = commit + 1 >= first;
            if has_files {
                self.shipped(*member, commit);
            }
            !has_files
        });
        needs
    }

    /// The fault of an entry that could not be read to be sent.
    pub(crate) fn take_fault(&self) -> Option<EntryError> {
        self.raw.store().take_fault()
    }
}

/// A change as the engine knows it.
fn engine_change(change: MembershipChange) -> ConfChange {
    let mut out = ConfChange { node_id: change.member().get(), ..ConfChange::default() };
    out.set_change_type(match change {
        MembershipChange::AddLearner(_) => ConfChangeType::AddLearnerNode,
        MembershipChange::Promote(_) => ConfChangeType::AddNode,
        MembershipChange::Remove(_) => ConfChangeType::RemoveNode,
    });
    out
}

fn outgoing(messages: &[RaftMessage]) -> Vec<Outgoing> {
    messages.iter().filter_map(convert::from_engine).collect()
}
