//! Policies of both kinds.

use std::sync::Arc;

use broker::{Policy, PolicyKind};
use management::{Change, Unchanged};

use crate::node::Node;
use crate::vhost::VhostCell;

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
    ) -> Change<'_, Result<bool, Unchanged>> {
        let cell = self.vhosts.get(vhost);
        Box::pin(async move {
            let cell = cell.ok_or(Unchanged::NoSuchVhost)?;
            let is_new = cell.with(|v, now| {
                v.policies().check_room(kind, &policy)?;
                let is_new = v.policies().get(kind, &policy.name).is_none();
                v.start_policy(now, kind, policy);
                Ok(is_new)
            });
            let is_new = is_new.map_err(|problem: String| {
                Unchanged::Invalid(format!("Validation failed\n\n{problem}\n"))
            })?;
            in_force(&cell).await;
            Ok(is_new)
        })
    }

    fn clear_policy(&self, vhost: &str, kind: PolicyKind, name: &str) -> Change<'_, bool> {
        let (cell, name) = (self.vhosts.get(vhost), name.to_owned());
        Box::pin(async move {
            let Some(cell) = cell else { return false };
            let existed = cell.with(|v, now| v.start_without_policy(now, kind, &name));
            in_force(&cell).await;
            existed
        })
    }
}

/// Waits until policies are in force for everything and on the disk. Others have the vhost between two
/// slices; the timer goes on if nobody waits any more.
async fn in_force(cell: &VhostCell) {
    while cell.with(|vhost, now| vhost.apply_policies(now)) {
        tokio::task::yield_now().await;
    }
    let lsn = cell.with(|vhost, _| vhost.last_lsn());
    cell.durable_at(lsn).await;
}
