//! The close of a relayed client by its entry node.

use broker::time::Time;

use super::after;
use super::frames::FrameTracker;
use crate::limits::RELAY_CLOSE_TIMEOUT;

/// The wait for the answer of a client that gets `connection.close` of its entry node.
#[derive(Clone, Debug)]
pub struct Farewell {
    /// The frames of the client, from the octets on that were read for the leader.
    frames: FrameTracker,
    until: Time,
}

impl Farewell {
    pub(super) fn new(frames: FrameTracker, now: Time) -> Self {
        Self { frames, until: after(now, RELAY_CLOSE_TIMEOUT) }
    }

    /// The time for which the client may take the close and answer.
    #[must_use]
    pub fn until(&self) -> Time {
        self.until
    }

    /// Octets of the client are read, which nobody gets.
    pub fn read(&mut self, octets: &[u8]) {
        self.frames.pass(octets);
    }

    /// True once the client has answered.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.frames.has_close_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Upwards;
    use super::*;

    #[test]
    fn answer_is_found_behind_half_a_frame_that_the_leader_was_to_get() {
        let publish = [3, 0, 1, 0, 0, 0, 4, 1, 2, 3, 4, 0xce];
        let close_ok = [1, 0, 0, 0, 0, 0, 4, 0, 10, 0, 51, 0xce];
        let mut up = Upwards::default();
        up.read(&publish[..9]);
        let mut farewell = up.farewell(Time::from_millis(5));
        assert_eq!(farewell.until(), Time::from_millis(10_005));
        farewell.read(&publish[9..]);
        farewell.read(&close_ok[..9]);
        assert!(!farewell.is_over());
        farewell.read(&close_ok[9..]);
        assert!(farewell.is_over());
    }
}
