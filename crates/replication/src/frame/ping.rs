//! The ping with which a node tells its clocks.

use bytes::Bytes;

use super::error::FrameError;
use super::fields::Fields;
use super::header::FrameKind;
use super::node_pair::NodePair;
use crate::clock::ClockReading;
use crate::ids::RunId;

/// A ping between two nodes, with the heartbeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockPing {
    /// The sender and the receiver.
    pub nodes: NodePair,
    /// Clocks of the sender, read last of all before the frame is sent.
    pub reading: ClockReading,
}

impl ClockPing {
    /// The ping as a frame.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let ClockReading { run, monotonic_us, wall_us } = self.reading;
        self.nodes.frame(FrameKind::ClockPing, |out| {
            for number in [run.0, monotonic_us, wall_us] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        })
    }

    /// Reads the payload of a frame.
    pub(super) fn read(payload: &[u8], nodes: NodePair) -> Result<Self, FrameError> {
        let mut fields = Fields::new(payload);
        let reading = ClockReading {
            run: RunId(fields.u64()?),
            monotonic_us: fields.number()?,
            wall_us: fields.number()?,
        };
        fields.end()?;
        Ok(Self { nodes, reading })
    }
}
