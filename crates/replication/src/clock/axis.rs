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
    /// The own clocks: the wall clock was read first.
    pub now: ClockReading,
    /// The own wall clock, read after the monotonic one, in microseconds since 1970.
    pub wall_after_us: u64,
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
    /// The axis of the leader of this term as the wall clocks of the electing majority show it: all of them were down
    /// since.
    Restored {
        /// Term of that leader.
        term: u64,
    },
    /// The newest time in the log, because the bounds gave an earlier one.
    Log,
    /// The median of the wall clocks: no member of the electing majority knows an axis.
    WallClocks,
}

/// Clocks of earlier leaders that an electing majority knows.
#[derive(Clone, Copy, Debug)]
pub struct KnownClocks<'a> {
    /// Clocks that the leaders themselves have told; they never run ahead of them.
    pub told: &'a [LeaderClock],
    /// Clocks that nodes have saved beside their wall clocks, which may have been set since.
    pub saved: &'a [LeaderClock],
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
    /// counts, because a later leader whose entries are lost may have begun with the wall clocks. Of several clocks of one
    /// term that were told, which are all lower bounds, the highest counts; of several that were saved, the median. Only if
    /// there is none at all do clocks of earlier terms count: they are nearer than any wall clock.
    ///
    /// `floor_us` is the axis of the newest entry. `members` are the nodes whose wall clocks are asked if no clock is known.
    #[must_use]
    pub fn of_new_leader(
        me: NodeId,
        clock: &TurnClock<'_>,
        known: KnownClocks<'_>,
        last_term: u64,
        floor_us: u64,
        members: &[NodeId],
    ) -> Self {
        let now_us = clock.now.monotonic_us;
        let on_own_clock = |known: &LeaderClock| {
            let axis = known.on_own_clock(me, clock)?;
            (axis.at(now_us) <= AXIS_US_MAX).then_some((known.term, axis))
        };
        let (old_told, told): (Vec<_>, Vec<_>) =
            known.told.iter().filter_map(on_own_clock).partition(|(term, _)| *term < last_term);
        let (old_saved, saved): (Vec<_>, Vec<_>) =
            known.saved.iter().filter_map(on_own_clock).partition(|(term, _)| *term < last_term);
        let told = told.into_iter().min_by_key(|(term, axis)| (*term, Reverse(axis.offset_us)));
        let new = told
            .map(|(term, axis)| Self { axis, origin: AxisOrigin::Continued { term } })
            .or_else(|| Self::restored(saved.iter().map(|(term, _)| *term).min()?, &saved))
            .or_else(|| {
                let old = [old_told, old_saved].concat();
                Self::restored(old.iter().map(|(term, _)| *term).max()?, &old)
            })
            .unwrap_or_else(|| {
                let axis = Axis::through(median_wall_us(me, clock, members), now_us);
                Self { axis, origin: AxisOrigin::WallClocks }
            });
        if new.axis.at(now_us) >= floor_us {
            return new;
        }
        Self { axis: Axis::through(floor_us, now_us), origin: AxisOrigin::Log }
    }

    /// The median of the clocks of a term; of two, the earlier: rather late than early.
    fn restored(term: u64, clocks: &[(u64, Axis)]) -> Option<Self> {
        let of_term = clocks.iter().filter(|(other, _)| *other == term);
        let mut offsets: Vec<i64> = of_term.map(|(_, axis)| axis.offset_us).collect();
        offsets.sort_unstable();
        let offset_us = *offsets.get((offsets.len().checked_sub(1)?) / 2)?;
        Some(Self { axis: Axis { offset_us }, origin: AxisOrigin::Restored { term } })
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
