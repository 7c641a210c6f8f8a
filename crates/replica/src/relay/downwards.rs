//! The octets of a leader on their way to a relayed client, and the end of a relay.

use amqp::reply_code::ReplyCode;
use broker::refusal::Refusal;
use broker::time::Time;

use super::after;
use super::frames::FrameTracker;
use crate::limits::RELAY_CLOSE_TIMEOUT;

/// The end of a relay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// The leader has ended the connection, after `connection.close` or its answer.
    Closed,
    /// The client is gone, or does not read.
    ClientGone,
    /// The client must be closed; no frame to it is cut.
    Close(Refusal),
    /// The client gets no rest of a frame, so that its socket can only be closed.
    Cut,
}

/// The next thing to do for the direction from the leader to the client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// The leader is read: until there are octets, or until this time.
    Read(Option<Time>),
    /// The relay ends.
    End(End),
}

/// The reason for which the client must be closed.
#[derive(Clone, Debug)]
struct Reason {
    refusal: Refusal,
    /// The time until which the rest of a frame may come, and the client may take it.
    until: Time,
}

/// The direction from the leader to the client.
///
/// It is read, and written, by turns: [`Self::step`] tells what is read, [`Self::read`] how much of it the client gets,
/// [`Self::write_until`] for how long it may take them, and [`Self::taken`] that it has.
#[derive(Clone, Debug)]
pub struct Downwards {
    frames: FrameTracker,
    /// Octets that were read and that the client has not taken.
    pending: usize,
    /// The reason, once there is one.
    reason: Option<Reason>,
    /// The time until which the client may take octets of a leader that has ended the stream.
    hung_up_until: Option<Time>,
    /// The refusal of a client whose leader has ended the stream and not said why.
    lost: Refusal,
}

/// The refusal of a client whose leader is lost.
#[must_use]
pub fn leader_lost(vhost: &str) -> Refusal {
    Refusal::new(ReplyCode::ConnectionForced, format!("leader of vhost '{vhost}' is lost"))
}

impl Downwards {
    /// The direction to a client of a vhost, from its adoption on.
    #[must_use]
    pub fn new(vhost: &str) -> Self {
        Self {
            frames: FrameTracker::default(),
            pending: 0,
            reason: None,
            hung_up_until: None,
            lost: leader_lost(vhost),
        }
    }

    /// The client must be closed: because the leader is lost, or this node stops. A reason that was told before stays.
    pub fn close(&mut self, refusal: Refusal, now: Time) {
        let until = after(now, RELAY_CLOSE_TIMEOUT);
        self.reason.get_or_insert(Reason { refusal, until });
    }

    /// True once there is a reason to close the client.
    #[must_use]
    pub fn must_close(&self) -> bool {
        self.reason.is_some()
    }

    /// The next thing to do.
    ///
    /// # Panics
    /// If the client has not taken what was read before.
    #[must_use]
    pub fn step(&self) -> Step {
        assert_eq!(self.pending, 0, "the leader is not read while octets wait for the client");
        match &self.reason {
            Some(_) if self.frames.is_at_boundary() => Step::End(self.at_boundary()),
            reason => Step::Read(reason.as_ref().map(|reason| reason.until)),
        }
    }

    /// Octets of the leader are read. Returns the number of those that the client gets: all, or those up to the end of
    /// the frame if it must be closed.
    ///
    /// # Panics
    /// If the client has not taken what was read before: the memory of a relay is that of one read.
    pub fn read(&mut self, octets: &[u8]) -> usize {
        assert_eq!(self.pending, 0, "the leader is not read while octets wait for the client");
        self.pending = match self.reason {
            Some(_) => self.frames.pass_frame(octets),
            None => {
                self.frames.pass(octets);
                octets.len()
            }
        };
        self.pending
    }

    /// The leader has ended the stream, or it is broken. Returns the end of the relay.
    ///
    /// # Panics
    /// If the client has not taken what was read before.
    #[must_use]
    pub fn leader_ended(&self) -> End {
        assert_eq!(self.pending, 0, "the end of a stream comes behind its octets");
        match self.frames.is_at_boundary() {
            true => self.at_boundary(),
            // Also within `connection.close`.
            false => End::Cut,
        }
    }

    /// The leader is not heard until the time of [`Self::step`]. Returns the end of the relay.
    #[must_use]
    pub fn read_expired(&self) -> End {
        End::Cut
    }

    /// The leader has ended the stream, although octets wait for the client. Who does not take them now is gone.
    pub fn hung_up(&mut self, now: Time) {
        self.hung_up_until.get_or_insert_with(|| after(now, RELAY_CLOSE_TIMEOUT));
    }

    /// The time until which the client must take the octets, if there is one.
    #[must_use]
    pub fn write_until(&self) -> Option<Time> {
        let reason_until = self.reason.as_ref().map(|reason| reason.until);
        self.hung_up_until.into_iter().chain(reason_until).min()
    }

    /// The client has not taken the octets until the time of [`Self::write_until`]. Returns the end of the relay.
    #[must_use]
    pub fn write_expired(&self) -> End {
        End::ClientGone
    }

    /// The client has taken the octets.
    pub fn taken(&mut self) {
        (self.pending, self.hung_up_until) = (0, None);
    }

    fn at_boundary(&self) -> End {
        let reason = self.reason.as_ref().map_or(&self.lost, |reason| &reason.refusal);
        match self.frames.is_closing() {
            true => End::Closed,
            false => End::Close(reason.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of a body.
    const BODY: [u8; 12] = [3, 0, 1, 0, 0, 0, 4, 1, 2, 3, 4, 0xce];

    /// `connection.close`, without its arguments.
    const CLOSE: [u8; 12] = [1, 0, 0, 0, 0, 0, 4, 0, 10, 0, 50, 0xce];

    const NOW: Time = Time::from_millis(1_000);

    fn other() -> Refusal {
        Refusal::new(ReplyCode::ConnectionForced, "another reason")
    }

    /// The direction behind these octets, which the client has taken.
    fn behind(octets: &[u8]) -> Downwards {
        let mut down = Downwards::new("/");
        assert_eq!(down.read(octets), octets.len());
        down.taken();
        down
    }

    #[test]
    fn loss_of_the_leader_is_told_between_frames_only() {
        assert_eq!(behind(&BODY).leader_ended(), End::Close(leader_lost("/")));
        for length in 1..BODY.len() {
            assert_eq!(behind(&BODY[..length]).leader_ended(), End::Cut);
        }
        for length in 1..CLOSE.len() {
            assert_eq!(behind(&CLOSE[..length]).leader_ended(), End::Cut);
        }
        // The leader has told the reason.
        assert_eq!(behind(&CLOSE).leader_ended(), End::Closed);
        assert_eq!(leader_lost("/").explanation, "leader of vhost '/' is lost");
    }

    #[test]
    fn client_that_must_be_closed_gets_the_rest_of_a_frame() {
        let mut down = behind(&BODY[..5]);
        assert_eq!(down.step(), Step::Read(None));
        down.close(other(), NOW);
        let until = NOW.plus_ms(10_000);
        assert_eq!(down.step(), Step::Read(Some(until)));
        assert_eq!(down.read(&BODY[5..7]), 2);
        // The time does not begin anew with each read.
        assert_eq!(down.write_until(), Some(until));
        down.taken();
        assert_eq!(down.step(), Step::Read(Some(until)));
        let rest = [&BODY[7..], &BODY].concat();
        assert_eq!(down.read(&rest), 5);
        down.taken();
        assert_eq!(down.step(), Step::End(End::Close(other())));
        // A later reason does not replace the first.
        down.close(leader_lost("/"), NOW);
        assert_eq!(down.leader_ended(), End::Close(other()));
    }

    #[test]
    fn client_that_the_leader_has_closed_is_not_closed_again() {
        let mut down = behind(&CLOSE);
        down.close(other(), NOW);
        assert_eq!(down.step(), Step::End(End::Closed));
    }

    #[test]
    fn client_must_take_octets_once_the_leader_has_hung_up_or_is_lost() {
        let mut down = Downwards::new("/");
        down.read(&BODY);
        assert_eq!(down.write_until(), None);
        down.hung_up(NOW);
        down.hung_up(NOW.plus_ms(9_000));
        assert_eq!(down.write_until(), Some(NOW.plus_ms(10_000)));
        assert_eq!(down.write_expired(), End::ClientGone);
        down.taken();
        assert_eq!(down.step(), Step::Read(None));
        // A client that does not take the rest of a frame is not waited for either, although the leader stands still.
        down.close(other(), NOW);
        let mut within = behind(&BODY[..8]);
        within.close(other(), NOW);
        within.read(&BODY[8..]);
        assert_eq!(within.write_until(), Some(NOW.plus_ms(10_000)));
    }

    #[test]
    #[should_panic(expected = "the leader is not read while octets wait for the client")]
    fn leader_is_not_read_ahead() {
        let mut down = Downwards::new("/");
        down.read(&BODY);
        down.read(&BODY);
    }
}
