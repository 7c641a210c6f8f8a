//! Files on their way from a leader to a node, which are lost with either process, and go on where they ended.

use replica::{PreparedShipment, ShipmentNeed};
use replication::{EntryLog as _, GroupPlacement as _};
use simdisk::Disk;
use storage::Installation;

use crate::cluster::ids::{CLUSTER, GROUP, node_id, number_of};
use crate::cluster::node::{Damage, GoesOn};
use crate::cluster::process::Process;
use crate::cluster::requests::transfer::{Prepared, Transfer};
use crate::event::Event;
use crate::faults::sabotage::Sabotage;
use crate::world::World;

/// Octets that travel at once.
const CHUNK_BYTES: usize = 8 * 1024;

impl World {
    /// The replica of a node is to be replaced, unless the group is to do without.
    pub(crate) fn replace(&mut self, node: usize) {
        let there = &self.nodes[node];
        if !there.placement.has(node) {
            if there.has_replica {
                self.end_replica(node);
            }
            return;
        }
        if !std::mem::replace(&mut self.nodes[node].lacks_replica, true) {
            self.ask(node, ShipmentNeed::Replacement);
        }
    }

    /// A node that lacks files asks for them, and asks again until it has them.
    pub(crate) fn ask(&mut self, node: usize, need: ShipmentNeed) {
        if !self.nodes[node].needs(need) {
            return;
        }
        let again_us = 100_000 + self.random.below(1_000_000);
        if need == ShipmentNeed::Replacement {
            // One that is behind is offered the files again.
            self.after(again_us, Event::Ask(node, need));
        }
        if self.nodes[node].transfer.is_some() {
            return;
        }
        let can_ship = |other: &usize| {
            let there = &self.nodes[*other];
            let process = there.process.as_ref().filter(|_| !there.is_paused);
            process.is_some_and(|it| it.replica.can_prepare(need))
                && self.network.reaches(*other, node)
                && self.levels.accept(*other, node)
        };
        if let Some(leader) = (0..self.nodes.len()).find(can_ship) {
            self.with(leader, |process, ctx| process.prepare(node_id(node), need, ctx));
        }
    }

    /// The first octets of a shipment are about to leave.
    pub(crate) fn begin_transfer(&mut self, from: usize, run: u64, prepared: Prepared) {
        let Prepared { need, files } = prepared;
        let PreparedShipment { member, shipment, state } = *files;
        let node = number_of(member);
        let there = &mut self.nodes[node];
        if !there.needs(need) || there.transfer.is_some() {
            return;
        }
        if self.levels.check_start(node).is_err() {
            // The process that asked has ended, and one of the version that is there now does not start.
            return;
        }
        if need == ShipmentNeed::Replacement && there.placement.may_be_left_out(member) {
            // The leader does not know yet that the node was chosen again.
            return;
        }
        self.check_levels(from, node);
        let there = &mut self.nodes[node];
        let plan = shipment.plan();
        match Installation::begin(there.incoming.clone(), GROUP.0, plan) {
            Ok(installation) => {
                let index = plan.index;
                let by = (from, run);
                there.transfer =
                    Some(Transfer { from: by, need, member, state, shipment, installation });
                self.tell(format_args!(
                    "node {from} ships files up to {index} to node {node}: {need:?}, {member:?}"
                ));
                let wait_us = self.random.below(20_000);
                self.after(wait_us, Event::Chunk(node));
            }
            Err(error) => {
                self.book.violation(format!("node {node} refuses the files of {from}: {error}"));
            }
        }
    }

    /// Octets of a shipment arrive.
    pub(crate) fn chunk(&mut self, node: usize) {
        let Some(mut transfer) = self.nodes[node].transfer.take() else { return };
        let (sender, run) = transfer.from;
        let process = self.nodes[sender].process.as_ref();
        if process.is_none_or(|process| process.run != run) || !self.network.reaches(sender, node) {
            // The stream is cut.
            return;
        }
        let wait_us = 100 + self.random.below(5_000);
        if self.nodes[sender].is_paused || self.nodes[node].is_paused {
            self.nodes[node].transfer = Some(transfer);
            return self.after(wait_us, Event::Chunk(node));
        }
        let Some((file, offset)) = transfer.installation.next() else {
            return self.install(node, transfer);
        };
        let mut bytes = vec![0; CHUNK_BYTES];
        let read = transfer.shipment.read(file, offset, &mut bytes);
        let arrived = read.and_then(|read| transfer.installation.write(&bytes[..read]));
        match arrived {
            Ok(()) => {
                self.nodes[node].transfer = Some(transfer);
                self.after(wait_us, Event::Chunk(node));
            }
            Err(error) => self.tell(format_args!("files for node {node} do not arrive: {error}")),
        }
    }

    /// All octets are there: they take the place of the replica.
    fn install(&mut self, node: usize, transfer: Transfer) {
        self.check_levels(transfer.from.0, node);
        let there = &self.nodes[node];
        if there.process.as_ref().is_some_and(|process| process.is_writing) {
            // The write of the turn ends first.
            self.nodes[node].transfer = Some(transfer);
            return self.after(1_000, Event::Chunk(node));
        }
        let Transfer { from: (sender, run), need, member, state, installation, shipment } =
            transfer;
        let plan = shipment.plan();
        let overwrites = self.plan.sabotage == Some(Sabotage::NewerEntriesReplaced);
        let state = match (&there.process, need) {
            (None, ShipmentNeed::Replacement) => state,
            (Some(process), ShipmentNeed::Behind)
                if process.replica.is_behind((plan.index, plan.term)) || overwrites =>
            {
                state.keeping_vote_of(process.replica.member().log().hard_state())
            }
            // It leads, or is down, or was read again, or has newer entries.
            _ => return,
        };
        let disk = match installation.finish(CLUSTER.0, member.get(), &state) {
            Ok(disk) => disk,
            Err(error) => {
                return self.tell(format_args!("files for node {node} are refused: {error}"));
            }
        };
        self.with(node, Process::end_service);
        let goes_on = self.nodes[node].process.take().map(|process| {
            let Process { run, bounds, content, replica, .. } = process;
            // A log that is not closed cleanly is removed all the same.
            let _ = replica.into_log().log.close();
            GoesOn { run, bounds, content }
        });
        let there = &mut self.nodes[node];
        (there.disk, there.incoming, there.member) = (disk, Disk::new(), member);
        (there.damage, there.lacks_replica) = (Damage::None, false);
        match std::mem::replace(&mut there.has_replica, true) {
            true => self.rebuilt += 1,
            false => self.moved += 1,
        }
        self.tell(format_args!("node {node} is rebuilt as {member:?}"));
        self.open(node, goes_on);
        if self.random.percent(30) {
            // An offer may be answered twice: by then, the node has newer entries than the files.
            let wait_us = self.random.below(500_000);
            self.after(wait_us, Event::Ask(node, ShipmentNeed::Behind));
        }
        let index = shipment.plan().index;
        let is_there = self.nodes[sender].process.as_ref().is_some_and(|it| it.run == run);
        if is_there && self.network.reaches(node, sender) {
            self.with(sender, |process, ctx| process.shipped(member, index, ctx));
        }
    }
}
