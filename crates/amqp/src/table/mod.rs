//! Field tables and arrays: validated once, then read in place.
//!
//! Decides what a well-formed table is and reads its fields. Does not know what any key means.
//! A [`TableRef`] or [`ArrayRef`] only exists over octets that were found well-formed, so that
//! reading one cannot fail; [`Table`] and [`Array`] own such octets.
//!
//! ```text
//! table   size:long ( key:shortstr type:octet value )*
//! array   size:long ( type:octet value )*
//! ```
//!
//! RabbitMQ 4.3.6 takes any octets as a key, also none, and keeps duplicate keys; whoever looks a
//! key up finds the first (observed with two `x-message-ttl`).

mod builder;
mod normalise;
mod validate;
mod value;

use std::fmt;

pub use builder::{ArrayBuilder, TableBuilder};
pub use validate::TableError;
pub use value::Value;

use crate::primitives::{Reader, put_long_str};
use value::read_value;

/// A well-formed table somewhere in memory, without its size.
///
/// Two are equal when their octets are: same fields, same order, same types.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TableRef<'a> {
    bytes: &'a [u8],
}

impl<'a> TableRef<'a> {
    /// The table without fields.
    pub const EMPTY: Self = Self { bytes: &[] };

    /// Takes a table with its size off the front of `reader`, and validates it.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn parse(reader: &mut Reader<'a>) -> Result<Self, TableError> {
        Self::from_bytes(reader.long_str()?)
    }

    /// Validates a table that stands without its size.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, TableError> {
        validate::table(bytes)?;
        Ok(Self { bytes })
    }

    /// The octets, without the size.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// How many fields there are, duplicate keys counted. Walks the table.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// The fields in the order in which they lie in the table.
    #[must_use]
    pub fn iter(&self) -> TableIter<'a> {
        TableIter { reader: Reader::new(self.bytes) }
    }

    /// The value of the first field with this key. Walks the table.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        self.iter().find_map(|(found, value)| (found == key.as_bytes()).then_some(value))
    }

    /// Appends the table with its size.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_long_str(out, self.bytes);
    }

    /// A copy that owns its octets.
    #[must_use]
    pub fn to_table(&self) -> Table {
        Table { bytes: self.bytes.into() }
    }
}

impl<'a> IntoIterator for TableRef<'a> {
    type Item = (&'a [u8], Value<'a>);
    type IntoIter = TableIter<'a>;

    fn into_iter(self) -> TableIter<'a> {
        self.iter()
    }
}

impl fmt::Debug for TableRef<'_> {
    /// Prints `{key=value, ...}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        f.write_str("{")?;
        for (key, value) in self.iter() {
            write!(f, "{separator}{}={value:?}", key.escape_ascii())?;
            separator = ", ";
        }
        f.write_str("}")
    }
}

/// The fields of a table in wire order, as key and value.
#[derive(Debug, Clone)]
pub struct TableIter<'a> {
    reader: Reader<'a>,
}

impl<'a> TableIter<'a> {
    /// What has not been iterated over, as it lies on the wire.
    fn rest(&self) -> &'a [u8] {
        self.reader.rest()
    }
}

impl<'a> Iterator for TableIter<'a> {
    type Item = (&'a [u8], Value<'a>);

    /// A read error cannot happen, because the octets were validated; it would end the iteration.
    fn next(&mut self) -> Option<Self::Item> {
        let key = self.reader.short_bytes().ok()?;
        let value = read_value(&mut self.reader).ok()?;
        Some((key, value))
    }
}

/// A well-formed array somewhere in memory, without its size.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ArrayRef<'a> {
    bytes: &'a [u8],
}

impl<'a> ArrayRef<'a> {
    /// The array without values.
    pub const EMPTY: Self = Self { bytes: &[] };

    /// Validates an array that stands without its size.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, TableError> {
        validate::array(bytes)?;
        Ok(Self { bytes })
    }

    /// The octets, without the size.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// How many values there are. Walks the array.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// The values in order.
    #[must_use]
    pub fn iter(&self) -> ArrayIter<'a> {
        ArrayIter { reader: Reader::new(self.bytes) }
    }

    /// A copy that owns its octets.
    #[must_use]
    pub fn to_array(&self) -> Array {
        Array { bytes: self.bytes.into() }
    }
}

impl<'a> IntoIterator for ArrayRef<'a> {
    type Item = Value<'a>;
    type IntoIter = ArrayIter<'a>;

    fn into_iter(self) -> ArrayIter<'a> {
        self.iter()
    }
}

impl fmt::Debug for ArrayRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The values of an array in order.
#[derive(Debug, Clone)]
pub struct ArrayIter<'a> {
    reader: Reader<'a>,
}

impl<'a> Iterator for ArrayIter<'a> {
    type Item = Value<'a>;

    /// A read error cannot happen, because the octets were validated; it would end the iteration.
    fn next(&mut self) -> Option<Value<'a>> {
        read_value(&mut self.reader).ok()
    }
}

/// A table that owns its octets. Made by [`TableBuilder::finish`] or [`TableRef::to_table`].
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Table {
    bytes: Box<[u8]>,
}

impl Table {
    /// The same table, borrowed; all questions are asked there.
    #[must_use]
    pub fn as_ref(&self) -> TableRef<'_> {
        TableRef { bytes: &self.bytes }
    }

    /// The value of the first field with this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Value<'_>> {
        self.as_ref().get(key)
    }

    /// Whether there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

/// An array that owns its octets. Made by [`ArrayBuilder::finish`] or [`ArrayRef::to_array`].
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Array {
    bytes: Box<[u8]>,
}

impl Array {
    /// The same array, borrowed; all questions are asked there.
    #[must_use]
    pub fn as_ref(&self) -> ArrayRef<'_> {
        ArrayRef { bytes: &self.bytes }
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}
