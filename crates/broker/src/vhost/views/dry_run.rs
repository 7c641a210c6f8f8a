//! Dry run of a policy change: the policies are copied, changed and resolved for every queue and exchange by the
//! code that applies policies. Each queue whose settings would change forecasts which messages would leave it
//! at once.
//!
//! The dry run does not follow dead letters into their targets, nor the messages that these would evict.

use std::sync::Arc;

use crate::exchange::Exchange;
use crate::message::Name;
use crate::policy::{EffectivePolicies, MatchingCost, Policy, PolicyId, PolicyKind, PolicySubject};
use crate::queue::resolved_keys::ResolvedKeys;
use crate::queue::{Forecast, Queue, QueueType, Settings, Span};
use crate::setting::{DeadLetterStrategy, PolicyKey, PolicyValue, SettingValue};
use crate::time::Now;
use crate::vhost::Vhost;
use crate::vhost::lifecycle::policies::decide_alternate;

/// A change of the policies.
#[derive(Clone, Debug)]
pub enum PolicyChange {
    /// Adds this policy, or replaces the one of its name.
    Set(Policy),
    /// Removes the policy of this name.
    Clear(Name),
}

/// The effects that a policy change would have now.
#[derive(Clone, PartialEq, Debug)]
pub struct DryRun {
    /// Queues that the policy would apply to, or applies to until it is removed.
    pub queues_matched: u64,
    /// Queues whose settings would change.
    pub queues: Vec<QueueDryRun>,
    /// Exchanges whose alternate exchange would change.
    pub exchanges: Vec<ExchangeDryRun>,
}

/// The effects on one queue.
#[derive(Clone, PartialEq, Debug)]
pub struct QueueDryRun {
    /// Name of the queue.
    pub name: Name,
    /// Type of the queue.
    pub kind: QueueType,
    /// The settings that would change, before and after.
    pub changes: Vec<SettingChange>,
    /// Messages in the queue, including unacknowledged ones.
    pub messages: u64,
    /// Messages that would leave the queue.
    pub leaving: Forecast,
    /// The fate of the messages that would leave.
    pub fate: Fate,
    /// Time until an unused queue would be deleted, counted from the change, in milliseconds.
    pub deleted_in_ms: Option<u64>,
}

/// A setting that would change.
#[derive(Clone, PartialEq, Debug)]
pub struct SettingChange {
    /// Policy key of the setting.
    pub key: PolicyKey,
    /// Value in force now.
    pub before: Option<PolicyValue>,
    /// Value that would be in force.
    pub after: Option<PolicyValue>,
}

/// The fate of messages that die in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Dead-lettered to an exchange that exists.
    DeadLettered,
    /// Dropped: the queue has no dead-letter exchange, or it does not exist.
    Dropped,
    /// Kept until the dead-letter exchange exists (at-least-once).
    Kept,
}

/// The effects on one exchange.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExchangeDryRun {
    /// Name of the exchange.
    pub name: Name,
    /// Alternate exchange now.
    pub before: Option<Name>,
    /// Alternate exchange after the change.
    pub after: Option<Name>,
}

impl DryRun {
    /// Messages that would leave in any way and have this fate.
    pub fn leaving(&self, fate: Fate) -> Span {
        let queues = self.queues.iter().filter(|queue| queue.fate == fate);
        sum(queues.flat_map(|queue| [queue.leaving.expired, queue.leaving.evicted]))
    }

    /// Messages that would expire.
    pub fn expired(&self) -> Span {
        sum(self.queues.iter().map(|queue| queue.leaving.expired))
    }

    /// Messages that would be evicted.
    pub fn evicted(&self) -> Span {
        sum(self.queues.iter().map(|queue| queue.leaving.evicted))
    }
}

fn sum(spans: impl Iterator<Item = Span>) -> Span {
    spans.fold(Span::default(), |a, b| Span { least: a.least + b.least, most: a.most + b.most })
}

impl Vhost {
    /// The effects of `change` at `now`; none if there is no policy of the name that is to be removed.
    pub fn dry_run(&self, now: Now, kind: PolicyKind, change: PolicyChange) -> Option<DryRun> {
        let mut changed = self.policies.policies().clone();
        let (name, after): (Name, _) = match change {
            PolicyChange::Set(policy) => {
                let name = Arc::clone(&policy.name);
                changed.set(kind, policy);
                (name, true)
            }
            PolicyChange::Clear(name) => {
                if !changed.clear(kind, &name) {
                    return None;
                }
                (name, false)
            }
        };
        let is_of =
            |in_force: &EffectivePolicies| in_force.of_kind(kind).is_some_and(|p| p.name == name);
        let policy = PolicyId { kind, name: &name };
        let mut queues_matched = 0;
        let mut cost = MatchingCost::default();
        let mut queues = Vec::new();
        for (_, queue) in self.topology.queues() {
            let about = PolicySubject::queue(&queue.name, queue.kind());
            let in_force = changed.in_force_after(policy, &queue.policies, about, &mut cost);
            queues_matched += u64::from(is_of(if after { &in_force } else { &queue.policies }));
            if in_force != queue.policies {
                queues.extend(self.dry_run_of_queue(now, queue, &in_force));
            }
        }
        let exchanges = self.topology.exchanges();
        let exchanges = exchanges.filter_map(|(_, exchange)| {
            let about = PolicySubject::exchange(&exchange.name);
            let in_force = changed.in_force_after(policy, &exchange.policies, about, &mut cost);
            dry_run_of_exchange(exchange, &in_force)
        });
        let exchanges = exchanges.collect();
        Some(DryRun { queues_matched, queues, exchanges })
    }

    /// None if it would be as it is.
    fn dry_run_of_queue(
        &self,
        now: Now,
        queue: &Queue,
        after: &EffectivePolicies,
    ) -> Option<QueueDryRun> {
        let defaults = self.options.queue_defaults;
        let keys_before = ResolvedKeys::of(&queue.arguments, &queue.policies, defaults);
        let keys_after = ResolvedKeys::of(&queue.arguments, after, defaults);
        let value = |value: Option<&SettingValue>| value.map(SettingValue::to_policy_value);
        let pairs = keys_before.iter().zip(keys_after.iter());
        let changes = pairs.filter_map(|(before, after)| {
            let (old, new) = (before.value(), after.value());
            let change =
                || SettingChange { key: before.key, before: value(old), after: value(new) };
            (old != new).then(change)
        });
        let changes: Vec<SettingChange> = changes.collect();
        if changes.is_empty() {
            return None;
        }
        let settings = Settings::of(&keys_after);
        Some(QueueDryRun {
            name: Arc::clone(&queue.name),
            kind: queue.kind(),
            changes,
            messages: queue.message_count(),
            leaving: queue.forecast(&settings, now.time),
            fate: self.fate(&settings),
            // A change of the settings restarts the lease.
            deleted_in_ms: settings.expires_ms.filter(|_| !queue.is_held()),
        })
    }

    fn fate(&self, settings: &Settings) -> Fate {
        match &settings.dead_letter {
            None => Fate::Dropped,
            Some(target) if self.topology.exchange_id(&target.exchange).is_some() => {
                Fate::DeadLettered
            }
            Some(_) => match settings.dead_letter_strategy {
                DeadLetterStrategy::AtLeastOnce => Fate::Kept,
                DeadLetterStrategy::AtMostOnce => Fate::Dropped,
            },
        }
    }
}

/// None if it would be as it is.
fn dry_run_of_exchange(
    exchange: &Exchange,
    in_force: &EffectivePolicies,
) -> Option<ExchangeDryRun> {
    let after = decide_alternate(exchange, in_force).name().cloned();
    let before = exchange.alternate.in_force.clone();
    let name = Arc::clone(&exchange.name);
    (before != after).then_some(ExchangeDryRun { name, before, after })
}
