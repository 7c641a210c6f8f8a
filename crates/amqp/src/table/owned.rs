//! Tables and arrays that own their bytes.

use std::fmt;

use super::value::{ArrayRef, TableRef, Value};

/// A table that owns its bytes. Made by `TableBuilder::finish` or [`TableRef::to_table`].
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Table {
    pub(super) bytes: Box<[u8]>,
}

impl Table {
    /// The same table, borrowed; its methods read the fields.
    #[must_use]
    pub fn as_ref(&self) -> TableRef<'_> {
        TableRef { bytes: &self.bytes }
    }

    /// The value of the first field with this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Value<'_>> {
        self.as_ref().get(key)
    }

    /// True if there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl TableRef<'_> {
    /// A copy that owns its bytes.
    #[must_use]
    pub fn to_table(&self) -> Table {
        Table { bytes: self.bytes.into() }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

/// An array that owns its bytes. Made by `ArrayBuilder::finish` or [`ArrayRef::to_array`].
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Array {
    pub(super) bytes: Box<[u8]>,
}

impl Array {
    /// The same array, borrowed; its methods read the values.
    #[must_use]
    pub fn as_ref(&self) -> ArrayRef<'_> {
        ArrayRef { bytes: &self.bytes }
    }
}

impl ArrayRef<'_> {
    /// A copy that owns its bytes.
    #[must_use]
    pub fn to_array(&self) -> Array {
        Array { bytes: self.bytes.into() }
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}
