//! Limits of users and of vhosts. A negative one is none.

use std::collections::BTreeMap;

use super::{Change, Unchanged};

/// A limit of a user, by RabbitMQ's name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum UserLimit {
    /// `max-channels`, on all his connections.
    MaxChannels,
    /// `max-connections`.
    MaxConnections,
}

/// A limit of a vhost, by RabbitMQ's name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum VhostLimit {
    /// `max-connections`.
    MaxConnections,
    /// `max-queues`.
    MaxQueues,
}

/// The name of a limit.
pub trait LimitName: Copy + Ord + 'static {
    /// All limits of the kind, in the order of their names.
    const ALL: &'static [Self];

    /// Its name.
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

/// How many of something there may be; none is as many as there are.
pub fn maximum<L: LimitName>(limits: &BTreeMap<L, i64>, limit: L) -> Option<u64> {
    limits.get(&limit).and_then(|max| u64::try_from(*max).ok())
}

/// The limits of users and vhosts, which are shown with them.
pub trait Limits {
    /// Sets or clears a limit of a user.
    fn set_user_limit(
        &self,
        user: &str,
        limit: UserLimit,
        to: Option<i64>,
    ) -> Change<'_, Result<(), Unchanged>>;

    /// Gives a vhost these limits and no others.
    fn replace_vhost_limits(
        &self,
        vhost: &str,
        limits: BTreeMap<VhostLimit, i64>,
    ) -> Change<'_, Result<(), Unchanged>>;

    /// Sets or clears a limit of a vhost.
    fn set_vhost_limit(
        &self,
        vhost: &str,
        limit: VhostLimit,
        to: Option<i64>,
    ) -> Change<'_, Result<(), Unchanged>>;
}
