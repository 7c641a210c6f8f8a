//! An axis is never early, whatever the delays, the rates and the wall clocks.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{
    Axis, AxisOrigin, ClockBounds, ClockReading, KnownClocks, LeaderClock, NewAxis, TurnClock,
};
use crate::ids::{NodeId, RunId};

/// Clocks of a node of a property test.
#[derive(Clone, Copy, Debug)]
struct Clocks {
    began_us: i64,
    drift_ppm: i64,
    wall_error_us: i64,
}

impl Clocks {
    fn reading(&self, node: usize, now_us: i64) -> ClockReading {
        let age = now_us - self.began_us;
        let monotonic = age + age * self.drift_ppm / 1_000_000;
        let wall = 1_700_000_000_000_000 + now_us + self.wall_error_us;
        ClockReading {
            run: RunId(node as u64 + 100),
            monotonic_us: monotonic.try_into().unwrap(),
            wall_us: wall.try_into().unwrap(),
        }
    }
}

fn clocks() -> impl Strategy<Value = Clocks> {
    (-100_000_000..0_i64, -200..=200_i64, -60_000_000..60_000_000_i64).prop_map(
        |(began_us, drift_ppm, wall_error_us)| Clocks { began_us, drift_ppm, wall_error_us },
    )
}

fn delays() -> impl Strategy<Value = [i64; 6]> {
    // With short ones, only the drift of the clocks is left between early and late.
    let (short, long) = (0..50_i64, 0..900_000_i64);
    prop_oneof![proptest::array::uniform6(short), proptest::array::uniform6(long)]
}

fn node(number: usize) -> NodeId {
    NodeId::new(number as u64 + 1).unwrap()
}

/// Leadership moves over three nodes. Between two moves each node pings each other one.
fn never_early(
    clocks: [Clocks; 3],
    moves: Vec<(usize, i64, [i64; 6])>,
) -> Result<(), TestCaseError> {
    let mut bounds = [(); 3].map(|()| ClockBounds::default());
    let mut now_us = 0_i64;
    let mut axis = Axis::through(5_000_000, clocks[0].reading(0, 0).monotonic_us);
    let (mut leader, mut term, mut floor_us) = (0, 1, 5_000_000);
    let mut known =
        LeaderClock { term, node: node(0), run: RunId(100), offset_us: axis.offset_us() };
    // True time and axis at the beginning, which bound all that follow.
    let (begin_us, begin_axis) = (0_i64, 5_000_000_i64);
    let mut late_us = 0;
    for (next, passed_us, delays) in moves {
        let mut delays = delays.into_iter();
        for from in 0..3 {
            for to in (0..3).filter(|to| *to != from) {
                let sent = clocks[from].reading(from, now_us);
                let delay_us = delays.next().unwrap();
                let received_us = clocks[to].reading(to, now_us + delay_us).monotonic_us;
                bounds[to].observe(node(from), sent, received_us);
                late_us += delay_us;
            }
        }
        now_us += 1_000_000 + passed_us;
        floor_us = floor_us.max(axis.at(clocks[leader].reading(leader, now_us).monotonic_us));
        let now = clocks[next].reading(next, now_us);
        let clock = TurnClock { now, wall_after_us: now.wall_us, bounds: &bounds[next] };
        let nodes = [node(0), node(1), node(2)];
        // The newest entry may be older than the end of the leadership.
        let new =
            NewAxis::of_new_leader(node(next), &clock, told(&[known]), term, floor_us / 2, &nodes);
        prop_assert_eq!(new.origin, AxisOrigin::Continued { term });
        (axis, leader, term) = (new.axis, next, term + 1);
        known = LeaderClock { term, node: node(next), run: now.run, offset_us: axis.offset_us() };
        let shown = i64::try_from(axis.at(now.monotonic_us)).unwrap() - begin_axis;
        let passed = now_us - begin_us;
        prop_assert!(shown <= passed + passed * 200 / 1_000_000 + 2, "{shown} after {passed}");
        // Late by the delays, and by what clocks drift.
        let latest = passed - late_us - passed * 1_200 / 1_000_000 - 100;
        prop_assert!(shown >= latest, "{shown} after {passed}, at least {latest}");
    }
    Ok(())
}

proptest! {
    #[test]
    fn axis_is_never_early_and_late_by_the_delays(
        clocks in [clocks(), clocks(), clocks()],
        moves in vec((0..3_usize, 0..60_000_000_i64, delays()), 1..12),
    ) {
        never_early(clocks, moves)?;
    }
}

fn turn_clock(bounds: &ClockBounds, wall_us: u64) -> TurnClock<'_> {
    let now = ClockReading { run: RunId(1), monotonic_us: 1_000, wall_us };
    TurnClock { now, wall_after_us: wall_us, bounds }
}

fn known(term: u64, offset_us: i64) -> LeaderClock {
    LeaderClock { term, node: node(0), run: RunId(1), offset_us }
}

fn told(told: &[LeaderClock]) -> KnownClocks<'_> {
    KnownClocks { told, saved: &[] }
}

#[test]
fn axis_never_falls_behind_the_log() {
    let bounds = ClockBounds::default();
    let clock = turn_clock(&bounds, 0);
    let new = NewAxis::of_new_leader(node(0), &clock, told(&[known(3, 10)]), 3, 90_000, &[]);
    assert_eq!((new.axis.at(1_000), new.origin), (90_000, AxisOrigin::Log));
}

#[test]
fn clocks_of_terms_before_the_last_entry_do_not_count() {
    let bounds = ClockBounds::default();
    let clock = turn_clock(&bounds, 7);
    let clocks = [known(2, 900_000), known(3, 10), known(3, 20), known(4, 30)];
    let new = NewAxis::of_new_leader(node(0), &clock, told(&clocks), 3, 0, &[]);
    assert_eq!((new.axis.offset_us(), new.origin), (20, AxisOrigin::Continued { term: 3 }));
}

#[test]
fn cold_start_takes_the_median_of_the_wall_clocks() {
    let mut bounds = ClockBounds::default();
    for (number, wall_us) in [(1, 5_000), (2, 999_999)] {
        let sent = ClockReading { run: RunId(9), monotonic_us: 0, wall_us };
        bounds.observe(node(number), sent, 1_000);
    }
    let nodes = [node(0), node(1), node(2)];
    let start = |wall_us, floor_us, nodes: &[NodeId]| {
        let clock = turn_clock(&bounds, wall_us);
        let new = NewAxis::of_new_leader(node(0), &clock, told(&[]), 3, floor_us, nodes);
        (new.axis.at(1_000), new.origin)
    };
    assert_eq!(start(7_000, 0, &nodes), (7_000, AxisOrigin::WallClocks));
    assert_eq!(start(1_000, 0, &nodes), (5_000, AxisOrigin::WallClocks));
    assert_eq!(start(1_000, 6_000, &nodes), (6_000, AxisOrigin::Log));
    // Of two, the earlier: rather late than early.
    assert_eq!(start(7_000, 0, &nodes[..2]), (5_000, AxisOrigin::WallClocks));
}

#[test]
fn axis_goes_on_after_all_nodes_were_down() {
    let bounds = ClockBounds::default();
    let clock = turn_clock(&bounds, 9_999);
    let start = |told: &[LeaderClock], saved: &[LeaderClock]| {
        let known = KnownClocks { told, saved };
        let new = NewAxis::of_new_leader(node(0), &clock, known, 3, 0, &[]);
        (new.axis.offset_us(), new.origin)
    };
    // The wall clock of one node was set while it was down.
    let saved = [known(3, 3_600_000_000), known(3, 30), known(3, 20)];
    assert_eq!(start(&[], &saved), (30, AxisOrigin::Restored { term: 3 }));
    assert_eq!(start(&[], &saved[1..]), (20, AxisOrigin::Restored { term: 3 }));
    // A node that was not down knows better, and a term that is over counts only if nothing else is known.
    assert_eq!(start(&[known(3, 5)], &saved), (5, AxisOrigin::Continued { term: 3 }));
    assert_eq!(start(&[], &[known(2, 7), known(3, 4)]), (4, AxisOrigin::Restored { term: 3 }));
    assert_eq!(start(&[], &[known(1, 9), known(2, 7)]), (7, AxisOrigin::Restored { term: 2 }));
}
