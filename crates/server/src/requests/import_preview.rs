//! The changes that an import of definitions would make.

use serde_json::{Map, Value};

/// The changes of an import, by family of definitions.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct ImportPreview {
    /// The families in the order of the import, each with its name.
    pub families: Vec<(&'static str, FamilyPreview)>,
}

/// The changes in one family. Items of the same name count once.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct FamilyPreview {
    /// Items that do not exist.
    pub new: u64,
    /// Items that exist and are the same.
    pub equal: u64,
    /// Items that exist and are replaced by others.
    pub changed: u64,
    /// Queues and exchanges that exist with other properties and stay as they are.
    pub kept: u64,
    /// Items that an import leaves out.
    pub skipped: u64,
    /// The first items of each kind, except equal ones.
    pub items: Vec<PreviewedItem>,
}

/// An item of definitions and its change.
#[derive(Clone, PartialEq, Debug)]
pub struct PreviewedItem {
    /// The change.
    pub change: ImportChange,
    /// The fields that identify the item in its family.
    pub identity: Map<String, Value>,
    /// The reason why the item, or a part of it, is left out.
    pub reason: Option<String>,
    /// The first differences from the existing item.
    pub differences: Vec<Difference>,
}

/// The effect of an import on one item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImportChange {
    /// The item is created.
    New,
    /// The item is the same.
    Equal,
    /// The item is replaced.
    Changed,
    /// The existing item has other properties and stays as it is.
    Kept,
    /// The item is left out.
    Skipped,
}

impl ImportChange {
    /// All effects.
    pub(crate) const ALL: [Self; 5] =
        [Self::New, Self::Equal, Self::Changed, Self::Kept, Self::Skipped];

    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Equal => "equal",
            Self::Changed => "changed",
            Self::Kept => "kept",
            Self::Skipped => "skipped",
        }
    }
}

/// A field that differs.
#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    /// The path of the field, such as `definition.max-length`.
    pub field: String,
    /// The existing value; none if the field is missing or its value is secret.
    pub before: Option<Value>,
    /// The value in the definitions; none if the field is missing or its value is secret.
    pub after: Option<Value>,
}
