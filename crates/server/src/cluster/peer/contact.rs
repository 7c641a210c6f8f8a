//! The contact with another node: whether it is heard, and since when it is not.

use std::time::Duration;

use crate::clock::own_time;
use crate::limits::{LEADER_WAIT, LINK_SILENCE, PEER_AWAY};

/// The contact with another node. Times are those that this process has run, in microseconds: it was not heard itself while it
/// stood still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Contact {
    /// There is a link.
    Linked,
    /// There was a link, on which the node was heard until this time.
    Lost { heard_us: u64 },
    /// There was no link since this node began to look for one.
    Sought { since_us: u64 },
}

impl Contact {
    /// The contact with a node that this one begins to look for.
    pub(crate) fn sought() -> Self {
        Self::Sought { since_us: own_time::now().as_micros() }
    }

    /// The contact with a node whose link is lost, after this time without a byte.
    pub(crate) fn lost(silence: Duration) -> Self {
        let silence_us = u64::try_from(silence.as_micros()).unwrap_or(u64::MAX);
        Self::Lost { heard_us: own_time::now().as_micros().saturating_sub(silence_us) }
    }

    /// True if the node is heard, or was within the time of an election; at the start, within the time that clients wait.
    pub(crate) fn is_heard(self, now_us: u64) -> bool {
        match self {
            Self::Linked => true,
            Self::Lost { heard_us } => elapsed(heard_us, now_us) < LINK_SILENCE,
            Self::Sought { since_us } => elapsed(since_us, now_us) < LEADER_WAIT,
        }
    }

    /// The time until the node counts as away for a stream that was opened at a time, if nothing changes: zero if it does.
    /// None while there is a link. Whoever opens a stream lives, although the link may not be there again yet.
    pub(crate) fn away_in(self, opened_us: u64, now_us: u64) -> Option<Duration> {
        match self {
            Self::Linked => None,
            Self::Lost { heard_us: since_us } | Self::Sought { since_us } => {
                Some(PEER_AWAY.saturating_sub(elapsed(since_us.max(opened_us), now_us)))
            }
        }
    }
}

fn elapsed(since_us: u64, now_us: u64) -> Duration {
    Duration::from_micros(now_us.saturating_sub(since_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time in microseconds, this long after 5 s.
    fn after(duration: Duration) -> u64 {
        5_000_000 + u64::try_from(duration.as_micros()).unwrap()
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn lost_node_is_unheard_after_an_election_and_away_later() {
        let lost = Contact::Lost { heard_us: after(Duration::ZERO) };
        assert!(lost.is_heard(after(LINK_SILENCE - MS)) && !lost.is_heard(after(LINK_SILENCE)));
        assert_eq!(lost.away_in(0, after(PEER_AWAY - MS)), Some(MS));
        assert_eq!(lost.away_in(0, after(PEER_AWAY + MS)), Some(Duration::ZERO));
        // A stream that was opened since then proves that the node is there.
        let opened_us = after(PEER_AWAY * 2);
        assert_eq!(lost.away_in(opened_us, opened_us), Some(PEER_AWAY));
        assert_eq!(lost.away_in(opened_us, after(PEER_AWAY * 3)), Some(Duration::ZERO));
        assert!(Contact::Linked.is_heard(after(Duration::MAX.min(PEER_AWAY * 9))));
        assert_eq!(Contact::Linked.away_in(0, after(PEER_AWAY)), None);
    }

    #[test]
    fn nodes_have_time_to_connect_at_the_start() {
        let sought = Contact::Sought { since_us: after(Duration::ZERO) };
        assert!(sought.is_heard(after(LEADER_WAIT - MS)) && !sought.is_heard(after(LEADER_WAIT)));
    }
}
