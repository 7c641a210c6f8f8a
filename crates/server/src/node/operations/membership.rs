//! The nodes of the cluster.

use tokio::task::block_in_place;

use crate::node::Node;
use crate::requests::{ChangeError, ForgetError, MemberChange, MemberError};

impl Node {
    /// Changes the nodes that have vhosts: all of these, or none. Completes when the change is committed; replicas come
    /// and go after that, and a vhost has no fewer than it should have meanwhile. This node leads the metadata.
    pub async fn change_members(&self, changes: Vec<MemberChange>) -> Result<(), MemberError> {
        block_in_place(|| self.commit_members(&changes))
    }

    /// Takes a node that is not up out of the cluster. This node leads the metadata.
    pub async fn forget_node(&self, name: &str) -> Result<(), ForgetError> {
        block_in_place(|| self.forget(name))
    }

    /// Raises the level of record kinds of the cluster to the lowest that its nodes read. This node leads the metadata.
    pub async fn raise_record_level(&self) -> Result<(), ChangeError> {
        block_in_place(|| self.raise_level_on_request())
    }
}
