//! Policies, and the choice of the policy that applies to a queue or an exchange.
//!
//! At most one user policy and one operator policy apply to a queue or an exchange: of those that match, the
//! one with the highest priority, as in RabbitMQ. A policy matches if `apply-to` covers the kind of resource,
//! the resource supports the definition, and the pattern is found in its name.

pub(crate) mod decision;
mod definition;
mod explain;
mod pattern;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use decision::Source;
pub use definition::{Definition, PolicyKind};
pub use explain::{ExplainedKey, Explanation, OverriddenValue};
pub use pattern::Pattern;

use crate::limits::{BACKTRACKING_POLICIES_MAX, POLICIES_MAX, POLICY_BYTES_MAX};
use crate::message::Name;
use crate::queue_type::QueueType;
use crate::setting::PolicyKey;

/// The kind of resource that a policy applies to: `apply-to`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ApplyTo {
    /// Queues and exchanges.
    #[default]
    All,
    /// Queues of every type.
    Queues,
    /// Classic queues.
    ClassicQueues,
    /// Quorum queues.
    QuorumQueues,
    /// Streams, which Leveret does not have.
    Streams,
    /// Exchanges of every type.
    Exchanges,
}

impl ApplyTo {
    const ALL: [Self; 6] = [
        Self::All,
        Self::Queues,
        Self::ClassicQueues,
        Self::QuorumQueues,
        Self::Streams,
        Self::Exchanges,
    ];

    /// The value of `apply-to`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Queues => "queues",
            Self::ClassicQueues => "classic_queues",
            Self::QuorumQueues => "quorum_queues",
            Self::Streams => "streams",
            Self::Exchanges => "exchanges",
        }
    }

    /// Parses a value of `apply-to`.
    ///
    /// # Errors
    /// RabbitMQ's text for any other word.
    pub fn parse(word: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|a| a.as_str() == word).ok_or_else(|| {
            // The two spaces are RabbitMQ's.
            format!(
                "apply-to '{word}' unrecognised; should be one of: 'queues', 'classic_queues',  \
                 'quorum_queues', 'streams', 'exchanges', or 'all'"
            )
        })
    }

    const fn covers_queue(self, queue_type: QueueType) -> bool {
        match self {
            Self::All | Self::Queues => true,
            Self::ClassicQueues => matches!(queue_type, QueueType::Classic),
            Self::QuorumQueues => matches!(queue_type, QueueType::Quorum),
            Self::Streams | Self::Exchanges => false,
        }
    }

    const fn covers(self, thing: PolicyTarget) -> bool {
        match thing {
            PolicyTarget::Queue(queue_type) => self.covers_queue(queue_type),
            PolicyTarget::Exchange => matches!(self, Self::All | Self::Exchanges),
        }
    }
}

/// A resource that policies apply to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PolicyTarget {
    /// A queue of this type.
    Queue(QueueType),
    /// An exchange.
    Exchange,
}

/// A queue or an exchange that policies can apply to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PolicySubject<'a> {
    pub(crate) name: &'a str,
    pub(crate) target: PolicyTarget,
}

impl<'a> PolicySubject<'a> {
    /// A queue of that name and type.
    pub(crate) fn queue(name: &'a str, queue_type: QueueType) -> Self {
        Self { name, target: PolicyTarget::Queue(queue_type) }
    }

    /// An exchange of that name.
    pub(crate) fn exchange(name: &'a str) -> Self {
        Self { name, target: PolicyTarget::Exchange }
    }
}

/// The identity of a policy in its vhost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PolicyId<'a> {
    pub(crate) kind: PolicyKind,
    pub(crate) name: &'a str,
}

/// A policy of either kind.
#[derive(Clone, PartialEq, Debug)]
pub struct Policy {
    /// The name, unique among policies of the same kind in the vhost.
    pub name: Name,
    /// The pattern that must be found in the name of a resource.
    pub pattern: Pattern,
    /// The kind of resource that the policy applies to.
    pub apply_to: ApplyTo,
    /// The priority; the highest applies. Fractions and negative numbers are allowed.
    pub priority: f64,
    /// The keys that the policy sets.
    pub definition: Definition,
}

impl Policy {
    /// Bytes of the name, of the pattern and of the texts in the definition.
    fn text_bytes(&self) -> usize {
        self.name.len() + self.pattern.as_str().len() + self.definition.text_bytes()
    }

    /// Order of precedence: of two matching policies, the greater one applies.
    fn rank(&self, other: &Self) -> Ordering {
        self.priority.total_cmp(&other.priority).then_with(|| self.name.cmp(&other.name))
    }

    fn applies_to(&self, name: &str, thing: PolicyTarget, cost: &mut MatchingCost) -> bool {
        if !self.apply_to.covers(thing) || self.disqualified_by(thing).is_some() {
            return false;
        }
        cost.add(&self.pattern);
        self.pattern.matches(name)
    }

    /// The key that excludes the policy from a resource that its pattern and `apply-to` cover.
    fn disqualified_by(&self, thing: PolicyTarget) -> Option<PolicyKey> {
        match thing {
            PolicyTarget::Queue(queue_type) => {
                let alone = matches!(self.apply_to, ApplyTo::ClassicQueues | ApplyTo::QuorumQueues);
                self.definition.disqualified_by(queue_type, alone)
            }
            PolicyTarget::Exchange => None,
        }
    }
}

/// The policies of a vhost.
#[derive(Clone, Default, Debug)]
pub struct Policies {
    user: PoliciesOfKind,
    operator: PoliciesOfKind,
}

/// The policies of one kind.
#[derive(Clone, Default, Debug)]
struct PoliciesOfKind {
    by_name: BTreeMap<Name, Arc<Policy>>,
    /// Policies in the order of precedence: by highest priority and, among equals, by last name (observed on
    /// RabbitMQ 4.3.6). The first match applies.
    by_rank: Vec<Arc<Policy>>,
}

/// The cost of pattern matching, for slicing: 1 for a linear match of one name.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct MatchingCost(pub(crate) usize);

impl MatchingCost {
    /// The cost of a backtracking match.
    const BACKTRACKING: usize = 128;

    fn add(&mut self, pattern: &Pattern) {
        self.0 += if pattern.backtracks() { Self::BACKTRACKING } else { 1 };
    }
}

/// The policies that apply to one queue or exchange.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct EffectivePolicies {
    /// The user policy.
    pub user: Option<Arc<Policy>>,
    /// The operator policy.
    pub operator: Option<Arc<Policy>>,
}

impl EffectivePolicies {
    /// The policy of this kind.
    pub fn of_kind(&self, kind: PolicyKind) -> Option<&Arc<Policy>> {
        match kind {
            PolicyKind::User => self.user.as_ref(),
            PolicyKind::Operator => self.operator.as_ref(),
        }
    }

    /// Merges the definitions of both policies.
    pub fn definition(&self) -> Definition {
        let asked = self.user.as_ref().map(|p| p.definition.clone()).unwrap_or_default();
        match &self.operator {
            Some(operator) => asked.limited_by(&operator.definition),
            None => asked,
        }
    }
}

impl PoliciesOfKind {
    fn set(&mut self, policy: Arc<Policy>) {
        self.clear(&policy.name);
        let at = self.by_rank.partition_point(|known| known.rank(&policy).is_gt());
        self.by_rank.insert(at, Arc::clone(&policy));
        self.by_name.insert(Arc::clone(&policy.name), policy);
    }

    fn clear(&mut self, name: &str) -> bool {
        self.by_rank.retain(|policy| *policy.name != *name);
        self.by_name.remove(name).is_some()
    }

    fn best(
        &self,
        name: &str,
        thing: PolicyTarget,
        cost: &mut MatchingCost,
    ) -> Option<&Arc<Policy>> {
        self.by_rank.iter().find(|policy| policy.applies_to(name, thing, cost))
    }
}

impl Policies {
    fn of_kind(&self, kind: PolicyKind) -> &PoliciesOfKind {
        match kind {
            PolicyKind::User => &self.user,
            PolicyKind::Operator => &self.operator,
        }
    }

    fn of_kind_mut(&mut self, kind: PolicyKind) -> &mut PoliciesOfKind {
        match kind {
            PolicyKind::User => &mut self.user,
            PolicyKind::Operator => &mut self.operator,
        }
    }

    /// The policies of one kind, by name.
    pub fn iter(&self, kind: PolicyKind) -> impl Iterator<Item = &Arc<Policy>> {
        self.of_kind(kind).by_name.values()
    }

    /// The policy with this name.
    pub fn get(&self, kind: PolicyKind, name: &str) -> Option<&Arc<Policy>> {
        self.of_kind(kind).by_name.get(name)
    }

    /// Checks that there is room for a policy; one that replaces another needs none, unless it is too long itself.
    ///
    /// # Errors
    /// A text that names the exceeded limit.
    pub fn check_room(&self, kind: PolicyKind, policy: &Policy) -> Result<(), String> {
        if policy.text_bytes() > POLICY_BYTES_MAX {
            return Err(format!(
                "a policy must not have more than {POLICY_BYTES_MAX} bytes of name, pattern and texts"
            ));
        }
        let others = || self.iter(kind).filter(|known| known.name != policy.name);
        if others().count() >= POLICIES_MAX {
            return Err(format!("a vhost must not have more than {POLICIES_MAX} policies"));
        }
        let backtracking = others().filter(|known| known.pattern.backtracks()).count();
        if policy.pattern.backtracks() && backtracking >= BACKTRACKING_POLICIES_MAX {
            return Err(format!(
                "a vhost must not have more than {BACKTRACKING_POLICIES_MAX} policies whose patterns \
                 look around, look back or have possessive or atomic parts"
            ));
        }
        Ok(())
    }

    /// Adds a policy, or replaces the one of the same name.
    pub fn set(&mut self, kind: PolicyKind, policy: Policy) -> Arc<Policy> {
        let policy = Arc::new(policy);
        self.of_kind_mut(kind).set(Arc::clone(&policy));
        policy
    }

    /// Removes a policy; false if no policy has this name.
    pub(crate) fn clear(&mut self, kind: PolicyKind, name: &str) -> bool {
        self.of_kind_mut(kind).clear(name)
    }

    /// The policies that apply to a queue.
    pub fn for_queue(&self, name: &str, queue_type: QueueType) -> EffectivePolicies {
        self.in_force(name, PolicyTarget::Queue(queue_type))
    }

    /// The policies that apply to an exchange.
    pub fn for_exchange(&self, name: &str) -> EffectivePolicies {
        self.in_force(name, PolicyTarget::Exchange)
    }

    fn in_force(&self, name: &str, target: PolicyTarget) -> EffectivePolicies {
        let mut cost = MatchingCost::default();
        let user = self.user.best(name, target, &mut cost).cloned();
        let operator = self.operator.best(name, target, &mut cost).cloned();
        EffectivePolicies { user, operator }
    }

    /// The policies that apply after one policy was set or cleared; `before` are those that applied before.
    /// The other policies are matched only if the changed one applied before.
    pub(crate) fn in_force_after(
        &self,
        changed: PolicyId<'_>,
        before: &EffectivePolicies,
        subject: PolicySubject<'_>,
        cost: &mut MatchingCost,
    ) -> EffectivePolicies {
        let PolicyId { kind, name: changed } = changed;
        let PolicySubject { name, target } = subject;
        let new = self.get(kind, changed).filter(|policy| policy.applies_to(name, target, cost));
        let won = match (before.of_kind(kind), new) {
            (Some(old), Some(new)) if *old.name == *changed && new.rank(old).is_ge() => Some(new),
            (Some(old), _) if *old.name == *changed => self.of_kind(kind).best(name, target, cost),
            (Some(old), Some(new)) if new.rank(old).is_lt() => Some(old),
            (Some(old), None) => Some(old),
            (_, new) => new,
        };
        let mut after = before.clone();
        match kind {
            PolicyKind::User => after.user = won.cloned(),
            PolicyKind::Operator => after.operator = won.cloned(),
        }
        after
    }

    /// The policies that match the name, sorted by policy name; a key of the definition may still exclude
    /// one.
    fn matching(
        &self,
        kind: PolicyKind,
        subject: PolicySubject<'_>,
    ) -> impl Iterator<Item = &Arc<Policy>> {
        let PolicySubject { name, target } = subject;
        self.iter(kind).filter(move |p| p.apply_to.covers(target) && p.pattern.matches(name))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn policy(name: &str, pattern: &str, priority: f64) -> Policy {
        Policy {
            name: name.into(),
            pattern: Pattern::new(pattern).unwrap(),
            apply_to: ApplyTo::All,
            priority,
            definition: Definition::default(),
        }
    }

    proptest! {
        /// Following a series of changes gives the same result as matching every policy.
        #[test]
        fn in_force_after_a_change_equals_a_full_search(
            changes in prop::collection::vec((0_u8..5, 0_u8..4, 0_i8..3, any::<bool>()), 1..40),
        ) {
            let things = ["a", "ab", "b", "c"];
            let mut policies = Policies::default();
            let mut in_force = vec![EffectivePolicies::default(); things.len()];
            for (name, pattern, priority, is_set) in changes {
                let name = format!("p{name}");
                let pattern = ["a", "b", "^.$", "c"][usize::from(pattern)];
                if is_set {
                    let policy = policy(&name, pattern, f64::from(priority));
                    policies.set(PolicyKind::User, policy);
                } else {
                    policies.clear(PolicyKind::User, &name);
                }
                for (thing, in_force) in things.iter().zip(&mut in_force) {
                    let change = PolicyId { kind: PolicyKind::User, name: &name };
                    let about = PolicySubject::exchange(thing);
                    let mut cost = MatchingCost::default();
                    *in_force = policies.in_force_after(change, in_force, about, &mut cost);
                    prop_assert_eq!(&*in_force, &policies.for_exchange(thing));
                }
            }
        }
    }

    #[test]
    fn check_room_bounds_policies_and_those_that_backtrack() {
        let mut policies = Policies::default();
        let named = |number: usize, pattern| policy(&format!("p{number}"), pattern, 0.0);
        let leads_to = |bytes: usize| {
            let name = crate::PolicyValue::Text("x".repeat(bytes));
            let definition = vec![("dead-letter-exchange".to_owned(), name)];
            let definition = Definition::parse(definition, PolicyKind::User).unwrap();
            Policy { definition, ..named(1, "a") }
        };
        let room = POLICY_BYTES_MAX - "p1".len() - "a".len();
        assert!(policies.check_room(PolicyKind::User, &leads_to(room)).is_ok());
        assert!(policies.check_room(PolicyKind::User, &leads_to(room + 1)).is_err());
        for number in 0..BACKTRACKING_POLICIES_MAX {
            policies.set(PolicyKind::User, named(number, "^(?!amq)"));
        }
        assert!(policies.check_room(PolicyKind::User, &named(9999, "^(?!a)")).is_err());
        assert!(policies.check_room(PolicyKind::User, &named(0, "^(?!a)")).is_ok());
        assert!(policies.check_room(PolicyKind::Operator, &named(9999, "^(?!a)")).is_ok());
        for number in BACKTRACKING_POLICIES_MAX..POLICIES_MAX {
            policies.set(PolicyKind::User, named(number, "a"));
        }
        assert!(policies.check_room(PolicyKind::User, &named(9999, "a")).is_err());
        assert!(policies.check_room(PolicyKind::User, &named(7, "a")).is_ok());
    }
}
