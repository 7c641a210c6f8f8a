//! Links between nodes, as streams: frames of a class keep their order, a direction that is cut holds them back, and a
//! link that is silent for long breaks as a whole.

use bytes::Bytes;
use replication::FrameClass;
use simdisk::Random;

/// Time after which a link breaks of which one direction is cut, in microseconds.
const SILENCE_US: u64 = 1_500_000;

/// Bytes that wait in a direction that is cut; more are dropped.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A frame that is to arrive.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Arrival {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// The connection by which it was sent.
    pub(crate) epoch: u64,
    pub(crate) frame: Bytes,
}

/// One direction of a link.
#[derive(Default, Debug)]
struct Direction {
    is_cut: bool,
    cut_since_us: u64,
    /// Delay of every frame, beside the drawn one.
    slow_us: u64,
    /// Time of the newest frame of each class.
    newest_us: [u64; 2],
    waiting: Vec<(FrameClass, Bytes)>,
    waiting_bytes: usize,
}

/// A link between two nodes.
#[derive(Debug)]
struct Link {
    is_up: bool,
    epoch: u64,
}

/// A change of a link that its two nodes notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Changed {
    pub(crate) one: usize,
    pub(crate) other: usize,
    pub(crate) is_up: bool,
}

/// All links.
#[derive(Debug)]
pub(crate) struct Network {
    nodes: usize,
    directions: Vec<Direction>,
    links: Vec<Link>,
    /// Delay of the fastest frame, in microseconds.
    delay_us: u64,
    /// Largest drawn delay.
    jitter_us: u64,
    random: Random,
}

impl Network {
    pub(crate) fn new(nodes: usize, mut random: Random) -> Self {
        let (delay_us, jitter_us) = (20 + random.below(500), 50 << random.below(9));
        let pairs = nodes * nodes;
        Self {
            nodes,
            directions: (0..pairs).map(|_| Direction::default()).collect(),
            links: (0..pairs).map(|_| Link { is_up: false, epoch: 0 }).collect(),
            delay_us,
            jitter_us,
            random,
        }
    }

    fn link(&mut self, one: usize, other: usize) -> &mut Link {
        let (one, other) = (one.min(other), one.max(other));
        &mut self.links[one * self.nodes + other]
    }

    fn direction(&mut self, from: usize, to: usize) -> &mut Direction {
        &mut self.directions[from * self.nodes + to]
    }

    /// True if two nodes have a link.
    pub(crate) fn is_up(&self, one: usize, other: usize) -> bool {
        one != other && self.links[one.min(other) * self.nodes + one.max(other)].is_up
    }

    pub(crate) fn is_current(&mut self, arrival: &Arrival) -> bool {
        self.link(arrival.from, arrival.to).epoch == arrival.epoch
    }

    /// Sends a frame. Returns its arrivals, none if it waits; `Err` if it is lost.
    pub(crate) fn send(
        &mut self,
        (from, to): (usize, usize),
        class: FrameClass,
        frame: Bytes,
        now_us: u64,
    ) -> Result<Option<(u64, Arrival)>, ()> {
        if !self.link(from, to).is_up {
            return Err(());
        }
        let direction = self.direction(from, to);
        if !direction.is_cut {
            return Ok(Some(self.arrival((from, to), class, frame, now_us)));
        }
        if direction.waiting_bytes + frame.len() > WAITING_BYTES_MAX {
            return Err(());
        }
        direction.waiting_bytes += frame.len();
        direction.waiting.push((class, frame));
        Ok(None)
    }

    fn arrival(
        &mut self,
        (from, to): (usize, usize),
        class: FrameClass,
        frame: Bytes,
        now_us: u64,
    ) -> (u64, Arrival) {
        let epoch = self.link(from, to).epoch;
        let is_late = self.random.percent(1);
        let jitter_us = if is_late { self.jitter_us * 8 } else { self.jitter_us };
        let drawn_us = self.delay_us + self.random.below(jitter_us);
        let direction = self.direction(from, to);
        let newest_us = &mut direction.newest_us[usize::from(class == FrameClass::Entries)];
        let at_us = (now_us + drawn_us + direction.slow_us).max(*newest_us + 1);
        *newest_us = at_us;
        (at_us, Arrival { from, to, epoch, frame })
    }

    /// Cuts a direction, or heals it: what waited arrives then.
    pub(crate) fn cut(
        &mut self,
        from: usize,
        to: usize,
        is_cut: bool,
        now_us: u64,
    ) -> Vec<(u64, Arrival)> {
        let direction = self.direction(from, to);
        if direction.is_cut == is_cut {
            return Vec::new();
        }
        (direction.is_cut, direction.cut_since_us) = (is_cut, now_us);
        direction.waiting_bytes = 0;
        let waiting = std::mem::take(&mut direction.waiting);
        let arrivals = waiting.into_iter();
        arrivals.map(|(class, frame)| self.arrival((from, to), class, frame, now_us)).collect()
    }

    /// True if octets of one node arrive at another.
    pub(crate) fn reaches(&self, from: usize, to: usize) -> bool {
        !self.directions[from * self.nodes + to].is_cut
            && !self.directions[to * self.nodes + from].is_cut
    }

    /// Delay of a piece of a stream; none while the direction is cut.
    pub(crate) fn stream_delay_us(
        &self,
        from: usize,
        to: usize,
        random: &mut Random,
    ) -> Option<u64> {
        let direction = &self.directions[from * self.nodes + to];
        let drawn_us = self.delay_us + random.below(self.jitter_us);
        (!direction.is_cut).then_some(drawn_us + direction.slow_us)
    }

    pub(crate) fn slow(&mut self, from: usize, to: usize, slow_us: u64) {
        self.direction(from, to).slow_us = slow_us;
    }

    /// Breaks a link: what is on its way is lost. False if it was down.
    pub(crate) fn break_link(&mut self, one: usize, other: usize) -> bool {
        let link = self.link(one, other);
        let was_up = std::mem::replace(&mut link.is_up, false);
        link.epoch += 1;
        for (from, to) in [(one, other), (other, one)] {
            let direction = self.direction(from, to);
            direction.waiting.clear();
            (direction.waiting_bytes, direction.newest_us) = (0, [0; 2]);
        }
        was_up
    }

    /// The process of a node is gone: `Some` with the time at which another node learns of it; none if it learns
    /// nothing. What is on its way may arrive.
    pub(crate) fn process_gone(&mut self, node: usize, other: usize, now_us: u64) -> Option<u64> {
        let keeps = self.random.percent(50);
        let link = self.link(node, other);
        let was_up = std::mem::replace(&mut link.is_up, false);
        if !keeps {
            link.epoch += 1;
        }
        let delay_us = self.delay_us + self.random.below(self.jitter_us);
        self.direction(other, node).waiting.clear();
        let direction = self.direction(node, other);
        direction.waiting.clear();
        let newest_us = direction.newest_us.into_iter().max().unwrap_or(0);
        (was_up && !direction.is_cut).then(|| (now_us + delay_us).max(newest_us + 1))
    }

    /// Breaks links that are silent, and connects nodes anew that accept each other where nothing is in the way.
    pub(crate) fn look(
        &mut self,
        is_running: &dyn Fn(usize) -> bool,
        accept: &dyn Fn(usize, usize) -> bool,
        now_us: u64,
    ) -> Vec<Changed> {
        let mut changes = Vec::new();
        for one in 0..self.nodes {
            for other in one + 1..self.nodes {
                let cut = |direction: &Direction| direction.is_cut;
                let silent = |direction: &Direction| {
                    direction.is_cut && now_us - direction.cut_since_us > SILENCE_US
                };
                let there = &self.directions[one * self.nodes + other];
                let back = &self.directions[other * self.nodes + one];
                let (is_cut, is_silent) = (cut(there) || cut(back), silent(there) || silent(back));
                let both_run = is_running(one) && is_running(other);
                let is_up = self.link(one, other).is_up;
                if is_up && (is_silent || !both_run) {
                    self.break_link(one, other);
                    changes.push(Changed { one, other, is_up: false });
                } else if !is_up && !is_cut && both_run && accept(one, other) {
                    self.break_link(one, other);
                    self.link(one, other).is_up = true;
                    changes.push(Changed { one, other, is_up: true });
                }
            }
        }
        changes
    }

    /// Heals all directions; what waited arrives.
    pub(crate) fn heal(&mut self, now_us: u64) -> Vec<(u64, Arrival)> {
        self.jitter_us = self.jitter_us.min(1_000);
        let mut arrivals = Vec::new();
        let nodes = self.nodes;
        for (from, to) in (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))) {
            self.slow(from, to, 0);
            if from != to {
                arrivals.append(&mut self.cut(from, to, false, now_us));
            }
        }
        arrivals
    }
}
