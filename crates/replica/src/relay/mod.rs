//! Clients whose vhost another node leads.
//!
//! The node that a client has connected to, its *entry node*, passes on the octets of the client and of the leader.

mod frames;
mod leader_watch;

pub use frames::FrameTracker;
pub use leader_watch::{Leader, time_left};
