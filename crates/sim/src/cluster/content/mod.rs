//! The content of a group on a node: a vhost, or the metadata of a cluster. All else of a node is the same for both.

pub(crate) mod changing;
pub(crate) mod effects;
pub(crate) mod group_content;
pub(crate) mod metadata;
pub(crate) mod pager;
pub(crate) mod pages;
pub(crate) mod serving;
pub(crate) mod skipping;

use broker::time::{Now, Time};
use replica::metadata::Items;
use replica::{HandOverTask, LogReplay};
use simdisk::{Disk, Random};
use storage::{Applier, LogEntry, Lsn, Record, References, WriteBatch, Written};

use crate::checks::ledger::state_of;
use crate::checks::metadata_log;
use crate::cluster::content::group_content::GroupContent;
use crate::cluster::content::metadata::ServedMetadata;
use crate::cluster::content::pages::SimPages;
use crate::cluster::content::serving::Serving;
use crate::cluster::content::skipping::{Skipping, empty_vhost};
use crate::faults::sabotage::Sabotage;
use crate::plan::Plan;

/// The content of a group on a node.
#[derive(Debug)]
pub(crate) enum Content {
    Vhost(Box<Serving>),
    Metadata(Box<ServedMetadata>),
}

impl Content {
    /// The vhost, unless the group has metadata.
    pub(crate) fn vhost(&mut self) -> Option<&mut Serving> {
        match self {
            Self::Vhost(serving) => Some(serving),
            Self::Metadata(_) => None,
        }
    }

    /// True if the node leads the vhost, which takes commands.
    pub(crate) fn is_leading_vhost(&self) -> bool {
        matches!(self, Self::Vhost(serving) if serving.local.is_leading())
    }

    /// True if the vhost takes no commands, because its lead is being handed over.
    pub(crate) fn is_frozen_vhost(&self) -> bool {
        matches!(self, Self::Vhost(serving) if serving.local.is_frozen())
    }

    /// The metadata, unless the group has a vhost.
    pub(crate) fn metadata(&mut self) -> Option<&mut ServedMetadata> {
        match self {
            Self::Vhost(_) => None,
            Self::Metadata(metadata) => Some(metadata),
        }
    }

    /// True once, if the replicator must take records.
    pub(crate) fn take_wakes(&mut self) -> bool {
        std::mem::take(match self {
            Self::Vhost(serving) => &mut serving.wakes,
            Self::Metadata(metadata) => &mut metadata.wakes,
        })
    }

    /// Position of the last record that was applied or proposed.
    pub(crate) fn last(&self) -> Lsn {
        match self {
            Self::Vhost(serving) => Lsn(serving.local.vhost().last_lsn().0),
            Self::Metadata(metadata) => metadata.local.last(),
        }
    }

    pub(crate) fn take_batch(&mut self, batch: &mut WriteBatch) -> bool {
        match self {
            Self::Vhost(serving) => serving.local.take_batch(batch),
            Self::Metadata(metadata) => metadata.take_batch(batch),
        }
    }

    pub(crate) fn batch_durable(&mut self, written: Written, now: Now) {
        match self {
            Self::Vhost(serving) => serving.batch_durable(written, now),
            Self::Metadata(metadata) => metadata.local.batch_durable(written),
        }
    }

    pub(crate) fn hand_over(&mut self, now: Now, task: HandOverTask) {
        match self {
            Self::Vhost(serving) => serving.hand_over(now, task),
            Self::Metadata(metadata) => metadata.hand_over(task),
        }
    }

    pub(crate) fn promote(&mut self, now: Now, last: Lsn, has_alarm: bool) {
        match self {
            Self::Vhost(serving) => serving.promote(now, last, has_alarm),
            Self::Metadata(metadata) => metadata.promote(last),
        }
    }

    pub(crate) fn log_digest(&mut self, now: Now) {
        match self {
            Self::Vhost(serving) => serving.log_digest(now),
            Self::Metadata(metadata) => metadata.log_digest(),
        }
    }

    pub(crate) fn depose(&mut self, now: Now) {
        match self {
            Self::Vhost(serving) => serving.depose(now),
            Self::Metadata(metadata) => metadata.local.depose(),
        }
    }

    /// True while the log must not be compacted.
    pub(crate) fn has_ending_pages(&self) -> bool {
        match self {
            Self::Vhost(serving) => serving.local.has_ending_pages(),
            Self::Metadata(_) => false,
        }
    }

    /// Applies a committed entry of another leader. Returns the state behind it; none if the content is given up.
    pub(crate) fn apply_entry(
        &mut self,
        entry: &LogEntry,
        applier: &Applier<Disk>,
    ) -> Result<Option<u64>, String> {
        match self {
            Self::Vhost(serving) => {
                let Serving { local, skipping, .. } = &mut **serving;
                let is_given_up = !local.is_following();
                local.apply_entry(entry, |sink| {
                    let mut each = |record: Record<'_>, references: &mut References<'_>| {
                        if !skipping.skips() {
                            sink(&record, &mut |lsn| references.release(lsn));
                        }
                    };
                    applier.apply(entry, &mut each).map_err(|fault| fault.to_string())
                })?;
                Ok((!is_given_up).then(|| state_of(local.vhost())))
            }
            Self::Metadata(metadata) => {
                let ServedMetadata { local, skipping, .. } = &mut **metadata;
                let mut is_given_up = true;
                local.apply_entry(entry, |sink| {
                    is_given_up = false;
                    let mut each = |record: Record<'_>, _: &mut References<'_>| {
                        if !skipping.skips() {
                            sink(&record);
                        }
                    };
                    applier.apply(entry, &mut each).map_err(|fault| fault.to_string())
                })?;
                Ok((!is_given_up).then(|| metadata.state()))
            }
        }
    }

    /// Applies an entry before its time, as a sabotage does.
    pub(crate) fn apply_ahead(&mut self, entry: &LogEntry) {
        let records = || entry.records().flatten();
        let _ = match self {
            Self::Vhost(serving) => serving
                .local
                .apply_entry(entry, |sink| {
                    records().for_each(|record| sink(&record, &mut |_| ()));
                    Ok(())
                })
                .map(|_| ()),
            Self::Metadata(metadata) => metadata.local.apply_entry(entry, |sink| {
                records().for_each(|record| sink(&record));
                Ok(())
            }),
        };
    }
}

/// The content of a group, while a node reads its log.
pub(crate) enum Restored {
    Vhost(Box<LogReplay<SimPages>>, SimPages),
    Metadata(Items),
}

impl Restored {
    pub(crate) fn new(content: GroupContent, random: &mut Random) -> Self {
        match content {
            GroupContent::Vhost => {
                let pages = SimPages::new();
                let replay = LogReplay::new(empty_vhost(random), Time::MAX, pages.clone());
                Self::Vhost(Box::new(replay), pages)
            }
            GroupContent::Metadata => Self::Metadata(Items::default()),
        }
    }

    pub(crate) fn apply(
        &mut self,
        record: &Record<'_>,
        references: &mut References<'_>,
    ) -> Result<(), String> {
        match self {
            Self::Vhost(replay, _) => replay.apply(record, &mut |lsn| references.release(lsn)),
            Self::Metadata(items) => items.restore(record),
        }
    }

    /// Notes that everything up to this position is applied.
    pub(crate) fn follow(&mut self, committed: Lsn) -> Result<(), String> {
        match self {
            Self::Vhost(replay, _) => {
                let followed = replay.follow(broker::Lsn(committed.0));
                followed.map_err(|divergence| divergence.to_string())
            }
            Self::Metadata(_) => Ok(()),
        }
    }

    pub(crate) fn state(&self) -> u64 {
        match self {
            Self::Vhost(replay, _) => state_of(replay.vhost()),
            Self::Metadata(items) => metadata_log::state_of(items),
        }
    }

    /// Goes on as the content of a node that follows. Changes of the metadata from before may still wait there.
    pub(crate) fn serve(
        self,
        (committed, is_damaged): (Lsn, bool),
        skipping: Skipping,
        before: Option<Content>,
        plan: &Plan,
        sabotage: Option<Sabotage>,
    ) -> Content {
        match (self, before) {
            (Self::Vhost(replay, pages), _) => {
                let committed = broker::Lsn(committed.0);
                let serving = Serving::new(*replay, pages, committed, skipping, sabotage);
                Content::Vhost(Box::new(serving))
            }
            (Self::Metadata(items), Some(Content::Metadata(mut metadata))) => {
                metadata.reopen((!is_damaged).then_some(items), committed);
                Content::Metadata(metadata)
            }
            (Self::Metadata(items), _) => {
                let max = plan.entry_bytes_max;
                let mut metadata = ServedMetadata::new(skipping, max, sabotage);
                metadata.reopen((!is_damaged).then_some(items), committed);
                Content::Metadata(Box::new(metadata))
            }
        }
    }
}
