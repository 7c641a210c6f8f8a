//! Writing tables and arrays.
//!
//! Fields are written in the order in which they are inserted, duplicates included: order and
//! uniqueness are [`TableRef::normalised`](super::TableRef::normalised)'s business.

use super::{Array, Table, Value};
use crate::limits::SHORT_STRING_BYTES_MAX;
use crate::wire::put_short_bytes;

/// Collects the fields of a table.
///
/// Nested tables are either built first and inserted as [`Value::Table`], or written in place by
/// [`TableBuilder::table`] and [`TableBuilder::array`].
#[derive(Debug, Clone, Default)]
pub struct TableBuilder {
    bytes: Vec<u8>,
}

impl TableBuilder {
    /// Starts without fields.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a field. Floats must be finite, as on the wire.
    ///
    /// # Panics
    /// When `key` is longer than 255 octets. Keys from the wire are not; keys from elsewhere (JSON)
    /// have to be checked where they enter.
    pub fn insert(&mut self, key: impl AsRef<[u8]>, value: Value<'_>) -> &mut Self {
        self.put_key(key.as_ref());
        value.write(&mut self.bytes);
        self
    }

    /// Appends a nested table, whose fields `fill` inserts.
    ///
    /// # Panics
    /// When `key` is longer than 255 octets.
    pub fn table(&mut self, key: impl AsRef<[u8]>, fill: impl FnOnce(&mut Self)) -> &mut Self {
        self.put_key(key.as_ref());
        let mut nested = Self::new();
        fill(&mut nested);
        Value::Table(nested.finish().as_ref()).write(&mut self.bytes);
        self
    }

    /// Appends a nested array, whose values `fill` pushes.
    ///
    /// # Panics
    /// When `key` is longer than 255 octets.
    pub fn array(
        &mut self,
        key: impl AsRef<[u8]>,
        fill: impl FnOnce(&mut ArrayBuilder),
    ) -> &mut Self {
        self.put_key(key.as_ref());
        let mut nested = ArrayBuilder::new();
        fill(&mut nested);
        Value::Array(nested.finish().as_ref()).write(&mut self.bytes);
        self
    }

    /// The table with the fields inserted so far; the builder starts over.
    #[must_use]
    pub fn finish(&mut self) -> Table {
        Table { bytes: std::mem::take(&mut self.bytes).into_boxed_slice() }
    }

    fn put_key(&mut self, key: &[u8]) {
        assert!(key.len() <= SHORT_STRING_BYTES_MAX, "a table key of {} octets", key.len());
        put_short_bytes(&mut self.bytes, key);
    }
}

/// Collects the values of an array.
#[derive(Debug, Clone, Default)]
pub struct ArrayBuilder {
    bytes: Vec<u8>,
}

impl ArrayBuilder {
    /// Starts without values.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a value. Floats must be finite, as on the wire.
    pub fn push(&mut self, value: Value<'_>) -> &mut Self {
        value.write(&mut self.bytes);
        self
    }

    /// Appends a nested table, whose fields `fill` inserts.
    pub fn table(&mut self, fill: impl FnOnce(&mut TableBuilder)) -> &mut Self {
        let mut nested = TableBuilder::new();
        fill(&mut nested);
        self.push(Value::Table(nested.finish().as_ref()))
    }

    /// Appends a nested array, whose values `fill` pushes.
    pub fn array(&mut self, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let mut nested = Self::new();
        fill(&mut nested);
        self.push(Value::Array(nested.finish().as_ref()))
    }

    /// The array with the values pushed so far; the builder starts over.
    #[must_use]
    pub fn finish(&mut self) -> Array {
        Array { bytes: std::mem::take(&mut self.bytes).into_boxed_slice() }
    }
}
