//! Clients that connect to any node, in a share of the runs: their entry node lets the leader adopt them, and passes on
//! their octets.
//!
//! The decisions are those of [`replica::relay`]. Replaced are the sockets: between a client and its entry node, and the
//! stream from there to the leader, which the simulated network delays, holds back and loses. Sockets take few octets, so
//! that reads wait for the other side, and frames are cut anywhere.

mod checks;
mod copy;
pub(crate) mod ends;
mod entry;
mod hearing;
mod leader;
mod relay;
mod sending;
mod stream;
pub(crate) mod table;
mod tending;
