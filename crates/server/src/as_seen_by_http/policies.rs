//! Policies of both kinds.

use std::sync::Arc;

use broker::{Policy, PolicyKind};
use management::Change;

use crate::node::Node;

impl management::Policies for Node {
    fn policies(&self, vhost: &str, kind: PolicyKind) -> Option<Vec<Arc<Policy>>> {
        let cell = self.vhosts.get(vhost)?;
        Some(cell.with(|v, _| v.policies().iter(kind).cloned().collect()))
    }

    fn set_policy(
        &self,
        vhost: &str,
        kind: PolicyKind,
        policy: Policy,
    ) -> Change<'_, Option<bool>> {
        let cell = self.vhosts.get(vhost);
        Box::pin(async move {
            let cell = cell?;
            let (is_new, lsn) = cell.with(|v, now| {
                let is_new = v.policies().get(kind, &policy.name).is_none();
                v.set_policy(now, kind, policy);
                (is_new, v.last_lsn())
            });
            cell.durable_at(lsn).await;
            Some(is_new)
        })
    }

    fn clear_policy(&self, vhost: &str, kind: PolicyKind, name: &str) -> Change<'_, bool> {
        let (cell, name) = (self.vhosts.get(vhost), name.to_owned());
        Box::pin(async move {
            let Some(cell) = cell else { return false };
            let (existed, lsn) =
                cell.with(|v, now| (v.clear_policy(now, kind, &name), v.last_lsn()));
            cell.durable_at(lsn).await;
            existed
        })
    }
}
