//! Exchange types.

use crate::refusal::Refusal;

/// An exchange type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExchangeType {
    /// The binding key equals the routing key.
    Direct,
    /// Every binding matches.
    Fanout,
    /// The binding key is a pattern of words with `*` and `#`.
    Topic,
    /// The binding's arguments match the message's headers.
    Headers,
    /// `x-consistent-hash`: one destination by hash, in proportion to the binding keys.
    ConsistentHash,
    /// `x-modulus-hash`: one destination by hash of the routing key.
    ModulusHash,
    /// `x-local-random`: one destination at random.
    LocalRandom,
    /// `x-federation-upstream`: every binding, for messages that the cluster behind it has not had.
    FederationUpstream,
    /// `x-delayed-message`: holds a message for the time in its header `x-delay`, then routes by another type.
    Delayed,
}

impl ExchangeType {
    /// All types, in the order listings show them.
    pub const ALL: [Self; 9] = [
        Self::Direct,
        Self::Fanout,
        Self::Headers,
        Self::Topic,
        Self::ConsistentHash,
        Self::Delayed,
        Self::FederationUpstream,
        Self::LocalRandom,
        Self::ModulusHash,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Fanout => "fanout",
            Self::Topic => "topic",
            Self::Headers => "headers",
            Self::ConsistentHash => "x-consistent-hash",
            Self::ModulusHash => "x-modulus-hash",
            Self::LocalRandom => "x-local-random",
            Self::FederationUpstream => "x-federation-upstream",
            Self::Delayed => "x-delayed-message",
        }
    }

    /// The type with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// The refusal of a type with this name, which does not exist: 406.
    pub(crate) fn unknown(name: &str) -> Refusal {
        // RabbitMQ calls the empty type invalid, and any other wrong one unknown.
        let problem = if name.is_empty() { "invalid" } else { "unknown" };
        Refusal::precondition_failed(format!("{problem} exchange type '{name}'"))
    }

    /// True if the routing key alone decides the destinations, so that a route may be cached.
    pub(crate) const fn routes_by_key_alone(self) -> bool {
        matches!(self, Self::Direct | Self::Fanout | Self::Topic)
    }
}
