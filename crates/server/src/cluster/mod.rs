//! The cluster of this node: links to the other nodes, and the founding.
//!
//! A link is one TCP connection between two nodes. `hello` and `handshake` prove that both know the secret; `wire` splits
//! frames into chunks; `link` runs an open link, `serve` opens and accepts them. [`Links`] is what the rest of the node
//! sees: frames are handed to [`Links::send`], and come back as calls of [`LinkEvents`]. `founding` decides when a node
//! may vote for the first time, and which node has lost its disk; `node_list` is the list of the nodes, which `join` and
//! `seek` let others into; `levels` has which records a cluster may write. `streams` has further connections between two nodes, for clients, requests over HTTP and
//! files: [`Links::dial`] opens one, and a [`StreamHandler`] takes those of peers.

mod check;
mod contact;
mod control;
mod dial;
pub(crate) mod discovery;
#[cfg(test)]
mod discovery_tests;
mod events;
pub(crate) mod fields;
pub(crate) mod founding;
mod handshake;
mod hearing;
mod hello;
pub(crate) mod ids;
pub(crate) mod join;
pub(crate) mod joiner;
pub(crate) mod levels;
mod link;
mod link_output;
mod links;
mod logged_problems;
mod majority_log;
pub(crate) mod node_list;
mod node_socket;
pub(crate) mod nodes_at_start;
mod peer;
mod problems;
mod refusal;
mod remote_end;
mod replaced;
mod seek;
mod send_queue;
mod serve;
mod shake;
mod skew;
pub(crate) mod stopped_member;
mod streams;
#[cfg(test)]
mod tests;
mod traffic;
mod users;
mod wire;

pub(crate) use check::check_bytes;
pub(crate) use contact::Contact;
pub(crate) use control::Facts;
pub(crate) use events::{LinkEvents, LocalNode, LostCause};
pub(crate) use hello::Purpose;
pub(crate) use links::{ClusterError, FrameClass, Links};
pub(crate) use node_socket::NodeSocket;
pub(crate) use peer::Peer;
pub(crate) use serve::RunningLinks;
pub(crate) use streams::{NodeStream, StreamHandler, StreamSlot};
