//! Why something is as it is: each key with its value, who gave it, and what lost against it.

use std::sync::Arc;

use super::decision::{Decision, Overridden, Source};
use super::{InForce, Policies, Policy, PolicyKind, Thing};
use crate::ids::Name;
use crate::setting::{Group, PolicyKey, PolicyValue, SettingValue};

/// What is in force for a queue or an exchange, and why.
#[derive(Clone, PartialEq, Debug)]
pub struct Explanation {
    /// The policies on it.
    pub policies: InForce,
    /// The keys it has, and those that somebody has set in vain.
    pub keys: Vec<ExplainedKey>,
}

/// What is in force for one key, and why.
#[derive(Clone, PartialEq, Debug)]
pub struct ExplainedKey {
    /// The key.
    pub key: PolicyKey,
    /// What is in force; none if nothing is.
    pub value: Option<PolicyValue>,
    /// Who gave it.
    pub source: Source,
    /// The policy's name, if it was one.
    pub source_name: Option<Name>,
    /// What others gave.
    pub lost: Vec<LostValue>,
}

/// A value that is not in force.
#[derive(Clone, PartialEq, Debug)]
pub struct LostValue {
    /// Who gave it.
    pub source: Source,
    /// The policy's name, if it was one.
    pub source_name: Option<Name>,
    /// The value.
    pub value: PolicyValue,
    /// Why it is not in force.
    pub why: String,
}

impl Explanation {
    /// Puts into words what was decided about the thing of that name.
    pub(crate) fn of<'a>(
        all: &Policies,
        in_force: &InForce,
        (name, thing): (&str, Thing),
        decisions: impl Iterator<Item = &'a Decision>,
    ) -> Self {
        let mut explanation = Self {
            policies: in_force.clone(),
            keys: decisions.filter_map(|decision| explained(decision, in_force, thing)).collect(),
        };
        for kind in [PolicyKind::User, PolicyKind::Operator] {
            let chosen = in_force.of_kind(kind);
            explanation.add_keys_in_vain(kind, chosen, thing);
            for policy in all.matching(kind, name, thing) {
                if chosen.is_none_or(|chosen| chosen.name != policy.name) {
                    explanation.add_other(kind, policy, chosen, thing);
                }
            }
        }
        explanation
    }

    /// Keys of the policy in force about which there was nothing to decide.
    fn add_keys_in_vain(&mut self, kind: PolicyKind, policy: Option<&Arc<Policy>>, thing: Thing) {
        let Some(policy) = policy else { return };
        for (key, value) in policy.definition.iter() {
            if !self.keys.iter().any(|known| known.key == key) {
                let why = match thing {
                    Thing::Queue(_) if key.setting().group() == Group::Exchanges => {
                        "queues have no such setting".to_owned()
                    }
                    Thing::Queue(_) => Overridden::NoEffect.to_string(),
                    Thing::Exchange => "exchanges have no such setting".to_owned(),
                };
                self.lose(kind, policy, (key, value), why);
            }
        }
    }

    /// Keys of a policy that would be in force if there were no better one, or if one key less were in
    /// it.
    fn add_other(
        &mut self,
        kind: PolicyKind,
        policy: &Policy,
        chosen: Option<&Arc<Policy>>,
        thing: Thing,
    ) {
        let why = match (policy.disqualified_by(thing), thing, chosen) {
            (Some(key), Thing::Queue(queue_type), _) => {
                let queue_type = queue_type.as_str();
                let key = key.as_str();
                format!("its key {key} keeps the whole policy from {queue_type} queues")
            }
            (_, _, Some(chosen)) if chosen.priority > policy.priority => {
                format!("only one policy applies, and {} has a higher priority", chosen.name)
            }
            (_, _, Some(chosen)) => format!(
                "only one policy applies, and among equal priorities that is {}, the last by name",
                chosen.name
            ),
            (_, _, None) => return,
        };
        for said in policy.definition.iter() {
            self.lose(kind, policy, said, why.clone());
        }
    }

    fn lose(
        &mut self,
        kind: PolicyKind,
        policy: &Policy,
        (key, value): (PolicyKey, PolicyValue),
        why: String,
    ) {
        let lost = LostValue {
            source: Source::from(kind),
            source_name: Some(Arc::clone(&policy.name)),
            value,
            why,
        };
        if let Some(known) = self.keys.iter_mut().find(|known| known.key == key) {
            known.lost.push(lost);
            return;
        }
        let source = Source::Default;
        self.keys.push(ExplainedKey {
            key,
            value: None,
            source,
            source_name: None,
            lost: vec![lost],
        });
    }
}

impl From<PolicyKind> for Source {
    fn from(kind: PolicyKind) -> Self {
        match kind {
            PolicyKind::User => Self::Policy,
            PolicyKind::Operator => Self::OperatorPolicy,
        }
    }
}

/// A decision in words; none if the thing does not have the key, and nobody has set it.
fn explained(decision: &Decision, in_force: &InForce, thing: Thing) -> Option<ExplainedKey> {
    let lacks_it =
        matches!(thing, Thing::Queue(queue_type) if !decision.key.setting().is_of(queue_type));
    if lacks_it && decision.won.is_none() && decision.lost.is_empty() {
        return None;
    }
    let name_of = |source| match source {
        Source::Policy => in_force.user.as_ref().map(|policy| Arc::clone(&policy.name)),
        Source::OperatorPolicy => in_force.operator.as_ref().map(|policy| Arc::clone(&policy.name)),
        Source::Argument | Source::Default => None,
    };
    let source = decision.won.as_ref().map_or(Source::Default, |won| won.source);
    let lost = decision.lost.iter().map(|(given, why)| LostValue {
        source: given.source,
        source_name: name_of(given.source),
        value: given.value.to_policy_value(),
        why: why.to_string(),
    });
    Some(ExplainedKey {
        key: decision.key,
        value: decision.value().map(SettingValue::to_policy_value),
        source,
        source_name: name_of(source),
        lost: lost.collect(),
    })
}
