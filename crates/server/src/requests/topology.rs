//! Vhosts and everything that is declared in them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use broker::{DeadLetterMap, DryRun, Explanation, Policy, PolicyChange, PolicyKind};
use serde_json::{Map, Value};

use crate::requests::change::{ChangeError, ChangeFuture};
use crate::requests::import_preview::ImportPreview;
use crate::requests::limits::VhostLimit;
use crate::requests::vhost::{VhostChange, VhostSettings};
use crate::snapshot::client::ConsumerSnapshot;
use crate::snapshot::condition::VhostCondition;
use crate::snapshot::queue::{QueueKey, QueueSnapshot};
use crate::snapshot::topology::{BindingFilter, BindingSnapshot, ExchangeSnapshot};
use crate::snapshot::vhost::VhostTotals;

/// The settings in force for a queue or exchange, and their sources.
#[derive(Clone, Debug)]
pub struct Explained {
    /// Type of the queue or exchange.
    pub kind: &'static str,
    /// The settings, each with its source.
    pub explanation: Explanation,
}

/// The nodes that have the log of a vhost.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct VhostPlacement {
    /// Name of the node that leads the vhost; none if this node knows no leader.
    pub leader: Option<String>,
    /// Names of all nodes with the log, in order.
    pub members: Vec<String>,
    /// True if no other node has the vhost, and this one cannot read its files.
    pub is_down: bool,
}

/// The reason why definitions are not imported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ImportError {
    /// The definitions are invalid: the fault and its place.
    Definitions(String),
    /// The node failed.
    Node(String),
}

/// Vhosts, queues, exchanges, bindings, policies and definitions. A read of a missing vhost or object returns
/// none.
pub trait Topology {
    /// Names of all vhosts, in order.
    fn vhost_names(&self) -> Vec<String>;

    /// Sums over a vhost. With `user`, connections and channels count for this user only.
    fn vhost_totals(&self, name: &str, user: Option<&str>) -> Option<VhostTotals>;

    /// The nodes that have the log of a vhost.
    fn vhost_placement(&self, name: &str) -> Option<VhostPlacement>;

    /// Settings of a vhost.
    fn vhost_settings(&self, name: &str) -> Option<VhostSettings>;

    /// Creates a vhost in which `user` has all permissions, or changes an existing one. True if it is new.
    fn put_vhost(
        &self,
        name: &str,
        change: VhostChange,
        user: &str,
    ) -> ChangeFuture<'_, Result<bool, ChangeError>>;

    /// Changes an existing vhost.
    fn change_vhost(
        &self,
        name: &str,
        change: VhostChange,
    ) -> ChangeFuture<'_, Result<(), ChangeError>>;

    /// Deletes a vhost with its contents, and closes its connections.
    fn delete_vhost(&self, name: &str) -> ChangeFuture<'_, Result<(), ChangeError>>;

    /// Replaces all limits of a vhost.
    fn replace_vhost_limits(
        &self,
        vhost: &str,
        limits: BTreeMap<VhostLimit, i64>,
    ) -> ChangeFuture<'_, Result<(), ChangeError>>;

    /// Sets a limit of a vhost, or clears it.
    fn set_vhost_limit(
        &self,
        vhost: &str,
        limit: VhostLimit,
        to: Option<i64>,
    ) -> ChangeFuture<'_, Result<(), ChangeError>>;

    /// The queues of a vhost.
    fn queue_keys(&self, vhost: &str) -> Option<Vec<QueueKey>>;

    /// Copies some queues of a vhost; none for each that is gone.
    fn queues(&self, vhost: &str, keys: &[QueueKey]) -> Vec<Option<QueueSnapshot>>;

    /// A queue with its consumers.
    fn queue(&self, vhost: &str, name: &str) -> Option<(QueueSnapshot, Vec<ConsumerSnapshot>)>;

    /// The exchanges of a vhost.
    fn exchanges(&self, vhost: &str) -> Option<Vec<ExchangeSnapshot>>;

    /// An exchange.
    fn exchange(&self, vhost: &str, name: &str) -> Option<ExchangeSnapshot>;

    /// The bindings that `filter` selects.
    fn bindings(&self, vhost: &str, filter: BindingFilter<'_>) -> Option<Vec<BindingSnapshot>>;

    /// The policies of a vhost, by name.
    fn policies(&self, vhost: &str, kind: PolicyKind) -> Option<Vec<Arc<Policy>>>;

    /// Adds or replaces a policy. True if it is new. Completes when the policy is in force everywhere.
    fn set_policy(
        &self,
        vhost: &str,
        kind: PolicyKind,
        policy: Policy,
    ) -> ChangeFuture<'_, Result<bool, ChangeError>>;

    /// Removes a policy. False if it did not exist.
    fn clear_policy(
        &self,
        vhost: &str,
        kind: PolicyKind,
        name: &str,
    ) -> ChangeFuture<'_, Result<bool, ChangeError>>;

    /// The settings in force for a queue.
    fn explain_queue(&self, vhost: &str, name: &str) -> Option<Explained>;

    /// The settings in force for an exchange.
    fn explain_exchange(&self, vhost: &str, name: &str) -> Option<Explained>;

    /// The effects that a change of policies would have now. None also if the policy to remove is missing.
    fn dry_run(&self, vhost: &str, kind: PolicyKind, change: PolicyChange) -> Option<DryRun>;

    /// The dead-letter map of a vhost.
    fn dead_letter_map(&self, vhost: &str) -> Option<DeadLetterMap>;

    /// The condition of a vhost, for findings.
    fn vhost_condition(&self, vhost: &str) -> Option<VhostCondition>;

    /// The definitions of the whole node, as RabbitMQ exports them; the contents of these vhosts only, or of all.
    fn definitions(&self, only_vhosts: Option<&BTreeSet<String>>) -> Value;

    /// The definitions of a vhost.
    fn definitions_of(&self, vhost: &str) -> Option<Value>;

    /// Imports definitions into the node, or into one existing vhost: all of them or none. The user gets all permissions in the
    /// vhosts that this makes.
    fn import(
        self: Arc<Self>,
        vhost: Option<String>,
        definitions: Map<String, Value>,
        user: String,
    ) -> ChangeFuture<'static, Result<(), ImportError>>;

    /// The changes that an import would make.
    fn preview_import(
        self: Arc<Self>,
        vhost: Option<String>,
        definitions: Map<String, Value>,
        user: String,
    ) -> ChangeFuture<'static, Result<ImportPreview, ImportError>>;
}
