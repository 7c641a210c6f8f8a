//! Joining of the parts of a message.

use bytes::{Bytes, BytesMut};

use super::error::FrameError;
use super::fields::Fields;
use crate::limits::MESSAGE_BYTES_MAX;

/// Octets in front of each part: the message's number, offset and total of its octets.
pub(super) const PART_HEADER_BYTES: usize = 16;

/// The message of a peer of which parts have come. Memory grows with what has come, never by what is claimed.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    number: u64,
    total: usize,
    bytes: BytesMut,
}

impl Assembly {
    /// Takes the payload of a part; the message when it is whole.
    ///
    /// A part that does not follow the one before ends the message: it is lost, as with a link that breaks,
    /// and the sender will notice. Nothing but the first part of another one can follow.
    ///
    /// # Errors
    /// [`FrameError`].
    pub(crate) fn push(&mut self, payload: &[u8]) -> Result<Option<Bytes>, FrameError> {
        let mut fields = Fields::new(payload);
        let (number, offset, total) =
            (fields.u64()?, fields.u32()? as usize, fields.u32()? as usize);
        let part = payload.get(PART_HEADER_BYTES..).unwrap_or_default();
        if total > MESSAGE_BYTES_MAX {
            return Err(FrameError::TooLong { bytes: total as u64, max: MESSAGE_BYTES_MAX });
        }
        let end = offset.checked_add(part.len()).filter(|end| *end <= total);
        let Some(end) = end.filter(|_| !part.is_empty()) else {
            self.clear();
            return Err(FrameError::Malformed("part outside its message"));
        };
        if offset == 0 && end == total {
            self.clear();
            return Ok(Some(Bytes::copy_from_slice(part)));
        }
        if offset == 0 {
            self.clear();
            (self.number, self.total) = (number, total);
        } else if (number, total, offset) != (self.number, self.total, self.bytes.len()) {
            self.clear();
            return Ok(None);
        }
        self.bytes.extend_from_slice(part);
        if self.bytes.len() < total {
            return Ok(None);
        }
        let message = std::mem::take(&mut self.bytes).freeze();
        self.clear();
        Ok(Some(message))
    }

    /// Forgets a message that is not whole: its link is lost.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
