//! Validation of a table or an array and of all its nested ones.
//!
//! Reads every byte once, without allocating. A nested size that runs past its container is found
//! before anything in it is read; [`TABLE_DEPTH_MAX`] bounds the depth of the recursion.

use super::error::TableError;
use super::value::{Nested, read_value};
use crate::limits::TABLE_DEPTH_MAX;
use crate::primitives::Reader;

/// Validates a table that stands without its size.
pub(super) fn table(bytes: &[u8]) -> Result<(), TableError> {
    table_within(bytes, TABLE_DEPTH_MAX)
}

/// Validates an array that stands without its size.
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
    let value = read_value(reader)?;
    match value.nested() {
        Some(Nested::Table(table)) => table_within(table.as_bytes(), depth_left),
        Some(Nested::Array(array)) => array_within(array.as_bytes(), depth_left),
        None if value.is_finite() => Ok(()),
        None => Err(TableError::NotFinite),
    }
}
