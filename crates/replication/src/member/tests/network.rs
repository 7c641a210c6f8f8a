//! Links that lose, double, delay and reorder frames, and are cut by direction.

use bytes::Bytes;

use super::node::Draws;

/// Faults of a history.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    pub(super) loss_percent: u64,
    pub(super) double_percent: u64,
    pub(super) delay_us_max: u64,
    /// Frames of a class keep their order, as on a stream.
    pub(super) is_ordered: bool,
}

impl Faults {
    pub(super) const NONE: Self =
        Self { loss_percent: 0, double_percent: 0, delay_us_max: 500, is_ordered: true };

    pub(super) fn draw(draws: &mut Draws) -> Self {
        Self {
            loss_percent: draws.below(25),
            double_percent: draws.below(15),
            delay_us_max: 1_000 << draws.below(7),
            is_ordered: draws.percent(50),
        }
    }
}

/// All links.
pub(super) struct Network {
    nodes: usize,
    cut: Vec<bool>,
    /// Time of the newest frame of each link and class.
    newest: Vec<u64>,
    pub(super) faults: Faults,
}

impl Network {
    pub(super) fn new(nodes: usize, faults: Faults) -> Self {
        let links = nodes * nodes;
        Self { nodes, cut: vec![false; links], newest: vec![0; links * 2], faults }
    }

    pub(super) fn cut(&mut self, from: usize, to: usize, is_cut: bool) {
        self.cut[from * self.nodes + to] = is_cut;
    }

    pub(super) fn heal(&mut self) {
        self.cut.fill(false);
        self.faults = Faults::NONE;
    }

    /// Times at which a frame arrives.
    pub(super) fn send(
        &mut self,
        (from, to, class): (usize, usize, usize),
        frame: &Bytes,
        now_us: u64,
        draws: &mut Draws,
    ) -> Vec<(u64, Bytes)> {
        let link = from * self.nodes + to;
        let Faults { loss_percent, double_percent, delay_us_max, is_ordered } = self.faults;
        if self.cut[link] || draws.percent(loss_percent) {
            return Vec::new();
        }
        let times = if draws.percent(double_percent) { 2 } else { 1 };
        let arrive = |_| {
            let mut at = now_us + 20 + draws.below(delay_us_max);
            if is_ordered {
                let newest = &mut self.newest[link * 2 + class];
                at = at.max(*newest + 1);
                *newest = at;
            }
            (at, frame.clone())
        };
        (0..times).map(arrive).collect()
    }
}
