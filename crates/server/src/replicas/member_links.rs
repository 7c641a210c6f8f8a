//! The links to other nodes, as members use them.

use std::sync::Arc;

use bytes::Bytes;
use replication::{FrameClass, NodeId};

use crate::cluster::{self, Links};
use crate::membership::ids;

/// The links of a node for the frames of its members; a node without links reaches nobody.
#[derive(Debug)]
pub(super) struct MemberLinks(pub(super) Option<Arc<Links>>);

impl MemberLinks {
    /// Sends a frame to a node, with the next [`MemberLinks::flush`] at the latest. Never waits. False if the frame is
    /// dropped, because the link is down or too much waits for it.
    pub(super) fn send(&self, node: NodeId, frame: Bytes, class: FrameClass) -> bool {
        let class = match class {
            FrameClass::Control => cluster::FrameClass::Ordered,
            FrameClass::Entries => cluster::FrameClass::Bulk,
        };
        self.0.as_ref().is_some_and(|links| links.send(of_links(node), frame, class))
    }

    /// Lets the frames leave that were sent.
    pub(super) fn flush(&self) {
        if let Some(links) = &self.0 {
            links.flush();
        }
    }

    /// True if a node is heard, or may be soon.
    pub(super) fn hears(&self, node: NodeId) -> bool {
        self.0.as_ref().is_some_and(|links| links.hears(of_links(node)))
    }
}

/// A node as the links name it.
fn of_links(node: NodeId) -> ids::NodeId {
    ids::NodeId(node.get())
}
