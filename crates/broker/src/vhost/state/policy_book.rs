//! The policies of a vhost with their records in the log, and policy changes that are still being applied.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::ids::{ExchangeId, Lsn, QueueId};
use crate::message::Name;
use crate::policy::{Policies, Policy, PolicyKind};
use crate::time::Time;
use crate::timers::{Timers, Wake};

/// A policy that was set or cleared, with the queues and exchanges it has not been applied to yet.
#[derive(Debug)]
pub(crate) struct PolicyChanged {
    pub(crate) kind: PolicyKind,
    pub(crate) name: Name,
    pub(crate) exchanges: Vec<ExchangeId>,
    pub(crate) queues: Vec<QueueId>,
}

/// The policies of a vhost.
#[derive(Default, Debug)]
pub(crate) struct PolicyBook {
    policies: Policies,
    /// Records of the policies.
    lsns: BTreeMap<(PolicyKind, Name), Lsn>,
    /// Changes that are not yet applied everywhere, the earliest first.
    changes: VecDeque<PolicyChanged>,
    /// The wake-up that the timers hold for the changes.
    armed: Option<Time>,
}

impl PolicyBook {
    /// The policies as set.
    #[inline]
    pub(crate) fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Adds or replaces a policy.
    #[inline]
    pub(crate) fn set(&mut self, kind: PolicyKind, policy: Policy) -> Arc<Policy> {
        self.policies.set(kind, policy)
    }

    /// Removes a policy; false if it does not exist.
    #[inline]
    pub(crate) fn clear(&mut self, kind: PolicyKind, name: &str) -> bool {
        self.policies.clear(kind, name)
    }

    // ---- records ----

    /// The record of the policy; 0 if there is none.
    #[inline]
    pub(crate) fn lsn(&self, kind: PolicyKind, name: &Name) -> Lsn {
        self.lsns.get(&(kind, Arc::clone(name))).copied().unwrap_or_default()
    }

    /// Remembers the record of a policy.
    #[inline]
    pub(crate) fn logged(&mut self, kind: PolicyKind, name: Name, lsn: Lsn) {
        self.lsns.insert((kind, name), lsn);
    }

    /// Takes the record of a policy, if there is one.
    #[inline]
    pub(crate) fn take_lsn(&mut self, kind: PolicyKind, name: &Name) -> Option<Lsn> {
        self.lsns.remove(&(kind, Arc::clone(name)))
    }

    /// The number of policies that survive a restart.
    #[inline]
    pub(crate) fn durable_count(&self) -> usize {
        self.lsns.len()
    }

    // ---- changes ----

    /// True if a change is not yet applied everywhere.
    #[inline]
    pub(crate) fn is_changing(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Adds a change.
    #[inline]
    pub(crate) fn push_change(&mut self, change: PolicyChanged) {
        self.changes.push_back(change);
    }

    /// Takes the earliest change.
    #[inline]
    pub(crate) fn next_change(&mut self) -> Option<PolicyChanged> {
        self.changes.pop_front()
    }

    /// Puts back the rest of the earliest change.
    #[inline]
    pub(crate) fn resume_change(&mut self, change: PolicyChanged) {
        self.changes.push_front(change);
    }

    /// Notes that the timer has fired.
    #[inline]
    pub(crate) fn woken(&mut self) {
        self.armed = None;
    }

    /// Arms the timer for the changes, or disarms it if there are none.
    pub(crate) fn arm(&mut self, timers: &mut Timers, now: Time) {
        if self.changes.is_empty() {
            timers.disarm(&mut self.armed, Wake::Policies);
        } else {
            timers.arm(&mut self.armed, now, Wake::Policies);
        }
    }

    /// The armed wake-up; for checks.
    #[inline]
    pub(crate) fn armed(&self) -> Option<Time> {
        self.armed
    }
}
