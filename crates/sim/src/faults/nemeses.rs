//! Faults of a run, as they happen.

use replication::MemberId;
use simdisk::{Disk, Random};

use crate::cluster::ids::{node_id, number_of};
use crate::cluster::node::Damage;
use crate::cluster::process::Process;
use crate::event::Event;
use crate::plan::{Nemesis, below};
use crate::world::World;

/// Offsets of the two copies of a member's hard state in its file.
const HARD_STATE_SLOTS: [usize; 2] = [0, 4096];

/// Octets of a copy.
const HARD_STATE_BYTES: usize = 512;

impl World {
    pub(crate) fn nemesis(&mut self, at: usize) {
        let Some((_, nemesis)) = self.plan.nemeses.get(at).copied() else { return };
        self.tell(format_args!("-- {nemesis:?}"));
        match nemesis {
            Nemesis::Kill(node, down_us) => self.kill(node, down_us),
            Nemesis::PowerCut(node, down_us) => self.cut_power(node, down_us),
            Nemesis::PowerCutAll(down_us) => {
                (0..self.nodes.len()).for_each(|node| self.cut_power(node, down_us));
            }
            Nemesis::Pause(node, for_us) => self.pause(node, for_us),
            Nemesis::CutOneWay(from, to, for_us) => self.cut(from, to, for_us),
            Nemesis::Isolate(node, for_us) => {
                for other in (0..self.nodes.len()).filter(|other| *other != node) {
                    self.cut(node, other, for_us);
                    self.cut(other, node, for_us);
                }
            }
            Nemesis::Slow(from, to, slow_us, for_us) => {
                self.network.slow(from, to, slow_us);
                self.after(for_us, Event::Heal(from, to));
            }
            Nemesis::Break(one, other) => {
                self.network.break_link(one, other);
                self.break_streams(one, other);
            }
            Nemesis::Stall(node, sync_us, for_us) => {
                self.nodes[node].sync_us = (sync_us, self.now_us + for_us);
            }
            Nemesis::FailSync(node) => {
                let random = Random(self.random.next());
                self.nodes[node].disk.fail_next_sync(random);
            }
            Nemesis::FullDisk(node, for_us) => {
                let more = usize::try_from(self.random.below(20_000)).unwrap_or(0);
                self.nodes[node].disk.limit_room(more);
                self.after(for_us, Event::Room(node));
            }
            Nemesis::Rot(node, down_us) => self.rot(node, down_us),
            Nemesis::LoseDisk(node, down_us) => self.lose_disk(node, down_us),
            Nemesis::Compact(node) => self.with(node, |process, ctx| process.compact(ctx)),
            Nemesis::ClockStep(node, us) => self.nodes[node].clocks.error_us += us,
            Nemesis::Transfer(to) => self.transfer(to),
            Nemesis::Alarm(node, for_us) => self.begin_alarm(node, for_us),
            Nemesis::Drain(node, for_us) => {
                self.nodes[node].drained_until_us = self.now_us + for_us;
                self.with(node, |process, ctx| process.hand_over(None, ctx));
            }
            Nemesis::Join => self.join(),
            Nemesis::Leave(number) => self.leave(number),
            Nemesis::Move(number) => self.move_replica(number),
            Nemesis::Forget(number) => self.forget(number),
            Nemesis::Storm(slow_us) => self.storm(slow_us),
            Nemesis::Version(node, reads) => self.change_version(node, reads),
        }
    }

    fn pause(&mut self, node: usize, for_us: u64) {
        self.nodes[node].is_paused = true;
        self.after(for_us, Event::Resume(node));
    }

    fn begin_alarm(&mut self, node: usize, for_us: u64) {
        self.nodes[node].alarm_until_us = self.now_us + for_us;
        self.with(node, Process::alarm_changed);
        self.after(for_us, Event::AlarmOver(node));
    }

    fn cut(&mut self, from: usize, to: usize, for_us: u64) {
        let arrivals = self.network.cut(from, to, true, self.now_us);
        self.arrivals(arrivals);
        self.after(for_us, Event::Heal(from, to));
    }

    pub(crate) fn heal_direction(&mut self, from: usize, to: usize) {
        self.network.slow(from, to, 0);
        let arrivals = self.network.cut(from, to, false, self.now_us);
        self.arrivals(arrivals);
    }

    /// A node begins anew with an empty disk.
    fn lose_disk(&mut self, node: usize, down_us: u64) {
        self.cut_power(node, down_us);
        let there = &mut self.nodes[node];
        (there.disk, there.incoming) = (Disk::new(), Disk::new());
        there.damage = Damage::Lost;
        self.lose_level(node);
        self.tell(format_args!("node {node} has lost its disk"));
    }

    /// The files of a node are damaged while it is down.
    fn rot(&mut self, node: usize, down_us: u64) {
        self.cut_power(node, down_us);
        let disk = self.nodes[node].disk.clone();
        let files: Vec<(String, usize)> =
            disk.files().into_iter().filter(|(_, len)| *len > 512).collect();
        if files.is_empty() {
            return;
        }
        let (name, len) = &files[below(&mut self.random, files.len())];
        let at = match name.as_str() {
            // The rest of the file is empty.
            "raft" => {
                HARD_STATE_SLOTS[below(&mut self.random, HARD_STATE_SLOTS.len())]
                    + below(&mut self.random, HARD_STATE_BYTES)
            }
            _ => below(&mut self.random, *len),
        };
        self.nodes[node].damage = Damage::Rotten;
        self.tell(format_args!("node {node}: octet {at} of {name} has rotted"));
        disk.damage(name, |content| content[at] ^= 0x40);
    }

    /// Several elections at once, between nodes that begin anew.
    fn storm(&mut self, slow_us: u64) {
        let nodes = self.nodes.len();
        for (from, to) in (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))) {
            let of_link_us = slow_us / 4 + self.random.below(slow_us);
            self.network.slow(from, to, of_link_us);
            self.after(3_000_000, Event::Heal(from, to));
        }
        let leads = |node: &usize| {
            let process = self.nodes[*node].process.as_ref();
            process.is_some_and(|it| it.replica.leads_in().is_some())
        };
        let leader = (0..nodes).find(leads);
        if let Some(leader) = leader {
            self.kill(leader, 30_000);
        }
        if self.random.percent(70) {
            self.ambush_until_us = self.now_us + 3_000_000;
            return;
        }
        for _ in 0..nodes {
            let (node, wait_us) = (below(&mut self.random, nodes), self.random.below(6 * slow_us));
            self.after(wait_us, Event::Strike(node, 5_000));
        }
    }

    /// A node that has just voted is killed, and nobody hears its candidate for longer than an election takes.
    pub(crate) fn ambush(&mut self, voter: usize, candidate: u64) {
        self.kill(voter, 500);
        let Some(candidate) = MemberId::new(candidate).map(number_of) else { return };
        for other in (0..self.nodes.len()).filter(|other| *other != candidate) {
            if other != voter {
                self.network.break_link(candidate, other);
            }
            self.cut(candidate, other, 2_600_000);
        }
    }

    fn transfer(&mut self, to: usize) {
        let leads = |node: &usize| {
            let process = self.nodes[*node].process.as_ref();
            process.is_some_and(|it| it.replica.leads_in().is_some() && !it.is_writing)
        };
        let Some(leader) = (0..self.nodes.len()).find(leads) else { return };
        if leader != to {
            self.with(leader, |process, ctx| {
                process.hand_over(Some(node_id(to)), ctx);
            });
            if self.random.percent(40) {
                // Nothing comes of it, and the leader goes on after a while.
                let for_us = 500_000 + self.random.below(4_000_000);
                self.pause(to, for_us);
            }
        }
    }
}
