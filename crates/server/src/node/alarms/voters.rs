//! Alarms of the other nodes that vote for the vhosts, and which of them block publishers here.
//!
//! A majority must take every message, therefore a node that is short of memory or disk blocks the publishers of all
//! vhosts that it votes for: the publishers get a pause in which it can make room. But one full disk must not stop a
//! vhost for good. An alarm that has been on for [`VOTER_ALARM_TIME_MAX`], at once or with pauses, counts no more while a
//! majority of the voters is well: the vhosts go on with these. It counts again after [`VOTER_WELL_TIME`] without it. Disk
//! and memory follow the same rule. Every node votes for every vhost.

use std::collections::BTreeMap;

use broker::time::Time;

use crate::limits::{VOTER_ALARM_TIME_MAX, VOTER_WELL_TIME};
use crate::membership::ids::NodeId;
use crate::node::alarms::alarm::Alarm;

// COMPAT: alarm of another node: it blocks publishers for a minute at the most while a majority is well; in RabbitMQ
// until it is off.

/// The state of another node, as far as this one knows.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) enum VoterState {
    /// There is no link, or the node has not told its state yet. It has no alarm, and is not well.
    #[default]
    Away,
    /// The node is connected, and has this alarm or none.
    Connected(Option<Alarm>),
}

impl VoterState {
    fn alarm(self) -> Option<Alarm> {
        match self {
            Self::Away => None,
            Self::Connected(alarm) => alarm,
        }
    }
}

/// The time that an alarm of a node has been on. It goes on while the node is away: otherwise an alarm that comes and goes
/// would block publishers each time.
#[derive(Clone, Copy, Default, Debug)]
struct Lasted {
    /// At the last look.
    is_on: bool,
    /// The time of the last look, or of the first one that found the alarm off if all since then did.
    since: Time,
    /// The sum of the times that the alarm was on since the node was well for long.
    on_us: u64,
}

impl Lasted {
    /// Takes a look: what the node tells, or none while it is away.
    fn look(&mut self, told: Option<bool>, now: Time) {
        let passed_us = now.micros_since(self.since);
        let is_on = told.unwrap_or(self.is_on);
        match (self.is_on, is_on) {
            (true, _) => self.on_us = self.on_us.saturating_add(passed_us),
            (false, _) if u128::from(passed_us) >= VOTER_WELL_TIME.as_micros() => self.on_us = 0,
            // Well, and not for long enough yet.
            (false, false) => return,
            (false, true) => {}
        }
        (self.is_on, self.since) = (is_on, now);
    }

    /// True if the alarm is on and has not lasted too long.
    fn is_fresh(self) -> bool {
        self.is_on && u128::from(self.on_us) < VOTER_ALARM_TIME_MAX.as_micros()
    }
}

/// A change that operators want to know of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VoterChange {
    /// The alarm blocks publishers from now on.
    Blocks(Alarm),
    /// The alarm is on and has lasted too long to block publishers.
    Outlasted(Alarm),
    /// The alarm is off.
    Off,
    /// The node is not connected any more; it had an alarm.
    Away,
}

/// Another node that votes.
#[derive(Clone, Copy, Default, Debug)]
struct Voter {
    memory: Lasted,
    disk: Lasted,
    state: VoterState,
    /// The part of its alarm that blocks publishers here.
    counts: Option<Alarm>,
}

/// The other nodes that vote for the vhosts.
#[derive(Default, Debug)]
pub(crate) struct VoterAlarms(BTreeMap<NodeId, Voter>);

impl VoterAlarms {
    /// Takes the alarm of this node and the states of all others. Returns the changes since the last look.
    pub(crate) fn look(
        &mut self,
        own: Option<Alarm>,
        others: &[(NodeId, VoterState)],
        now: Time,
    ) -> Vec<(NodeId, VoterChange)> {
        let are_well = others.iter().filter(|(_, state)| *state == VoterState::Connected(None));
        let well = are_well.count() + usize::from(own.is_none());
        let is_majority_well = well > others.len().strict_add(1) / 2;
        // A node that was forgotten blocks nobody.
        self.0.retain(|node, _| others.iter().any(|(other, _)| other == node));
        let mut changes = Vec::new();
        for (node, state) in others {
            let voter = self.0.entry(*node).or_default();
            let told = |is_of: fn(Alarm) -> bool| match state {
                VoterState::Away => None,
                VoterState::Connected(alarm) => Some(alarm.is_some_and(is_of)),
            };
            voter.memory.look(told(Alarm::is_of_memory), now);
            voter.disk.look(told(Alarm::is_of_disk), now);
            let alarm = state.alarm();
            let counts = match alarm {
                Some(_) if is_majority_well => {
                    Alarm::of(voter.memory.is_fresh(), voter.disk.is_fresh())
                }
                Some(_) | None => alarm,
            };
            let before = std::mem::replace(voter, Voter { state: *state, counts, ..*voter });
            changes.extend(change(&before, voter).map(|change| (*node, change)));
        }
        changes
    }

    /// The alarms of other nodes that block publishers here, as one.
    pub(crate) fn counting(&self) -> Option<Alarm> {
        self.0.values().filter_map(|voter| voter.counts).reduce(Alarm::and)
    }

    /// The part of the alarm of a node that blocks publishers here.
    pub(crate) fn counting_of(&self, node: NodeId) -> Option<Alarm> {
        self.0.get(&node).and_then(|voter| voter.counts)
    }
}

/// The change of a node between two looks.
fn change(before: &Voter, after: &Voter) -> Option<VoterChange> {
    let (was, is) = (before.state.alarm(), after.state.alarm());
    match (is, after.counts) {
        (Some(_), Some(counts)) if before.counts != Some(counts) => {
            Some(VoterChange::Blocks(counts))
        }
        (Some(alarm), None) if was != is || before.counts.is_some() => {
            Some(VoterChange::Outlasted(alarm))
        }
        (None, _) if was.is_some() && after.state == VoterState::Away => Some(VoterChange::Away),
        (None, _) if was.is_some() => Some(VoterChange::Off),
        (Some(_) | None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const B: NodeId = NodeId(2);
    const C: NodeId = NodeId(3);
    const WELL: VoterState = VoterState::Connected(None);
    const MEMORY: VoterState = VoterState::Connected(Some(Alarm::Memory));
    const DISK: VoterState = VoterState::Connected(Some(Alarm::Disk));
    const BOTH: VoterState = VoterState::Connected(Some(Alarm::MemoryAndDisk));

    /// The alarms of the nodes B and C of three, as the first one sees them.
    #[derive(Default)]
    struct Three {
        voters: VoterAlarms,
        own: Option<Alarm>,
    }

    impl Three {
        /// Looks after some seconds; what blocks, and the changes.
        fn at(
            &mut self,
            s: u64,
            b: VoterState,
            c: VoterState,
        ) -> (Option<Alarm>, Vec<VoterChange>) {
            let now = Time::from_millis(1_000_000 + s * 1000);
            let changes = self.voters.look(self.own, &[(B, b), (C, c)], now);
            (self.voters.counting(), changes.into_iter().map(|(_, change)| change).collect())
        }
    }

    #[test]
    fn alarm_of_a_voter_blocks_until_it_is_off() {
        let mut three = Three::default();
        assert_eq!(three.at(0, WELL, WELL), (None, vec![]));
        let disk = Some(Alarm::Disk);
        assert_eq!(three.at(1, DISK, WELL), (disk, vec![VoterChange::Blocks(Alarm::Disk)]));
        assert_eq!((three.voters.counting_of(B), three.voters.counting_of(C)), (disk, None));
        assert_eq!(three.at(2, DISK, WELL), (disk, vec![]));
        let both = Alarm::MemoryAndDisk;
        assert_eq!(three.at(3, DISK, MEMORY).0, Some(both), "the union of the nodes");
        assert_eq!(three.at(4, BOTH, WELL).1, [VoterChange::Blocks(both), VoterChange::Off]);
        assert_eq!(three.at(5, WELL, WELL), (None, vec![VoterChange::Off]));
    }

    #[test]
    fn alarm_that_lasts_counts_no_more_while_a_majority_is_well() {
        for (state, alarm) in [(DISK, Alarm::Disk), (MEMORY, Alarm::Memory)] {
            let mut three = Three::default();
            assert_eq!(three.at(0, state, WELL).0, Some(alarm));
            assert_eq!(three.at(59, state, WELL), (Some(alarm), vec![]));
            assert_eq!(three.at(60, state, WELL), (None, vec![VoterChange::Outlasted(alarm)]));
            assert_eq!(three.at(9999, state, WELL), (None, vec![]));
            // Without the third node the majority needs this one.
            assert_eq!(
                three.at(10_000, state, VoterState::Away),
                (Some(alarm), vec![VoterChange::Blocks(alarm)])
            );
            assert_eq!(three.at(10_001, state, WELL).0, None);
            assert_eq!(three.at(10_002, WELL, WELL), (None, vec![VoterChange::Off]));
            assert_eq!(three.at(10_061, WELL, WELL).0, None);
            assert_eq!(three.at(10_062, state, WELL).0, Some(alarm), "a new alarm");
        }
    }

    #[test]
    fn alarm_with_pauses_blocks_no_longer_than_one_without() {
        let mut three = Three::default();
        let mut blocked_s = 0;
        // Nine seconds of ten, as when a compaction makes room for a moment.
        for s in 0..300 {
            let state = if s % 10 == 9 { WELL } else { DISK };
            blocked_s += u64::from(three.at(s, state, WELL).0.is_some());
        }
        assert_eq!(blocked_s, 60, "the bound holds for all of them together");
        assert_eq!(three.at(300, WELL, WELL).0, None);
        assert_eq!(three.at(358, DISK, WELL).0, None, "59 seconds are too few");
        assert_eq!(three.at(360, WELL, WELL).0, None);
        assert_eq!(three.at(390, VoterState::Away, WELL).0, None);
        assert_eq!(three.at(420, DISK, WELL).0, Some(Alarm::Disk), "well for a minute");
    }

    #[test]
    fn alarms_of_a_majority_count_for_ever() {
        let mut three = Three::default();
        three.at(0, DISK, DISK);
        assert_eq!(three.at(9999, DISK, DISK).0, Some(Alarm::Disk));
        let mut three = Three { own: Some(Alarm::Memory), ..Three::default() };
        three.at(0, DISK, WELL);
        assert_eq!(three.at(9999, DISK, WELL).0, Some(Alarm::Disk), "this node is not well");
        let mut two = VoterAlarms::default();
        for s in [0, 9999] {
            two.look(None, &[(B, DISK)], Time::from_millis(s * 1000));
            assert_eq!(two.counting(), Some(Alarm::Disk), "of two nodes both are needed");
        }
    }

    #[test]
    fn alarms_of_memory_and_disk_last_apart() {
        let mut three = Three::default();
        three.at(0, DISK, WELL);
        assert_eq!(three.at(50, BOTH, WELL).0, Some(Alarm::MemoryAndDisk));
        let only_memory = VoterChange::Blocks(Alarm::Memory);
        assert_eq!(three.at(60, BOTH, WELL), (Some(Alarm::Memory), vec![only_memory]));
        assert_eq!(three.at(110, BOTH, WELL).0, None);
        assert_eq!(three.at(111, DISK, WELL).0, None, "the disk was never well");
    }

    #[test]
    fn voter_that_is_away_has_no_alarm_and_its_time_goes_on() {
        let mut three = Three::default();
        three.at(0, DISK, WELL);
        assert_eq!(three.at(1, VoterState::Away, WELL), (None, vec![VoterChange::Away]));
        assert_eq!(three.at(2, DISK, WELL).0, Some(Alarm::Disk));
        assert_eq!(three.at(3, VoterState::Away, WELL).0, None);
        let outlasted = vec![VoterChange::Outlasted(Alarm::Disk)];
        assert_eq!(three.at(61, DISK, WELL), (None, outlasted), "back, with the alarm from before");
        assert_eq!(three.at(62, VoterState::Away, WELL).1, [VoterChange::Away]);
        assert_eq!(three.at(63, WELL, WELL), (None, vec![]));
    }
}
