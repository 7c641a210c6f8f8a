//! One AMQP connection as a state machine.
//!
//! What is absent: no socket, no clock, no lock, no broker state. Bytes of a client go in, steps come
//! out: commands for the core, questions for the server (may he log in, is there such a vhost), the
//! end. What the core wants said is turned into bytes by [`transmit`], independently of the incoming
//! half, because deliveries are written by whoever caused them.
//!
//! Time is an argument. The caller reads, calls [`Session::next`] until it wants more bytes, and calls
//! [`Session::tick`] when [`Session::next_timeout`] has come.

#![deny(clippy::indexing_slicing)]
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "AMQP's methods are a closed list and most places care for a few of them"
)]

pub mod limits;

mod client;
mod commands;
mod content;
mod handshake;
mod outbox;
mod running;
mod session;
mod transmit;

pub use client::{Capabilities, Client};
pub use handshake::{
    ANONYMOUS, Credentials, EXTERNAL, MECHANISMS, ServerIdentity, server_properties,
};
pub use outbox::Outbox;
pub use session::{Alive, Session, SessionOptions, Step, Traffic};
pub use transmit::transmit;
