//! The nodes of the cluster.

use super::change;
use crate::node::Node;
use crate::requests::{
    ChangeError, ChangeFuture, ForgetError, MemberChange, MemberError, Membership,
};

impl Membership for Node {
    fn change_members(
        &self,
        changes: Vec<MemberChange>,
    ) -> ChangeFuture<'_, Result<(), MemberError>> {
        change(move || Self::change_members(self, &changes))
    }

    fn forget_node(&self, name: &str) -> ChangeFuture<'_, Result<(), ForgetError>> {
        let name = name.to_owned();
        change(move || self.forget(&name))
    }

    fn raise_record_level(&self) -> ChangeFuture<'_, Result<(), ChangeError>> {
        change(move || Self::raise_record_level(self))
    }
}
