//! Policies: which one applies to a queue or an exchange.
//!
//! At most one user policy and one operator policy are in force for anything; of those that match,
//! the one with the highest priority (spec 5.1). Matching means: same kind of thing, a definition
//! that its type supports, and a pattern found in its name.

pub(crate) mod decision;
mod definition;
mod explain;
mod merge;
mod pattern;
pub(crate) mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use decision::Source;
pub use definition::{Definition, PolicyKey, PolicyKind, PolicyValue};
pub use explain::{ExplainedKey, Explanation, LostValue};
pub use pattern::Pattern;
pub use values::{DeadLetterStrategy, DelayedRetryType, ExpiryOrder, Overflow};

use crate::message::Name;
use crate::queue::QueueType;

/// What a policy applies to: `apply-to`.
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
    /// Streams.
    Streams,
    /// Exchanges.
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

    /// The word for it.
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

    /// The value of that word.
    ///
    /// # Errors
    /// RabbitMQ's complaint about any other word.
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

    const fn covers(self, thing: Thing) -> bool {
        match thing {
            Thing::Queue(queue_type) => self.covers_queue(queue_type),
            Thing::Exchange => matches!(self, Self::All | Self::Exchanges),
        }
    }
}

/// What policies can be on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Thing {
    /// A queue of this type.
    Queue(QueueType),
    /// An exchange.
    Exchange,
}

/// A policy.
#[derive(Clone, PartialEq, Debug)]
pub struct Policy {
    /// Its name, unique among policies of its kind in the vhost.
    pub name: Name,
    /// Found in the names of what it applies to.
    pub pattern: Pattern,
    /// The kinds of things it applies to.
    pub apply_to: ApplyTo,
    /// The highest wins; fractions and negative numbers are allowed.
    pub priority: f64,
    /// What it says.
    pub definition: Definition,
}

impl Policy {
    /// The key that keeps it from what it would be on otherwise.
    fn disqualified_by(&self, thing: Thing) -> Option<PolicyKey> {
        match thing {
            Thing::Queue(queue_type) => self.definition.disqualified_by(queue_type),
            Thing::Exchange => None,
        }
    }
}

/// The policies of a vhost.
#[derive(Clone, Default, Debug)]
pub struct Policies {
    user: BTreeMap<Name, Arc<Policy>>,
    operator: BTreeMap<Name, Arc<Policy>>,
}

/// The policies in force for one thing.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct InForce {
    /// The user policy.
    pub user: Option<Arc<Policy>>,
    /// The operator policy.
    pub operator: Option<Arc<Policy>>,
}

impl InForce {
    /// The one of this kind.
    pub fn of_kind(&self, kind: PolicyKind) -> Option<&Arc<Policy>> {
        match kind {
            PolicyKind::User => self.user.as_ref(),
            PolicyKind::Operator => self.operator.as_ref(),
        }
    }

    /// Both definitions as one.
    pub fn definition(&self) -> Definition {
        let asked = self.user.as_ref().map(|p| p.definition.clone()).unwrap_or_default();
        match &self.operator {
            Some(operator) => asked.limited_by(&operator.definition),
            None => asked,
        }
    }
}

impl Policies {
    fn of_kind(&self, kind: PolicyKind) -> &BTreeMap<Name, Arc<Policy>> {
        match kind {
            PolicyKind::User => &self.user,
            PolicyKind::Operator => &self.operator,
        }
    }

    fn of_kind_mut(&mut self, kind: PolicyKind) -> &mut BTreeMap<Name, Arc<Policy>> {
        match kind {
            PolicyKind::User => &mut self.user,
            PolicyKind::Operator => &mut self.operator,
        }
    }

    /// The policies of one kind, by name.
    pub fn iter(&self, kind: PolicyKind) -> impl Iterator<Item = &Arc<Policy>> {
        self.of_kind(kind).values()
    }

    /// The policy of that name.
    pub fn get(&self, kind: PolicyKind, name: &str) -> Option<&Arc<Policy>> {
        self.of_kind(kind).get(name)
    }

    /// Adds a policy or replaces the one of its name.
    pub(crate) fn set(&mut self, kind: PolicyKind, policy: Policy) -> Arc<Policy> {
        let policy = Arc::new(policy);
        self.of_kind_mut(kind).insert(Arc::clone(&policy.name), Arc::clone(&policy));
        policy
    }

    /// Removes a policy; false if there is none of that name.
    pub(crate) fn clear(&mut self, kind: PolicyKind, name: &str) -> bool {
        self.of_kind_mut(kind).remove(name).is_some()
    }

    /// What is in force for a queue.
    pub fn for_queue(&self, name: &str, queue_type: QueueType) -> InForce {
        self.in_force(name, Thing::Queue(queue_type))
    }

    /// What is in force for an exchange.
    pub fn for_exchange(&self, name: &str) -> InForce {
        self.in_force(name, Thing::Exchange)
    }

    fn in_force(&self, name: &str, thing: Thing) -> InForce {
        let best = |kind| {
            let matching = self.matching(kind, name, thing);
            let matching = matching.filter(|policy| policy.disqualified_by(thing).is_none());
            // Among equals the last name wins, as observed on RabbitMQ 4.3.6.
            matching.max_by(|a, b| a.priority.total_cmp(&b.priority)).map(Arc::clone)
        };
        InForce { user: best(PolicyKind::User), operator: best(PolicyKind::Operator) }
    }

    /// Those that mean something of that name, by name; one key may yet keep them from it.
    fn matching(
        &self,
        kind: PolicyKind,
        name: &str,
        thing: Thing,
    ) -> impl Iterator<Item = &Arc<Policy>> {
        let policies = self.of_kind(kind).values();
        policies.filter(move |p| p.apply_to.covers(thing) && p.pattern.matches(name))
    }
}
