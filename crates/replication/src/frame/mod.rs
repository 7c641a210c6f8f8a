//! Frames between members: bounded, checked before anything is allocated, in an encoding of our own.
//!
//! A frame is a header and a payload. Short messages are one frame. A message with entries is one or more frames of
//! kind *part*, of at most [`FRAME_BYTES_MAX`] each, so that a heartbeat on the same link is never behind
//! a whole entry: a link keeps the order of the frames of a class, and sends those of [`FrameClass::Control`]
//! first.
//!
//! All integers are little-endian.
//!
//! [`FRAME_BYTES_MAX`]: crate::limits::FRAME_BYTES_MAX

mod append;
mod control;
mod error;
mod fields;
mod header;
mod leads;
mod message;
mod node_pair;
mod nodes;
mod parts;
mod ping;

#[cfg(test)]
mod tests;

pub use error::FrameError;
pub use header::{FRAME_HEADER_BYTES, FrameHeader, PROTOCOL_VERSION, check_frame};
pub use leads::{LeadsNotice, LedGroup};
pub use node_pair::NodePair;
pub use nodes::NodeFrame;
pub use ping::ClockPing;

pub(crate) use append::{decode_append, encode_append};
pub(crate) use control::{decode_control, encode_control};
pub(crate) use header::FrameKind;
pub(crate) use message::{Append, Body, Message, Vote, VoteAnswer};
pub(crate) use parts::Assembly;

use bytes::Bytes;

use crate::ids::MemberId;

/// Order of frames on a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameClass {
    /// Heartbeats, votes, answers: sent first.
    Control,
    /// Parts of messages with entries.
    Entries,
}

/// A frame to be sent: `head`, then `tail`, which shares the octets of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The member that is to get it.
    pub to: MemberId,
    /// Order on the link.
    pub class: FrameClass,
    /// The header and the beginning of the payload.
    pub head: Bytes,
    /// The rest of the payload, perhaps empty.
    pub tail: Bytes,
}

impl Frame {
    /// Octets of the frame.
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// Never true: a frame has a header.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The frame in one piece, which copies it.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        if self.tail.is_empty() {
            return self.head.clone();
        }
        [self.head.as_ref(), self.tail.as_ref()].concat().into()
    }
}
