//! Frames: splitting them off the input, and writing them.
//!
//! A frame that is too large is refused before its payload has arrived. The order of frames and the
//! meaning of payloads are not known here.
//!
//! ```text
//!  0      1         3             7                 7+size
//!  +------+---------+-------------+------------------+------+
//!  | type | channel |    size     |     payload      | 0xCE |
//!  +------+---------+-------------+------------------+------+
//!   octet    short       long         size octets     octet
//! ```

use std::fmt;

use crate::erlang_binary::PrintedBinary;
use crate::limits::{
    CONTENT_HEADER_SIZE, FRAME_END, FRAME_ERROR_BYTES_MAX, FRAME_HEADER_SIZE, FRAME_OVERHEAD,
    METHOD_ID_SIZE,
};
use crate::primitives::{PendingSize, begin_size, end_size, put_u16, put_u32};

/// A whole heartbeat frame: type 8, channel 0, no payload.
const HEARTBEAT: [u8; FRAME_OVERHEAD] = [8, 0, 0, 0, 0, 0, 0, FRAME_END];

/// Type of a frame, and so of its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameType {
    /// A method: class id, method id, arguments.
    Method = 1,
    /// A content header: class, body size, properties.
    Header = 2,
    /// A part of a content body.
    Body = 3,
    /// A heartbeat; without payload, on channel 0.
    Heartbeat = 8,
}

impl FrameType {
    /// The type with this octet. RabbitMQ knows no others.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        match octet {
            1 => Some(Self::Method),
            2 => Some(Self::Header),
            3 => Some(Self::Body),
            8 => Some(Self::Heartbeat),
            _ => None,
        }
    }

    /// The octet on the wire.
    #[must_use]
    pub fn octet(self) -> u8 {
        self as u8
    }

    /// True if a payload of `size` bytes is possible for this type.
    fn admits(self, size: usize) -> bool {
        match self {
            Self::Method => size >= METHOD_ID_SIZE,
            Self::Header => size >= CONTENT_HEADER_SIZE,
            Self::Body => true,
            Self::Heartbeat => size == 0,
        }
    }
}

/// One frame; the payload is part of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Type of the payload.
    pub frame_type: FrameType,
    /// The channel, 0 for the connection itself. Not checked here: RabbitMQ 4.3.6
    /// answers a heartbeat on another channel than 0 with 505 `type 8, all octets = <<>>`, observed.
    pub channel: u16,
    /// At least [`METHOD_ID_SIZE`] bytes for a method, [`CONTENT_HEADER_SIZE`] for a header.
    pub payload: &'a [u8],
}

impl fmt::Display for Frame<'_> {
    /// Prints a frame as RabbitMQ does in its explanations: `type 8, all octets = <<>>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "type {}, {}", self.frame_type.octet(), LeadingBytes::of(self.payload))
    }
}

/// Reason for which bytes are not a frame. Each one is 501 FRAME_ERROR with class and method 0; the
/// bytes behind it cannot be trusted.
///
/// `Display` is RabbitMQ's explanation, word for word (observed on 4.3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The type octet is none of 1, 2, 3, 8. Judged when the whole frame is there, as in RabbitMQ.
    #[error("type {frame_type}, {bytes}: unknown_frame")]
    UnknownType {
        /// The type octet.
        frame_type: u8,
        /// The payload's beginning.
        bytes: LeadingBytes,
    },
    /// The type is known but its payload cannot be: a method of fewer than four bytes, a content
    /// header of fewer than twelve, a heartbeat with a payload. RabbitMQ has the same text for it.
    #[error("type {}, {bytes}: unknown_frame", frame_type.octet())]
    MalformedPayload {
        /// The frame's type.
        frame_type: FrameType,
        /// The payload's beginning.
        bytes: LeadingBytes,
    },
    /// The announced payload is larger than allowed. Known from the frame's first seven bytes.
    ///
    /// The text names the limit that AMQP sets, eight bytes below the one that RabbitMQ enforces.
    #[error(
        "type {frame_type}, all octets = <<>>: {{frame_too_large,{size},{}}}",
        u32::saturating_sub(*max, 8)
    )]
    TooLarge {
        /// The type octet, known or not.
        frame_type: u8,
        /// The announced payload size, in bytes.
        size: u32,
        /// The largest payload that was allowed, in bytes.
        max: u32,
    },
    /// The octet after the payload is not 0xCE.
    #[error("type {frame_type}, {bytes}: {{invalid_frame_end_marker,{end}}}")]
    BadEnd {
        /// The type octet, known or not.
        frame_type: u8,
        /// The octet in place of 0xCE.
        end: u8,
        /// The payload's beginning.
        bytes: LeadingBytes,
    },
}

/// The first bytes of an offending payload, as many as RabbitMQ prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeadingBytes {
    bytes: [u8; FRAME_ERROR_BYTES_MAX],
    payload_size: usize,
}

impl LeadingBytes {
    fn of(payload: &[u8]) -> Self {
        let mut bytes = [0; FRAME_ERROR_BYTES_MAX];
        for (kept, octet) in bytes.iter_mut().zip(payload) {
            *kept = *octet;
        }
        Self { bytes, payload_size: payload.len() }
    }

    /// The bytes that were kept, at most [`FRAME_ERROR_BYTES_MAX`].
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.payload_size).unwrap_or(&self.bytes)
    }
}

impl fmt::Display for LeadingBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.payload_size > FRAME_ERROR_BYTES_MAX {
            write!(f, "first {FRAME_ERROR_BYTES_MAX} octets")?;
        } else {
            f.write_str("all octets")?;
        }
        write!(f, " = {}", PrintedBinary(self.as_bytes()))
    }
}

/// Splits the next frame off the front of `input`; `Ok(None)` while it is not complete.
///
/// `payload_max` is the largest payload accepted, in bytes. RabbitMQ 4.3.6 accepts payloads of up
/// to frame_max itself, eight bytes more than AMQP allows (131072 accepted, 131073 refused with
/// frame_max 131072, observed), so the session passes frame_max. The number returned with the
/// frame is its length in `input`, in bytes.
///
/// # Errors
/// [`FrameError`]; a payload that is too large is refused from the seven bytes of the frame header
/// alone, everything else once the frame is complete. The size is judged first, then the end, then
/// the type.
#[inline]
pub fn split_frame(
    input: &[u8],
    payload_max: u32,
) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some((header, rest)) = input.split_first_chunk::<FRAME_HEADER_SIZE>() else {
        return Ok(None);
    };
    let [type_octet, channel_high, channel_low, size @ ..] = *header;
    let size = u32::from_be_bytes(size);
    if size > payload_max {
        return Err(FrameError::TooLarge { frame_type: type_octet, size, max: payload_max });
    }
    let payload_size = usize::try_from(size).unwrap_or(usize::MAX);
    let Some((payload, [end, ..])) = rest.split_at_checked(payload_size) else {
        return Ok(None);
    };
    if *end != FRAME_END {
        let bytes = LeadingBytes::of(payload);
        return Err(FrameError::BadEnd { frame_type: type_octet, end: *end, bytes });
    }
    let Some(frame_type) = FrameType::from_octet(type_octet) else {
        let bytes = LeadingBytes::of(payload);
        return Err(FrameError::UnknownType { frame_type: type_octet, bytes });
    };
    if !frame_type.admits(payload_size) {
        let bytes = LeadingBytes::of(payload);
        return Err(FrameError::MalformedPayload { frame_type, bytes });
    }
    let channel = u16::from_be_bytes([channel_high, channel_low]);
    Ok(Some((Frame { frame_type, channel, payload }, payload_size + FRAME_OVERHEAD)))
}

/// Length of the frame at the front of `input` according to its header, in bytes, even if the frame is
/// malformed; `None` while the header is not complete.
#[must_use]
pub fn frame_len(input: &[u8]) -> Option<usize> {
    let ([_, _, _, size @ ..], _) = input.split_first_chunk::<FRAME_HEADER_SIZE>()?;
    usize::try_from(u32::from_be_bytes(*size)).ok()?.checked_add(FRAME_OVERHEAD)
}

/// A frame in the output whose payload is still being appended.
#[derive(Debug, Clone, Copy)]
#[must_use = "a frame that was begun must be ended"]
pub struct FrameStart(PendingSize);

/// Appends a frame's header. The payload is appended next, then [`end_frame`] is called.
#[inline]
pub fn begin_frame(out: &mut Vec<u8>, frame_type: FrameType, channel: u16) -> FrameStart {
    let [channel_high, channel_low] = channel.to_be_bytes();
    out.extend_from_slice(&[frame_type.octet(), channel_high, channel_low]);
    FrameStart(begin_size(out))
}

/// Ends the frame that `start` began: writes the size into the header and appends 0xCE.
///
/// # Panics
/// When `out` was cut in between, or the payload has 4 GiB: mistakes of the caller.
#[inline]
pub fn end_frame(out: &mut Vec<u8>, start: FrameStart) {
    end_size(out, start.0);
    out.push(FRAME_END);
}

/// Appends a heartbeat.
pub fn write_heartbeat(out: &mut Vec<u8>) {
    out.extend_from_slice(&HEARTBEAT);
}

/// Appends `body` as body frames with at most `payload_max` bytes of payload each, which is the
/// negotiated frame_max less [`FRAME_OVERHEAD`]. An empty body has no frames.
///
/// # Panics
/// When `payload_max` is 0.
#[inline]
pub fn write_body_frames(out: &mut Vec<u8>, channel: u16, body: &[u8], payload_max: u32) {
    let payload_max = usize::try_from(payload_max).unwrap_or(usize::MAX);
    assert!(payload_max > 0, "a body frame must have room for payload");
    let overhead = body.len().div_ceil(payload_max).saturating_mul(FRAME_OVERHEAD);
    out.reserve(body.len().saturating_add(overhead));
    for payload in body.chunks(payload_max) {
        out.push(FrameType::Body.octet());
        put_u16(out, channel);
        put_u32(out, u32::try_from(payload.len()).expect("a chunk is not larger than payload_max"));
        out.extend_from_slice(payload);
        out.push(FRAME_END);
    }
}
