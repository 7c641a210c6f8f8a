//! Lower bounds of the differences between this node's monotonic clock and those of others.

use std::collections::BTreeMap;

use crate::ids::{NodeId, RunId};
use crate::limits::{CLOCKS_MAX, DRIFT_PPM};

/// Runs of the same node whose bounds are kept: a leader's clock is needed after its end.
const RUNS_MAX: usize = 4;

/// Readings of a node's clocks, as its ping tells them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockReading {
    /// Run of the node's process.
    pub run: RunId,
    /// Monotonic clock of the run, in microseconds.
    pub monotonic_us: u64,
    /// Wall clock, in microseconds since 1970.
    pub wall_us: u64,
}

/// The observation that gives the highest bound. Bounds of all observations fall at the same rate with their
/// age, so that this one stays the highest until a higher one comes.
#[derive(Clone, Copy, Debug)]
struct Best {
    run: RunId,
    /// Clock of the other node when it sent minus own clock when the message arrived, in microseconds.
    difference_us: i64,
    /// Own clock when the message arrived, in microseconds.
    at_us: u64,
}

impl Best {
    fn bound_us(&self, now_us: u64) -> i64 {
        self.difference_us.saturating_sub(drift_us(now_us.abs_diff(self.at_us)))
    }
}

/// Observations of a node's clocks.
#[derive(Clone, Debug, Default)]
struct Observed {
    /// One per run of its process, newest last.
    best: Vec<Best>,
    /// Wall clock of the node minus own monotonic clock at the newest message, in microseconds.
    wall_offset_us: i64,
}

/// Bounds for the clocks of the other nodes of a cluster.
#[derive(Clone, Debug, Default)]
pub struct ClockBounds {
    nodes: BTreeMap<NodeId, Observed>,
}

/// Most that two clocks drift apart within `age_us`, in microseconds.
fn drift_us(age_us: u64) -> i64 {
    let drift = u128::from(age_us) * u128::from(DRIFT_PPM);
    i64::try_from(drift.div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// `a - b`; the clocks of two nodes may differ by any amount.
fn difference(a: u64, b: u64) -> i64 {
    i64::try_from(i128::from(a) - i128::from(b)).unwrap_or(if a > b { i64::MAX } else { i64::MIN })
}

impl ClockBounds {
    /// Notes a ping of `node` with its clocks when it sent, which arrived at `received_us` of the own monotonic
    /// clock.
    pub fn observe(&mut self, node: NodeId, sent: ClockReading, received_us: u64) {
        if self.nodes.len() >= CLOCKS_MAX && !self.nodes.contains_key(&node) {
            return;
        }
        let observed = self.nodes.entry(node).or_default();
        observed.wall_offset_us = difference(sent.wall_us, received_us);
        let new = Best {
            run: sent.run,
            difference_us: difference(sent.monotonic_us, received_us),
            at_us: received_us,
        };
        match observed.best.iter_mut().find(|best| best.run == sent.run) {
            Some(best) if new.difference_us >= best.bound_us(received_us) => *best = new,
            Some(_) => {}
            None => {
                if observed.best.len() == RUNS_MAX {
                    observed.best.remove(0);
                }
                observed.best.push(new);
            }
        }
    }

    /// Lower bound of the difference between the monotonic clock of `node` in its `run` and the own one, at `now_us`
    /// of the own. `None` if nothing is known of that run.
    #[must_use]
    pub fn lower_bound_us(&self, node: NodeId, run: RunId, now_us: u64) -> Option<i64> {
        let best = self.nodes.get(&node)?.best.iter().find(|best| best.run == run)?;
        Some(best.bound_us(now_us))
    }

    /// Wall clock of `node` at `now_us` of the own monotonic clock, in microseconds since 1970, late by the delay of
    /// its last ping. `None` if nothing is known of the node.
    #[must_use]
    pub fn wall_us(&self, node: NodeId, now_us: u64) -> Option<u64> {
        let offset = self.nodes.get(&node)?.wall_offset_us;
        Some(now_us.saturating_add_signed(offset))
    }

    /// Nodes of which pings have arrived.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.nodes.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const B: fn() -> NodeId = || NodeId::new(2).unwrap();

    fn reading(run: u64, monotonic_us: u64) -> ClockReading {
        ClockReading { run: RunId(run), monotonic_us, wall_us: monotonic_us }
    }

    #[test]
    fn fastest_message_gives_the_bound() {
        let mut bounds = ClockBounds::default();
        assert_eq!(bounds.lower_bound_us(B(), RunId(1), 0), None);
        // The other clock is 1,000,000 ahead; delays of 300, 20 and 500.
        bounds.observe(B(), reading(1, 1_000_000), 300);
        bounds.observe(B(), reading(1, 1_001_000), 1_020);
        bounds.observe(B(), reading(1, 1_002_000), 2_500);
        assert_eq!(bounds.lower_bound_us(B(), RunId(1), 2_500), Some(999_980 - 1));
    }

    #[test]
    fn bound_falls_with_the_age_of_the_message() {
        let mut bounds = ClockBounds::default();
        bounds.observe(B(), reading(1, 10), 10);
        assert_eq!(bounds.lower_bound_us(B(), RunId(1), 1_000_010), Some(-500));
        bounds.observe(B(), reading(1, 2_000_000), 2_000_100);
        assert_eq!(bounds.lower_bound_us(B(), RunId(1), 2_000_100), Some(-100));
    }

    #[test]
    fn runs_of_a_node_have_bounds_of_their_own() {
        let mut bounds = ClockBounds::default();
        bounds.observe(B(), reading(1, 5_000_000), 0);
        bounds.observe(B(), reading(2, 0), 10);
        assert_eq!(bounds.lower_bound_us(B(), RunId(1), 10), Some(4_999_999));
        assert_eq!(bounds.lower_bound_us(B(), RunId(2), 10), Some(-10));
        for run in 3..6 {
            bounds.observe(B(), reading(run, 0), 10);
        }
        assert_eq!(bounds.lower_bound_us(B(), RunId(1), 10), None);
    }

    #[test]
    fn impossible_readings_do_no_harm() {
        let mut bounds = ClockBounds::default();
        bounds.observe(B(), reading(1, u64::MAX), 0);
        assert!(bounds.lower_bound_us(B(), RunId(1), u64::MAX).is_some());
        bounds.observe(B(), reading(2, 0), u64::MAX);
        assert_eq!(bounds.lower_bound_us(B(), RunId(2), 0), Some(i64::MIN));
        assert_eq!(bounds.wall_us(B(), 0), Some(0));
    }
}
