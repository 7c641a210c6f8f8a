//! Times at which a leader has heard from each member.

use std::collections::{BTreeMap, BTreeSet};

use crate::limits::{ELECTION_TICKS_MIN, GONE_TICKS, HEARD_TICKS};

/// Ticks at which members were heard, in the present term.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    heard_at: BTreeMap<u64, u64>,
    /// Members whose process has ended since they were heard.
    lost: BTreeSet<u64>,
    since: u64,
}

impl Hearing {
    pub(super) fn heard(&mut self, member: u64, tick: u64) {
        self.heard_at.insert(member, tick);
        self.lost.remove(&member);
    }

    /// The process of a member has ended: it is not heard until it speaks again.
    pub(super) fn lost(&mut self, member: u64) {
        self.lost.insert(member);
    }

    /// Begins anew: with another term, nothing counts that was heard before.
    pub(super) fn begin(&mut self, tick: u64) {
        self.heard_at.clear();
        self.lost.clear();
        self.since = tick;
    }

    /// True if a member was not heard for so long that nothing is kept for it.
    pub(super) fn is_gone(&self, member: u64, tick: u64) -> bool {
        let at = self.heard_at.get(&member).copied().unwrap_or(self.since);
        tick.saturating_sub(at) > GONE_TICKS
    }

    /// True if a member was heard lately.
    pub(super) fn is_heard(&self, member: u64, tick: u64) -> bool {
        let at = self.heard_at.get(&member).filter(|_| !self.lost.contains(&member));
        at.is_some_and(|at| tick.saturating_sub(*at) <= HEARD_TICKS)
    }

    /// True if no majority of `voters`, `me` included, was heard within the shortest election time: the others may have
    /// another leader.
    pub(super) fn is_cut_off(&self, me: u64, voters: &[u64], tick: u64) -> bool {
        let is_heard = |voter: &&u64| {
            let at = self.heard_at.get(*voter).copied().unwrap_or(self.since);
            **voter == me || tick.saturating_sub(at) <= ELECTION_TICKS_MIN as u64
        };
        voters.iter().filter(is_heard).count() <= voters.len() / 2
    }

    /// True if a majority of `voters`, `me` included, was heard lately.
    pub(super) fn is_majority(&self, me: u64, voters: &[u64], tick: u64) -> bool {
        let is_heard = |voter: &&u64| **voter == me || self.is_heard(**voter, tick);
        voters.iter().filter(is_heard).count() > voters.len() / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leader_is_cut_off_after_the_shortest_election_time() {
        let mut hearing = Hearing::default();
        hearing.begin(100);
        let election = ELECTION_TICKS_MIN as u64;
        assert!(!hearing.is_cut_off(1, &[1, 2, 3], 100 + election));
        assert!(hearing.is_cut_off(1, &[1, 2, 3], 101 + election));
        hearing.heard(3, 150);
        assert!(!hearing.is_cut_off(1, &[1, 2, 3], 150 + election));
        assert!(hearing.is_cut_off(1, &[1, 2, 3, 4], 150));
        assert!(!hearing.is_cut_off(1, &[1], 10_000));
    }

    #[test]
    fn majority_must_have_been_heard_lately() {
        let mut hearing = Hearing::default();
        assert!(hearing.is_majority(1, &[1], 50));
        assert!(!hearing.is_majority(1, &[1, 2, 3], 50));
        hearing.heard(2, 50);
        assert!(hearing.is_majority(1, &[1, 2, 3], 50 + HEARD_TICKS));
        assert!(!hearing.is_majority(1, &[1, 2, 3], 51 + HEARD_TICKS));
        assert!(!hearing.is_majority(1, &[1, 2, 3, 4], 50));
        // A process that has ended is not heard, but nothing of its log is given up for that.
        hearing.lost(2);
        assert!(!hearing.is_majority(1, &[1, 2, 3], 50) && !hearing.is_gone(2, 51));
        hearing.heard(2, 50);
        assert!(hearing.is_majority(1, &[1, 2, 3], 50));
        // A member that is no voter does not count, and neither does one that was removed.
        hearing.heard(9, 60);
        assert!(!hearing.is_majority(1, &[2, 3], 60));
    }
}
