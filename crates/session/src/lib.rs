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

mod client_properties;
mod content_assembly;
mod frames;
mod handshake;
mod methods;
mod outbox;
mod outgoing;
mod session;

pub use client_properties::{Capabilities, Client};
pub use handshake::{
    ANONYMOUS, Credentials, EXTERNAL, MECHANISMS, ServerIdentity, server_properties,
};
pub use outbox::Outbox;
pub use outgoing::transmit;
pub use session::{Alive, Session, SessionOptions, Step, Traffic};
