//! Policies are set and cleared; the settings of each queue and exchange are resolved again and replaced as a
//! whole.
//!
//! A change is matched with every name, in slices between which clients are served; meanwhile it is in force for
//! some and not yet for others. Only the changed policy is tried: a queue with another policy in force keeps that
//! one or gets the changed one.
//!
//! COMPAT: retroactive TTL: a message's deadline is its arrival plus the lowest TTL now in force, so
//! a new `message-ttl` acts on the whole backlog and a cleared one lifts it. RabbitMQ fixes deadlines
//! when messages arrive.

use std::sync::Arc;

use crate::exchange::Exchange;
use crate::ids::{ExchangeId, QueueId};
use crate::limits::{EVICTION_SLICE, EXPIRY_SLICE, POLICY_MATCHES_PER_SLICE};
use crate::message::Name;
use crate::policy::decision::Decision;
use crate::policy::{EffectivePolicies, MatchingCost, Policy, PolicyId, PolicyKind, PolicySubject};
use crate::queue::{QueueType, Settings};
use crate::record::Record;
use crate::setting::{PolicyKey, SettingValue};
use crate::time::Now;
use crate::vhost::Vhost;
use crate::vhost::state::policy_book::PolicyChanged;

impl Vhost {
    /// Adds or replaces a policy, which is in force everywhere when the call returns.
    pub fn set_policy(&mut self, now: Now, kind: PolicyKind, policy: Policy) {
        self.start_policy(now, kind, policy);
        while self.apply_policies(now) {}
    }

    /// Removes a policy, which is in force nowhere when the call returns; false if it does not exist.
    pub fn clear_policy(&mut self, now: Now, kind: PolicyKind, name: &str) -> bool {
        let existed = self.start_without_policy(now, kind, name);
        while self.apply_policies(now) {}
        existed
    }

    /// Adds or replaces a policy. It is in force for everything when [`Vhost::apply_policies`] returns false, or
    /// when `tick` has done as much.
    pub fn start_policy(&mut self, now: Now, kind: PolicyKind, policy: Policy) {
        self.advance(now);
        let name = Arc::clone(&policy.name);
        let policy = self.policies.set(kind, policy);
        let before = self.policies.lsn(kind, &name);
        let lsn = self.log_about(before, Record::SetPolicy { kind, policy });
        self.policies.logged(kind, Arc::clone(&name), lsn);
        self.policy_changed(kind, name);
    }

    /// Removes a policy as [`Vhost::start_policy`] sets one; false if it does not exist.
    pub fn start_without_policy(&mut self, now: Now, kind: PolicyKind, name: &str) -> bool {
        self.advance(now);
        let existed = self.policies.clear(kind, name);
        let name: Name = name.into();
        if let Some(lsn) = self.policies.take_lsn(kind, &name) {
            self.log_about(lsn, Record::ClearPolicy { kind, name: Arc::clone(&name) });
        }
        if existed {
            self.policy_changed(kind, name);
        }
        existed
    }

    /// Applies changed policies to about [`POLICY_MATCHES_PER_SLICE`] queues and exchanges. True if more are left.
    pub fn apply_policies(&mut self, now: Now) -> bool {
        self.advance(now);
        let (changed, _) = self.resolve_changed(POLICY_MATCHES_PER_SLICE);
        // Messages that are overdue now die in the order of deadlines across all queues.
        self.do_due(EXPIRY_SLICE);
        self.policies_changed_for(changed);
        self.finish_deaths();
        self.policies.is_changing()
    }

    /// Lists every queue and exchange, to have this policy applied to them.
    fn policy_changed(&mut self, kind: PolicyKind, name: Name) {
        self.policies.push_change(PolicyChanged {
            kind,
            name,
            exchanges: self.topology.exchange_ids(),
            queues: self.topology.queue_ids(),
        });
        self.topology_changed();
        self.policies.arm(&mut self.timers, self.now.time);
    }

    /// Applies changed policies when the timer has come, about `budget` matches; returns the number of matches.
    pub(in crate::vhost) fn resume_policies(&mut self, budget: usize) -> usize {
        self.policies.woken();
        let (changed, cost) = self.resolve_changed(budget);
        self.policies_changed_for(changed);
        self.policies.arm(&mut self.timers, self.now.time);
        cost
    }

    /// Resolves the settings under changed policies, about `budget` matches. Returns the queues whose policies in
    /// force have changed, and the number of matches.
    fn resolve_changed(&mut self, budget: usize) -> (Vec<QueueId>, usize) {
        let mut cost = MatchingCost::default();
        let mut changed = Vec::new();
        while cost.0 < budget
            && let Some(mut change) = self.policies.next_change()
        {
            while cost.0 < budget
                && let Some(id) = change.exchanges.pop()
            {
                cost.0 += 1;
                self.resolve_exchange(id, &change, &mut cost);
            }
            while cost.0 < budget
                && let Some(id) = change.queues.pop()
            {
                cost.0 += 1;
                if self.resolve_queue(id, &change, &mut cost) {
                    changed.push(id);
                }
            }
            if !change.exchanges.is_empty() || !change.queues.is_empty() {
                self.policies.resume_change(change);
            }
        }
        self.policies.arm(&mut self.timers, self.now.time);
        (changed, cost.0)
    }

    /// Delivers and evicts where the settings in force have changed.
    fn policies_changed_for(&mut self, queues: Vec<QueueId>) {
        let mut evicted = 0;
        for id in queues {
            // An expired message in front of others may have a later deadline now.
            self.dispatch(id);
            if evicted < EVICTION_SLICE {
                evicted += self.enforce_limits(id);
            } else if self.topology.queue(id).is_some() {
                self.enforce_limits_soon(id);
            }
        }
    }

    fn resolve_exchange(
        &mut self,
        id: ExchangeId,
        change: &PolicyChanged,
        cost: &mut MatchingCost,
    ) {
        let Some(exchange) = self.topology.exchange_mut(id) else {
            return;
        };
        let about = PolicySubject::exchange(&exchange.name);
        let change = PolicyId { kind: change.kind, name: &change.name };
        let in_force =
            self.policies.policies().in_force_after(change, &exchange.policies, about, cost);
        if in_force == exchange.policies {
            return;
        }
        exchange.alternate.in_force = alternate(exchange, &in_force);
        exchange.policies = in_force;
        self.topology_changed();
    }

    /// Resolves the settings of a queue; true if its policies in force have changed. The queue may be gone.
    fn resolve_queue(
        &mut self,
        id: QueueId,
        change: &PolicyChanged,
        cost: &mut MatchingCost,
    ) -> bool {
        let in_force = self.in_force_after(id, change, cost);
        in_force.is_some_and(|in_force| self.put_in_force(id, in_force))
    }

    /// The policies in force for a queue after a change. The queue may be gone.
    fn in_force_after(
        &self,
        id: QueueId,
        change: &PolicyChanged,
        cost: &mut MatchingCost,
    ) -> Option<EffectivePolicies> {
        let queue = self.topology.queue(id)?;
        let about = PolicySubject::queue(&queue.name, queue.kind());
        let change = PolicyId { kind: change.kind, name: &change.name };
        Some(self.policies.policies().in_force_after(change, &queue.policies, about, cost))
    }

    /// Resolves the settings of every queue and exchange of a vhost that is recovered; messages are neither delivered
    /// nor evicted because of that.
    pub(in crate::vhost) fn resolve_all_policies(&mut self) {
        for exchange in self.topology.exchanges_mut() {
            let in_force = self.policies.policies().for_exchange(&exchange.name);
            exchange.alternate.in_force = alternate(exchange, &in_force);
            exchange.policies = in_force;
        }
        self.topology_changed();
        for id in self.topology.queue_ids() {
            let queue = self.topology.known_queue(id);
            let in_force = self.policies.policies().for_queue(&queue.name, queue.kind());
            self.replace_in_force(id, in_force);
        }
    }

    /// Resolves the settings of every queue and exchange of a replica under a policy that was set or cleared.
    pub(in crate::vhost) fn follow_policy(&mut self, kind: PolicyKind, name: &Name) {
        let (exchanges, queues) = (self.topology.exchange_ids(), self.topology.queue_ids());
        let name = Arc::clone(name);
        let change = PolicyChanged { kind, name, exchanges: Vec::new(), queues: Vec::new() };
        let cost = &mut MatchingCost::default();
        for id in exchanges {
            self.resolve_exchange(id, &change, cost);
        }
        for id in queues {
            if let Some(in_force) = self.in_force_after(id, &change, cost) {
                self.replace_in_force(id, in_force);
            }
        }
    }

    pub(in crate::vhost) fn apply_exchange_policy(&self, exchange: &mut Exchange) {
        exchange.policies = self.policies.policies().for_exchange(&exchange.name);
        exchange.alternate.in_force = alternate(exchange, &exchange.policies);
    }

    /// Puts policies in force for a queue, and arms its timer; false if they are already.
    fn put_in_force(&mut self, id: QueueId, in_force: EffectivePolicies) -> bool {
        let is_changed = self.replace_in_force(id, in_force);
        if is_changed {
            self.arm_queue(id);
        }
        is_changed
    }

    /// Puts policies in force for a queue; false if they are already.
    ///
    /// COMPAT: queue lease: a changed policy restarts the lease of a quorum queue, too.
    fn replace_in_force(&mut self, id: QueueId, in_force: EffectivePolicies) -> bool {
        let queue = self.topology.known_queue_mut(id);
        if queue.policies == in_force {
            return false;
        }
        let settings = Settings::resolve(&queue.arguments, &in_force, self.options.queue_defaults);
        queue.policies = in_force;
        self.death_ledger.policies_changed();
        queue.apply_settings(settings, self.now.time);
        queue.renew_lease(self.now.time);
        true
    }

    /// Reports queues and exchanges with other policies in force than those that match, unless changes are still
    /// being applied; for checks.
    pub(in crate::vhost) fn check_policies(&self, broken: &mut Vec<String>) {
        if self.policies.is_changing() {
            return;
        }
        for (_, queue) in self.topology.queues() {
            if queue.policies != self.policies.policies().for_queue(&queue.name, queue.kind()) {
                broken.push(format!("queue {} has other policies in force", queue.name));
            }
        }
        for (_, exchange) in self.topology.exchanges() {
            if exchange.policies != self.policies.policies().for_exchange(&exchange.name) {
                broken.push(format!("exchange {} has other policies in force", exchange.name));
            }
        }
    }
}

fn alternate(exchange: &Exchange, in_force: &EffectivePolicies) -> Option<Name> {
    decide_alternate(exchange, in_force).name().cloned()
}

pub(in crate::vhost) fn decide_alternate(
    exchange: &Exchange,
    in_force: &EffectivePolicies,
) -> Decision {
    let argument = exchange.alternate.argument.clone().map(SettingValue::Name);
    // All exchanges resolve this key alike, so the queue type does not matter.
    Decision::of(PolicyKey::AlternateExchange, QueueType::Classic, argument, in_force)
}
