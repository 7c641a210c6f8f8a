//! Reading of the fields of a table and of the values of an array, in place.

use std::fmt;

use super::error::TableError;
use super::validate;
use super::value::{ArrayRef, TableRef, Value, read_value};
use crate::primitives::{Reader, put_long_str};

/// Implements what a table and an array have in common. `$validate` checks the bytes, `$iter`
/// iterates over items of type `$item`.
macro_rules! encoded_items {
    ($name:ident, $validate:path, $iter:ident, $item:ty) => {
        impl<'a> $name<'a> {
            /// Without items.
            pub const EMPTY: Self = Self { bytes: &[] };

            /// Validates bytes that stand without their size.
            ///
            /// # Errors
            /// [`TableError`].
            pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, TableError> {
                $validate(bytes)?;
                Ok(Self { bytes })
            }

            /// The encoded items, without the size.
            #[must_use]
            pub fn as_bytes(&self) -> &'a [u8] {
                self.bytes
            }

            /// True if there are no items.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.bytes.is_empty()
            }

            /// Number of items, duplicate keys counted. Walks all of them.
            #[must_use]
            pub fn len(&self) -> usize {
                self.iter().count()
            }

            /// The items in wire order.
            #[must_use]
            pub fn iter(&self) -> $iter<'a> {
                $iter { reader: Reader::new(self.bytes) }
            }
        }

        impl<'a> IntoIterator for $name<'a> {
            type Item = $item;
            type IntoIter = $iter<'a>;

            fn into_iter(self) -> $iter<'a> {
                self.iter()
            }
        }
    };
}

encoded_items!(TableRef, validate::table, TableIter, (&'a [u8], Value<'a>));
encoded_items!(ArrayRef, validate::array, ArrayIter, Value<'a>);

impl<'a> TableRef<'a> {
    /// Takes a table with its size off the front of `reader`, and validates it.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn parse(reader: &mut Reader<'a>) -> Result<Self, TableError> {
        Self::from_bytes(reader.long_str()?)
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

impl fmt::Debug for ArrayRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The fields of a table in wire order, as key and value.
#[derive(Debug, Clone)]
pub struct TableIter<'a> {
    reader: Reader<'a>,
}

impl<'a> TableIter<'a> {
    /// The bytes of the fields that have not been returned.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.reader.rest()
    }

    #[inline]
    fn read_field(&mut self) -> Option<(&'a [u8], Value<'a>)> {
        let key = self.reader.short_bytes().ok()?;
        let value = read_value(&mut self.reader).ok()?;
        Some((key, value))
    }
}

impl<'a> Iterator for TableIter<'a> {
    type Item = (&'a [u8], Value<'a>);

    /// A read error cannot happen, because the bytes were validated; it would end the iteration.
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let field = self.read_field();
        debug_assert!(field.is_some(), "a validated table is malformed");
        field
    }
}

/// The values of an array in order.
#[derive(Debug, Clone)]
pub struct ArrayIter<'a> {
    reader: Reader<'a>,
}

impl<'a> Iterator for ArrayIter<'a> {
    type Item = Value<'a>;

    /// A read error cannot happen, because the bytes were validated; it would end the iteration.
    fn next(&mut self) -> Option<Value<'a>> {
        if self.reader.is_empty() {
            return None;
        }
        let value = read_value(&mut self.reader).ok();
        debug_assert!(value.is_some(), "a validated array is malformed");
        value
    }
}
