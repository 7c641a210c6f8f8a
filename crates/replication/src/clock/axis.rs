//! The axis of a group: which time its leader goes by, and how a new leader continues it.

use std::cmp::Reverse;

use super::bounds::{ClockBounds, ClockReading};
use crate::ids::{NodeId, RunId};
use crate::limits::AXIS_US_MAX;

/// Time of a group while one node leads it: the node's monotonic clock plus an offset that stays the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Axis {
    offset_us: i64,
}

impl Axis {
    /// The axis that shows `axis_us` when the monotonic clock shows `monotonic_us`.
    #[must_use]
    pub fn through(axis_us: u64, monotonic_us: u64) -> Self {
        let offset = i128::from(axis_us) - i128::from(monotonic_us);
        Self {
            offset_us: i64::try_from(offset).unwrap_or(if offset > 0 {
                i64::MAX
            } else {
                i64::MIN
            }),
        }
    }

    /// The axis with this offset to the monotonic clock, in microseconds.
    #[must_use]
    pub fn with_offset(offset_us: i64) -> Self {
        Self { offset_us }
    }

    /// Offset to the monotonic clock, in microseconds.
    #[must_use]
    pub fn offset_us(self) -> i64 {
        self.offset_us
    }

    /// Time of the axis when the monotonic clock shows `monotonic_us`, in microseconds.
    #[must_use]
    pub fn at(self, monotonic_us: u64) -> u64 {
        monotonic_us.saturating_add_signed(self.offset_us)
    }
}

/// Clocks of the own node during a turn, and the bounds for those of others.
#[derive(Clone, Copy, Debug)]
pub struct TurnClock<'a> {
    /// The own clocks.
    pub now: ClockReading,
    /// Bounds for the clocks of other nodes.
    pub bounds: &'a ClockBounds,
}

/// The axis as a node knows it: on the clock of some node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaderClock {
    /// Term whose axis it is, or a lower bound of it.
    pub term: u64,
    /// Node to whose clock the offset belongs.
    pub node: NodeId,
    /// Run of that node's process.
    pub run: RunId,
    /// Offset to the monotonic clock of that run, in microseconds.
    pub offset_us: i64,
}

impl LeaderClock {
    /// A lower bound of the axis now, on the clock of the node `me`.
    #[must_use]
    pub fn on_own_clock(&self, me: NodeId, clock: &TurnClock<'_>) -> Option<Axis> {
        if self.node == me && self.run == clock.now.run {
            return Some(Axis::with_offset(self.offset_us));
        }
        let now_us = clock.now.monotonic_us;
        let bound = clock.bounds.lower_bound_us(self.node, self.run, now_us)?;
        Some(Axis::with_offset(bound.saturating_add(self.offset_us)))
    }
}

/// Source of the axis of a new leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AxisOrigin {
    /// The axis of the leader of this term, continued.
    Continued {
        /// Term of that leader.
        term: u64,
    },
    /// The newest time in the log, because the bounds gave an earlier one.
    Log,
    /// The median of the wall clocks: no member of the electing majority has run long enough to know an axis.
    WallClocks,
}

/// The axis of a new leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewAxis {
    /// The axis.
    pub axis: Axis,
    /// Source of the axis.
    pub origin: AxisOrigin,
}

impl NewAxis {
    /// The axis with which the node `me` begins to lead.
    ///
    /// `known` are the clocks of earlier leaders that the electing majority knows. Those of terms before `last_term`,
    /// the term of the last entry, do not count: later leaders may have been behind them. Of the others the oldest term
    /// counts, because a later leader whose entries are lost may have begun with the wall clocks; of several clocks of
    /// one term, which are all lower bounds, the highest. `floor_us` is the axis of the newest entry. `members` are the nodes whose wall clocks are asked if no clock is known.
    #[must_use]
    pub fn of_new_leader(
        me: NodeId,
        clock: &TurnClock<'_>,
        known: &[LeaderClock],
        last_term: u64,
        floor_us: u64,
        members: &[NodeId],
    ) -> Self {
        let now_us = clock.now.monotonic_us;
        let valid = known.iter().filter(|known| known.term >= last_term);
        let axes = valid
            .filter_map(|known| Some((known.term, known.on_own_clock(me, clock)?)))
            .filter(|(_, axis)| axis.at(now_us) <= AXIS_US_MAX);
        let floor = Axis::through(floor_us, now_us);
        match axes.min_by_key(|(term, axis)| (*term, Reverse(axis.offset_us))) {
            Some((term, axis)) if axis.at(now_us) >= floor_us => {
                Self { axis, origin: AxisOrigin::Continued { term } }
            }
            Some(_) => Self { axis: floor, origin: AxisOrigin::Log },
            None => {
                let wall = Axis::through(median_wall_us(me, clock, members), now_us);
                match wall.at(now_us) >= floor_us {
                    true => Self { axis: wall, origin: AxisOrigin::WallClocks },
                    false => Self { axis: floor, origin: AxisOrigin::Log },
                }
            }
        }
    }
}

/// The median of the wall clocks of this node and of `members`; of two, the earlier: rather late than early.
fn median_wall_us(me: NodeId, clock: &TurnClock<'_>, members: &[NodeId]) -> u64 {
    let others = members.iter().filter(|node| **node != me);
    let now_us = clock.now.monotonic_us;
    let mut walls: Vec<u64> =
        others.filter_map(|node| clock.bounds.wall_us(*node, now_us)).collect();
    walls.push(clock.now.wall_us);
    walls.sort_unstable();
    walls.get((walls.len() - 1) / 2).copied().unwrap_or(clock.now.wall_us)
}
