//! Opening of the log of the metadata.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use replica::metadata::Items;
use replication::{BeginError, GroupId, Member, QuarantineReason};
use storage::{IoCounters, LogOptions, Lsn, OpenError, RealDirectory, ReplicatedLog};

use crate::config::Durability;
use crate::disk::recovery::MemberIdentity;
use crate::disk::reserve::Reserve;
use crate::disk::vhost_files::VhostId;
use crate::limits::METADATA_RETENTION_BYTES;
use crate::shipments::directories;
use crate::vhost::found_member;
use crate::vhost::{Cluster, FoundMember, GroupAge, is_loss_of_log, loss_at_begin};

/// The reason why the log of the metadata cannot be used.
#[derive(thiserror::Error, Debug)]
pub(crate) enum MetadataOpenError {
    #[error("cannot use {path}, the log of the metadata: {error}")]
    Directory { path: PathBuf, error: io::Error },
    #[error("log of the metadata in {path}: {error}")]
    Log { path: PathBuf, error: OpenError },
    #[error("log of the metadata: {0}")]
    Member(#[from] BeginError),
    #[error("the system has no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
}

/// The place and the use of the log.
#[derive(Debug)]
pub(super) struct LogPlace {
    pub(super) data_dir: PathBuf,
    pub(super) age: GroupAge,
    pub(super) path: PathBuf,
    pub(super) durability: Durability,
    pub(super) reserve: Arc<Reserve>,
    pub(super) io: Arc<IoCounters>,
}

/// The log that was read.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) member: Member<ReplicatedLog<RealDirectory>>,
    /// The items that are known to be committed; none if the log is damaged.
    pub(super) items: Option<Items>,
    /// The last position.
    pub(super) last: Lsn,
}

/// The log that was read, or the reason why its replica must be rebuilt.
#[derive(Debug)]
pub(super) enum OpenedLog {
    Member(Box<Opened>),
    Lost(String),
}

impl LogPlace {
    /// Finishes what the process before has begun: files of the leader that take the place of the log.
    ///
    /// # Errors
    /// [`MetadataOpenError::Directory`].
    pub(super) fn resume(&self) -> Result<(), MetadataOpenError> {
        let resumed = directories::resume(&self.data_dir, VhostId::METADATA);
        resumed.map_err(|error| MetadataOpenError::Directory { path: self.path.clone(), error })
    }

    /// Opens the log, and creates it if it is missing.
    ///
    /// # Errors
    /// [`MetadataOpenError`], a sentence for the operator.
    pub(super) fn open(&self, cluster: &Cluster) -> Result<OpenedLog, MetadataOpenError> {
        let unusable = |error| MetadataOpenError::Directory { path: self.path.clone(), error };
        let first = cluster.replicator.nodes().my_first_member();
        let found = found_member(&self.data_dir, VhostId::METADATA, (first, first), self.age);
        let me = match found.map_err(unusable)? {
            FoundMember::Member(me) => me,
            FoundMember::Lost(why) => return Ok(OpenedLog::Lost(why)),
        };
        let room = Arc::clone(&self.reserve);
        let directory = RealDirectory::open(&self.path).map_err(unusable)?;
        let directory = directory.with_room(move || room.release()).with_counters(&self.io);
        let identity = MemberIdentity {
            retention_bytes: METADATA_RETENTION_BYTES,
            ..cluster.identity(me, &[])
        };
        let options = identity.options(LogOptions {
            log_id: GroupId::METADATA.0,
            durability: self.durability.of_log(),
            ..LogOptions::default()
        });
        let (mut items, mut fault) = (Items::default(), None);
        let mut each = |record: storage::Record<'_>, _: &mut storage::References<'_>| {
            if let Err(problem) = items.restore(&record) {
                fault.get_or_insert_with(|| format!("record {}: {problem}", record.lsn));
            }
        };
        let opened = ReplicatedLog::open(directory, options, &mut each, &mut |_| {});
        let (log, report) = match opened {
            Ok(opened) => opened,
            Err(error) if is_loss_of_log(&error) => {
                return Ok(OpenedLog::Lost(error.to_string()));
            }
            Err(error) => return Err(MetadataOpenError::Log { path: self.path.clone(), error }),
        };
        if let Some(damage) = report.damages.first() {
            fault.get_or_insert_with(|| damage.to_string());
        }
        let last = log.applier().applied_position();
        let mut member = match Member::open(cluster.member_config(GroupId::METADATA, me)?, log) {
            Ok(member) => member,
            Err(error) => match loss_at_begin(&error) {
                Some(why) => return Ok(OpenedLog::Lost(why)),
                None => return Err(error.into()),
            },
        };
        let items = fault.is_none().then_some(items);
        if let Some(fault) = fault {
            member.quarantine(QuarantineReason::Damaged(fault));
        }
        Ok(OpenedLog::Member(Box::new(Opened { member, items, last })))
    }
}
