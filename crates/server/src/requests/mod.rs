//! The node as the HTTP API sees it: traits that the server implements.
//!
//! A read copies its result under a vhost's lock; formatting happens without the lock. A write returns a
//! [`ChangeFuture`], which completes when the change is on disk.

mod backup;
mod caller;
mod change;
mod clients;
mod import_preview;
mod leadership;
mod lifecycle;
mod limits;
mod logins;
mod membership;
mod messages;
mod peers;
mod permissions;
mod status;
mod topology;
mod users;
mod vhost;

pub use backup::{
    BackupError, BackupJob, BackupState, BackupTotals, BackupVhost, Backups, backup_file,
};
pub use caller::{Caller, Credentials};
pub use change::{ChangeError, ChangeFuture};
pub use clients::Clients;
pub use import_preview::{Difference, FamilyPreview, ImportChange, ImportPreview, PreviewedItem};
pub use leadership::Leadership;
pub use lifecycle::{Lifecycle, LifecycleAction, LifecycleError};
pub use limits::{LimitName, UserLimit, VhostLimit, maximum};
pub use logins::{DelayFuture, LoginFuture, LoginRefused, Logins};
pub use membership::{ForgetError, MemberChange, MemberChangeKind, MemberError, Membership};
pub use messages::{
    BrowseBatch, BrowseError, BrowseFuture, Channel, ChannelError, DeathFilter, DeathsBatch,
    DeathsBefore, ExpiryBatch, MessageFilter, MessageId, Messages, ParseMessageIdError, QueuePath,
    RedriveCounts, RedriveDryRun, RedriveError, RedriveJob, RedriveRequest, RedriveSelection,
    RedriveState, ScheduleCancelled, ScheduleChanged, ScheduleError, ScheduleQuery, ScheduledBatch,
    Schedules, on_axis, shown_value,
};
pub use peers::{Contents, Leader, PeerFuture, Peers, SettledFuture};
pub use permissions::{PermissionDetails, TopicPermissionDetails};
pub use status::{AuditEntry, DiskFreeLimit, NodeStatus, ServerCertificate};
pub use topology::{Explained, ImportError, Topology, VhostPlacement};
pub use users::{NewPassword, NewUser, UserDetails, Users};
pub use vhost::{VhostChange, VhostMetadata, VhostSettings};

/// A running node: everything that the HTTP API needs.
///
/// [`Logins`] and [`Lifecycle`] are traits of their own because a stopped node has them, too.
pub trait Node:
    Topology
    + Clients
    + Users
    + Logins
    + Messages
    + Schedules
    + NodeStatus
    + Leadership
    + Lifecycle
    + Membership
    + Backups
    + Peers
    + Send
    + Sync
{
}

/// A stopped node.
pub trait StoppedNode: Lifecycle + Logins + Send + Sync {
    /// Name of the node.
    fn name(&self) -> &str;
}
