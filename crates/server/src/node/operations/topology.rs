//! Vhosts and everything that is declared in them.

use std::collections::BTreeMap;
use std::sync::Arc;

use broker::{
    ByCause, ByReason, DeadLetterMap, DeadLetterMapBuilder, ExchangeId, ExchangeType, Name, Policy,
    PolicyChange, PolicyKind,
};
use tokio::task::block_in_place;

use super::{set_limit, view_queues};
use crate::limits::MAPPED_PER_LOCK;
use crate::node::Node;
use crate::requests::{
    ChangeError, Explained, PatternMatches, PolicyDryRun, VhostChange, VhostLimit, VhostPlacement,
    VhostSettings,
};
use crate::snapshot::client::ConsumerSnapshot;
use crate::snapshot::queue::{QueueKey, QueueSnapshot, QueueView};
use crate::snapshot::topology::{BindingFilter, BindingSnapshot, ExchangeSnapshot};
use crate::snapshot::vhost::VhostTotals;
use crate::vhost::{NotLeading, VhostHandle};

impl Node {
    /// Names of all vhosts, in order.
    pub fn vhost_names(&self) -> Vec<String> {
        self.vhosts.all().iter().map(|handle| handle.name().to_owned()).collect()
    }

    /// Sums over a vhost. With `user`, connections and channels count for this user only.
    pub fn vhost_totals(&self, name: &str, user: Option<&str>) -> Option<VhostTotals> {
        let handle = self.vhosts.get(name)?;
        let traffic = handle.traffic();
        Some(handle.read(|v, _| VhostTotals::of(v, user, &traffic)))
    }

    /// The nodes that have the log of a vhost.
    pub fn vhost_placement(&self, name: &str) -> Option<VhostPlacement> {
        let handle = self.vhosts.get(name)?;
        let alone = || (Some(self.identity.name.clone()), vec![self.identity.name.clone()]);
        let (leader, members) = handle.placement().unwrap_or_else(alone);
        Some(VhostPlacement { leader, members, is_down: handle.down().is_some() })
    }

    /// Settings of a vhost.
    pub fn vhost_settings(&self, name: &str) -> Option<VhostSettings> {
        Some((*self.vhosts.get(name)?.settings()).clone())
    }

    /// Creates a vhost in which `user` has all permissions, or changes an existing one. True if it is new.
    pub async fn put_vhost(
        &self,
        name: &str,
        to: VhostChange,
        user: &str,
    ) -> Result<bool, ChangeError> {
        block_in_place(|| self.make_or_change_vhost(name, to, user))
    }

    /// Changes an existing vhost.
    pub async fn change_vhost(&self, name: &str, to: VhostChange) -> Result<(), ChangeError> {
        block_in_place(|| self.change_settings(name, |settings| settings.change(to)))
    }

    /// Deletes a vhost with its contents, and closes its connections.
    pub async fn delete_vhost(&self, name: &str) -> Result<(), ChangeError> {
        block_in_place(|| self.remove_vhost(name))
    }

    /// Replaces all limits of a vhost.
    pub async fn replace_vhost_limits(
        &self,
        vhost: &str,
        limits: BTreeMap<VhostLimit, i64>,
    ) -> Result<(), ChangeError> {
        block_in_place(|| self.change_settings(vhost, |settings| settings.limits = limits))
    }

    /// Sets a limit of a vhost, or clears it.
    pub async fn set_vhost_limit(
        &self,
        vhost: &str,
        limit: VhostLimit,
        to: Option<i64>,
    ) -> Result<(), ChangeError> {
        block_in_place(|| {
            self.change_settings(vhost, |settings| set_limit(&mut settings.limits, limit, to))
        })
    }

    /// The queues of a vhost.
    pub fn queue_keys(&self, vhost: &str) -> Option<Vec<QueueKey>> {
        Some(self.vhosts.get(vhost)?.read(|v, _| QueueKey::all(v)))
    }

    /// Copies some queues of a vhost; none for each that is gone.
    pub fn queues(&self, vhost: &str, keys: &[QueueKey]) -> Vec<Option<QueueSnapshot>> {
        let Some(handle) = self.vhosts.get(vhost) else { return vec![None; keys.len()] };
        let now = handle.now();
        handle.read(|v, client_of| QueueSnapshot::some(v, keys, client_of, now))
    }

    /// A queue with its consumers.
    pub fn queue(&self, vhost: &str, name: &str) -> Option<(QueueSnapshot, Vec<ConsumerSnapshot>)> {
        let handle = self.vhosts.get(vhost)?;
        let now = handle.now();
        handle.read(|v, client_of| QueueSnapshot::one(v, name, client_of, now))
    }

    /// The exchanges of a vhost.
    pub fn exchanges(&self, vhost: &str) -> Option<Vec<ExchangeSnapshot>> {
        Some(self.vhosts.get(vhost)?.read(|v, _| ExchangeSnapshot::all(v)))
    }

    /// An exchange.
    pub fn exchange(&self, vhost: &str, name: &str) -> Option<ExchangeSnapshot> {
        self.vhosts.get(vhost)?.read(|v, _| ExchangeSnapshot::one(v, name))
    }

    /// The exchanges of a vhost that have dropped publishes which reached no queue.
    pub fn unroutable_exchanges(&self, vhost: &str) -> Option<Vec<(ExchangeId, Name)>> {
        self.vhosts.get(vhost)?.read(|v, _| {
            let dropping = v.exchanges().filter(|(_, one)| one.counters.dropped_unroutable > 0);
            Some(dropping.map(|(id, exchange)| (id, exchange.name.clone())).collect())
        })
    }

    /// The bindings that `which` selects.
    pub fn bindings(&self, vhost: &str, which: BindingFilter<'_>) -> Option<Vec<BindingSnapshot>> {
        Some(self.vhosts.get(vhost)?.read(|v, _| BindingSnapshot::of(v, which)))
    }

    /// The policies of a vhost, by name.
    pub fn policies(&self, vhost: &str, kind: PolicyKind) -> Option<Vec<Arc<Policy>>> {
        let handle = self.vhosts.get(vhost)?;
        Some(handle.read(|v, _| v.policies().iter(kind).cloned().collect()))
    }

    /// Adds or replaces a policy. True if it is new. Completes when the policy is in force everywhere.
    pub async fn set_policy(
        &self,
        vhost: &str,
        kind: PolicyKind,
        policy: Policy,
    ) -> Result<bool, ChangeError> {
        let handle = self.vhosts.get(vhost).ok_or(ChangeError::NoSuchVhost)?;
        let is_new = handle.write(|v, now| {
            v.policies().check_room(kind, &policy)?;
            let is_new = v.policies().get(kind, &policy.name).is_none();
            v.start_policy(now, kind, policy);
            Ok(is_new)
        })?;
        let is_new = is_new.map_err(|problem: String| {
            ChangeError::Invalid(format!("Validation failed\n\n{problem}\n"))
        })?;
        in_force(&handle).await?;
        Ok(is_new)
    }

    /// Removes a policy. False if it did not exist.
    pub async fn clear_policy(
        &self,
        vhost: &str,
        kind: PolicyKind,
        name: &str,
    ) -> Result<bool, ChangeError> {
        let Some(handle) = self.vhosts.get(vhost) else { return Ok(false) };
        let existed = handle.write(|v, now| v.start_without_policy(now, kind, name))?;
        in_force(&handle).await?;
        Ok(existed)
    }

    /// The settings in force for a queue.
    pub fn explain_queue(&self, vhost: &str, name: &str) -> Option<Explained> {
        self.vhosts.get(vhost)?.read(|v, _| {
            let kind = v.queue(name)?.kind().as_str();
            Some(Explained { kind, explanation: v.explain_queue(name)? })
        })
    }

    /// The settings in force for an exchange.
    pub fn explain_exchange(&self, vhost: &str, name: &str) -> Option<Explained> {
        self.vhosts.get(vhost)?.read(|v, _| {
            let kind = v.exchange(name)?.kind.as_str();
            Some(Explained { kind, explanation: v.explain_exchange(name)? })
        })
    }

    /// The effects that a change of policies would have now, and the queues that the pattern of the policy matches. None also
    /// if the policy to remove is missing.
    pub fn dry_run(
        &self,
        vhost: &str,
        kind: PolicyKind,
        change: PolicyChange,
    ) -> Option<PolicyDryRun> {
        let handle = self.vhosts.get(vhost)?;
        let now = handle.now();
        handle.read(|v, _| {
            let mut policies = v.policies().clone();
            let policy = match &change {
                PolicyChange::Set(policy) => policies.set(kind, policy.clone()),
                PolicyChange::Clear(name) => Arc::clone(policies.get(kind, name)?),
            };
            let queues = v.queues().map(|(_, queue)| queue);
            let matches = PatternMatches::of(kind, &policy, &policies, queues);
            Some(PolicyDryRun { effects: v.dry_run(now, kind, change)?, matches })
        })
    }

    /// The messages that died without a dead letter since the start, in a queue or, without a name, in a vhost with the
    /// queues that were deleted.
    pub fn dropped(&self, vhost: &str, queue: Option<&str>) -> Option<ByReason<ByCause>> {
        self.vhosts.get(vhost)?.read(|v, _| match queue {
            Some(queue) => Some(v.queue(queue)?.counters.deaths().dropped),
            None => Some(v.counters().dropped),
        })
    }

    /// The dead-letter map of a vhost.
    pub fn dead_letter_map(&self, vhost: &str) -> Option<DeadLetterMap> {
        let handle = self.vhosts.get(vhost)?;
        let queues = handle.queue_ids();
        let mut taking = DeadLetterMapBuilder::default();
        for mut slice in queues.chunks(MAPPED_PER_LOCK) {
            while !slice.is_empty() {
                let done = handle.read(|v, _| taking.sources(v, slice));
                slice = slice.get(done..).unwrap_or_default();
            }
        }
        let exchanges: Vec<Name> = handle.read(|v, _| {
            let delayed = v.exchanges().filter(|(_, one)| one.kind == ExchangeType::Delayed);
            delayed.map(|(_, exchange)| exchange.name.clone()).collect()
        });
        let mut left = exchanges.as_slice();
        while !left.is_empty() {
            let slice = left.get(..MAPPED_PER_LOCK).unwrap_or(left);
            let done = handle.read(|v, _| taking.delayed_exchanges(v, slice));
            left = left.get(done..).unwrap_or_default();
        }
        for slice in taking.missing().chunks(MAPPED_PER_LOCK) {
            handle.read(|v, _| taking.targets(v, slice));
        }
        Some(taking.end())
    }

    /// The queues of a vhost, copied a slice at a time.
    pub fn queue_views(&self, vhost: &str) -> Option<Vec<QueueView>> {
        let handle = self.vhosts.get(vhost)?;
        Some(view_queues(&handle).into_views())
    }
}

/// Waits until policies are in force for all queues and on disk. The vhost is free between two slices; the timer
/// finishes the work if the caller goes away.
async fn in_force(handle: &VhostHandle) -> Result<(), NotLeading> {
    while handle.write(|vhost, now| vhost.apply_policies(now))? {
        tokio::task::yield_now().await;
    }
    let lsn = handle.read(|vhost, _| vhost.last_lsn());
    handle.durable_at(lsn).await
}
