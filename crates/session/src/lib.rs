//! One AMQP connection as a state machine.
//!
//! What is absent: no socket, no clock, no lock, no broker state. Bytes of a client go in; steps come
//! out: commands for the core, questions for the server (is the login valid, does the vhost exist), and
//! the end. [`transmit`] encodes what the core sends. It is independent of the incoming half, because the
//! thread that causes a delivery also encodes it.
//!
//! Time is an argument. [`Session`] lists its methods and the order to call them.

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
mod login;
mod methods;
mod outbox;
mod outgoing;
mod server_properties;
mod session;

pub use client_properties::{Capabilities, Client};
pub use login::{ANONYMOUS, Credentials, EXTERNAL, MECHANISMS};
pub use outbox::{HeldOutbox, Outbox, Released};
pub use outgoing::transmit;
pub use server_properties::{ServerIdentity, server_properties};
pub use session::{Alive, Resumed, Session, SessionOptions, Step, Traffic};
