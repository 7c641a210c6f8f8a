//! The traffic of a node with a peer.

use std::sync::atomic::AtomicU64;

/// Numbers of a peer since the start.
#[derive(Default, Debug)]
pub(crate) struct Traffic {
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) received_bytes: AtomicU64,
    /// Frames that found no room.
    pub(crate) dropped_frames: AtomicU64,
    /// Links that were lost.
    pub(crate) lost_links: AtomicU64,
}
