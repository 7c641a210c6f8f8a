//! Clients whose vhost another node leads.
//!
//! The node that a client has connected to, its *entry node*, shakes hands with the client and checks its login. When
//! another node leads the vhost that the client opens, `entry` dials that node and sends it an `Adopt` (`adopt`); there
//! `leader` continues the session, from the answer to `connection.open` on. Then the entry node passes on octets in both
//! directions (`copy`) and knows no AMQP but the boundaries of frames ([`replica::relay`]). TLS with the client ends at the entry
//! node. Heartbeats, limits of frames and everything else are between the client and the leader.

mod adopt;
mod copy;
mod ends;
mod entry;
mod leader;

pub(crate) use adopt::check_bytes;
pub(crate) use copy::{Relay, away};
pub(crate) use ends::{Adopted, Ends};
pub(crate) use leader::Adopter;
