//! A simulated cluster: events in the order of their time, from a seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use storage::{EntryIndex, HardState};

use super::super::{Role, TurnResult};
use super::checks::Checks;
use super::network::{Faults, Network};
use super::node::{CLUSTER, Draws, GROUP, Input, Node, member_id, node_id, number};
use crate::clock::TurnClock;
use crate::entry_log::{EntryLog, MemoryLog, Omission};
use crate::frame::{ClockPing, Frame, FrameClass, NodeFrame, NodePair};
use crate::ids::{GroupId, MemberId};
use crate::limits::TICK_US;

/// A fault of the driver or the log that the checks must see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sabotage {
    None,
    AnswerBeforeSync,
    HardStateNotSynced,
    ConfirmAtOwnSync,
}

/// An event.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Tick(usize),
    Ping(usize),
    Frame {
        from: usize,
        to: usize,
        frame: Bytes,
    },
    /// The write of a node ends; its run tells writes that a crash has ended.
    Written {
        node: usize,
        run: u64,
    },
    Lost {
        node: usize,
        peer: usize,
    },
}

/// The cluster.
pub(super) struct World {
    pub(super) now_us: u64,
    pub(super) nodes: Vec<Node>,
    pub(super) network: Network,
    pub(super) checks: Checks,
    pub(super) draws: Draws,
    pub(super) sabotage: Sabotage,
    /// Longest write, in microseconds.
    pub(super) write_us_max: u64,
    founders: Vec<u64>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    next_value: u64,
    history: DefaultHasher,
}

impl World {
    pub(super) fn new(nodes: usize, voters: usize, seed: u64, sabotage: Sabotage) -> Self {
        let mut draws = Draws::new(seed);
        let founders: Vec<u64> = (0..voters).map(|node| member_id(node).get()).collect();
        let omission = match sabotage {
            Sabotage::None | Sabotage::ConfirmAtOwnSync => Omission::None,
            Sabotage::AnswerBeforeSync => Omission::SyncOfEntries,
            Sabotage::HardStateNotSynced => Omission::SyncOfHardState,
        };
        // A node that joins later begins with the founders as well.
        let mut log = MemoryLog::new(GROUP.0, founders.clone());
        log.set_omission(omission);
        let all = (0..nodes).map(|node| Node::new(node, log.clone(), &mut draws)).collect();
        let faults = Faults::draw(&mut draws);
        let mut world = Self {
            now_us: 1_000_000_000,
            nodes: all,
            network: Network::new(nodes, faults),
            checks: Checks::default(),
            draws,
            sabotage,
            write_us_max: 5_000,
            founders,
            events: BinaryHeap::new(),
            sequence: 0,
            next_value: 0,
            history: DefaultHasher::new(),
        };
        for node in 0..nodes {
            world.start(node);
            let at = world.draws.below(TICK_US);
            world.after(at, Event::Tick(node));
            world.after(at, Event::Ping(node));
        }
        world
    }

    fn after(&mut self, us: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((self.now_us + us, self.sequence, event)));
    }

    /// A number that depends on all that has happened.
    pub(super) fn history(&self) -> u64 {
        self.history.finish()
    }

    /// Runs for a time.
    pub(super) fn run(&mut self, us: u64) {
        let end = self.now_us + us;
        while let Some(Reverse((at, ..))) = self.events.peek()
            && *at <= end
            && self.checks.violations.is_empty()
        {
            let Some(Reverse((at, _, event))) = self.events.pop() else {
                break;
            };
            self.now_us = at;
            self.happen(event);
        }
        self.now_us = end;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Tick(node) => {
                let jitter = self.draws.below(2_000);
                self.after(TICK_US - 1_000 + jitter, Event::Tick(node));
                self.input(node, Input::Tick);
            }
            Event::Ping(node) => {
                self.after(100_000, Event::Ping(node));
                self.ping(node);
            }
            Event::Frame { from, to, frame } => {
                (self.now_us, from, to, &frame).hash(&mut self.history);
                self.frame(from, to, frame);
            }
            Event::Written { node, run } => {
                if self.nodes[node].run.0 == run && self.nodes[node].is_writing {
                    self.written(node);
                }
            }
            Event::Lost { node, peer } => self.input(node, Input::Lost(member_id(peer))),
        }
    }

    fn ping(&mut self, from: usize) {
        if self.nodes[from].member.is_none() {
            return;
        }
        let reading = self.nodes[from].reading(self.now_us);
        for to in (0..self.nodes.len()).filter(|to| *to != from) {
            let ping = ClockPing { nodes: pair(from, to), reading };
            self.send(from, to, FrameClass::Control, &ping.encode());
        }
    }

    fn frame(&mut self, from: usize, to: usize, frame: Bytes) {
        if self.nodes[to].member.is_none() {
            return;
        }
        let header = crate::frame::FrameHeader::read(&frame).unwrap();
        if header.group == GroupId::NODES {
            let Ok(NodeFrame::Ping(ping)) = NodeFrame::decode(&frame, pair(from, to)) else {
                panic!("nodes send pings alone");
            };
            let received_us = self.nodes[to].reading(self.now_us).monotonic_us;
            self.nodes[to].bounds.observe(node_id(from), ping.reading, received_us);
            return;
        }
        self.input(to, Input::Frame(node_id(from), frame));
    }

    fn input(&mut self, node: usize, input: Input) {
        let there = &mut self.nodes[node];
        if there.member.is_none() {
            return;
        }
        there.inbox.push(input);
        if !there.is_writing {
            self.take_inbox(node);
        }
    }

    fn take_inbox(&mut self, node: usize) {
        let there = &mut self.nodes[node];
        let Some(member) = &mut there.member else {
            return;
        };
        let mut ticks = 0;
        for input in std::mem::take(&mut there.inbox) {
            match input {
                Input::Frame(from, frame) => {
                    if let Err(error) = member.receive(from, &frame) {
                        self.checks.violations.push(format!("node {node} refuses: {error}"));
                    }
                }
                Input::Tick if ticks < 2 => {
                    ticks += 1;
                    member.tick();
                }
                Input::Tick => {}
                Input::Lost(peer) => member.peer_lost(peer),
            }
        }
        self.turn(node);
    }

    /// Begins a turn; it ends at once if there is nothing to write.
    pub(super) fn turn(&mut self, node: usize) {
        let there = &mut self.nodes[node];
        let now = there.reading(self.now_us);
        let Some(member) = &mut there.member else {
            return;
        };
        let mut frames = Vec::new();
        let clock = TurnClock { now, wall_after_us: now.wall_us, bounds: &there.bounds };
        there.turn_us = self.now_us;
        there.is_writing = member.begin(&clock, &mut frames);
        let (is_writing, run) = (there.is_writing, there.run.0);
        self.send_all(node, frames);
        if is_writing {
            let us = self.draws.below(self.write_us_max);
            self.after(us, Event::Written { node, run });
        } else {
            self.end_turn(node);
        }
    }

    fn written(&mut self, node: usize) {
        let there = &mut self.nodes[node];
        there.is_writing = false;
        if let Some(member) = &mut there.member {
            member.write().unwrap();
            self.end_turn(node);
        }
    }

    fn end_turn(&mut self, node: usize) {
        let mut frames = Vec::new();
        let Some(member) = &mut self.nodes[node].member else {
            return;
        };
        let result = member.end(&mut frames);
        self.send_all(node, frames);
        let has_more = result.has_more;
        self.told(node, result);
        if !self.nodes[node].inbox.is_empty() {
            self.take_inbox(node);
        } else if has_more {
            self.turn(node);
        }
    }

    fn told(&mut self, node: usize, result: TurnResult) {
        let there = &mut self.nodes[node];
        let began_us = there.turn_us;
        if let Some(role) = result.role {
            match role {
                Role::Leader { term, .. } => {
                    self.checks.leads(term.0, node);
                    there.proposed.retain(|proposal| proposal.term == term.0);
                }
                Role::Follower { .. } | Role::Candidate | Role::Quarantined => {
                    there.proposed.clear();
                }
            }
        }
        if let Some(reason) = result.quarantine {
            let text = format!("node {node} is quarantined: {reason:?}");
            if self.sabotage == Sabotage::None {
                self.checks.violations.push(text);
            }
        }
        if let Some(axis) = result.axis {
            let member = there.member.as_ref().expect("it has told");
            let (first, term) = (member.first_of_term, member.term().0);
            self.checks.proposed_at.insert((first, term), began_us);
            let last_term = member.log().term_of(EntryIndex(first - 1)).map_or(0, |term| term.0);
            self.checks.axis(term, last_term, axis.origin);
        }
        for committed in &result.committed {
            self.checks.deliver(node, there.delivered, &committed.entry);
            there.delivered = committed.entry.index.0;
        }
        let (durable, written) = (result.durable, self.sabotage == Sabotage::ConfirmAtOwnSync);
        there.proposed.retain(|proposal| {
            let is_confirmed = written || durable.is_some_and(|to| proposal.index <= to.0);
            if is_confirmed {
                self.checks.confirm(proposal.value, proposal.index);
            }
            !is_confirmed
        });
        for peer in result.needs_snapshot {
            self.ship(node, peer);
        }
    }

    fn send_all(&mut self, from: usize, frames: Vec<Frame>) {
        for frame in frames {
            self.send(from, number(frame.to), frame.class, &frame.to_bytes());
        }
    }

    fn send(&mut self, from: usize, to: usize, class: FrameClass, frame: &Bytes) {
        if to >= self.nodes.len() {
            return;
        }
        let link = (from, to, usize::from(class == FrameClass::Entries));
        let arrivals = self.network.send(link, frame, self.now_us, &mut self.draws);
        for (at, frame) in arrivals {
            self.after(at - self.now_us, Event::Frame { from, to, frame });
        }
    }

    /// Ships the state of the leader to a member that lacks entries, at once.
    fn ship(&mut self, from: usize, to: MemberId) {
        let Some(leader) = &self.nodes[from].member else {
            return;
        };
        let index = leader.delivered();
        let Ok(term) = leader.log().term_of(index) else {
            return;
        };
        let target = &mut self.nodes[number(to)];
        if target.is_writing || target.member.as_ref().is_none_or(|m| m.delivered() >= index) {
            return;
        }
        let old = target.member.take().expect("checked").into_log();
        let (voters, learners) = self.checks.members_at(&self.founders, index.0);
        let saved = old.hard_state();
        let hard_state = HardState {
            term: saved.term.max(term),
            vote: if saved.term < term { 0 } else { saved.vote },
            commit: index,
            voters,
            learners,
            clock: saved.clock,
        };
        target.log = Some(MemoryLog::installed(GROUP.0, hard_state, index, term));
        target.crash();
        self.start(number(to));
        // Half of the leaders learn it from the member alone.
        let is_told = !self.nodes[from].is_writing && self.draws.percent(50);
        if let Some(leader) = self.nodes[from].member.as_mut().filter(|_| is_told) {
            leader.shipped(to, index);
        }
    }

    pub(super) fn crash(&mut self, node: usize) {
        let there = &mut self.nodes[node];
        if there.is_writing
            && self.draws.percent(50)
            && let Some(member) = &mut there.member
        {
            // The write was done, and nobody heard of it.
            member.write().unwrap();
        }
        let was_up = there.member.is_some();
        there.crash();
        if was_up && self.draws.percent(70) {
            for other in (0..self.nodes.len()).filter(|other| *other != node) {
                let us = 20 + self.draws.below(2_000);
                self.after(us, Event::Lost { node: other, peer: node });
            }
        }
    }

    pub(super) fn start(&mut self, node: usize) {
        let there = &mut self.nodes[node];
        if there.member.is_none()
            && there.log.is_some()
            && let Err(error) = there.start(self.now_us, &mut self.draws)
        {
            self.detected(format!("node {node} does not start: {error}"));
        }
    }

    /// Notes that a member has found a fault of its own disk. With a sabotage it should; that is not for the checks.
    fn detected(&mut self, text: String) {
        if self.sabotage == Sabotage::None {
            self.checks.violations.push(text);
        }
    }

    /// Proposes a value at a node; true if it was accepted.
    pub(super) fn propose(&mut self, node: usize, bytes: usize) -> bool {
        if self.nodes[node].is_writing {
            return false;
        }
        let value = self.next_value;
        let Some(proposal) = self.nodes[node].propose(value, self.now_us, bytes) else {
            return false;
        };
        self.next_value += 1;
        self.checks.proposed_at.insert((proposal.index, proposal.term), self.now_us);
        self.turn(node);
        true
    }

    /// Compacts a log, so that others need files.
    pub(super) fn compact(&mut self, node: usize) {
        if self.sabotage == Sabotage::HardStateNotSynced {
            // The log refuses to drop what is not committed for certain.
            return;
        }
        if let Some(member) = &mut self.nodes[node].member {
            let commit = member.log().hard_state().commit.0;
            let first = member.log().first_index().0;
            if commit > first + 2 {
                let to = first + self.draws.below(commit - first - 1);
                member.log_mut().compact(EntryIndex(to));
            }
        }
    }

    /// The node that leads the newest term and is active.
    pub(super) fn leader(&self) -> Option<usize> {
        let leads = |node: &Node| {
            let member = node.member.as_ref()?;
            match member.role() {
                Role::Leader { term, is_active: true } => Some((term, node.number)),
                Role::Leader { .. }
                | Role::Follower { .. }
                | Role::Candidate
                | Role::Quarantined => None,
            }
        };
        self.nodes.iter().filter_map(leads).max().map(|(_, node)| node)
    }
}

/// The ends of a link.
fn pair(from: usize, to: usize) -> NodePair {
    NodePair { cluster: CLUSTER, from: node_id(from), to: node_id(to) }
}
