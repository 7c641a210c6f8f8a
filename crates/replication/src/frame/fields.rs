//! Reading of fields, one behind the other.

use super::error::FrameError;
use crate::limits::NUMBER_MAX;

/// Octets from which fields are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Octets that are left.
    pub(super) fn len(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let (field, rest) =
            self.rest.split_first_chunk().ok_or(FrameError::Cut { bytes: self.rest.len() })?;
        self.rest = rest;
        Ok(*field)
    }

    pub(super) fn skip(&mut self, bytes: usize) -> Result<(), FrameError> {
        self.rest = self.rest.get(bytes..).ok_or(FrameError::Cut { bytes: self.rest.len() })?;
        Ok(())
    }

    pub(super) fn u8(&mut self) -> Result<u8, FrameError> {
        Ok(u8::from_le_bytes(self.bytes()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, FrameError> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, FrameError> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    pub(super) fn i64(&mut self) -> Result<i64, FrameError> {
        Ok(i64::from_le_bytes(self.bytes()?))
    }

    /// An index, a term or a time, of which sums do not overflow.
    pub(super) fn number(&mut self) -> Result<u64, FrameError> {
        let number = self.u64()?;
        (number <= NUMBER_MAX).then_some(number).ok_or(FrameError::Malformed("number out of range"))
    }

    pub(super) fn bool(&mut self) -> Result<bool, FrameError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(FrameError::Malformed("neither true nor false")),
        }
    }

    /// The end of the input.
    pub(super) fn end(self) -> Result<(), FrameError> {
        self.rest.is_empty().then_some(()).ok_or(FrameError::Malformed("octets behind the end"))
    }
}
