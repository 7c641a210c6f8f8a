//! The dry run of a policy: its effects, and the queues that its pattern matches without effect.

use std::collections::BTreeMap;
use std::sync::Arc;

use broker::{DryRun, Name, Policies, Policy, PolicyKind, Queue};

/// The effects of a change of a policy, and the queues that its pattern matches.
#[derive(Clone, PartialEq, Debug)]
pub struct PolicyDryRun {
    /// The effects.
    pub effects: DryRun,
    /// The queues that the pattern matches.
    pub matches: PatternMatches,
}

/// The queues that the pattern of a policy matches.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct PatternMatches {
    /// Queues whose names the pattern matches.
    pub queues: u64,
    /// Queues of these that the policy leaves out, because of `apply-to` or of a key that their type does not have.
    pub excluded: u64,
    /// Policies that apply to other queues of these in its place, by name.
    pub outranked_by: Vec<Outranking>,
}

/// A policy that takes precedence over another one.
#[derive(Clone, PartialEq, Debug)]
pub struct Outranking {
    /// Name of the policy.
    pub name: Name,
    /// Priority of the policy.
    pub priority: f64,
    /// Queues to which it applies in place of the other one.
    pub queues: u64,
}

impl PatternMatches {
    /// The queues that the pattern of `policy` matches, if `policies` is in force, which contains the policy unless it is to
    /// be removed.
    pub(crate) fn of<'a>(
        kind: PolicyKind,
        policy: &Arc<Policy>,
        policies: &Policies,
        queues: impl Iterator<Item = &'a Queue>,
    ) -> Self {
        let mut found = Self::default();
        let alone = together(kind, [policy]);
        let mut outranking: BTreeMap<Name, Outranking> = BTreeMap::new();
        // A winner of today is compared with the policy alone: a search of all policies for each queue takes too long.
        let mut pairs: BTreeMap<Name, Policies> = BTreeMap::new();
        for queue in queues.filter(|queue| policy.pattern.matches(&queue.name)) {
            found.queues += 1;
            if alone.for_queue(&queue.name, queue.kind()).of_kind(kind).is_none() {
                found.excluded += 1;
                continue;
            }
            let today = queue.policies.of_kind(kind).filter(|today| today.name != policy.name);
            let among = match today {
                Some(today) => pairs
                    .entry(Arc::clone(&today.name))
                    .or_insert_with(|| together(kind, [policy, today])),
                None => policies,
            };
            let in_force = among.for_queue(&queue.name, queue.kind());
            let Some(won) = in_force.of_kind(kind).filter(|won| won.name != policy.name) else {
                continue;
            };
            let new =
                || Outranking { name: Arc::clone(&won.name), priority: won.priority, queues: 0 };
            outranking.entry(Arc::clone(&won.name)).or_insert_with(new).queues += 1;
        }
        found.outranked_by = outranking.into_values().collect();
        found
    }
}

/// A set of these policies, and no others.
fn together<const N: usize>(kind: PolicyKind, all: [&Arc<Policy>; N]) -> Policies {
    let mut policies = Policies::default();
    for policy in all {
        policies.set(kind, Policy::clone(policy));
    }
    policies
}
