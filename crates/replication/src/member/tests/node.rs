//! A node of a simulated cluster: a member or the log that a crash has left, clocks, and what waits for it.

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use storage::{EntryContent, EntryIndex, Flags, Lsn, NewRecord, WriteBatch, WriteQueue};

use super::super::{BeginError, CommitNews, Member, MemberConfig, Proposed};
use crate::clock::{ClockBounds, ClockReading};
use crate::entry_log::{EntryLog, MemoryLog};
use crate::ids::{ClusterId, GroupId, MemberId, NodeId, RunId};

pub(super) const CLUSTER: ClusterId = ClusterId(77);
pub(super) const GROUP: GroupId = GroupId(5);

/// Draws of a history.
pub(super) struct Draws(ChaCha8Rng);

impl Draws {
    pub(super) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end.max(1)
    }

    /// True with this probability, in percent.
    pub(super) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// The member on the node with this number.
pub(super) fn member_id(node: usize) -> MemberId {
    node_id(node).member(1)
}

pub(super) fn node_id(node: usize) -> NodeId {
    NodeId::new(node as u64 + 1).unwrap()
}

/// The number of a member's node.
pub(super) fn number(member: MemberId) -> usize {
    usize::try_from(member.node().get()).unwrap() - 1
}

/// Input that came while the node was writing.
pub(super) enum Input {
    Frame(NodeId, Bytes),
    Tick,
    Lost(MemberId),
}

/// A batch with one record, whose payload begins with `value`.
pub(super) fn batch(position: Lsn, value: u64, bytes: usize) -> WriteBatch {
    let mut queue = WriteQueue::default();
    queue.push(record(position, 1), |out| {
        out.extend(value.to_le_bytes());
        out.resize(out.len() + bytes, 0);
    });
    let mut batch = WriteBatch::default();
    queue.take_batch(&mut batch);
    batch
}

pub(super) fn record(lsn: Lsn, references: u16) -> NewRecord {
    NewRecord {
        lsn,
        target: Lsn(0),
        kind: 1,
        flags: Flags::NONE,
        references,
        format_version: 1,
        is_joined: false,
    }
}

/// A node.
pub(super) struct Node {
    pub(super) number: usize,
    pub(super) member: Option<Member<MemoryLog>>,
    /// Log that a crash has left.
    pub(super) log: Option<MemoryLog>,
    pub(super) is_writing: bool,
    /// True time at which the turn began.
    pub(super) turn_us: u64,
    pub(super) inbox: Vec<Input>,
    pub(super) bounds: ClockBounds,
    pub(super) run: RunId,
    /// Rate of the clock, in millionths above or below the true one.
    drift_ppm: i64,
    /// True time at which the process began, and its wall clock's error.
    began_us: u64,
    wall_error_us: i64,
    /// Proposals of the present leadership.
    pub(super) proposed: Vec<Proposal>,
    pub(super) next_position: u64,
    /// Newest entry that was passed on, over restarts.
    pub(super) delivered: u64,
}

/// A proposal of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proposal {
    pub(super) index: u64,
    pub(super) term: u64,
    pub(super) value: u64,
}

impl Node {
    pub(super) fn new(number: usize, log: MemoryLog, draws: &mut Draws) -> Self {
        Self {
            number,
            member: None,
            log: Some(log),
            is_writing: false,
            turn_us: 0,
            inbox: Vec::new(),
            bounds: ClockBounds::default(),
            run: RunId(0),
            drift_ppm: i64::try_from(draws.below(401)).unwrap() - 200,
            began_us: 0,
            wall_error_us: i64::try_from(draws.below(120_000_000)).unwrap() - 60_000_000,
            proposed: Vec::new(),
            next_position: 1,
            delivered: 0,
        }
    }

    /// Starts the process with what is on the disk.
    ///
    /// # Errors
    /// The log and the hard state contradict each other.
    pub(super) fn start(&mut self, now_us: u64, draws: &mut Draws) -> Result<(), BeginError> {
        let log = self.log.take().expect("a node that is down has a log");
        self.delivered = log.hard_state().commit.0;
        let (cluster, group, me) = (CLUSTER, GROUP, member_id(self.number));
        let tells_commits = match self.number.is_multiple_of(2) {
            true => CommitNews::AtOnce,
            false => CommitNews::AtTick,
        };
        let config = MemberConfig { cluster, group, me, seed: draws.0.next_u64(), tells_commits };
        self.member = Some(Member::open(config, log)?);
        self.bounds = ClockBounds::default();
        self.run = RunId(draws.0.next_u64());
        self.began_us = now_us.saturating_sub(draws.below(10_000_000));
        Ok(())
    }

    /// Crashes: what was not synced is lost.
    pub(super) fn crash(&mut self) {
        if let Some(member) = self.member.take() {
            self.log = Some(member.into_log().crashed());
        }
        self.is_writing = false;
        self.inbox.clear();
        self.proposed.clear();
    }

    pub(super) fn reading(&self, now_us: u64) -> ClockReading {
        let age = i64::try_from(now_us - self.began_us).unwrap();
        let monotonic_us = u64::try_from(age + age * self.drift_ppm / 1_000_000).unwrap();
        let wall = 1_700_000_000_000_000 + i64::try_from(now_us).unwrap() + self.wall_error_us;
        ClockReading { run: self.run, monotonic_us, wall_us: u64::try_from(wall).unwrap() }
    }

    /// Proposes a value, if this node leads. An entry of the simulation has the value as its octets.
    pub(super) fn propose(&mut self, value: u64, now_us: u64, bytes: usize) -> Option<Proposal> {
        let monotonic_us = self.reading(now_us).monotonic_us;
        let member = self.member.as_mut()?;
        member.check_proposal(bytes).ok()?;
        let axis_us = member.axis()?.at(monotonic_us);
        let (index, term) = (member.engine.last_index() + 1, member.engine.term());
        let newest = member.log().all().iter().rev().find_map(|entry| match &entry.content {
            EntryContent::Records(records) => Some(records.last.0),
            EntryContent::Empty | EntryContent::Membership(_) => None,
        });
        self.next_position = self.next_position.max(newest.unwrap_or(0) + 1) + 2;
        let position = Lsn(self.next_position);
        let mut batch = batch(position, value, bytes);
        let proposed = member.propose(&mut batch, axis_us).unwrap();
        assert_eq!(proposed, Proposed::Entry(EntryIndex(index)));
        let proposal = Proposal { index, term, value };
        self.proposed.push(proposal);
        Some(proposal)
    }
}
