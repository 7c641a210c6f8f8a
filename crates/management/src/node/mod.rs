//! The node as HTTP needs it: one trait for each concern, which the server implements.
//!
//! What is read is copied under a vhost's lock and formatted without it. What changes something is a
//! future that ends when the change is on the disk.

mod alarm_limits;
mod audit;
mod browse;
mod channels;
mod clients;
mod dead_letters;
mod definitions;
mod explain;
mod life;
mod limits;
mod logins;
pub(crate) mod memory;
pub(crate) mod message_filter;
pub(crate) mod message_id;
mod metrics;
mod parameters;
mod permissions;
mod policies;
mod redrives;
mod statistics;
mod status;
mod topology;
mod users;
mod vhosts;

use std::fmt;
use std::pin::Pin;

pub use alarm_limits::{AlarmLimits, DiskFreeLimit, MemoryWatermark};
pub use audit::{Audit, AuditEntry};
pub use browse::{Browse, BrowseBatch, ExpiryBatch, LookRefused, Looked};
pub use channels::{Channel, ChannelRefused, Channels};
pub use clients::Clients;
pub use dead_letters::DeadLetters;
pub use definitions::{Definitions, ImportProblem};
pub use explain::{Explain, Explained};
pub use life::{Life, LifeAction, LifeRefused};
pub use limits::{LimitName, Limits, UserLimit, VhostLimit, maximum};
pub use logins::{Delay, Login, LoginAttempts, LoginCounts, Logins, Protocol};
pub use metrics::{Made, Metrics};
pub use parameters::Parameters;
pub use permissions::{PermissionDetails, Permissions, TopicPermissionDetails};
pub use policies::Policies;
pub use redrives::{
    RedriveChoice, RedriveCounts, RedriveDryRun, RedriveJob, RedriveRefused, RedriveRequest,
    RedriveState, Redrives,
};
pub use statistics::Statistics;
pub use status::{ServerCertificate, Status};
pub use topology::Topology;
pub use users::{NewPassword, NewUser, UserDetails, Users};
pub use vhosts::{VhostChange, VhostMetadata, VhostSettings, Vhosts};

/// What a change has led to, once it is on the disk.
pub type Change<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why something stayed as it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unchanged {
    /// There is no such user.
    NoSuchUser,
    /// There is no such vhost.
    NoSuchVhost,
    /// There is no such exchange.
    NoSuchExchange,
    /// This vhost may not be deleted.
    Protected(String),
    /// Something of it cannot be: a sentence for whoever asked.
    Invalid(String),
    /// The node cannot do it now: a sentence for whoever asked.
    Unable(String),
}

impl fmt::Display for Unchanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchUser => f.write_str("there is no such user"),
            Self::NoSuchVhost => f.write_str("there is no such vhost"),
            Self::NoSuchExchange => f.write_str("there is no such exchange"),
            Self::Protected(vhost) => write!(f, "vhost '{vhost}' is protected from deletion"),
            Self::Invalid(reason) | Self::Unable(reason) => f.write_str(reason),
        }
    }
}

/// The node: everything that HTTP asks of it.
pub trait Node:
    AlarmLimits
    + Audit
    + Browse
    + Channels
    + Clients
    + DeadLetters
    + Definitions
    + Explain
    + Life
    + Limits
    + LoginCounts
    + Logins
    + Metrics
    + Parameters
    + Permissions
    + Policies
    + Redrives
    + Statistics
    + Status
    + Topology
    + Users
    + Vhosts
    + Send
    + Sync
{
}

impl<T> Node for T where
    T: AlarmLimits
        + Audit
        + Browse
        + Browse
        + Channels
        + Clients
        + DeadLetters
        + Definitions
        + Explain
        + Life
        + Limits
        + LoginCounts
        + Logins
        + Metrics
        + Parameters
        + Permissions
        + Policies
        + Redrives
        + Statistics
        + Status
        + Topology
        + Users
        + Vhosts
        + Send
        + Sync
{
}
