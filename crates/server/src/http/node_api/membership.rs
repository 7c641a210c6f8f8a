//! The nodes of the cluster.

use management::{ChangeError, ChangeFuture, ForgetError, Membership};

use super::change;
use crate::node::Node;

impl Membership for Node {
    fn forget_node(&self, name: &str) -> ChangeFuture<'_, Result<(), ForgetError>> {
        let name = name.to_owned();
        change(move || self.forget(&name))
    }

    fn raise_record_level(&self) -> ChangeFuture<'_, Result<(), ChangeError>> {
        change(move || Self::raise_record_level(self))
    }
}
