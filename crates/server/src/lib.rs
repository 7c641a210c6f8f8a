//! A node of the broker: sockets, tasks, the clock, the locks of the vhosts, the timer, configuration. It decides
//! nothing about messages.
//!
//! [`Process`] is the node in a process of its own; [`Embedded`] is one inside another program.

mod auth;
mod check;
mod clock;
mod cluster;
mod config;
mod connection;
mod definitions;
mod disk;
mod embedded;
pub mod history;
mod http;
pub mod http_budget;
pub mod json;
pub mod limits;
mod logging;
mod membership;
mod metadata;
mod node;
pub mod peers;
mod process;
mod redrive;
mod replicas;
pub mod requests;
mod service_state;
mod shipments;
pub mod snapshot;
mod sockets;
mod source;
mod start;
mod tls;
mod vhost;

pub use check::run as check_data_dir;
pub use config::{CommandLineSetting, Config, ConfigError};
pub use embedded::{Configuration, Embedded};
pub use node::{Node, VhostContents};
pub use process::{Process, ProcessError};
pub use sockets::admission::Admitted;
pub use start::http_services::HttpServices;
pub use start::stopped_node::StoppedNode;
pub use vhost::internal_channel::InternalChannel;

/// Reads lines of a file of the history of dead letters as at a start, writes the deaths as lines and reads them again,
/// for fuzzing. Returns the number of deaths.
///
/// # Panics
/// When the deaths are not the same.
pub fn check_death_lines(lines: &[u8]) -> usize {
    disk::deaths::files::check_lines(lines)
}

/// Reads the bytes of another node, in pieces of at most `piece_bytes`, for fuzzing: with reader 0 the messages of a
/// handshake, with 1 the chunks of a link, with 3 a message about joining, with others a frame of the link itself. Returns a description of what was read, and of the error if there is one.
///
/// # Panics
/// When a hello or a frame of the link is not written as it was read.
pub fn check_link_bytes(reader: u8, bytes: &[u8], piece_bytes: usize) -> Vec<String> {
    cluster::check_bytes(reader, bytes, piece_bytes)
}

/// Reads the frame with which a node hands over a client, or with `is_answer` the answer to it, for fuzzing.
///
/// # Panics
/// When a frame that was read is not written as one that is read again with the same result.
pub fn check_adopt_bytes(is_answer: bool, bytes: &[u8]) {
    connection::relay::check_bytes(is_answer, bytes);
}
