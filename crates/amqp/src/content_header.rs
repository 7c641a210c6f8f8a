//! The header that stands between a method with content and its body frames.
//!
//! Only the wire form is decided here. The session checks class, weight and body size; the properties
//! stay encoded until [`Properties::parse`](crate::properties::Properties::parse).
//!
//! ```text
//! class-id:short  weight:short  body-size:longlong  property flags and list
//! ```

use crate::frame::{FrameType, begin_frame, end_frame};
use crate::primitives::{DecodeError, Reader, put_u16, put_u64};

/// The class whose messages have content.
pub const CLASS_BASIC: u16 = 60;

/// The payload of a content header frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentHeader<'a> {
    /// [`CLASS_BASIC`] in everything that RabbitMQ accepts.
    pub class_id: u16,
    /// 0 in everything that RabbitMQ accepts: another weight is 505 `expected content header for
    /// class 60, got non content header frame instead`, observed.
    pub weight: u16,
    /// Size of the whole body in bytes, of all its frames together. An announcement: the frames may hold less.
    pub body_size: u64,
    /// Property flags and list, not validated.
    pub properties: &'a [u8],
}

impl<'a> ContentHeader<'a> {
    /// Reads the payload of a header frame.
    ///
    /// # Errors
    /// When it has fewer than twelve bytes, which
    /// [`split_frame`](crate::frame::split_frame) refuses already.
    #[inline]
    pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(payload);
        Ok(Self {
            class_id: reader.u16()?,
            weight: reader.u16()?,
            body_size: reader.u64()?,
            properties: reader.rest(),
        })
    }
}

/// Appends the header frame of a message of class basic; `raw_properties` are flags and list.
#[inline]
pub fn write_content_header(
    out: &mut Vec<u8>,
    channel: u16,
    body_size: u64,
    raw_properties: &[u8],
) {
    let frame = begin_frame(out, FrameType::Header, channel);
    put_u16(out, CLASS_BASIC);
    put_u16(out, 0);
    put_u64(out, body_size);
    out.extend_from_slice(raw_properties);
    end_frame(out, frame);
}
