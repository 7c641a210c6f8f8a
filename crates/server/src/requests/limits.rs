//! Limits of users and vhosts. A negative limit counts as unlimited.

use std::collections::BTreeMap;

/// A limit of a user, under RabbitMQ's name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum UserLimit {
    /// `max-channels`, over all connections of the user.
    MaxChannels,
    /// The limit `max-connections`.
    MaxConnections,
}

/// A limit of a vhost, under RabbitMQ's name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum VhostLimit {
    /// The limit `max-connections`.
    MaxConnections,
    /// The limit `max-queues`.
    MaxQueues,
}

/// A kind of limits, each with a name.
pub trait LimitName: Copy + Ord + 'static {
    /// All limits of the kind, ordered by name.
    const ALL: &'static [Self];

    /// Name of the limit.
    fn as_str(self) -> &'static str;

    /// The limit of that name.
    fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|limit| limit.as_str() == name)
    }
}

impl LimitName for UserLimit {
    const ALL: &'static [Self] = &[Self::MaxChannels, Self::MaxConnections];

    fn as_str(self) -> &'static str {
        match self {
            Self::MaxChannels => "max-channels",
            Self::MaxConnections => "max-connections",
        }
    }
}

impl LimitName for VhostLimit {
    const ALL: &'static [Self] = &[Self::MaxConnections, Self::MaxQueues];

    fn as_str(self) -> &'static str {
        match self {
            Self::MaxConnections => "max-connections",
            Self::MaxQueues => "max-queues",
        }
    }
}

/// The maximum that `limits` sets; none if unlimited.
pub fn maximum<L: LimitName>(limits: &BTreeMap<L, i64>, limit: L) -> Option<u64> {
    limits.get(&limit).and_then(|max| u64::try_from(*max).ok())
}
