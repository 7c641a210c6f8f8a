//! The cluster of this node: links to the other nodes, and the way of nodes into it.
//!
//! A link is one TCP connection between two nodes. `handshake` proves that both know the secret; `frames` splits what they
//! send into chunks; `peer` is another node as this one knows it; `links` opens, accepts and runs links. [`Links`] is what
//! the rest of the node sees: frames are handed to [`Links::send`], and come back as calls of [`LinkEvents`]. `joining` lets
//! nodes into the list that is in [`membership`](crate::membership); `levels` has which records a cluster may write. Streams
//! are further connections between two nodes, for clients, requests over HTTP and files: [`Links::dial`] opens one, and a
//! [`StreamHandler`] takes those of peers.

mod check;
mod frames;
mod handshake;
pub(crate) mod joining;
pub(crate) mod levels;
mod links;
mod node_socket;
mod peer;
mod purpose;
mod refusal;
mod remote_end;
#[cfg(test)]
mod tests;

pub(crate) use check::check_bytes;
pub(crate) use frames::control::Facts;
pub(crate) use links::dial::DialError;
pub(crate) use links::registry::{ClusterError, FrameClass, Links};
pub(crate) use links::serve::RunningLinks;
pub(crate) use links::streams::{NodeStream, StreamHandler, StreamSlot};
pub(crate) use node_socket::NodeSocket;
pub(crate) use peer::Peer;
pub(crate) use peer::contact::Contact;
pub(crate) use peer::events::{LinkEvents, LocalNode, LostCause};
pub(crate) use purpose::Purpose;
pub(crate) use refusal::{Refusal, RefusalCode};
