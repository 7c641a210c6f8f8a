//! Policies come and go: what is in force for each queue and exchange is resolved anew and replaced
//! as a whole (spec 1.4, 4.3, 5).
//!
//! COMPAT: retroactive TTL: a message's deadline is its arrival plus the lowest TTL now in force, so
//! a new `message-ttl` acts on the whole backlog and a cleared one lifts it. RabbitMQ fixes deadlines
//! when messages arrive.

use std::sync::Arc;

use super::Vhost;
use crate::exchange::Exchange;
use crate::ids::{ExchangeId, QueueId};
use crate::limits::EXPIRY_SLICE;
use crate::message::Name;
use crate::policy::decision::{Decision, Setting};
use crate::policy::{Explanation, InForce, Policies, Policy, PolicyKey, PolicyKind, Thing};
use crate::queue::decided::Decided;
use crate::queue::{QueueType, Settings};
use crate::record::Record;
use crate::time::Now;

impl Vhost {
    /// Adds or replaces a policy; it is in force when this returns.
    pub fn set_policy(&mut self, now: Now, kind: PolicyKind, policy: Policy) {
        self.advance(now);
        let name = Arc::clone(&policy.name);
        let policy = self.policies.set(kind, policy);
        let before = self.policy_lsns.get(&(kind, Arc::clone(&name))).copied();
        let lsn = self.log_about(before.unwrap_or_default(), Record::SetPolicy { kind, policy });
        self.policy_lsns.insert((kind, name), lsn);
        self.apply_policies();
    }

    /// Removes a policy; false if there is none of that name.
    pub fn clear_policy(&mut self, now: Now, kind: PolicyKind, name: &str) -> bool {
        self.advance(now);
        let existed = self.policies.clear(kind, name);
        let name: Name = name.into();
        if let Some(lsn) = self.policy_lsns.remove(&(kind, Arc::clone(&name))) {
            self.log_about(lsn, Record::ClearPolicy { kind, name });
        }
        if existed {
            self.apply_policies();
        }
        existed
    }

    /// What is in force for a queue and why, if there is one of that name.
    pub fn explain_queue(&self, name: &str) -> Option<Explanation> {
        let queue = self.queue(name)?;
        let decided = Decided::of(&queue.arguments, &queue.policies, self.options.queue_defaults);
        let thing = Thing::Queue(queue.kind());
        Some(Explanation::of(&self.policies, &queue.policies, (name, thing), decided.iter()))
    }

    /// What is in force for an exchange and why, if there is one of that name.
    pub fn explain_exchange(&self, name: &str) -> Option<Explanation> {
        let exchange = self.exchange(name)?;
        let in_force = self.policies.for_exchange(name);
        let decision = decide_alternate(exchange, &in_force);
        let about = (name, Thing::Exchange);
        Some(Explanation::of(&self.policies, &in_force, about, std::iter::once(&decision)))
    }

    /// Puts the policies there are in force.
    fn apply_policies(&mut self) {
        let changed = self.resolve_policies();
        // What is overdue now dies in the order of deadlines, whichever queue it is in.
        self.do_due(EXPIRY_SLICE);
        for id in changed {
            // A message that had expired in front of the others may have more time again.
            self.dispatch(id);
            self.enforce_limits(id);
        }
        self.finish_deaths();
    }

    /// Resolves what is in force for every queue and exchange, and does nothing that follows from it.
    /// The queues for which that is something else than before.
    pub(super) fn resolve_policies(&mut self) -> Vec<QueueId> {
        let exchanges: Vec<ExchangeId> = self.exchanges.keys().collect();
        for id in exchanges {
            let Self { exchanges, policies, .. } = self;
            let Some(exchange) = exchanges.get_mut(id) else {
                continue;
            };
            exchange.alternate = alternate(exchange, policies);
        }
        self.topology_changed();
        let queues: Vec<QueueId> = self.queues.keys().collect();
        queues.into_iter().filter(|id| self.resolve_queue_policies(*id)).collect()
    }

    pub(super) fn apply_exchange_policy(&self, exchange: &mut Exchange) {
        exchange.alternate = alternate(exchange, &self.policies);
    }

    /// Resolves anew what is in force for a queue; true if that is something else than before.
    ///
    /// COMPAT: queue lease: a changed policy restarts the lease of a quorum queue, too.
    fn resolve_queue_policies(&mut self, id: QueueId) -> bool {
        let Self { queues, policies, options, now, .. } = self;
        let Some(queue) = queues.get_mut(id) else {
            return false;
        };
        let in_force = policies.for_queue(&queue.name, queue.kind());
        if in_force == queue.policies {
            return false;
        }
        let settings = Settings::resolve(&queue.arguments, &in_force, options.queue_defaults);
        queue.policies = in_force;
        queue.apply_settings(settings, now.time);
        queue.renew_lease(now.time);
        self.arm_queue(id);
        true
    }
}

fn alternate(exchange: &Exchange, policies: &Policies) -> Option<Name> {
    let in_force = policies.for_exchange(&exchange.name);
    let decision = decide_alternate(exchange, &in_force);
    decision.text().map(|name| String::from_utf8_lossy(name).into())
}

pub(super) fn decide_alternate<'a>(exchange: &'a Exchange, in_force: &'a InForce) -> Decision<'a> {
    let argument = exchange.alternate_argument.as_ref();
    let argument = argument.map(|name| Setting::Text(name.as_bytes()));
    // Exchanges have no types that would differ in this.
    Decision::of(PolicyKey::AlternateExchange, QueueType::Classic, argument, in_force)
}
