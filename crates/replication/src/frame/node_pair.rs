//! The sender and the receiver of a frame that concerns two nodes and no group: its header has [`GroupId::NODES`] and
//! incarnation 0.

use bytes::{Bytes, BytesMut};

use super::control::finish;
use super::header::{FRAME_HEADER_BYTES, FrameHeader, FrameKind};
use crate::ids::{ClusterId, GroupId, NodeId};

/// The ends of a link, as the sender of a frame names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodePair {
    /// Cluster of both nodes.
    pub cluster: ClusterId,
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
}

impl NodePair {
    /// A frame with what `payload` appends.
    pub(super) fn frame(self, kind: FrameKind, payload: impl FnOnce(&mut BytesMut)) -> Bytes {
        let header = FrameHeader {
            kind,
            length: 0,
            bare: 0,
            crc: 0,
            cluster: self.cluster,
            group: GroupId::NODES,
            from: self.from.member(0),
            to: self.to.member(0),
        };
        let mut out = BytesMut::zeroed(FRAME_HEADER_BYTES);
        payload(&mut out);
        finish(header, out)
    }
}
