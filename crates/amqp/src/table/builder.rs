//! Writing of tables and arrays.
//!
//! Fields are written in the order in which they are inserted, duplicates included;
//! [`TableRef::normalised`] sorts them and drops duplicates.

use super::owned::{Array, Table};
use super::value::{TableRef, Value};
use crate::limits::SHORT_STRING_BYTES_MAX;
use crate::primitives::{begin_size, end_size, put_short_bytes};

/// Collects the fields of a table.
///
/// Nested tables are either built first and inserted as [`Value::Table`], or written in place by
/// [`TableBuilder::table`] and [`TableBuilder::array`].
#[derive(Debug, Clone, Default)]
pub struct TableBuilder {
    bytes: Vec<u8>,
    /// Offset of this table's fields in `bytes`; the tables around it stand before.
    begin: usize,
}

impl TableBuilder {
    /// Starts without fields.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts without fields, with room for `bytes` bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), begin: 0 }
    }

    /// Appends a field. Floats must be finite, as on the wire.
    ///
    /// # Panics
    /// When `key` is longer than 255 bytes. A key from the wire never is; a key from elsewhere (JSON)
    /// must be checked where it enters.
    pub fn insert(&mut self, key: impl AsRef<[u8]>, value: Value<'_>) -> &mut Self {
        self.put_key(key.as_ref());
        value.write(&mut self.bytes);
        self
    }

    /// Appends a nested table, whose fields `fill` inserts.
    ///
    /// # Panics
    /// When `key` is longer than 255 bytes.
    pub fn table(&mut self, key: impl AsRef<[u8]>, fill: impl FnOnce(&mut Self)) -> &mut Self {
        self.put_key(key.as_ref());
        put_table(&mut self.bytes, fill);
        self
    }

    /// Appends a nested array, whose values `fill` pushes.
    ///
    /// # Panics
    /// When `key` is longer than 255 bytes.
    pub fn array(
        &mut self,
        key: impl AsRef<[u8]>,
        fill: impl FnOnce(&mut ArrayBuilder),
    ) -> &mut Self {
        self.put_key(key.as_ref());
        put_array(&mut self.bytes, fill);
        self
    }

    /// The table with the fields inserted so far; the builder starts over.
    #[must_use]
    pub fn finish(&mut self) -> Table {
        Table { bytes: finish(&mut self.bytes, self.begin) }
    }

    /// The fields inserted so far.
    #[must_use]
    pub fn as_ref(&self) -> TableRef<'_> {
        TableRef { bytes: self.bytes.get(self.begin..).unwrap_or_default() }
    }

    fn put_key(&mut self, key: &[u8]) {
        assert!(key.len() <= SHORT_STRING_BYTES_MAX, "a table key of {} bytes", key.len());
        put_short_bytes(&mut self.bytes, key);
    }
}

/// Collects the values of an array.
#[derive(Debug, Clone, Default)]
pub struct ArrayBuilder {
    bytes: Vec<u8>,
    /// Offset of this array's values in `bytes`; the tables around it stand before.
    begin: usize,
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
        put_table(&mut self.bytes, fill);
        self
    }

    /// Appends a nested array, whose values `fill` pushes.
    pub fn array(&mut self, fill: impl FnOnce(&mut Self)) -> &mut Self {
        put_array(&mut self.bytes, fill);
        self
    }

    /// The array with the values pushed so far; the builder starts over.
    #[must_use]
    pub fn finish(&mut self) -> Array {
        Array { bytes: finish(&mut self.bytes, self.begin) }
    }
}

/// Appends a table in place, so that its bytes are written once.
fn put_table(bytes: &mut Vec<u8>, fill: impl FnOnce(&mut TableBuilder)) {
    bytes.push(b'F');
    let size = begin_size(bytes);
    let begin = bytes.len();
    let mut nested = TableBuilder { bytes: std::mem::take(bytes), begin };
    fill(&mut nested);
    *bytes = nested.bytes;
    end_size(bytes, size);
}

/// Appends an array in place.
fn put_array(bytes: &mut Vec<u8>, fill: impl FnOnce(&mut ArrayBuilder)) {
    bytes.push(b'A');
    let size = begin_size(bytes);
    let begin = bytes.len();
    let mut nested = ArrayBuilder { bytes: std::mem::take(bytes), begin };
    fill(&mut nested);
    *bytes = nested.bytes;
    end_size(bytes, size);
}

/// Takes the bytes from `begin` on; those before belong to the outer builder.
fn finish(bytes: &mut Vec<u8>, begin: usize) -> Box<[u8]> {
    if begin == 0 { std::mem::take(bytes) } else { bytes.split_off(begin) }.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_tables_are_written_in_place() {
        let fill = |inner: &mut TableBuilder| {
            inner.insert("n", Value::I8(1));
        };
        let mut inner = TableBuilder::new();
        fill(&mut inner);
        let inner = inner.finish();
        let mut list = ArrayBuilder::new();
        list.push(Value::Table(inner.as_ref())).push(Value::Void);
        let list = list.finish();
        let mut copied = TableBuilder::new();
        copied.insert("a", Value::Bool(true)).insert("list", Value::Array(list.as_ref()));
        copied.insert("t", Value::Table(inner.as_ref()));

        let mut in_place = TableBuilder::new();
        in_place.insert("a", Value::Bool(true));
        in_place.array("list", |list| {
            list.table(fill).push(Value::Void);
        });
        in_place.table("t", fill);
        assert_eq!(in_place.as_ref(), copied.as_ref());
        assert_eq!(in_place.finish(), copied.finish());
        assert!(in_place.finish().is_empty());
    }

    #[test]
    fn nested_builder_that_is_finished_keeps_the_outer_fields() {
        let mut outer = TableBuilder::new();
        outer.insert("a", Value::Bool(true));
        outer.table("t", |inner| {
            inner.insert("lost", Value::Void);
            assert_eq!(inner.finish().get("lost"), Some(Value::Void));
            assert!(inner.as_ref().is_empty());
        });
        let outer = outer.finish();
        assert_eq!(outer.get("a"), Some(Value::Bool(true)));
        assert_eq!(outer.as_ref().len(), 2);
    }
}
