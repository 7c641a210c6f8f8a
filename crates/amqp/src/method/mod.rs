//! Methods: every class and method of AMQP 0-9-1 as RabbitMQ 4.3 has it, in both directions.
//!
//! Only the wire form of the arguments is decided here; the session knows which method is allowed when.
//! The methods themselves are one table in `method/classes.rs`; `method/define.rs` turns it into
//! structs, decoding, encoding and names, `method/fields.rs` knows the field types.
//!
//! ```text
//! class-id:short  method-id:short  arguments
//! ```

mod classes;
mod define;
mod fields;

use std::fmt;

pub use classes::*;

use crate::erlang_binary::ByteList;
use crate::frame::{FrameType, begin_frame, end_frame};
use crate::limits::{METHOD_ERROR_BYTES_MAX, METHOD_ID_SIZE};
use crate::primitives::DecodeError;
use crate::table::TableError;

/// Class and number of a method. A close method names the failed method by it, 0 and 0 for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MethodId {
    /// The class, 60 for basic.
    pub class_id: u16,
    /// The method within its class.
    pub method_id: u16,
}

impl MethodId {
    /// Class and method 0: no method is at fault.
    pub const NONE: Self = Self { class_id: 0, method_id: 0 };
}

impl fmt::Display for MethodId {
    /// Prints class and method: `50,10`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.class_id, self.method_id)
    }
}

/// Fault in the payload of a method frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct MethodError {
    /// The method, as far as it could be read.
    pub id: Option<MethodId>,
    /// Kind of the fault.
    pub kind: MethodErrorKind,
}

/// Kind of a fault in the payload of a method frame.
///
/// RabbitMQ matches all fields against the bytes before it looks into any, so that the first two
/// kinds take precedence over the last two, and malformed UTF-8 before a malformed table (observed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MethodErrorKind {
    /// No room for class and method; [`split_frame`](crate::frame::split_frame) refuses such frames.
    #[error("a method frame of fewer than four octets")]
    TooShort,
    /// RabbitMQ 4.3.6 resets the socket without a close frame, observed.
    #[error("unknown method")]
    UnknownMethod,
    /// The fields, or a table's size, run past the end. In RabbitMQ 4.3.6, observed: 501 FRAME_ERROR
    /// `cannot decode <<...>>` with class and method set.
    #[error("the arguments are malformed: {0}")]
    Malformed(DecodeError),
    /// Bytes follow the last field. As [`MethodErrorKind::Malformed`] in RabbitMQ.
    #[error("{0} octets follow the arguments")]
    TrailingBytes(usize),
    /// A short string is not UTF-8. In RabbitMQ 4.3.6, observed: 501 FRAME_ERROR
    /// `Malformed UTF-8 in shortstr` with class and method 0, on channel 0 with those of the method.
    /// Exchange and routing key of basic.publish are not looked at.
    #[error("malformed UTF-8 in shortstr")]
    MalformedUtf8,
    /// A table is malformed inside. RabbitMQ 4.3.6 resets the socket without a close frame, observed.
    #[error(transparent)]
    MalformedTable(TableError),
}

impl From<DecodeError> for MethodErrorKind {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Truncated => Self::Malformed(error),
            DecodeError::MalformedUtf8 => Self::MalformedUtf8,
        }
    }
}

impl From<TableError> for MethodErrorKind {
    fn from(error: TableError) -> Self {
        Self::MalformedTable(error)
    }
}

impl MethodError {
    /// The explanation for the reply text, RabbitMQ's where it gives one; `payload` is what
    /// [`Method::decode`] was given. Bounded, but
    /// [`ReplyCode::text`](crate::reply_code::ReplyCode::text) may cut it.
    #[must_use]
    pub fn explanation(&self, payload: &[u8]) -> String {
        match self.kind {
            MethodErrorKind::Malformed(_) | MethodErrorKind::TrailingBytes(_) => {
                let arguments = payload.get(METHOD_ID_SIZE..).unwrap_or_default();
                let printed = arguments.get(..METHOD_ERROR_BYTES_MAX).unwrap_or(arguments);
                format!("cannot decode {}", ByteList(printed))
            }
            MethodErrorKind::MalformedUtf8 => "Malformed UTF-8 in shortstr".to_owned(),
            MethodErrorKind::TooShort
            | MethodErrorKind::UnknownMethod
            | MethodErrorKind::MalformedTable(_) => self.kind.to_string(),
        }
    }
}

impl<'a> Method<'a> {
    /// Reads the payload of a method frame.
    ///
    /// As in RabbitMQ 4.3.6, observed: reserved fields and unused bits may have any value.
    ///
    /// # Errors
    /// [`MethodError`].
    #[inline]
    pub fn decode(payload: &'a [u8]) -> Result<Self, MethodError> {
        let Some(([c1, c0, m1, m0], arguments)) = payload.split_first_chunk() else {
            return Err(MethodError { id: None, kind: MethodErrorKind::TooShort });
        };
        let id = MethodId {
            class_id: u16::from_be_bytes([*c1, *c0]),
            method_id: u16::from_be_bytes([*m1, *m0]),
        };
        Self::decode_arguments(id, arguments).map_err(|kind| MethodError { id: Some(id), kind })
    }

    /// True if a content header and body frames follow the method.
    #[must_use]
    pub fn has_content(&self) -> bool {
        matches!(
            *self,
            Method::BasicPublish(_)
                | Method::BasicReturn(_)
                | Method::BasicDeliver(_)
                | Method::BasicGetOk(_)
        )
    }
}

/// Appends the whole frame of a method.
#[inline]
pub fn write_method(out: &mut Vec<u8>, channel: u16, method: &Method<'_>) {
    let frame = begin_frame(out, FrameType::Method, channel);
    method.encode(out);
    end_frame(out, frame);
}
