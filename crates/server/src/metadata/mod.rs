//! The metadata of a cluster: users, vhosts, their ids and settings, and global parameters, in a replicated log of their
//! own.
//!
//! The metadata is a set of *items*: a key with a JSON value. A record of the log puts or removes one item. The records
//! of a change are in one entry as far as an entry has room for them. The node that leads the group makes the changes;
//! every node applies committed records, and `node::metadata` lets them take effect.
//!
//! A node without a cluster has no such log: its `node.json` and `global_parameters.json` are the metadata.

mod opening;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use opening::MetadataOpenError;
pub(crate) use replica::metadata::{ItemChange, ItemKey};
pub(crate) use store::{CommittedItems, Metadata, MetadataError};
