//! The ping with which a node tells its clocks.

use bytes::{Bytes, BytesMut};

use super::control::finish;
use super::error::FrameError;
use super::fields::Fields;
use super::header::{FRAME_HEADER_BYTES, FrameHeader, FrameKind};
use crate::clock::ClockReading;
use crate::ids::{ClusterId, GroupId, NodeId, RunId};

/// A ping between two nodes, every 100 ms. Of no group: its header has [`GroupId::NODES`] and incarnation 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockPing {
    /// Cluster of both nodes.
    pub cluster: ClusterId,
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// Clocks of the sender, read last of all before the frame is sent.
    pub reading: ClockReading,
}

impl ClockPing {
    /// The ping as a frame.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let header = FrameHeader {
            kind: FrameKind::ClockPing,
            length: 0,
            bare: 0,
            crc: 0,
            cluster: self.cluster,
            group: GroupId::NODES,
            from: self.from.member(0),
            to: self.to.member(0),
        };
        let mut out = BytesMut::zeroed(FRAME_HEADER_BYTES);
        let ClockReading { run, monotonic_us, wall_us } = self.reading;
        for number in [run.0, monotonic_us, wall_us] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        finish(header, out)
    }

    /// Reads a frame whose header has [`GroupId::NODES`]; `from` and `me` are the ends of the link.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn decode(
        frame: &[u8],
        cluster: ClusterId,
        from: NodeId,
        me: NodeId,
    ) -> Result<Self, FrameError> {
        let header = FrameHeader::read(frame)?;
        if header.cluster != cluster {
            return Err(FrameError::OtherCluster { cluster: header.cluster.0 });
        }
        if header.group != GroupId::NODES {
            return Err(FrameError::OtherGroup { group: header.group.0 });
        }
        for (member, node) in [(header.from, from), (header.to, me)] {
            if member.node() != node {
                return Err(FrameError::OtherMember { member: member.get() });
            }
        }
        let payload = header.payload(frame)?;
        if header.kind != FrameKind::ClockPing {
            return Err(FrameError::Malformed("no ping"));
        }
        let mut fields = Fields::new(payload);
        let reading = ClockReading {
            run: RunId(fields.u64()?),
            monotonic_us: fields.number()?,
            wall_us: fields.number()?,
        };
        fields.end()?;
        Ok(Self { cluster, from, to: me, reading })
    }
}
