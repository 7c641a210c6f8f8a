//! The leader of a relayed client's vhost, as the entry node knows it, and the time for which a relay to it goes on.

use std::time::Duration;

use broker::time::Time;

use super::after;
use crate::limits::{RELAY_LEADER_GRACE, RELAY_LEADERLESS};

/// The leader of the vhost beside the one that has adopted the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leader {
    /// The one that has adopted the client.
    Same,
    /// Another node.
    Another,
    /// No node.
    None {
        /// True while this node hears a majority that may elect one.
        may_elect: bool,
    },
}

impl Leader {
    /// The leader that a node knows, beside the one that has `adopted` the client.
    #[must_use]
    pub fn beside(adopted: &str, known: Option<&str>, may_elect: impl FnOnce() -> bool) -> Self {
        match known {
            Some(known) if known == adopted => Self::Same,
            Some(_) => Self::Another,
            None => Self::None { may_elect: may_elect() },
        }
    }
}

/// The watch over the leader of a relayed client: it tells the time at which the relay ends, if nothing changes.
///
/// The old leader closes its clients itself, if it can. The time runs from the first moment at which another node led, or
/// none: what changes later only shortens it, unless the same node leads again.
#[derive(Clone, Copy, Default, Debug)]
pub struct LeaderWatch {
    until: Option<Time>,
}

impl LeaderWatch {
    /// Notes the leader that the node knows now, and whether there is a link to the one that has adopted the client.
    pub fn look(&mut self, leader: Leader, is_linked: bool, now: Time) {
        let until = time_left(leader, is_linked).map(|left| after(now, left));
        self.until = until.map(|until| self.until.map_or(until, |earlier| earlier.min(until)));
    }

    /// The time at which the relay ends, if nothing changes; none if no end is in sight.
    #[must_use]
    pub fn until(&self) -> Option<Time> {
        self.until
    }
}

/// The time for which a relay to a leader goes on, if nothing changes; none if no end is in sight.
fn time_left(leader: Leader, is_linked: bool) -> Option<Duration> {
    match leader {
        Leader::Same => None,
        Leader::Another if is_linked => Some(RELAY_LEADER_GRACE),
        // It cannot close its clients itself.
        Leader::Another => Some(Duration::ZERO),
        Leader::None { may_elect: false } if !is_linked => Some(Duration::ZERO),
        Leader::None { .. } => Some(RELAY_LEADERLESS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relay_ends_at_once_with_a_leader_that_cannot_close_its_clients() {
        assert_eq!(time_left(Leader::Another, false), Some(Duration::ZERO));
        assert_eq!(time_left(Leader::Another, true), Some(RELAY_LEADER_GRACE));
        // An election may give the same leader again.
        for is_linked in [false, true] {
            let electing = Leader::None { may_elect: true };
            assert_eq!(time_left(electing, is_linked), Some(RELAY_LEADERLESS));
            assert_eq!(time_left(Leader::Same, is_linked), None);
        }
        assert_eq!(time_left(Leader::None { may_elect: false }, false), Some(Duration::ZERO));
    }

    #[test]
    fn leader_is_named_beside_the_one_that_has_adopted_the_client() {
        let never = || panic!("a leader is known");
        assert_eq!(Leader::beside("a", Some("a"), never), Leader::Same);
        assert_eq!(Leader::beside("a", Some("b"), never), Leader::Another);
        assert_eq!(Leader::beside("a", None, || true), Leader::None { may_elect: true });
    }

    #[test]
    fn changes_do_not_prolong_a_relay_that_is_to_end() {
        let (second, electing) = (Time::from_millis(1_000), Leader::None { may_elect: true });
        let at = |ms| second.plus_ms(ms);
        let mut watch = LeaderWatch::default();
        watch.look(electing, true, at(0));
        assert_eq!(watch.until(), Some(at(8_000)));
        // A link that comes and goes.
        for ms in (100..8_000).step_by(100) {
            watch.look(electing, ms % 200 == 0, at(ms));
            assert_eq!(watch.until(), Some(at(8_000)));
        }
        watch.look(Leader::Another, true, at(2_000));
        assert_eq!(watch.until(), Some(at(3_000)));
        // The next election.
        watch.look(electing, true, at(2_500));
        assert_eq!(watch.until(), Some(at(3_000)));
        watch.look(Leader::Same, true, at(2_600));
        assert_eq!(watch.until(), None);
        watch.look(Leader::Another, false, at(2_700));
        assert_eq!(watch.until(), Some(at(2_700)));
    }
}
