//! Nodes that get the replica and lose it, as changes of the metadata that one node after the other learns of.

use replication::levels::RECORD_LEVEL;
use replication::{FrameClass, LeadsNotice, LedGroup, Role};
use simdisk::Disk;

use crate::cluster::ids::node_id;
use crate::cluster::node::{Damage, Node};
use crate::cluster::placement::Placement;
use crate::event::Event;
use crate::faults::sabotage::Sabotage;
use crate::plan::{MEMBERS_MIN, below};
use crate::world::{World, pair};

impl World {
    /// The nodes that are to have the replica now.
    pub(crate) fn placement(&self) -> &Placement {
        self.placements.last().expect("there is one from the beginning")
    }

    /// Another node is to have the replica, if there is one without.
    pub(crate) fn join(&mut self) {
        if let Some(node) = self.node_without()
            && self.may_place()
        {
            self.place(RECORD_LEVEL, |placement| placement.add(node));
        }
    }

    /// One of the nodes is not to have the replica any more, if there are enough others.
    pub(crate) fn leave(&mut self, number: usize) {
        let nodes = self.placement().nodes();
        if nodes.len() > MEMBERS_MIN && self.may_place() {
            self.place(RECORD_LEVEL, |placement| placement.remove(nodes[number % nodes.len()]));
        }
    }

    /// Another node is to have the replica in place of one that has it.
    pub(crate) fn move_replica(&mut self, number: usize) {
        let nodes = self.placement().nodes();
        if let Some(node) = self.node_without()
            && self.may_place()
        {
            self.place(RECORD_LEVEL, |placement| {
                placement.remove(nodes[number % nodes.len()]);
                placement.add(node);
            });
        }
    }

    /// A node ends and does not come again; another one gets the replica.
    pub(crate) fn forget(&mut self, number: usize) {
        let nodes = self.placement().nodes();
        let gone = nodes[number % nodes.len()];
        let node = self.node_without();
        if node.is_some() || nodes.len() > MEMBERS_MIN {
            self.cut_power(gone, 0);
            // The list of the nodes is older than the levels.
            self.place(self.placement().level, |placement| {
                placement.forget(gone);
                node.into_iter().for_each(|node| placement.add(node));
            });
            // It learns of no earlier choice any more.
            let placement = self.placement().clone();
            let there = &mut self.nodes[gone];
            (there.placement, there.lacks_replica) = (placement, false);
        }
    }

    fn node_without(&mut self) -> Option<usize> {
        let placement = self.placement();
        let is_free = |node: &usize| !placement.has(*node) && !placement.is_forgotten(*node);
        let free: Vec<usize> = (0..self.nodes.len()).filter(is_free).collect();
        free.get(below(&mut self.random, free.len().max(1))).copied()
    }

    fn place(&mut self, level: u16, change: impl FnOnce(&mut Placement)) {
        let mut placement = self.placement().clone();
        (placement.version, placement.level) = (placement.version + 1, level);
        if self.plan.sabotage == Some(Sabotage::IncarnationReused) {
            placement.forget_former();
        }
        change(&mut placement);
        self.tell(format_args!("the replicas are to be on {:?}", placement.nodes()));
        let version = placement.version;
        self.placements.push(placement);
        for node in 0..self.nodes.len() {
            let most_us = if self.random.percent(10) { 3_000_000 } else { 100_000 };
            let wait_us = self.random.below(most_us);
            self.after(wait_us, Event::Placed(node, version));
        }
    }

    /// A node learns which nodes are to have the replica.
    pub(crate) fn placed(&mut self, node: usize, version: usize) {
        let there = &self.nodes[node];
        if version <= there.placement.version || !self.can_learn_placement(node, version) {
            return;
        }
        let there = &mut self.nodes[node];
        there.placement = self.placements[version].clone();
        if !there.placement.has(node) {
            there.lacks_replica = false;
        } else if !there.has_replica {
            self.replace(node);
        }
    }

    /// A leader looks for members that are to leave, and tells the nodes that have no voter that it leads.
    pub(crate) fn look_for_gone(&mut self, from: usize) {
        let there = &self.nodes[from];
        let Some(process) = &there.process else { return };
        if process.replica.leads_in().is_none() {
            return;
        }
        let told: Vec<Option<LedGroup>> =
            (0..self.nodes.len()).map(|to| process.replica.member().told_to(node_id(to))).collect();
        self.with(from, |process, ctx| process.look_at_members(ctx));
        if !self.tells_leads(from) {
            return;
        }
        for (to, led) in told.into_iter().enumerate() {
            if let Some(led) = led {
                let notice = LeadsNotice { nodes: pair(from, to), led: vec![led] };
                self.send(from, to, FrameClass::Control, notice.encode());
            }
        }
    }

    /// A node hears that another one leads in a term, and that its group has no voter here.
    pub(crate) fn hear_of_leader(&mut self, node: usize, notice: &LeadsNotice) {
        self.check_notice(node);
        let there = &self.nodes[node];
        let Some(process) = &there.process else { return };
        let is_left_out = |led| process.replica.is_left_out(led, &there.placement);
        let can_end = !process.is_writing;
        if can_end && notice.led.iter().any(is_left_out) {
            self.check_left_out(node);
            self.end_replica(node);
        }
    }

    /// The newest leader must do without a replica that ends.
    fn check_left_out(&mut self, node: usize) {
        let member = self.nodes[node].member;
        let leads = |node: &Node| {
            let process = node.process.as_ref()?;
            // Within a turn, the term of the member may be another one.
            let Role::Leader { term, .. } = process.replica.member().role() else { return None };
            Some((term, node.number, process.replica.member().members().0.contains(&member)))
        };
        let newest = self.nodes.iter().filter_map(leads).max();
        if let Some((term, other, true)) = newest {
            self.book.violation(format!(
                "node {node} ends its replica, which votes in term {term} of node {other}"
            ));
        }
    }

    /// A replica that its group does without ends, and its files are removed.
    pub(crate) fn end_replica(&mut self, node: usize) {
        self.tell(format_args!("node {node} has no replica any more"));
        self.moved += 1;
        let there = &mut self.nodes[node];
        (there.process, there.transfer) = (None, None);
        (there.disk, there.incoming) = (Disk::new(), Disk::new());
        (there.damage, there.lacks_replica, there.has_replica) = (Damage::None, false, false);
        if there.placement.has(node) {
            self.replace(node);
        }
    }
}
