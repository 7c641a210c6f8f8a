//! Items of the metadata, and their records in the log.

use std::ops::RangeInclusive;

use serde_json::Value;

/// Kind of a record that puts an item.
const PUT: u8 = 1;
/// Kind of a record that removes an item.
const REMOVE: u8 = 2;
/// Kind of a record with the digest of all items.
const DIGEST: u8 = 3;

/// Kinds of keys.
const KEY_KINDS: RangeInclusive<u8> = 1..=6;

/// Bytes of a digest.
pub const DIGEST_BYTES: usize = 32;

/// Key of an item.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ItemKey {
    /// The id of the next vhost, which is greater than those of all vhosts so far.
    NextVhostId,
    /// The vhost of this name.
    Vhost(String),
    /// The user of this name.
    User(String),
    /// The global parameter of this name.
    Parameter(String),
    /// The node of this name, which is one of the cluster or forgotten.
    Node(String),
    /// The level of record kinds of the cluster, if it is above the first. Itself of level 2.
    RecordLevel,
}

impl ItemKey {
    const fn kind(&self) -> u8 {
        match self {
            Self::NextVhostId => 1,
            Self::Vhost(_) => 2,
            Self::User(_) => 3,
            Self::Parameter(_) => 4,
            Self::Node(_) => 5,
            Self::RecordLevel => 6,
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::NextVhostId | Self::RecordLevel => "",
            Self::Vhost(name) | Self::User(name) | Self::Parameter(name) | Self::Node(name) => name,
        }
    }

    /// Appends the key: its kind, the bytes of the name as `u32`, and the name.
    fn encode(&self, out: &mut Vec<u8>) {
        let name = self.name();
        let bytes = u32::try_from(name.len()).expect("names are short");
        out.push(self.kind());
        out.extend_from_slice(&bytes.to_le_bytes());
        out.extend_from_slice(name.as_bytes());
    }

    /// Reads a key from the front of `bytes`, and returns what follows; none if it is damaged, or of an unknown kind.
    fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (kind, bytes) = bytes.split_first()?;
        let (length, bytes) = bytes.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (name, rest) = bytes.split_at_checked(length)?;
        let name = std::str::from_utf8(name).ok()?.to_owned();
        let key = match kind {
            1 if name.is_empty() => Self::NextVhostId,
            2 => Self::Vhost(name),
            3 => Self::User(name),
            4 => Self::Parameter(name),
            5 => Self::Node(name),
            6 if name.is_empty() => Self::RecordLevel,
            _ => return None,
        };
        Some((key, rest))
    }
}

/// A change of one item.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ItemChange {
    /// The key of the item.
    pub key: ItemKey,
    /// The new value; none to remove the item.
    pub value: Option<Value>,
}

/// A record of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MetadataRecord {
    /// An item has this value, or is removed.
    Change(ItemChange),
    /// The digest of all items in front of this record.
    Digest([u8; DIGEST_BYTES]),
}

impl MetadataRecord {
    /// The kind of the record in the log.
    pub(super) const fn kind(&self) -> u8 {
        match self {
            Self::Change(ItemChange { value: Some(_), .. }) => PUT,
            Self::Change(ItemChange { value: None, .. }) => REMOVE,
            Self::Digest(_) => DIGEST,
        }
    }

    /// Number of references that keep the record: one as long as the item has the value.
    pub(super) const fn references(&self) -> u16 {
        match self {
            Self::Change(ItemChange { value: Some(_), .. }) => 1,
            Self::Change(ItemChange { value: None, .. }) | Self::Digest(_) => 0,
        }
    }

    /// Appends the payload.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Change(ItemChange { key, value }) => encode_change(key, value.as_ref(), out),
            Self::Digest(digest) => out.extend_from_slice(digest),
        }
    }

    /// Reads a record.
    ///
    /// # Errors
    /// A sentence: the record is damaged, or of a later version.
    pub fn decode(kind: u8, payload: &[u8]) -> Result<Self, String> {
        let damaged = || match payload.first() {
            Some(key) if matches!(kind, PUT | REMOVE) && !KEY_KINDS.contains(key) => {
                format!("an item has kind {key}, which this version does not know")
            }
            _ => format!("a record of kind {kind} cannot be read"),
        };
        match kind {
            PUT => {
                let (key, value) = ItemKey::decode(payload).ok_or_else(damaged)?;
                let value = serde_json::from_slice(value).map_err(|_| damaged())?;
                Ok(Self::Change(ItemChange { key, value: Some(value) }))
            }
            REMOVE => match ItemKey::decode(payload) {
                Some((key, [])) => Ok(Self::Change(ItemChange { key, value: None })),
                _ => Err(damaged()),
            },
            DIGEST => payload.try_into().map(Self::Digest).map_err(|_| damaged()),
            _ => Err(format!("a record has kind {kind}, which this version does not know")),
        }
    }
}

/// Appends the payload of a change: the key, and the value as JSON if there is one.
pub(super) fn encode_change(key: &ItemKey, value: Option<&Value>, out: &mut Vec<u8>) {
    key.encode(out);
    if let Some(value) = value {
        out.extend_from_slice(value.to_string().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn records_read_back_and_are_refused_when_cut() {
        let change = |key, value| MetadataRecord::Change(ItemChange { key, value });
        let all = [
            change(ItemKey::NextVhostId, Some(json!(7))),
            change(ItemKey::Vhost("/".to_owned()), Some(json!({"id": 1}))),
            change(ItemKey::User("anna".to_owned()), None),
            change(ItemKey::Parameter("\u{e9}".to_owned()), Some(json!([1, null]))),
            change(ItemKey::Node("a@h".to_owned()), Some(json!({"port": 1}))),
            change(ItemKey::RecordLevel, Some(json!(2))),
            MetadataRecord::Digest([9; DIGEST_BYTES]),
        ];
        for record in all {
            let mut payload = Vec::new();
            record.encode(&mut payload);
            assert_eq!(MetadataRecord::decode(record.kind(), &payload), Ok(record.clone()));
            for length in 0..payload.len() {
                let cut = MetadataRecord::decode(record.kind(), &payload[..length]);
                assert!(cut.is_err(), "{record:?} {length}");
            }
        }
        assert!(MetadataRecord::decode(99, &[]).is_err());
        // A key of an unknown kind, and a name that is longer than the record.
        let unknown = MetadataRecord::decode(REMOVE, &[9, 0, 0, 0, 0]).unwrap_err();
        assert_eq!(unknown, "an item has kind 9, which this version does not know");
        assert!(MetadataRecord::decode(REMOVE, &[6, 1, 0, 0, 0, b'x']).is_err());
        assert!(MetadataRecord::decode(REMOVE, &[2, 255, 255, 255, 255]).is_err());
    }
}
