//! Policies of both kinds.

use std::sync::Arc;

use broker::{Policy, PolicyKind};
use management::{Change, Unchanged};

use crate::node::Node;
use crate::vhost::VhostHandle;

impl management::Policies for Node {
    fn policies(&self, vhost: &str, kind: PolicyKind) -> Option<Vec<Arc<Policy>>> {
        let handle = self.vhosts.get(vhost)?;
        Some(handle.write(|v, _| v.policies().iter(kind).cloned().collect()))
    }

    fn set_policy(
        &self,
        vhost: &str,
        kind: PolicyKind,
        policy: Policy,
    ) -> Change<'_, Result<bool, Unchanged>> {
        let handle = self.vhosts.get(vhost);
        Box::pin(async move {
            let handle = handle.ok_or(Unchanged::NoSuchVhost)?;
            let is_new = handle.write(|v, now| {
                v.policies().check_room(kind, &policy)?;
                let is_new = v.policies().get(kind, &policy.name).is_none();
                v.start_policy(now, kind, policy);
                Ok(is_new)
            });
            let is_new = is_new.map_err(|problem: String| {
                Unchanged::Invalid(format!("Validation failed\n\n{problem}\n"))
            })?;
            in_force(&handle).await;
            Ok(is_new)
        })
    }

    fn clear_policy(&self, vhost: &str, kind: PolicyKind, name: &str) -> Change<'_, bool> {
        let (handle, name) = (self.vhosts.get(vhost), name.to_owned());
        Box::pin(async move {
            let Some(handle) = handle else { return false };
            let existed = handle.write(|v, now| v.start_without_policy(now, kind, &name));
            in_force(&handle).await;
            existed
        })
    }
}

/// Waits until policies are in force for everything and on the disk. Others have the vhost between two
/// slices; the timer goes on if nobody waits any more.
async fn in_force(handle: &VhostHandle) {
    while handle.write(|vhost, now| vhost.apply_policies(now)) {
        tokio::task::yield_now().await;
    }
    let lsn = handle.write(|vhost, _| vhost.last_lsn());
    handle.durable_at(lsn).await;
}
