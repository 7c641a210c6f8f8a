//! The cluster of this node: links to the other nodes, and the founding.
//!
//! A link is one TCP connection between two nodes. `hello` and `handshake` prove that both know the secret; `wire` splits
//! frames into chunks; `link` runs an open link, `serve` opens and accepts them. [`Links`] is what the rest of the node
//! sees: frames are handed to [`Links::send`], and come back as calls of [`LinkEvents`]. `founding` decides when a node
//! may vote for the first time, and which node has lost its disk.

mod check;
mod control;
mod events;
mod fields;
pub(crate) mod founding;
mod groups;
mod handshake;
mod hello;
pub(crate) mod ids;
mod link;
mod links;
mod peer;
mod refusal;
mod send_queue;
mod serve;
mod skew;
#[cfg(test)]
mod tests;
mod wire;

pub(crate) use check::check_bytes;
pub(crate) use control::Facts;
pub(crate) use events::{LinkEvents, LocalNode, LostCause};
pub(crate) use links::{ClusterError, FrameClass, Links};
pub(crate) use serve::RunningLinks;
