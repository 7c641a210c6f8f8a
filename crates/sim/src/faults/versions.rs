//! Nodes of different versions: they are upgraded one by one, now and then one goes back, and the level of record kinds of
//! the cluster rises once all of them read more, as the node finds that leads the metadata.

use std::cmp::Reverse;

use replication::levels::{
    FIRST_RECORD_LEVEL, RECORD_LEVEL, check_level, check_placement_level, risen, tells_leads,
};

use crate::cluster::ids::node_id;
use crate::cluster::process::Input;
use crate::event::Event;
use crate::faults::sabotage::Sabotage;
use crate::plan::below;
use crate::world::World;

/// Time after which a node learns of something that it could not learn, in microseconds.
const RETRY_US: u64 = 100_000;

/// Time from the end of one version to the start of the other, in microseconds.
const DOWN_US: u64 = 50_000;

/// Time after which a newer version is installed on a node that does not start, in microseconds.
const REPAIR_US: u64 = 1_000_000;

/// Time after which a node has its newer version again, in microseconds.
const BACK_US: u64 = 3_000_000;

/// Time from one upgrade to the next at the end of the faults, in microseconds.
const UPGRADE_US: u64 = 400_000;

impl World {
    /// Another version takes the place of that of a node, which is restarted.
    pub(crate) fn change_version(&mut self, node: usize, reads: u16) {
        let is_there = self.levels.reads(node) == reads;
        if is_there || !self.levels.is_drawn() || self.placement().is_forgotten(node) {
            return;
        }
        self.tell(format_args!("node {node} gets a version that reads level {reads}"));
        self.kill(node, DOWN_US);
        self.levels.set_version(node, reads);
        // A node without a replica runs as well: its process ends with the stream of files.
        self.nodes[node].transfer = None;
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            // A connection of the process that has ended reaches no other one.
            self.network.break_link(node, other);
        }
        // One that was down may have been unable to start.
        self.after(DOWN_US, Event::Start(node));
    }

    /// The last nodes are upgraded, one after the other.
    pub(crate) fn upgrade_all(&mut self) {
        let is_older = |node: &usize| self.levels.reads(*node) < RECORD_LEVEL;
        let older: Vec<usize> = (0..self.nodes.len()).filter(is_older).collect();
        for (number, node) in older.into_iter().enumerate() {
            self.after(number as u64 * UPGRADE_US, Event::Version(node, RECORD_LEVEL));
        }
    }

    /// True if a node may start with its version; otherwise it gets a newer one.
    pub(crate) fn may_start(&mut self, node: usize) -> bool {
        let Err(problem) = self.levels.check_start(node) else { return true };
        self.tell(format_args!("node {node} does not start: {problem}"));
        self.after(REPAIR_US, Event::Version(node, RECORD_LEVEL));
        false
    }

    /// True if the cluster has the newest level, and all its nodes know it.
    pub(crate) fn has_newest_level(&self) -> bool {
        self.levels.is_newest(self.listed())
    }

    /// The nodes that the metadata list.
    fn listed(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(|node| !self.placement().is_forgotten(*node))
    }

    /// The node that leads the metadata: one that has links to a majority, and knows what is committed if any of those does.
    fn metadata_leader(&self) -> Option<usize> {
        let count = self.listed().count();
        let can_lead = |node: &usize| {
            let there = &self.nodes[*node];
            let is_running = there.process.is_some() && !there.is_paused;
            let links = self.listed().filter(|other| self.network.is_up(*node, *other)).count();
            is_running && links + 1 > count / 2
        };
        self.listed().filter(can_lead).max_by_key(|node| (self.levels.known(*node), Reverse(*node)))
    }

    /// Lets the level rise, if the node that leads the metadata finds that all nodes read more.
    pub(crate) fn look_at_levels(&mut self) {
        let is_withheld = self.plan.sabotage == Some(Sabotage::LevelWithheld);
        if !self.levels.is_drawn() || self.levels.level() == RECORD_LEVEL || is_withheld {
            return;
        }
        let Some(leader) = self.metadata_leader() else { return };
        let told = |node: usize| {
            let is_there = node == leader || self.network.is_up(leader, node);
            is_there.then(|| self.levels.reads(node))
        };
        let known = self.levels.known(leader);
        let level = match self.plan.sabotage {
            Some(Sabotage::LevelRisenEarly) => {
                risen(known, self.listed().map(told).filter(Option::is_some))
            }
            _ => risen(known, self.listed().map(told)),
        };
        if let Some(level) = level.filter(|level| *level > self.levels.level()) {
            self.rise(leader, level);
        }
    }

    fn rise(&mut self, leader: usize, level: u16) {
        self.tell(format_args!("node {leader} lets the level rise to {level}"));
        self.levels.rise(level);
        let left_out = self.listed().find(|node| self.levels.reads(*node) < level);
        if let Some(node) = left_out {
            self.book.violation(format!("the level rises to {level} without node {node}"));
        }
        for node in 0..self.nodes.len() {
            let most_us = if self.random.percent(10) { 2_000_000 } else { 50_000 };
            let wait_us = if node == leader { 1_000 } else { self.random.below(most_us) };
            self.after(wait_us, Event::Risen(node));
        }
        if self.random.percent(40) {
            // An older version is started again, perhaps before the node has learned of the level.
            let node = below(&mut self.random, self.nodes.len());
            let wait_us = self.random.below(2_000_000);
            self.after(wait_us, Event::Version(node, FIRST_RECORD_LEVEL));
            self.after(wait_us + BACK_US, Event::Version(node, RECORD_LEVEL));
        }
    }

    /// A node learns that the level has risen, if it is connected with one that knows it.
    pub(crate) fn risen(&mut self, node: usize) {
        let level = self.levels.level();
        if self.levels.known(node) == level || self.placement().is_forgotten(node) {
            return;
        }
        let there = &self.nodes[node];
        // A node without a replica runs as well, and has no links here.
        let is_without = there.lacks_replica || !there.has_replica;
        let is_running = there.process.is_some() || is_without;
        let hears = |other: usize| match is_without && self.levels.accept(node, other) {
            true => self.nodes[other].process.is_some() && self.network.reaches(other, node),
            false => self.network.is_up(node, other),
        };
        let tells = |other: usize| self.levels.known(other) == level && hears(other);
        let is_told = (0..self.nodes.len()).any(tells);
        let reads = check_level(self.levels.reads(node), level);
        // One that leads the metadata and cannot read them waits for a newer version.
        let leads = self.metadata_leader() == Some(node) && reads.is_ok();
        if !is_running || !is_told && !leads {
            return self.after(RETRY_US, Event::Risen(node));
        }
        if let Err(problem) = reads {
            return self.book.violation(format!("node {node} learns its level: {problem}"));
        }
        self.levels.learn(node);
        self.tell(format_args!("node {node} learns level {level}"));
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            let is_refused = !self.levels.accept(node, other);
            if is_refused && self.network.break_link(node, other) {
                self.tell(format_args!("node {node} refuses node {other}"));
                for (one, peer) in [(node, other), (other, node)] {
                    self.with(one, |process, ctx| {
                        process.input(Input::LinkChanged(node_id(peer)), ctx);
                    });
                }
            }
        }
    }

    /// A node has lost what its disk knew.
    pub(crate) fn lose_level(&mut self, node: usize) {
        if self.levels.is_drawn() {
            self.levels.lose(node);
            self.after(RETRY_US, Event::Risen(node));
        }
    }

    /// True if the nodes of the vhost may be chosen, as the node says that leads the metadata.
    pub(crate) fn may_place(&mut self) -> bool {
        if !self.levels.is_drawn() {
            return true;
        }
        let Some(leader) = self.metadata_leader() else { return false };
        let is_early = self.plan.sabotage == Some(Sabotage::NewerBeforeRisen);
        match check_placement_level(self.levels.known(leader)) {
            Err(problem) if !is_early => {
                self.levels.refused += 1;
                self.tell(format_args!("node {leader} refuses to choose nodes: {problem}"));
                false
            }
            Ok(()) | Err(_) => true,
        }
    }

    /// True if a node learns of a choice of nodes now; otherwise it learns of it later.
    pub(crate) fn can_learn_placement(&mut self, node: usize, version: usize) -> bool {
        let needed = self.placements[version].level;
        if self.levels.reads(node) < needed {
            // A node that has gone back to an older version is refused by all that know the level.
            let knows = |other: usize| {
                self.levels.known(other) == self.levels.level() && self.network.is_up(other, node)
            };
            if (0..self.nodes.len()).any(knows) {
                let reads = self.levels.reads(node);
                self.book.violation(format!(
                    "node {node} gets metadata of level {needed}, and reads level {reads}"
                ));
            }
        }
        // The level comes first in the metadata.
        let can_learn = self.levels.known(node) >= needed;
        if !can_learn && !self.placement().is_forgotten(node) {
            self.after(RETRY_US, Event::Placed(node, version));
        }
        can_learn
    }

    /// True if a leader tells nodes without a voter that it leads.
    pub(crate) fn tells_leads(&self, node: usize) -> bool {
        self.plan.sabotage == Some(Sabotage::NewerBeforeRisen)
            || tells_leads(self.levels.known(node))
    }

    /// A node must read what comes from another one, which writes records up to the level that it knows.
    pub(crate) fn check_levels(&mut self, from: usize, to: usize) {
        if !self.levels.are_compatible(from, to) {
            let (known, reads) = (self.levels.known(from), self.levels.reads(to));
            self.book.violation(format!(
                "node {to} reads level {reads}, and hears node {from} of level {known}"
            ));
        }
    }

    /// A notice of a leader must come only to nodes that know such notices.
    pub(crate) fn check_notice(&mut self, to: usize) {
        let reads = self.levels.reads(to);
        if !tells_leads(reads) {
            self.book.violation(format!("node {to} gets a notice, and reads level {reads}"));
        }
    }
}
