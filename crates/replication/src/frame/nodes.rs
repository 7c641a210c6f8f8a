//! Frames that concern two nodes and no group.

use super::error::FrameError;
use super::header::{FrameHeader, FrameKind};
use super::leads::LeadsNotice;
use super::node_pair::NodePair;
use super::ping::ClockPing;
use crate::ids::GroupId;

/// A frame between two nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NodeFrame {
    /// The clocks of the sender.
    Ping(ClockPing),
    /// Groups that the sender leads.
    Leads(LeadsNotice),
}

impl NodeFrame {
    /// Reads a frame whose header has [`GroupId::NODES`]; `nodes` are the ends of the link.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn decode(frame: &[u8], nodes: NodePair) -> Result<Self, FrameError> {
        let header = FrameHeader::read(frame)?;
        if header.cluster != nodes.cluster {
            return Err(FrameError::OtherCluster { cluster: header.cluster.0 });
        }
        if header.group != GroupId::NODES {
            return Err(FrameError::OtherGroup { group: header.group.0 });
        }
        for (member, node) in [(header.from, nodes.from), (header.to, nodes.to)] {
            if member.node() != node {
                return Err(FrameError::OtherMember { member: member.get() });
            }
        }
        let payload = header.payload(frame)?;
        match header.kind {
            FrameKind::ClockPing => ClockPing::read(payload, nodes).map(Self::Ping),
            FrameKind::Leads => LeadsNotice::read(payload, nodes).map(Self::Leads),
            FrameKind::Part
            | FrameKind::AppendAnswer
            | FrameKind::Heartbeat
            | FrameKind::HeartbeatAnswer
            | FrameKind::Vote
            | FrameKind::VoteAnswer
            | FrameKind::TimeoutNow
            | FrameKind::SnapshotOffer => Err(FrameError::Malformed("no frame between nodes")),
        }
    }
}
