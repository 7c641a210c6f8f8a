//! The node as the HTTP API sees it: traits that the server implements.
//!
//! A read copies its result under a vhost's lock; formatting happens without the lock. A write returns a
//! [`ChangeFuture`], which completes when the change is on disk.

mod backup;
mod caller;
mod change;
mod clients;
mod death_filter;
mod import_preview;
mod leadership;
mod lifecycle;
mod limits;
mod logins;
mod membership;
pub(crate) mod memory;
mod message_filter;
mod message_id;
mod messages;
mod peers;
mod permissions;
mod redrive;
mod schedules;
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
pub use death_filter::DeathFilter;
pub use import_preview::{Difference, FamilyPreview, ImportChange, ImportPreview, PreviewedItem};
pub use leadership::Leadership;
pub use lifecycle::{Lifecycle, LifecycleAction, LifecycleError};
pub use limits::{LimitName, UserLimit, VhostLimit, maximum};
pub use logins::{DelayFuture, LoginFuture, LoginRefused, Logins};
pub use membership::{ForgetError, MemberChange, MemberChangeKind, MemberError, Membership};
pub use message_filter::MessageFilter;
pub(crate) use message_filter::shown_value;
pub use message_id::{MessageId, ParseMessageIdError};
pub use messages::{
    BrowseBatch, BrowseError, BrowseFuture, Channel, ChannelError, DeathsBatch, DeathsBefore,
    ExpiryBatch, Messages, QueuePath,
};
pub use peers::{Contents, Leader, PeerFuture, Peers, SettledFuture};
pub use permissions::{PermissionDetails, TopicPermissionDetails};
pub use redrive::{
    RedriveCounts, RedriveDryRun, RedriveError, RedriveJob, RedriveRequest, RedriveSelection,
    RedriveState,
};
pub(crate) use schedules::on_axis;
pub use schedules::{
    ScheduleCancelled, ScheduleChanged, ScheduleError, ScheduleQuery, ScheduledBatch, Schedules,
};
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
