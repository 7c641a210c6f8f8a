//! Whether octets are a table or an array, all the way down.
//!
//! Walks every octet once, without allocating. A nested size that runs past its parent is found
//! before anything is read; the depth of the recursion is bounded by [`TABLE_DEPTH_MAX`].

use super::value::{Value, read_value};
use crate::limits::TABLE_DEPTH_MAX;
use crate::primitives::{DecodeError, Reader};

/// Why octets are no table.
///
/// RabbitMQ 4.3.6 sends no close frame for any of these in a method (the socket is reset) and 541
/// INTERNAL_ERROR for any of them in a content header; only a table that runs past its frame is
/// 501 `cannot decode <<...>>` (all observed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A key, value, nested table or array runs past the end of what contains it.
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

/// Accepts the octets of a table without its size.
pub(super) fn table(bytes: &[u8]) -> Result<(), TableError> {
    table_within(bytes, TABLE_DEPTH_MAX)
}

/// Accepts the octets of an array without its size.
pub(super) fn array(bytes: &[u8]) -> Result<(), TableError> {
    array_within(bytes, TABLE_DEPTH_MAX)
}

/// `depth_left` counts the levels that may still be opened, this one included.
fn table_within(bytes: &[u8], depth_left: usize) -> Result<(), TableError> {
    let depth_left = depth_left.checked_sub(1).ok_or(TableError::TooDeep)?;
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        reader.short_bytes()?;
        value_within(&mut reader, depth_left)?;
    }
    Ok(())
}

fn array_within(bytes: &[u8], depth_left: usize) -> Result<(), TableError> {
    let depth_left = depth_left.checked_sub(1).ok_or(TableError::TooDeep)?;
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        value_within(&mut reader, depth_left)?;
    }
    Ok(())
}

fn value_within(reader: &mut Reader<'_>, depth_left: usize) -> Result<(), TableError> {
    match read_value(reader)? {
        Value::Table(table) => table_within(table.as_bytes(), depth_left),
        Value::Array(array) => array_within(array.as_bytes(), depth_left),
        Value::F32(value) if !value.is_finite() => Err(TableError::NotFinite),
        Value::F64(value) if !value.is_finite() => Err(TableError::NotFinite),
        Value::Bool(_)
        | Value::I8(_)
        | Value::U8(_)
        | Value::I16(_)
        | Value::U16(_)
        | Value::I32(_)
        | Value::U32(_)
        | Value::I64(_)
        | Value::F32(_)
        | Value::F64(_)
        | Value::Decimal { .. }
        | Value::LongStr(_)
        | Value::Binary(_)
        | Value::Timestamp(_)
        | Value::Void => Ok(()),
    }
}
