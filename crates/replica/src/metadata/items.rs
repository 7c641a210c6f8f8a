//! The items of the metadata, by key.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};
use storage::{Flags, Lsn};

use super::item::{DIGEST_BYTES, ItemChange, ItemKey, MetadataRecord, encode_change};

/// An item with the record that put it.
#[derive(Clone, Debug)]
struct Item {
    lsn: Lsn,
    value: Arc<Value>,
}

/// The items by key.
#[derive(Clone, Default, Debug)]
pub struct Items(BTreeMap<ItemKey, Item>);

impl Items {
    /// The values by key.
    pub fn values(&self) -> BTreeMap<ItemKey, Arc<Value>> {
        self.0.iter().map(|(key, item)| (key.clone(), Arc::clone(&item.value))).collect()
    }

    /// The record that put the item; 0 if there is no such item.
    pub fn lsn(&self, key: &ItemKey) -> Lsn {
        self.0.get(key).map_or(Lsn(0), |item| item.lsn)
    }

    /// True if the change changes something.
    pub(super) fn is_news(&self, change: &ItemChange) -> bool {
        self.0.get(&change.key).map(|item| &*item.value) != change.value.as_ref()
    }

    /// Makes a change whose record is at `lsn`.
    pub(super) fn change(&mut self, lsn: Lsn, change: ItemChange) {
        let ItemChange { key, value } = change;
        match value {
            Some(value) => {
                self.0.insert(key, Item { lsn, value: Arc::new(value) });
            }
            None => {
                self.0.remove(&key);
            }
        }
    }

    /// Applies a record of the own log, which may lack items that were replaced later.
    ///
    /// # Errors
    /// A sentence: the record cannot be read.
    pub fn restore(&mut self, record: &storage::Record<'_>) -> Result<(), String> {
        if let MetadataRecord::Change(change) = decoded(record)? {
            self.change(record.lsn, change);
        }
        Ok(())
    }

    /// Applies a record of the leader.
    ///
    /// # Errors
    /// A sentence: the record cannot be read, or the items differ from those of the leader.
    pub(super) fn apply(&mut self, record: &storage::Record<'_>) -> Result<(), String> {
        match decoded(record)? {
            MetadataRecord::Change(change) => {
                self.change(record.lsn, change);
                Ok(())
            }
            MetadataRecord::Digest(digest) if digest == self.digest() => Ok(()),
            MetadataRecord::Digest(_) => {
                Err("users, vhosts or parameters differ from those of the leader".to_owned())
            }
        }
    }

    /// A digest of all keys and values.
    pub(super) fn digest(&self) -> [u8; DIGEST_BYTES] {
        let (mut hash, mut bytes) = (Sha256::new(), Vec::new());
        for (key, item) in &self.0 {
            bytes.clear();
            encode_change(key, Some(&item.value), &mut bytes);
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(&bytes);
        }
        hash.finalize().into()
    }
}

/// The change or digest in a record. The value of a record that is SPENT is gone; the record says so in place of the one
/// that replaced or removed the value, which the log may have left out.
fn decoded(record: &storage::Record<'_>) -> Result<MetadataRecord, String> {
    let mut decoded = MetadataRecord::decode(record.kind, record.payload)?;
    if record.flags.has(Flags::SPENT)
        && let MetadataRecord::Change(change) = &mut decoded
    {
        change.value = None;
    }
    Ok(decoded)
}
