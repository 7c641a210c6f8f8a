//! One row of the table of settings: all that is particular to one setting.

use super::argument_checks::ArgumentCheck;
use super::merge::Merge;
use super::value::ValueKind;
use super::words::Word;
use crate::queue_type::QueueType;

/// The group in which documentation and web page show a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// Time to live.
    Expiry,
    /// Length limits.
    Length,
    /// Dead letters.
    DeadLetters,
    /// Deliveries and consumers.
    Delivery,
    /// Settings of exchanges.
    Exchanges,
    /// Settings that are accepted and have no effect.
    WithoutEffect,
    /// Settings of RabbitMQ's streams; accepted in policies and without effect.
    Streams,
}

impl Group {
    /// The groups of settings that have an effect on queues, in the order in which they are shown.
    pub(super) const OF_QUEUES: [Self; 4] =
        [Self::Expiry, Self::Length, Self::DeadLetters, Self::Delivery];

    /// The heading of the group.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Expiry => "Expiry",
            Self::Length => "Length",
            Self::DeadLetters => "Dead letters",
            Self::Delivery => "Delivery",
            Self::Exchanges => "Exchanges",
            Self::WithoutEffect => "Without effect",
            Self::Streams => "Streams",
        }
    }
}

/// The rule by which either an argument or the value of the policies counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WithArgument {
    /// There is no argument, or none that has an effect.
    None,
    Merge(Merge),
    /// Classic queues prefer the argument, quorum queues the policy.
    Overflow,
}

/// The value in force if no source gives one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fallback {
    None,
    Word(Word),
    /// `consumer_timeout` of the node.
    ConsumerTimeout,
    /// The delivery limit of quorum queues.
    DeliveryLimit,
}

/// The queue argument of a setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArgumentRule {
    pub(crate) name: &'static str,
    pub(crate) check: ArgumentCheck,
    /// Of several arguments with wrong values, and of several that differ from the first declaration, RabbitMQ
    /// names the one with the lowest number.
    pub(crate) order: u8,
    /// The same for several arguments that the type of queue does not have.
    pub(crate) refusal_order: u8,
    /// A queue can be declared again only with the same value.
    pub(crate) is_compared: bool,
    /// The label of the button on the web page that adds the argument.
    button: Option<&'static str>,
    /// A value to start with, as JSON.
    example: Option<&'static str>,
}

/// The policy key of a setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicyRule {
    /// Completes RabbitMQ's "is not a valid ...".
    pub(crate) complaint: &'static str,
    /// The choice between a user's value and an operator's; none: operator policies cannot have the key.
    operator: Option<Merge>,
    /// A policy with the key applies only to queues of these types.
    applies_to: &'static [QueueType],
    /// The oldest version of the log's format whose builds know the key.
    format_version: u32,
}

/// A setting of queues or exchanges.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    name: &'static str,
    argument_name: &'static str,
    group: Group,
    value: ValueKind,
    hint: &'static str,
    types: &'static [QueueType],
    argument: Option<ArgumentRule>,
    policy: Option<PolicyRule>,
    with_argument: WithArgument,
    fallback: Fallback,
}

/// The columns of a row.
impl Setting {
    pub(super) const fn new(
        name: &'static str,
        argument_name: &'static str,
        group: Group,
        value: ValueKind,
    ) -> Self {
        Self {
            name,
            argument_name,
            group,
            value,
            hint: "",
            types: &QueueType::ALL,
            argument: None,
            policy: None,
            with_argument: WithArgument::None,
            fallback: Fallback::None,
        }
    }

    /// Only these types of queues have the setting.
    pub(super) const fn only(self, types: &'static [QueueType]) -> Self {
        Self { types, ..self }
    }

    /// There is a queue argument, which RabbitMQ checks in this order.
    pub(super) const fn argument(self, order: u8, check: ArgumentCheck) -> Self {
        let argument = ArgumentRule {
            name: self.argument_name,
            check,
            order,
            refusal_order: order,
            is_compared: true,
            button: None,
            example: None,
        };
        Self { argument: Some(argument), ..self }
    }

    const fn with_rule(self, argument: ArgumentRule) -> Self {
        Self { argument: Some(argument), ..self }
    }

    const fn argument_rule(&self) -> ArgumentRule {
        self.argument.expect("columns of an argument follow `argument`")
    }

    pub(super) const fn refused_at(self, refusal_order: u8) -> Self {
        self.with_rule(ArgumentRule { refusal_order, ..self.argument_rule() })
    }

    pub(super) const fn not_compared(self) -> Self {
        self.with_rule(ArgumentRule { is_compared: false, ..self.argument_rule() })
    }

    pub(super) const fn button(self, button: &'static str) -> Self {
        self.with_rule(ArgumentRule { button: Some(button), ..self.argument_rule() })
    }

    pub(super) const fn example(self, example: &'static str) -> Self {
        self.with_rule(ArgumentRule { example: Some(example), ..self.argument_rule() })
    }

    /// There is a policy key; `complaint` completes RabbitMQ's "is not a valid ...".
    pub(super) const fn policy(self, complaint: &'static str) -> Self {
        let policy = PolicyRule {
            complaint,
            operator: None,
            applies_to: &QueueType::ALL,
            format_version: 1,
        };
        Self { policy: Some(policy), ..self }
    }

    const fn policy_rule(&self) -> PolicyRule {
        self.policy.expect("columns of a policy key follow `policy`")
    }

    /// Operator policies may have the key.
    pub(super) const fn operator(self, merge: Merge) -> Self {
        let policy = PolicyRule { operator: Some(merge), ..self.policy_rule() };
        Self { policy: Some(policy), ..self }
    }

    /// A policy with the key applies to no queue of a type that does not have the setting.
    pub(super) const fn strict(self) -> Self {
        self.strict_for(self.types)
    }

    /// A policy with the key applies only to queues of these types, if it does not name another type that has the
    /// setting.
    pub(super) const fn strict_for(self, applies_to: &'static [QueueType]) -> Self {
        let policy = PolicyRule { applies_to, ..self.policy_rule() };
        Self { policy: Some(policy), ..self }
    }

    /// Builds that know only older versions of the log's format do not know the key.
    pub(super) const fn since(self, format_version: u32) -> Self {
        let policy = PolicyRule { format_version, ..self.policy_rule() };
        Self { policy: Some(policy), ..self }
    }

    /// The argument has an effect, by this rule.
    pub(super) const fn with_argument(self, merge: Merge) -> Self {
        Self { with_argument: WithArgument::Merge(merge), ..self }
    }

    pub(super) const fn with_argument_of_overflow(self) -> Self {
        Self { with_argument: WithArgument::Overflow, ..self }
    }

    pub(super) const fn or(self, fallback: Fallback) -> Self {
        Self { fallback, ..self }
    }

    /// The explanation on the web page.
    pub(super) const fn with_hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }
}

/// Columns for the rest of the core.
impl Setting {
    pub(crate) const fn argument_if_any(&self) -> Option<&ArgumentRule> {
        self.argument.as_ref()
    }

    pub(super) const fn complaint(&self) -> &'static str {
        match &self.policy {
            Some(policy) => policy.complaint,
            None => "",
        }
    }

    pub(crate) const fn fallback(&self) -> Fallback {
        self.fallback
    }

    /// The oldest version of the log's format whose builds know a policy with the key.
    pub(crate) const fn format_version(&self) -> u32 {
        match &self.policy {
            Some(policy) => policy.format_version,
            None => 1,
        }
    }

    /// The choice between a user policy's value and an operator policy's.
    pub(crate) const fn merge_of_policies(&self) -> Merge {
        match &self.policy {
            Some(PolicyRule { operator: Some(merge), .. }) => *merge,
            Some(_) | None => Merge::Second,
        }
    }

    /// The choice between the value of the policies and the argument.
    pub(crate) const fn merge_with_argument(&self, queue_type: QueueType) -> Merge {
        match self.with_argument {
            WithArgument::Merge(merge) => merge,
            WithArgument::Overflow => match queue_type {
                QueueType::Classic => Merge::Second,
                QueueType::Quorum => Merge::First,
            },
            WithArgument::None => Merge::Second,
        }
    }

    /// True if queues of this type have the setting.
    pub(crate) fn is_of(&self, queue_type: QueueType) -> bool {
        self.types.contains(&queue_type)
    }
}

/// Columns for the documentation and the web page.
impl Setting {
    /// The policy key.
    pub const fn policy_key(&self) -> Option<&'static str> {
        if self.policy.is_some() { Some(self.name) } else { None }
    }

    /// The queue argument.
    pub const fn argument_name(&self) -> Option<&'static str> {
        match &self.argument {
            Some(argument) => Some(argument.name),
            None => None,
        }
    }

    /// The label of the button on the web page that adds the argument; none if there is no button.
    pub const fn argument_button(&self) -> Option<&'static str> {
        match &self.argument {
            Some(argument) => argument.button,
            None => None,
        }
    }

    /// The value of the argument to start with, as JSON.
    pub const fn argument_example(&self) -> Option<&'static str> {
        match &self.argument {
            Some(argument) => argument.example,
            None => None,
        }
    }

    /// The group to which the setting belongs.
    pub const fn group(&self) -> Group {
        self.group
    }

    /// The kind of value.
    pub const fn value(&self) -> ValueKind {
        self.value
    }

    /// An explanation of one sentence or two; empty for settings without an effect.
    pub const fn hint(&self) -> &'static str {
        self.hint
    }

    /// The types of queues that have the setting; the others refuse the argument.
    pub const fn queue_types(&self) -> &'static [QueueType] {
        self.types
    }

    /// True if a policy with the key, for queues of several types, does not apply to queues of this type.
    pub fn disqualifies(&self, queue_type: QueueType) -> bool {
        self.policy.is_some_and(|policy| !policy.applies_to.contains(&queue_type))
    }

    /// True if operator policies may have the key.
    pub const fn is_for_operators(&self) -> bool {
        matches!(self.policy, Some(PolicyRule { operator: Some(_), .. }))
    }

    /// The choice between a user policy's value and an operator policy's, in words.
    pub const fn operator_rule(&self) -> &'static str {
        match &self.policy {
            Some(PolicyRule { operator: Some(Merge::Second), .. }) => "the operator's",
            Some(PolicyRule { operator: Some(merge), .. }) => merge.in_words(),
            Some(_) | None => "not allowed",
        }
    }

    /// The choice between the value of the policies and the argument, in words.
    pub const fn with_argument_rule(&self) -> &'static str {
        match self.with_argument {
            WithArgument::None => "none",
            WithArgument::Merge(merge) => merge.in_words(),
            WithArgument::Overflow => "argument on classic, policy on quorum queues",
        }
    }
}
