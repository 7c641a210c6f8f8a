//! Items of definitions that an import refuses or leaves out.

use serde_json::{Map, Value};

use crate::limits::IMPORT_ITEMS_NAMED_MAX;

/// An item of definitions, with the reason why it is refused or left out.
#[derive(Clone, PartialEq, Debug)]
pub struct ImportItem {
    /// The family of the item, such as `queues`.
    pub family: String,
    /// Number of the item in its family, from 1; none for the family as a whole, and if another node names the item.
    pub number: Option<usize>,
    /// The fields that identify the item in its family.
    pub identity: Map<String, Value>,
    /// The reason.
    pub reason: String,
    /// True if the item needs what Leveret does not have, so that an import can leave it out.
    pub is_unsupported: bool,
}

/// Items that an import refuses or leaves out: the first ones by name.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct ImportItems {
    /// The first items, at most `IMPORT_ITEMS_NAMED_MAX`.
    pub named: Vec<ImportItem>,
    /// Number of all items.
    pub total: u64,
}

impl ImportItems {
    /// Adds the items that another node names.
    pub(crate) fn append(&mut self, others: Self) {
        // Another node may tell any number.
        self.total = self.total.saturating_add(others.total);
        let room = IMPORT_ITEMS_NAMED_MAX.saturating_sub(self.named.len());
        self.named.extend(others.named.into_iter().take(room));
    }
}

/// Definitions to import.
#[derive(Clone, Debug)]
pub struct ImportRequest {
    /// The vhost into which they are imported; none for the whole node.
    pub vhost: Option<String>,
    /// The definitions.
    pub definitions: Map<String, Value>,
    /// The user who imports, and gets all permissions in new vhosts; none at the start of the node.
    pub importer: Option<String>,
    /// True if items that need what Leveret does not have are left out; otherwise they are problems.
    pub skips_unsupported: bool,
}

/// The reason why definitions are not imported.
#[derive(Clone, PartialEq, Debug)]
pub enum ImportError {
    /// The definitions are invalid.
    Definitions {
        /// The problems as a text, in RabbitMQ's words.
        reason: String,
        /// The items with problems.
        problems: ImportItems,
    },
    /// The node failed.
    Node(String),
}
