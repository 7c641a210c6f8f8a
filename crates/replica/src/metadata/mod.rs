//! The metadata of a cluster: a set of *items*, each a key with a JSON value. A record of their log puts or removes one
//! item, or has the digest of all.

mod item;
mod items;
mod local_metadata;
#[cfg(test)]
mod tests;

pub use item::{DIGEST_BYTES, ItemChange, ItemKey, MetadataRecord};
pub use items::Items;
pub use local_metadata::{ChangeProgress, ChangeRefused, LocalMetadata, PendingChange, RecordSink};

/// The value of an item.
pub use serde_json::Value as ItemValue;
