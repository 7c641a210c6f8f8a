//! Explanations of settings: for each key the value in force, its source, and the values that it overrides.

use std::sync::Arc;

use super::decision::{Decision, Overridden, Source};
use super::{EffectivePolicies, Policies, Policy, PolicyKind, PolicySubject, PolicyTarget};
use crate::ids::Name;
use crate::setting::{Group, PolicyKey, PolicyValue, SettingValue};

/// The settings in force for a queue or an exchange, with their sources.
#[derive(Clone, PartialEq, Debug)]
pub struct Explanation {
    /// The policies that apply.
    pub policies: EffectivePolicies,
    /// The keys that the queue or exchange supports, and unsupported keys that a policy or argument sets.
    pub keys: Vec<ExplainedKey>,
}

/// The value in force for one key, with its source.
#[derive(Clone, PartialEq, Debug)]
pub struct ExplainedKey {
    /// The key.
    pub key: PolicyKey,
    /// The value in force; none if the key is unset.
    pub value: Option<PolicyValue>,
    /// The source of the value.
    pub source: Source,
    /// The name of the policy, if the source is one.
    pub source_name: Option<Name>,
    /// Values of other sources that are not in force.
    pub lost: Vec<OverriddenValue>,
}

/// A value that is not in force.
#[derive(Clone, PartialEq, Debug)]
pub struct OverriddenValue {
    /// The source of the value.
    pub source: Source,
    /// The name of the policy, if the source is one.
    pub source_name: Option<Name>,
    /// The value.
    pub value: PolicyValue,
    /// The reason why the value is not in force, as a sentence.
    pub why: String,
}

impl Explanation {
    /// Explains the decisions about the queue or exchange with this name.
    pub(crate) fn of<'a>(
        all: &Policies,
        in_force: &EffectivePolicies,
        subject: PolicySubject<'_>,
        decisions: impl Iterator<Item = &'a Decision>,
    ) -> Self {
        let target = subject.target;
        let mut explanation = Self {
            policies: in_force.clone(),
            keys: decisions.filter_map(|decision| explained(decision, in_force, target)).collect(),
        };
        for kind in [PolicyKind::User, PolicyKind::Operator] {
            let chosen = in_force.of_kind(kind);
            explanation.add_keys_in_vain(kind, chosen, target);
            for policy in all.matching(kind, subject) {
                if chosen.is_none_or(|chosen| chosen.name != policy.name) {
                    explanation.add_other(kind, policy, chosen, target);
                }
            }
        }
        explanation
    }

    /// Adds keys of the policy in force that the queue or exchange does not support.
    fn add_keys_in_vain(
        &mut self,
        kind: PolicyKind,
        policy: Option<&Arc<Policy>>,
        target: PolicyTarget,
    ) {
        let Some(policy) = policy else { return };
        for (key, _) in policy.definition.iter() {
            if !self.keys.iter().any(|known| known.key == key) {
                let why = match target {
                    PolicyTarget::Queue(_) if key.setting().group() == Group::Exchanges => {
                        "queues have no such setting".to_owned()
                    }
                    PolicyTarget::Queue(_) => Overridden::NoEffect.to_string(),
                    PolicyTarget::Exchange => "exchanges have no such setting".to_owned(),
                };
                self.lose(kind, policy, key, why);
            }
        }
    }

    /// Adds the keys of a policy that another policy keeps out of force.
    fn add_other(
        &mut self,
        kind: PolicyKind,
        policy: &Policy,
        chosen: Option<&Arc<Policy>>,
        target: PolicyTarget,
    ) {
        let why = match (policy.disqualified_by(target), target, chosen) {
            (Some(key), PolicyTarget::Queue(queue_type), _) => {
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
        for (key, _) in policy.definition.iter() {
            self.lose(kind, policy, key, why.clone());
        }
    }

    fn lose(&mut self, kind: PolicyKind, policy: &Policy, key: PolicyKey, why: String) {
        let value = policy.definition.get(key).expect("the policy has the key");
        let lost = OverriddenValue {
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

/// Explains one decision; none if the queue or exchange does not support the key and no source sets it.
fn explained(
    decision: &Decision,
    in_force: &EffectivePolicies,
    target: PolicyTarget,
) -> Option<ExplainedKey> {
    let lacks_it = matches!(target, PolicyTarget::Queue(queue_type) if !decision.key.setting().is_of(queue_type));
    if lacks_it && decision.won.is_none() && decision.lost.is_empty() {
        return None;
    }
    let name_of = |source| match source {
        Source::Policy => in_force.user.as_ref().map(|policy| Arc::clone(&policy.name)),
        Source::OperatorPolicy => in_force.operator.as_ref().map(|policy| Arc::clone(&policy.name)),
        Source::Argument | Source::Default => None,
    };
    let source = decision.won.as_ref().map_or(Source::Default, |won| won.source);
    let lost = decision.lost.iter().map(|(given, why)| OverriddenValue {
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
