//! The cluster and its clients: events in the order of their time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bytes::Bytes;
use replica::ShipmentNeed;
use replication::{ClockPing, Frame, FrameClass, FrameHeader, GroupId, NodeFrame, NodePair};
use simdisk::Random;
use storage::OpenError;

use crate::checks::book::Book;
use crate::clients::client::Client;
use crate::clients::draw::{add_schedulers, draw_clients};
use crate::clients::operator::Operators;
use crate::clients::topology::Topology;
use crate::cluster::content::group_content::GroupContent;
use crate::cluster::ids::{CLUSTER, node_id, number_of};
use crate::cluster::levels::Levels;
use crate::cluster::network::{Arrival, Network};
use crate::cluster::node::{Damage, GoesOn, Node, StartError};
use crate::cluster::placement::Placement;
use crate::cluster::process::{Context, Input, Later, Process};
use crate::event::Event;
use crate::faults::sabotage::Sabotage;
use crate::plan::Plan;
use crate::relays::table::Relays;
use crate::story::Story;

/// Duration of a tick, in microseconds.
const TICK_US: u64 = replication::limits::TICK_US;

/// The pings of a hundred with which a node is asked for a barrier, whether it leads or not.
const BARRIER_PERCENT: u64 = 5;

/// Time between two pings, in microseconds.
const PING_US: u64 = 100_000;

/// Time between two looks at the links, in microseconds.
const LOOK_US: u64 = 200_000;

/// The cluster and its clients.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) now_us: u64,
    pub(crate) nodes: Vec<Node>,
    pub(crate) network: Network,
    pub(crate) relays: Relays,
    pub(crate) clients: Vec<Client>,
    pub(crate) operators: Operators,
    pub(crate) book: Book,
    pub(crate) story: Story,
    pub(crate) random: Random,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    pub(crate) next_id: u64,
    /// Redrives that were asked for.
    pub(crate) redrives: u64,
    pub(crate) is_ready: bool,
    pub(crate) starts: u64,
    pub(crate) rebuilt: u64,
    pub(crate) moved: u64,
    /// The nodes that were to have the replica, one choice after the other.
    pub(crate) placements: Vec<Placement>,
    /// The levels of record kinds.
    pub(crate) levels: Levels,
    /// Until then, a node that has voted for another ends at once.
    pub(crate) ambush_until_us: u64,
}

impl World {
    pub(crate) fn new(plan: Plan, keeps_story: bool) -> Self {
        let mut random = Random(plan.seed);
        let mut topology = Topology::draw(&mut random);
        let placement = Placement::on_founders(plan.nodes);
        let all = plan.nodes + plan.spares;
        let nodes = (0..all)
            .map(|number| Node::new(number, placement.clone(), plan.sabotage, &mut random))
            .collect();
        let mut levels = Levels::new(all, &plan.older);
        levels.accepts_older = plan.sabotage == Some(Sabotage::OlderPeerAccepted);
        let network = Network::new(all, Random(random.next()));
        let mut clients = draw_clients(plan.clients, &mut random);
        add_schedulers(plan.seed, plan.schedulers, &mut topology, &mut clients);
        let operators = Operators::new(plan.clients.0 + plan.clients.1);
        if plan.content == GroupContent::Metadata {
            clients.clear();
        }
        let mut world = Self {
            operators,
            now_us: 1_000_000,
            relays: Relays::new(&plan),
            nodes,
            network,
            clients,
            book: Book::new(topology, plan.content, keeps_story),
            story: Story::new(keeps_story),
            random,
            events: BinaryHeap::new(),
            sequence: 0,
            next_id: 0,
            redrives: 0,
            is_ready: false,
            starts: 0,
            rebuilt: 0,
            moved: 0,
            placements: vec![placement],
            levels,
            ambush_until_us: 0,
            plan,
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        for node in 0..self.nodes.len() {
            self.start(node);
            let at = self.random.below(TICK_US);
            self.after(at, Event::Tick(node));
            self.after(at, Event::Ping(node));
        }
        self.after(0, Event::Look);
        for client in 0..self.clients.len().max(self.operators.all.len()) {
            self.after(self.now_us, Event::Client(client));
        }
        for at in 0..self.plan.nemeses.len() {
            self.after(self.plan.nemeses[at].0, Event::Nemesis(at));
        }
    }

    pub(crate) fn after(&mut self, us: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((self.now_us + us, self.sequence, event)));
    }

    pub(crate) fn tell(&mut self, what: std::fmt::Arguments<'_>) {
        self.story.tell(self.now_us, what);
    }

    /// Runs for a time, or until a check has failed.
    pub(crate) fn run(&mut self, us: u64) {
        let end_us = self.now_us + us;
        while self.book.violations.is_empty()
            && let Some(Reverse((at_us, ..))) = self.events.peek()
            && *at_us <= end_us
        {
            let Some(Reverse((at_us, _, event))) = self.events.pop() else { break };
            self.now_us = at_us;
            self.happen(event);
            for note in self.book.notes.iter_mut().flat_map(std::mem::take) {
                self.story.keep(at_us, note);
            }
        }
        self.now_us = end_us;
    }

    /// The node of an event, if it stands still.
    fn paused(&self, event: &Event) -> Option<usize> {
        let node = match event {
            Event::Tick(node) | Event::Ping(node) | Event::Lost(node, _) => *node,
            Event::Risen(node) => *node,
            Event::Later(node, ..) | Event::Bytes(_, node, ..) => *node,
            Event::Arrival(arrival) => arrival.to,
            Event::Relayed(event) => event.node()?,
            Event::Look
            | Event::Start(_)
            | Event::Placed(..)
            | Event::Version(..)
            | Event::Ask(..)
            | Event::Chunk(_)
            | Event::Client(_)
            | Event::Nemesis(_)
            | Event::Heal(..)
            | Event::Room(_)
            | Event::Resume(_)
            | Event::AlarmOver(_)
            | Event::Strike(..) => return None,
        };
        self.nodes[node].is_paused.then_some(node)
    }

    /// The process of a node goes on, with what has happened meanwhile.
    pub(crate) fn resume(&mut self, node: usize) {
        self.nodes[node].is_paused = false;
        for event in std::mem::take(&mut self.nodes[node].missed) {
            self.after(0, event);
        }
    }

    fn happen(&mut self, event: Event) {
        if let Some(node) = self.paused(&event) {
            return self.nodes[node].missed.push(event);
        }
        match event {
            Event::Tick(node) => {
                let jitter_us = self.random.below(2_000);
                self.after(TICK_US - 1_000 + jitter_us, Event::Tick(node));
                self.with(node, |process, ctx| process.input(Input::Tick, ctx));
                self.tend_relays(node);
            }
            Event::Ping(node) => {
                self.after(PING_US, Event::Ping(node));
                self.ping(node);
            }
            Event::Look => {
                self.after(LOOK_US, Event::Look);
                self.look();
            }
            Event::Arrival(arrival) => self.arrive(&arrival),
            Event::Lost(node, peer) => {
                self.with(node, |process, ctx| {
                    process.input(Input::PeerLost(node_id(peer)), ctx);
                });
            }
            Event::Later(node, run, later) => self.later(node, run, later),
            Event::Start(node) => self.start(node),
            Event::Ask(node, need) => self.ask(node, need),
            Event::Chunk(node) => self.chunk(node),

            Event::Client(number) => match self.plan.content {
                GroupContent::Vhost => self.client(number),
                GroupContent::Metadata => self.operator(number),
            },
            Event::Bytes(client, node, run, number, bytes) => {
                self.bytes(client, node, run, number, &bytes);
            }
            Event::Nemesis(at) => self.nemesis(at),
            Event::Heal(from, to) => self.heal_direction(from, to),
            Event::Room(node) => self.nodes[node].disk.free_room(),
            Event::Placed(node, version) => self.placed(node, version),
            Event::Risen(node) => self.risen(node),
            Event::Version(node, reads) => self.change_version(node, reads),
            Event::Resume(node) => self.resume(node),
            Event::AlarmOver(node) => self.with(node, Process::alarm_changed),
            Event::Relayed(event) => self.relayed(event),
            Event::Strike(node, down_us) => self.kill(node, down_us),
        }
    }

    // ---- processes ----

    /// Lets the process of a node do something, and passes on what it sends.
    pub(crate) fn with(&mut self, node: usize, act: impl FnOnce(&mut Process, &mut Context<'_>)) {
        let reading = self.nodes[node].reading(self.now_us);
        let sync_us = self.nodes[node].longest_sync_us(self.now_us);
        let is_damaged = self.nodes[node].damage != Damage::None;
        let has_alarm = self.now_us < self.nodes[node].alarm_until_us;
        let is_drained = self.now_us < self.nodes[node].drained_until_us;
        let Node { process, placement, .. } = &mut self.nodes[node];
        let Some(process) = process else { return };
        let (mut frames, mut later) = (Vec::new(), Vec::new());
        let mut ctx = Context {
            now_us: self.now_us,
            reading,
            number: node,
            book: &mut self.book,
            story: &mut self.story,
            random: &mut self.random,
            frames: &mut frames,
            later: &mut later,
            sync_us,
            is_damaged,
            has_alarm,
            is_drained,
            placement,
        };
        act(process, &mut ctx);
        process.advance_changes(&mut ctx);
        let (run, prepared) = (process.run, std::mem::take(&mut process.prepared));
        for (us, what) in later {
            self.after(us, Event::Later(node, run, what));
        }
        self.send_all(node, frames);
        self.depart(node);
        for prepared in prepared {
            self.begin_transfer(node, run, prepared);
        }
    }

    fn later(&mut self, node: usize, run: u64, later: Later) {
        if self.nodes[node].process.as_ref().is_none_or(|process| process.run != run) {
            return;
        }
        match later {
            Later::Exit => self.kill(node, 300_000),
            Later::Reopen => self.reopen(node),
            Later::Ask => self.ask(node, ShipmentNeed::Behind),
            Later::Rebuild => self.rebuild(node),
            Later::Written
            | Later::Stalled(_)
            | Later::Apply
            | Later::Advance
            | Later::Timer
            | Later::Redrive
            | Later::Cancel
            | Later::Page
            | Later::Room => {
                let before = self.vote(node);
                self.with(node, |process, ctx| process.later(later, ctx));
                let voted = self.vote(node).filter(|vote| Some(*vote) != before);
                if let Some((_, candidate)) = voted
                    && self.now_us < self.ambush_until_us
                {
                    self.ambush(node, candidate);
                }
            }
        }
    }

    /// The term and vote of a node, if it has voted for another.
    fn vote(&self, node: usize) -> Option<(u64, u64)> {
        let state = self.nodes[node].process.as_ref()?.replica.member().log().log.hard_state();
        let is_other = state.vote != 0 && state.vote != self.nodes[node].member.get();
        is_other.then_some((state.term.0, state.vote))
    }

    /// A deposed leader gives everything up and reads its own log.
    fn reopen(&mut self, node: usize) {
        let Some(process) = &mut self.nodes[node].process else { return };
        if process.is_writing {
            // The write of the turn ends first.
            let run = process.run;
            return self.after(1_000, Event::Later(node, run, Later::Reopen));
        }
        self.with(node, Process::end_service);
        let Some(process) = self.nodes[node].process.take() else { return };
        let Process { run, bounds, content, replica, .. } = process;
        if let Err(error) = replica.into_log().log.close() {
            self.tell(format_args!("node {node} closes its log: {error}"));
        }
        self.open(node, Some(GoesOn { run, bounds, content }));
    }

    pub(crate) fn start(&mut self, node: usize) {
        let there = &self.nodes[node];
        if there.process.is_some() || self.placement().is_forgotten(node) || !self.may_start(node) {
            return;
        }
        let there = &self.nodes[node];
        let votes = self.plan.sabotage == Some(Sabotage::LostDiskVotes);
        if there.damage == Damage::Lost && !votes || !there.has_replica {
            self.replace(node);
        } else {
            self.open(node, None);
        }
    }

    pub(crate) fn open(&mut self, node: usize, goes_on: Option<GoesOn>) {
        self.starts += 1;
        let Self { plan, book, random, now_us, .. } = self;
        let there = &mut self.nodes[node];
        let started = there.start(plan, goes_on, book, random, *now_us);
        match started {
            Ok(()) => {
                self.tell(format_args!("node {node} begins"));
                if self.now_us < self.ambush_until_us {
                    self.look();
                }
                self.with(node, |process, ctx| process.advance(ctx));
            }
            Err(error) => self.not_started(node, &error),
        }
    }

    fn not_started(&mut self, node: usize, error: &StartError) {
        let text = match error {
            StartError::Log(error) => error.to_string(),
            StartError::Member(error) => error.to_string(),
        };
        self.tell(format_args!("node {node} does not begin: {text}"));
        if matches!(error, StartError::Log(OpenError::Io { .. })) {
            // The supervisor starts it anew.
            return self.after(300_000, Event::Start(node));
        }
        if self.nodes[node].damage == Damage::None {
            self.book.violation(format!("node {node} does not begin: {text}"));
        }
        self.replace(node);
    }

    /// A replica that must not be used any more is given up.
    fn rebuild(&mut self, node: usize) {
        let there = &mut self.nodes[node];
        if let Some(process) = there.process.as_ref().filter(|process| process.is_writing) {
            // The write of the turn ends first.
            let run = process.run;
            return self.after(1_000, Event::Later(node, run, Later::Rebuild));
        }
        there.process = None;
        self.replace(node);
    }

    /// The process of a node ends; it begins anew after this time.
    pub(crate) fn kill(&mut self, node: usize, down_us: u64) {
        if !self.end_process(node) {
            return;
        }
        self.tell(format_args!("node {node} is killed"));
        let there = &mut self.nodes[node];
        there.disk.after_kill(&mut self.random);
        there.incoming.after_kill(&mut self.random);
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            if let Some(at_us) = self.network.process_gone(node, other, self.now_us) {
                self.after(at_us - self.now_us, Event::Lost(other, node));
            }
        }
        self.after(down_us, Event::Start(node));
    }

    /// A node loses its power.
    pub(crate) fn cut_power(&mut self, node: usize, down_us: u64) {
        let was_up = self.end_process(node);
        self.darken_streams(node);
        self.tell(format_args!("node {node} has no power"));
        let after = self.nodes[node].disk.after_cut(&mut self.random);
        self.nodes[node].disk = after;
        self.nodes[node].incoming = self.nodes[node].incoming.after_cut(&mut self.random);
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            self.network.break_link(node, other);
        }
        if was_up {
            self.after(down_us, Event::Start(node));
        }
    }

    /// Ends a process; a write that is under way has happened, or a part of it. False if there was none.
    fn end_process(&mut self, node: usize) -> bool {
        self.resume(node);
        let there = &mut self.nodes[node];
        there.transfer = None;
        let Some(mut process) = there.process.take() else { return false };
        if process.is_writing && self.random.percent(70) {
            let operations = self.random.below(6);
            there.disk.cut_power_at(there.disk.operations() + operations);
            // What was written, and nobody has heard of it.
            let _ = process.replica.write(0, || 0);
        }
        drop(process);
        for client in 0..self.clients.len() {
            let there = &self.clients[client];
            if there.relay.is_none() && there.place.is_some_and(|place| place.node == node) {
                self.clients[client].disconnected(&mut self.book);
            }
        }
        true
    }

    // ---- links ----

    fn ping(&mut self, from: usize) {
        if self.nodes[from].process.is_none() {
            return;
        }
        let reading = self.nodes[from].reading(self.now_us);
        for to in (0..self.nodes.len()).filter(|to| *to != from) {
            let ping = ClockPing { nodes: pair(from, to), reading };
            self.send(from, to, FrameClass::Control, ping.encode());
        }
        self.look_for_gone(from);
        if self.random.percent(BARRIER_PERCENT) {
            self.with(from, |process, ctx| process.ask_barrier(ctx));
        }
    }

    /// Sends a frame that nobody misses if it is lost.
    pub(crate) fn send(&mut self, from: usize, to: usize, class: FrameClass, frame: Bytes) {
        let sent = self.network.send((from, to), class, frame, self.now_us);
        if let Ok(Some((at_us, arrival))) = sent {
            self.after(at_us - self.now_us, Event::Arrival(arrival));
        }
    }

    fn send_all(&mut self, from: usize, frames: Vec<Frame>) {
        let mut lost = Vec::new();
        for frame in frames {
            let to = number_of(frame.to);
            match self.network.send((from, to), frame.class, frame.to_bytes(), self.now_us) {
                Ok(Some((at_us, arrival))) => {
                    self.after(at_us - self.now_us, Event::Arrival(arrival));
                }
                Ok(None) => {}
                Err(()) => lost.push(frame.to),
            }
        }
        lost.dedup();
        if let Some(process) = &mut self.nodes[from].process
            && !lost.is_empty()
        {
            lost.into_iter().for_each(|member| process.link_changed(member));
        }
    }

    fn arrive(&mut self, arrival: &Arrival) {
        if !self.network.is_current(arrival) {
            return;
        }
        let Arrival { from, to, frame, .. } = arrival;
        self.check_levels(*from, *to);
        self.story.add(&self.now_us.to_le_bytes());
        self.story.add(frame);
        let group = FrameHeader::read(frame).map(|header| header.group);
        if group == Ok(GroupId::NODES) {
            return match NodeFrame::decode(frame, pair(*from, *to)) {
                Ok(NodeFrame::Ping(ping)) => self.hear_ping(*from, *to, &ping),
                Ok(NodeFrame::Leads(notice)) => self.hear_of_leader(*to, &notice),
                Err(error) => self.book.violation(format!("a frame between nodes: {error}")),
            };
        }
        let (from, frame) = (node_id(*from), frame.clone());
        self.with(*to, |process, ctx| process.input(Input::Frame(from, frame), ctx));
    }

    fn hear_ping(&mut self, from: usize, to: usize, ping: &ClockPing) {
        let received_us = self.nodes[to].reading(self.now_us).monotonic_us;
        if let Some(process) = &mut self.nodes[to].process {
            process.bounds.observe(node_id(from), ping.reading, received_us);
        }
    }

    fn look(&mut self) {
        for node in 0..self.nodes.len() {
            if !self.nodes[node].is_paused {
                self.with(node, Process::look_for_late_work);
            }
        }
        let Self { nodes, levels, network, now_us, .. } = self;
        let is_running = |node: usize| nodes[node].process.is_some();
        let changes = network.look(&is_running, &|one, other| levels.accept(one, other), *now_us);
        for change in changes {
            let (one, other) = (change.one, change.other);
            let state = if change.is_up { "connected" } else { "apart" };
            self.tell(format_args!("nodes {one} and {other} are {state}"));
            for (node, peer) in [(one, other), (other, one)] {
                self.with(node, |process, ctx| {
                    process.input(Input::LinkChanged(node_id(peer)), ctx);
                });
            }
        }
        self.look_at_levels();
    }

    pub(crate) fn arrivals(&mut self, arrivals: Vec<(u64, Arrival)>) {
        for (at_us, arrival) in arrivals {
            self.after(at_us - self.now_us, Event::Arrival(arrival));
        }
    }
}

/// The ends of a link.
pub(crate) fn pair(from: usize, to: usize) -> NodePair {
    NodePair { cluster: CLUSTER, from: node_id(from), to: node_id(to) }
}
