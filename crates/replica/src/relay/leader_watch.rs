//! The leader of a relayed client's vhost, as the entry node knows it.

use std::time::Duration;

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

/// The time for which a relay to a leader goes on, if nothing changes; none if no end is in sight.
#[must_use]
pub fn time_left(leader: Leader, is_linked: bool) -> Option<Duration> {
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
}
