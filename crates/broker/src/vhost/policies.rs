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
use crate::policy::{Policy, PolicyKey, PolicyKind};
use crate::queue::Settings;
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
        let definition = in_force.definition();
        let settings = Settings::resolve(&queue.arguments, &definition, options.queue_defaults);
        queue.policies = in_force;
        queue.apply_settings(settings, now.time);
        queue.renew_lease(now.time);
        self.arm_queue(id);
        true
    }
}

fn alternate(exchange: &Exchange, policies: &crate::policy::Policies) -> Option<Name> {
    exchange.alternate_argument.clone().or_else(|| {
        let definition = policies.for_exchange(&exchange.name).definition();
        definition.text(PolicyKey::AlternateExchange).map(Arc::from)
    })
}
