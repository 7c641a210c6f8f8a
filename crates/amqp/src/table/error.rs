//! Faults of a table or an array.

use crate::limits::TABLE_DEPTH_MAX;
use crate::primitives::DecodeError;

/// Fault in a table or an array.
///
/// RabbitMQ 4.3.6 sends no close frame for any of these in a method (the socket is reset) and 541
/// INTERNAL_ERROR for any of them in a content header; only a table that runs past its frame is
/// 501 `cannot decode <<...>>` (all observed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A key, value, nested table or array runs past the end of its container.
    #[error("a table field runs past the end")]
    Truncated,
    /// A type octet that RabbitMQ does not know.
    #[error("unknown table field type {0}")]
    UnknownFieldType(u8),
    /// Tables and arrays nested deeper than [`TABLE_DEPTH_MAX`].
    #[error("tables nested deeper than {TABLE_DEPTH_MAX}")]
    TooDeep,
    /// A float that is NaN or infinite: RabbitMQ has no such values and refuses them (observed).
    #[error("a float in a table is not finite")]
    NotFinite,
}

impl From<DecodeError> for TableError {
    fn from(_: DecodeError) -> Self {
        Self::Truncated
    }
}
