//! The ticks of a node. All members count the same ones, so that they act together; a member to which several ticks
//! mean nothing gets them at once, before its next input or its first tick that means something.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::disk::vhost_files::VhostId;

/// Duration of a tick.
pub(super) const TICK: Duration = Duration::from_micros(replication::limits::TICK_US);

/// Ticks that count after the thread had no turn for long: a member must not jump to an election.
const TICKS_AT_ONCE_MAX: u64 = 2;

/// The ticks so far, and those at which replicas must have a turn.
#[derive(Debug)]
pub(super) struct Ticks {
    /// Ticks so far.
    number: u64,
    /// Time of the next one.
    next: Instant,
    /// The first tick that each replica must not miss.
    needed: BTreeMap<VhostId, u64>,
    /// The same, in the order of the ticks.
    order: BTreeSet<(u64, VhostId)>,
    /// The tick until which the thread has slept.
    planned: u64,
}

impl Ticks {
    pub(super) fn new(now: Instant) -> Self {
        let (needed, order) = (BTreeMap::new(), BTreeSet::new());
        Self { number: 0, next: now + TICK, needed, order, planned: 1 }
    }

    /// Ticks so far.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Notes the first tick that a replica must not miss; none if it has no part in its group.
    pub(super) fn need(&mut self, replica: VhostId, number: Option<u64>) {
        let known = self.needed.get(&replica).copied();
        if known == number {
            return;
        }
        if let Some(known) = known {
            self.order.remove(&(known, replica));
        }
        match number {
            Some(number) => {
                self.needed.insert(replica, number);
                self.order.insert((number, replica));
            }
            None => {
                self.needed.remove(&replica);
            }
        }
    }

    /// The time of the first tick that a replica needs, for a thread that sleeps from now on.
    pub(super) fn plan(&mut self, now: Instant) -> Instant {
        let next = self.number + 1;
        // The thread was busy: the members have heard nothing meanwhile.
        let has_slept = now < self.next;
        let needed = self.order.first().filter(|_| has_slept);
        self.planned = needed.map_or(next, |(needed, _)| *needed).max(next);
        self.time_of_planned()
    }

    fn time_of_planned(&self) -> Instant {
        let ticks = u32::try_from(self.planned - self.number - 1).unwrap_or(u32::MAX);
        self.next + TICK * ticks
    }

    /// Counts the ticks up to now: all those for which the thread was to sleep, and few more. Returns the time that has
    /// passed since the planned one.
    pub(super) fn elapse(&mut self, now: Instant) -> Duration {
        let late = now.saturating_duration_since(self.time_of_planned());
        let most = self.planned + TICKS_AT_ONCE_MAX - 1;
        while self.next <= now && self.number < most {
            self.number += 1;
            self.next += TICK;
        }
        if self.next <= now {
            self.next = now + TICK;
        }
        self.planned = self.planned.max(self.number + 1);
        late
    }

    /// Replicas that must have a turn now.
    pub(super) fn due(&self) -> Vec<VhostId> {
        let due = self.order.iter().take_while(|(needed, _)| *needed <= self.number);
        due.map(|(_, replica)| *replica).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: VhostId = VhostId(1);
    const B: VhostId = VhostId(2);

    #[test]
    fn thread_sleeps_until_the_first_tick_that_is_needed() {
        let began = Instant::now();
        let mut ticks = Ticks::new(began);
        ticks.need(A, Some(6));
        ticks.need(B, Some(4));
        assert_eq!(ticks.plan(began), began + TICK * 4);
        // A frame wakes the thread up before.
        assert_eq!(ticks.elapse(began + TICK * 2), Duration::ZERO);
        assert_eq!((ticks.number(), ticks.due()), (2, vec![]));
        assert_eq!(ticks.plan(began + TICK * 2), began + TICK * 4);
        ticks.elapse(began + TICK * 4);
        assert_eq!((ticks.number(), ticks.due()), (4, vec![B]));
        ticks.need(B, Some(10));
        assert_eq!(ticks.plan(began + TICK * 4), began + TICK * 6);
        ticks.need(A, None);
        assert_eq!(ticks.plan(began + TICK * 4), began + TICK * 10);
    }

    #[test]
    fn replica_without_a_part_needs_no_tick() {
        let began = Instant::now();
        let mut ticks = Ticks::new(began);
        ticks.need(A, None);
        assert_eq!(ticks.plan(began), began + TICK);
        ticks.elapse(began + TICK);
        assert_eq!((ticks.number(), ticks.due()), (1, vec![]));
        ticks.need(A, Some(7));
        ticks.need(A, None);
        assert_eq!(ticks.plan(began + TICK), began + TICK * 2);
    }

    #[test]
    fn thread_without_a_turn_gives_few_ticks() {
        let began = Instant::now();
        let mut ticks = Ticks::new(began);
        ticks.need(A, Some(6));
        ticks.plan(began);
        // The processors were busy with others for half a minute.
        let late = ticks.elapse(began + TICK * 600);
        assert_eq!((ticks.number(), late), (7, TICK * 594));
        // Then the disk was slow: the thread has not slept.
        ticks.need(A, Some(12));
        ticks.plan(began + TICK * 700);
        ticks.elapse(began + TICK * 700);
        assert_eq!(ticks.number(), 9);
        assert_eq!(ticks.plan(began + TICK * 700), began + TICK * 703);
    }
}
