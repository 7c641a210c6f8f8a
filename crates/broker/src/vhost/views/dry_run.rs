//! What a policy would do, without doing it: the policies are copied, changed and resolved for every
//! queue and exchange by the code that does it in earnest, and each queue that would have other
//! settings says what would leave it at once.
//!
//! What follows from that is not told: where dead letters go then, and what they push out there.

use std::sync::Arc;

use crate::exchange::Exchange;
use crate::message::Name;
use crate::policy::{InForce, MatchCost, Policy, PolicyKind, Thing};
use crate::queue::resolved_keys::ResolvedKeys;
use crate::queue::{Forecast, Queue, QueueType, Settings, Span};
use crate::setting::{DeadLetterStrategy, PolicyKey, PolicyValue, SettingValue};
use crate::time::Now;
use crate::vhost::Vhost;
use crate::vhost::lifecycle::policies::decide_alternate;

/// A change of the policies.
#[derive(Clone, Debug)]
pub enum PolicyChange {
    /// This policy is added, or replaces the one of its name.
    Set(Policy),
    /// The policy of this name is removed.
    Clear(Name),
}

/// What a change of the policies would do now.
#[derive(Clone, PartialEq, Debug)]
pub struct DryRun {
    /// Queues that the policy would be in force for, or is until it is removed.
    pub queues_matched: u64,
    /// Queues that would have other settings.
    pub queues: Vec<QueueDryRun>,
    /// Exchanges that would have another alternate exchange.
    pub exchanges: Vec<ExchangeDryRun>,
}

/// What would happen to a queue.
#[derive(Clone, PartialEq, Debug)]
pub struct QueueDryRun {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub kind: QueueType,
    /// The settings that would change: as they are, and as they would be.
    pub changes: Vec<SettingChange>,
    /// Messages in it, those that are out for delivery too.
    pub messages: u64,
    /// What would leave it.
    pub leaving: Forecast,
    /// What would become of that.
    pub fate: Fate,
    /// When the queue would be deleted if nobody used it, in milliseconds from then.
    pub deleted_in_ms: Option<u64>,
}

/// A setting that would change.
#[derive(Clone, PartialEq, Debug)]
pub struct SettingChange {
    /// Its key.
    pub key: PolicyKey,
    /// What is in force.
    pub before: Option<PolicyValue>,
    /// What would be.
    pub after: Option<PolicyValue>,
}

/// What becomes of messages that die in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// They go to an exchange, which knows where then.
    DeadLettered,
    /// They are dropped: there is no dead-letter exchange, or none of its name.
    Dropped,
    /// They stay and wait for their exchange to come.
    Kept,
}

/// What would happen to an exchange.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExchangeDryRun {
    /// Its name.
    pub name: Name,
    /// Its alternate exchange.
    pub before: Option<Name>,
    /// Its alternate exchange then.
    pub after: Option<Name>,
}

impl DryRun {
    /// Messages that would leave in some way and have this fate.
    pub fn leaving(&self, fate: Fate) -> Span {
        let queues = self.queues.iter().filter(|queue| queue.fate == fate);
        sum(queues.flat_map(|queue| [queue.leaving.expired, queue.leaving.evicted]))
    }

    /// Messages that would expire.
    pub fn expired(&self) -> Span {
        sum(self.queues.iter().map(|queue| queue.leaving.expired))
    }

    /// Messages that would make room.
    pub fn evicted(&self) -> Span {
        sum(self.queues.iter().map(|queue| queue.leaving.evicted))
    }
}

fn sum(spans: impl Iterator<Item = Span>) -> Span {
    spans.fold(Span::default(), |a, b| Span { least: a.least + b.least, most: a.most + b.most })
}

impl Vhost {
    /// What `change` would do at `now`; none if there is no policy of the name that is to be removed.
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
        let is_of = |in_force: &InForce| in_force.of_kind(kind).is_some_and(|p| p.name == name);
        let mut queues_matched = 0;
        let mut cost = MatchCost::default();
        let mut queues = Vec::new();
        for (_, queue) in self.topology.queues() {
            let about = (&*queue.name, Thing::Queue(queue.kind()));
            let in_force =
                changed.in_force_after((kind, &*name), &queue.policies, about, &mut cost);
            queues_matched += u64::from(is_of(if after { &in_force } else { &queue.policies }));
            if in_force != queue.policies {
                queues.extend(self.dry_run_of_queue(now, queue, &in_force));
            }
        }
        let exchanges = self.topology.exchanges();
        let exchanges = exchanges.filter_map(|(_, exchange)| {
            let about = (&*exchange.name, Thing::Exchange);
            let in_force =
                changed.in_force_after((kind, &*name), &exchange.policies, about, &mut cost);
            dry_run_of_exchange(exchange, &in_force)
        });
        let exchanges = exchanges.collect();
        Some(DryRun { queues_matched, queues, exchanges })
    }

    /// None if it would be as it is.
    fn dry_run_of_queue(&self, now: Now, queue: &Queue, after: &InForce) -> Option<QueueDryRun> {
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
            // A change restarts the lease.
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
fn dry_run_of_exchange(exchange: &Exchange, in_force: &InForce) -> Option<ExchangeDryRun> {
    let after = decide_alternate(exchange, in_force).name().cloned();
    let before = exchange.alternate.clone();
    let name = Arc::clone(&exchange.name);
    (before != after).then_some(ExchangeDryRun { name, before, after })
}
