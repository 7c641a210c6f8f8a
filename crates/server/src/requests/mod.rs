//! Requests to a node: who asks, the arguments, and the results. The methods that take them are those of
//! [`Node`](crate::Node), most of them in `node/operations/`, and of [`StoppedNode`](crate::StoppedNode).

mod backup;
mod caller;
mod change;
mod file_check;
mod import_items;
mod import_preview;
mod lifecycle;
mod limits;
mod membership;
mod messages;
mod permissions;
mod policy_dry_run;
mod status;
mod topology;
mod users;
mod vhost;

pub(crate) use backup::backup_file;
pub use backup::{BackupError, BackupJob, BackupState, BackupTotals, BackupVhost};
pub use caller::{Caller, Credentials, LoginRefused};
pub use change::ChangeError;
pub use file_check::{DamagedFile, FileCheck, FileRepair};
pub use import_items::{ImportError, ImportItem, ImportItems, ImportRequest};
pub use import_preview::{Difference, FamilyPreview, ImportChange, ImportPreview, PreviewedItem};
pub use lifecycle::{LifecycleAction, LifecycleError};
pub use limits::{LimitName, UserLimit, VhostLimit, maximum};
pub use membership::{ForgetError, Leader, MemberChange, MemberChangeKind, MemberError};
pub use messages::{
    BrowseBatch, BrowseError, ChannelError, DeathFilter, DeathsBatch, DeathsBefore, ExpiryBatch,
    MessageFilter, MessageId, ParseMessageIdError, QueuePath, RedriveCounts, RedriveDryRun,
    RedriveError, RedriveJob, RedriveRequest, RedriveSelection, RedriveState, ScheduleCancelled,
    ScheduleChanged, ScheduleError, ScheduleQuery, ScheduledBatch, on_axis, shown_value,
};
pub use permissions::{PermissionDetails, TopicPermissionDetails};
pub use policy_dry_run::{Outranking, PatternMatches, PolicyDryRun};
pub use status::{AuditEntry, DiskFreeLimit, ServerCertificate};
pub use topology::{Explained, VhostPlacement};
pub use users::{NewPassword, NewUser, UserDetails};
pub use vhost::{VhostChange, VhostMetadata, VhostSettings};
