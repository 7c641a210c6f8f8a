//! The plan of a run: drawn from its seed at once, so that a run can be repeated without a part of it.

use replication::levels::{FIRST_RECORD_LEVEL, RECORD_LEVEL};
use simdisk::Random;

use crate::cluster::content::group_content::GroupContent;
use crate::faults::sabotage::Sabotage;

/// Most by which the rate of a clock is wrong, in millionths: two clocks differ by twice as much, and
/// `replication::limits::DRIFT_PPM` allows for more.
pub(crate) const DRIFT_PPM: u64 = 200;

/// Most by which a clock of the run goes faster than the true time, in millionths, with some more.
pub(crate) const FAST_PPM: u64 = DRIFT_PPM + 50;

/// A fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nemesis {
    /// The process of a node ends, and begins anew after this time.
    Kill(usize, u64),
    /// A node loses its power for this time.
    PowerCut(usize, u64),
    /// All nodes lose their power.
    PowerCutAll(u64),
    /// The process of a node stands still.
    Pause(usize, u64),
    /// One node does not hear another.
    CutOneWay(usize, usize, u64),
    /// A node neither hears the others nor is heard.
    Isolate(usize, u64),
    /// A link is slow: by so much, for so long.
    Slow(usize, usize, u64, u64),
    /// A link breaks, and what is on its way is lost.
    Break(usize, usize),
    /// Syncs of a node take up to so long, for so long.
    Stall(usize, u64, u64),
    /// The next sync of a node fails.
    FailSync(usize),
    /// The disk of a node is full.
    FullDisk(usize, u64),
    /// The files of a node are damaged while it is down.
    Rot(usize, u64),
    /// A node loses its disk.
    LoseDisk(usize, u64),
    /// A node compacts its log.
    Compact(usize),
    /// The wall clock of a node steps by so much.
    ClockStep(usize, i64),
    /// The leader hands over to a node.
    Transfer(usize),
    /// An alarm of memory or disk is on at a node.
    Alarm(usize, u64),
    /// A node is drained: it hands its lead over, and campaigns only if no other node does.
    Drain(usize, u64),
    /// A node gets the replica that has none.
    Join,
    /// One of the nodes that have the replica is to be without it.
    Leave(usize),
    /// A node gets the replica in place of one of those that have it.
    Move(usize),
    /// One of the nodes that have the replica ends for good, and is forgotten.
    Forget(usize),
    /// The leader is killed while all links are slow by so much, and some of the others while they vote.
    Storm(u64),
    /// A node is restarted with a version that reads up to this level of record kinds.
    Version(usize, u16),
}

/// The plan of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The seed, from which everything else of the run is drawn as well.
    pub seed: u64,
    /// The content of the group.
    pub content: GroupContent,
    /// Nodes that have the replica in the beginning.
    pub nodes: usize,
    /// Nodes that may get it later.
    pub spares: usize,
    /// Clients that publish, and that consume; together, the operators of metadata.
    pub clients: (usize, usize),
    /// Clients that schedule messages; none if the run has no schedules.
    pub schedulers: usize,
    /// Nodes that begin with a version of the first level of record kinds; none if the cluster has risen before.
    pub older: Vec<usize>,
    /// Time for which faults happen and clients work, in microseconds.
    pub chaos_us: u64,
    /// True if clients connect to any node, which passes them on to the leader.
    pub any_node: bool,
    /// Octets of entries that a log keeps for members that are behind.
    pub retention_bytes: u64,
    /// Bytes of a change of the metadata from which on the rest goes into another entry.
    pub entry_bytes_max: usize,
    /// Faults, each with its time in microseconds.
    pub nemeses: Vec<(u64, Nemesis)>,
    /// The guard that is left out.
    pub sabotage: Option<Sabotage>,
}

/// Fewest nodes that are to have the replica.
pub(crate) const MEMBERS_MIN: usize = 3;

/// Most nodes of a run.
const NODES_MAX: usize = 5;

/// The share of the runs in which clients connect to any node, in percent.
const ANY_NODE_PERCENT: u64 = 40;

/// Time without faults at the beginning, in microseconds.
const CALM_US: u64 = 3_500_000;

impl Plan {
    /// The plan of a seed.
    #[must_use]
    pub fn draw(seed: u64, sabotage: Option<Sabotage>) -> Self {
        let mut random = Random(seed ^ 0x5EED);
        let nodes = if random.percent(80) { 3 } else { 5 };
        let clients = (1 + below(&mut random, 2), 1 + below(&mut random, 3));
        let chaos_us = 6_000_000 + random.below(14_000_000);
        let count = 1 + random.below(10);
        let retention_bytes = match random.percent(50) {
            true => u64::MAX,
            false => 65_536 << random.below(4),
        };
        let nemeses = Vec::new();
        // Drawn by another sequence: a seed without moves has the plan that it had before there were any.
        let mut moves = Random(seed ^ 0x30FE);
        let (spares, moves_count) = match moves.percent(40) {
            true => {
                let most = if moves.percent(20) { 24 } else { 4 };
                (below(&mut moves, NODES_MAX - nodes + 1), 1 + moves.below(most))
            }
            false => (0, 0),
        };
        let content = GroupContent::of(seed);
        let is_of_vhost = content == GroupContent::Vhost;
        let schedulers = if is_of_vhost { draw_schedulers(seed) } else { 0 };
        let any_node = is_of_vhost && connect_anywhere(seed, sabotage);
        let entry_bytes_max = 200 << below(&mut Random(seed ^ 0x17E3), 10);
        let mut plan = Self {
            seed,
            content,
            nodes,
            spares,
            clients,
            schedulers,
            older: Vec::new(),
            chaos_us,
            any_node,
            retention_bytes,
            entry_bytes_max,
            nemeses,
            sabotage,
        };
        let mut has_rot = false;
        for _ in 0..count {
            let at_us = CALM_US + random.below(chaos_us - CALM_US);
            let nemesis = plan.nemesis(&mut random);
            // Two of them could take what a majority had.
            let is_rot = matches!(nemesis, Nemesis::Rot(..) | Nemesis::LoseDisk(..));
            if !is_rot || !has_rot {
                plan.nemeses.push((at_us, nemesis));
            }
            has_rot |= is_rot;
        }
        for _ in 0..moves_count {
            let at_us = CALM_US + moves.below(chaos_us - CALM_US);
            let number = below(&mut moves, NODES_MAX);
            let nemesis = match moves.below(100) {
                0..30 => Nemesis::Join,
                30..55 => Nemesis::Leave(number),
                // Like a lost disk.
                55..70 if !has_rot => Nemesis::Forget(number),
                _ => Nemesis::Move(number),
            };
            has_rot |= matches!(nemesis, Nemesis::Forget(_));
            plan.nemeses.push((at_us, nemesis));
        }
        plan.add_states();
        if is_of_vhost {
            plan.add_versions();
        }
        plan.suit_sabotage(&mut random, &mut moves);
        plan.nemeses.sort_by_key(|(at_us, _)| *at_us);
        plan
    }

    /// The faults that a sabotage shows with.
    fn suit_sabotage(&mut self, random: &mut Random, moves: &mut Random) {
        if self.sabotage == Some(Sabotage::VoteForgotten) {
            // Two votes in one term matter to few elections: there are many.
            let times = (CALM_US..self.chaos_us).step_by(4_000_000);
            self.nemeses = times
                .map(|at_us| (at_us, Nemesis::Storm(30_000 + random.below(150_000))))
                .collect();
        }
        if self.sabotage == Some(Sabotage::IncarnationReused) {
            // The replica must be back while others still know the member that it was.
            (self.nodes, self.spares) = (MEMBERS_MIN, 1);
            let times = (CALM_US..self.chaos_us).step_by(500_000);
            let number = |moves: &mut Random| below(moves, MEMBERS_MIN);
            self.nemeses = times.map(|at_us| (at_us, Nemesis::Move(number(moves)))).collect();
        }
        if self.sabotage == Some(Sabotage::LostDiskVotes) {
            self.spares = 0;
            let nodes = self.nodes;
            // The one that has what is confirmed is down while the others elect.
            let behind = below(random, nodes);
            let lost = (behind + 1 + below(random, nodes - 1)) % nodes;
            let at_us = CALM_US + 2_000_000;
            self.nemeses = (0..nodes)
                .filter(|node| *node != behind)
                .map(|node| match node == lost {
                    true => Nemesis::LoseDisk(node, 50_000),
                    false => Nemesis::PowerCut(node, 4_000_000),
                })
                .map(|nemesis| (at_us, nemesis))
                .collect();
            self.nemeses.push((CALM_US, Nemesis::Isolate(behind, 2_000_000)));
        }
    }

    /// Adds alarms and drained nodes, by another sequence again.
    fn add_states(&mut self) {
        let mut states = Random(self.seed ^ 0xA1A2);
        let count = if states.percent(40) { 1 + states.below(4) } else { 0 };
        for _ in 0..count {
            let at_us = CALM_US + states.below(self.chaos_us - CALM_US);
            let node = below(&mut states, self.nodes + self.spares);
            let for_us = 100_000 + states.below(4_000_000);
            let nemesis = match states.percent(60) {
                true => Nemesis::Alarm(node, for_us),
                false => Nemesis::Drain(node, for_us),
            };
            self.nemeses.push((at_us, nemesis));
        }
    }

    /// Adds nodes of an older version, their upgrades, and changes that need the newer one, by another sequence again.
    fn add_versions(&mut self) {
        use Sabotage::{IncarnationReused, LostDiskVotes, VoteForgotten};
        let mut versions = Random(self.seed ^ 0x1E7E);
        let has_own_faults =
            matches!(self.sabotage, Some(IncarnationReused | LostDiskVotes | VoteForgotten));
        if has_own_faults || !versions.percent(30) {
            return;
        }
        // All nodes have the replica until the level rises.
        self.nodes = if versions.percent(50) { NODES_MAX } else { self.nodes + self.spares };
        self.spares = 0;
        let first = below(&mut versions, self.nodes);
        let older = (0..self.nodes).filter(|node| *node == first || versions.percent(50));
        self.older = older.collect();
        let upgrades_us = if versions.percent(50) { self.chaos_us } else { self.chaos_us / 2 };
        for node in self.older.clone() {
            if versions.percent(90) {
                let at_us = versions.below(upgrades_us);
                self.nemeses.push((at_us, Nemesis::Version(node, RECORD_LEVEL)));
            }
        }
        for _ in 0..versions.below(3) {
            let node = below(&mut versions, self.nodes);
            self.add(&mut versions, Nemesis::Version(node, FIRST_RECORD_LEVEL));
        }
        for _ in 0..2 + versions.below(10) {
            let number = below(&mut versions, NODES_MAX);
            let change = match versions.below(3) {
                0 => Nemesis::Join,
                1 => Nemesis::Leave(number),
                _ => Nemesis::Move(number),
            };
            self.add(&mut versions, change);
        }
    }

    /// Adds a fault at a drawn time.
    fn add(&mut self, random: &mut Random, nemesis: Nemesis) {
        self.nemeses.push((CALM_US + random.below(self.chaos_us - CALM_US), nemesis));
    }

    fn nemesis(&self, random: &mut Random) -> Nemesis {
        let all = self.nodes + self.spares;
        let node = below(random, all);
        let other = (node + 1 + below(random, all - 1)) % all;
        let down_us = 50_000 << random.below(7);
        match random.below(100) {
            0..12 => Nemesis::Kill(node, down_us),
            12..16 => Nemesis::Transfer(node),
            16..30 => Nemesis::PowerCut(node, down_us),
            30..35 => Nemesis::PowerCutAll(down_us),
            35..42 => Nemesis::Pause(node, 200_000 + random.below(5_000_000)),
            42..52 => Nemesis::CutOneWay(node, other, 200_000 + random.below(6_000_000)),
            52..66 => Nemesis::Isolate(node, 200_000 + random.below(6_000_000)),
            66..71 => {
                let slow_us = 1_000 << random.below(9);
                Nemesis::Slow(node, other, slow_us, random.below(4_000_000))
            }
            71..75 => Nemesis::Break(node, other),
            75..80 => {
                let sync_us = 10_000 << random.below(10);
                Nemesis::Stall(node, sync_us, 200_000 + random.below(3_000_000))
            }
            80..83 => Nemesis::FailSync(node),
            83..86 => Nemesis::FullDisk(node, random.below(3_000_000)),
            86..88 => Nemesis::Rot(node, down_us),
            88..90 => Nemesis::LoseDisk(node, down_us),
            90..91 => Nemesis::Compact(node),
            91..94 => Nemesis::Storm(30_000 + random.below(150_000)),
            94..97 => {
                let us = i64::try_from(random.below(120_000_000)).unwrap_or(0) - 60_000_000;
                Nemesis::ClockStep(node, us)
            }
            _ => Nemesis::Transfer(node),
        }
    }
}

/// The number of clients that schedule messages.
fn draw_schedulers(seed: u64) -> usize {
    let mut random = Random(seed ^ 0x5C4D);
    if random.percent(40) { 1 + below(&mut random, 2) } else { 0 }
}

/// True if clients of a run connect to any node, by another sequence again.
fn connect_anywhere(seed: u64, sabotage: Option<Sabotage>) -> bool {
    Random(seed ^ 0xE_47A7).percent(ANY_NODE_PERCENT)
        || sabotage.is_some_and(Sabotage::needs_relays)
}

/// A number below a bound.
pub(crate) fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).unwrap_or(0)
}
