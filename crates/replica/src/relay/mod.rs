//! Clients whose vhost another node leads.
//!
//! The node that a client has connected to, its *entry node*, shakes hands with it, and seeks the leader of the vhost
//! ([`Seek`]), which adopts the client or refuses it ([`judge`]). From then on the entry node passes on the octets of the
//! client ([`Upwards`]) and of the leader ([`Downwards`]), watches the leader ([`LeaderWatch`]), and closes the client when
//! the leader cannot do it ([`Farewell`]).
//!
//! The decisions are here and not in the crate of sessions, because the leader of a vhost makes them: it is sought, it
//! answers, and its loss ends a relay. Of AMQP a relay knows the boundaries of frames only.
//!
//! Each direction is a value of its own, because it must go on while the other one waits for its socket. The first end
//! that one of them, or the watch, tells is that of the relay.

mod adopt;
mod downwards;
mod farewell;
mod frames;
mod leader_watch;
mod seek;
mod upwards;

use std::time::Duration;

use broker::time::Time;

pub use adopt::{Answer, Standing, judge};
pub use downwards::{Downwards, End, Step, leader_lost};
pub use farewell::Farewell;
pub use frames::FrameTracker;
pub use leader_watch::{Leader, LeaderWatch};
pub use seek::{Found, Reply, Seek, is_cut_off, is_superseded};
pub use upwards::Upwards;

/// The time so long after another one.
fn after(time: Time, duration: Duration) -> Time {
    time.plus_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}
