//! The octets of a relayed client on their way to the leader of its vhost.

use broker::time::Time;

use super::after;
use super::downwards::End;
use super::farewell::Farewell;
use super::frames::FrameTracker;
use crate::limits::RELAY_CLOSE_TIMEOUT;

/// The direction from the client to the leader.
#[derive(Clone, Default, Debug)]
pub struct Upwards {
    frames: FrameTracker,
    /// Octets that were read and that the leader has not taken.
    pending: usize,
    /// The time at which the relay ends, once the client has ended its stream.
    ends_at: Option<Time>,
}

impl Upwards {
    /// Octets of the client are read, and pass on to the leader. No more are read until [`Self::taken`].
    ///
    /// # Panics
    /// If the leader has not taken what was read before: the memory of a relay is that of one read.
    pub fn read(&mut self, octets: &[u8]) {
        assert_eq!(self.pending, 0, "the client is not read while octets wait for the leader");
        self.frames.pass(octets);
        self.pending = octets.len();
    }

    /// The leader has taken the octets.
    pub fn taken(&mut self) {
        self.pending = 0;
    }

    /// True while the client is not read, because the leader has not taken what was read before.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.pending > 0
    }

    /// The client has ended its stream, and the leader has everything. The end is passed on to the leader, which ends the
    /// connection. Returns the time at which the relay ends if the leader does not.
    ///
    /// # Panics
    /// If octets of the client were not passed on.
    pub fn client_ended(&mut self, now: Time) -> Time {
        assert_eq!(self.pending, 0, "the end of a stream comes behind its octets");
        *self.ends_at.insert(after(now, RELAY_CLOSE_TIMEOUT))
    }

    /// The end of the relay, if the client has ended its stream and the leader has had its time.
    #[must_use]
    pub fn end(&self, now: Time) -> Option<End> {
        self.ends_at.filter(|at| now >= *at).map(|_| End::ClientGone)
    }

    /// The end of the relay, after one that the other direction tells: a leader that ends the stream of a client that has gone
    /// is not lost, and the client is not closed.
    #[must_use]
    pub fn end_after(&self, end: End) -> End {
        match end {
            End::Close(_) if self.ends_at.is_some() => End::ClientGone,
            End::Closed | End::ClientGone | End::Close(_) | End::Cut => end,
        }
    }

    /// The time at which [`Self::end`] is to be asked.
    #[must_use]
    pub fn ends_at(&self) -> Option<Time> {
        self.ends_at
    }

    /// The close of the client by the entry node, from now on.
    #[must_use]
    pub fn farewell(&self, now: Time) -> Farewell {
        Farewell::new(self.frames, now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::leader_lost;
    use super::*;

    #[test]
    fn leader_has_time_to_end_when_the_client_has() {
        let mut up = Upwards::default();
        up.read(b"octets");
        assert!(up.is_waiting() && up.ends_at().is_none());
        up.taken();
        let now = Time::from_millis(1_000);
        let until = up.client_ended(now);
        assert_eq!((until, up.ends_at()), (now.plus_ms(10_000), Some(until)));
        assert!(up.end(until.just_before()).is_none());
        assert!(matches!(up.end(until), Some(End::ClientGone)));
    }

    #[test]
    fn leader_is_not_lost_that_ends_the_stream_of_a_client_that_has_gone() {
        let mut up = Upwards::default();
        let lost = End::Close(leader_lost("/"));
        assert_eq!(up.end_after(lost.clone()), lost);
        up.client_ended(Time::from_millis(1_000));
        assert_eq!(up.end_after(lost), End::ClientGone);
        assert_eq!(up.end_after(End::Closed), End::Closed);
    }

    #[test]
    #[should_panic(expected = "the client is not read while octets wait for the leader")]
    fn client_is_not_read_ahead() {
        let mut up = Upwards::default();
        up.read(b"a");
        up.read(b"b");
    }
}
