//! The metadata of a cluster on this node: a member of its group, as the replicator drives it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use replica::metadata::{ChangeProgress, ChangeRefused, ItemChange, ItemKey, Items, LocalMetadata};
use serde_json::Value;
use storage::{Applier, IoCounters, LogEntry, Lsn, RealDirectory, WriteBatch, Written};

use super::opening::{LogPlace, MetadataOpenError, Opened, OpenedLog};
use crate::config::Durability;
use crate::disk::log::log_writer::LogSource;
use crate::disk::progress::DiskProgress;
use crate::disk::reserve::Reserve;
use crate::disk::vhost_files::{self, VhostId};
use crate::limits::{METADATA_ENTRY_BYTES_MAX, METADATA_WAIT};
use crate::membership::placement::Placement;
use crate::replicas::{Deposition, HandOverTask, ReplicaTarget, ShipmentNeed};
use crate::vhost::{Cluster, GroupAge, tell_lost};

/// The reason why a change of the metadata is not made, or not known to be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum MetadataError {
    #[error("users, vhosts and parameters are changed on node '{leader}', which leads them")]
    NotLeading { leader: Arc<str> },
    #[error(
        "users, vhosts and parameters cannot be changed now: no node leads them, because fewer than a majority of the \
         nodes are up and connected"
    )]
    NoLeader,
    #[error(
        "the change is not confirmed by a majority of the nodes within {} s; it may still be made",
        METADATA_WAIT.as_secs()
    )]
    Unconfirmed,
    #[error("the node lost the lead before a majority confirmed the change; it may still be made")]
    Deposed,
}

/// The committed items.
#[derive(Clone, Debug)]
pub(crate) struct CommittedItems {
    /// A number that is another one once the items may be others.
    pub(crate) version: u64,
    pub(crate) values: BTreeMap<ItemKey, Arc<Value>>,
    /// Position of the last record.
    pub(crate) last: Lsn,
    /// True if this node leads.
    pub(crate) is_leading: bool,
}

/// The metadata on this node.
#[derive(Debug)]
pub(crate) struct Metadata {
    cluster: Cluster,
    place: LogPlace,
    progress: DiskProgress,
    state: Mutex<State>,
    /// Notified whenever the state changes.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    local: LocalMetadata,
    leader: Option<Arc<str>>,
    /// Number of changes of the state.
    version: u64,
    /// True if somebody has asked the thread that follows to look again.
    is_look_due: bool,
    is_stopping: bool,
}

impl State {
    /// The error of a change that is refused.
    fn refusal(&self, why: ChangeRefused) -> MetadataError {
        match (why, self.leader.clone()) {
            (ChangeRefused::Follows, Some(leader)) => MetadataError::NotLeading { leader },
            (ChangeRefused::Follows | ChangeRefused::LeadEnds, _) => MetadataError::NoLeader,
        }
    }
}

impl Metadata {
    /// Opens the log in a data directory and takes part in the group.
    ///
    /// # Errors
    /// [`MetadataOpenError`], a sentence for the operator.
    pub(crate) fn open(
        data_dir: &Path,
        durability: Durability,
        reserve: &Arc<Reserve>,
        io: &Arc<IoCounters>,
        cluster: Cluster,
        age: GroupAge,
    ) -> Result<Arc<Self>, MetadataOpenError> {
        let place = LogPlace {
            data_dir: data_dir.to_owned(),
            age,
            path: vhost_files::metadata_path(data_dir),
            durability,
            reserve: Arc::clone(reserve),
            io: Arc::clone(io),
        };
        let metadata = Arc::new(Self {
            cluster,
            place,
            progress: DiskProgress::new(broker::Lsn(0)),
            state: Mutex::new(State {
                local: LocalMetadata::new(Items::default(), Lsn(0), METADATA_ENTRY_BYTES_MAX),
                leader: None,
                version: 1,
                is_look_due: false,
                is_stopping: false,
            }),
            changed: Condvar::new(),
        });
        metadata.place.resume()?;
        metadata.reopen()?;
        Ok(metadata)
    }

    /// Opens the log, at the start and again after the lead was lost.
    ///
    /// # Errors
    /// [`MetadataOpenError`], a sentence for the operator.
    pub(crate) fn reopen(self: &Arc<Self>) -> Result<(), MetadataOpenError> {
        let replicator = &self.cluster.replicator;
        let Opened { member, items, last } = match self.place.open(&self.cluster)? {
            OpenedLog::Member(opened) => *opened,
            OpenedLog::Lost(why) => {
                tell_lost(self.name(), &why);
                replicator.statuses().note_lost(VhostId::METADATA, self.name());
                replicator.want(VhostId::METADATA, ShipmentNeed::Replacement, None);
                return Ok(());
            }
        };
        let my_name = Arc::clone(&replicator.nodes().my_name);
        // Before the replicator has the member, whose entries change these items.
        self.update(|state| {
            state.local.reopen(items, last);
            // The next frame of the leader may be a while away, and nobody has told that it leads no more.
            state.leader = state.leader.take().filter(|leader| *leader != my_name);
        });
        replicator.add(Arc::clone(self) as Arc<dyn ReplicaTarget>, member);
        Ok(())
    }

    /// Name of the node that leads, if this node knows one.
    pub(crate) fn leader(&self) -> Option<Arc<str>> {
        self.state.lock().leader.clone()
    }

    /// True if this node makes the changes.
    pub(crate) fn is_leading(&self) -> bool {
        self.state.lock().local.is_leading()
    }

    /// Makes changes, and waits until a majority has them. Nothing is written for changes that change nothing.
    ///
    /// # Errors
    /// [`MetadataError`]. Only with [`MetadataError::NotLeading`] and [`MetadataError::NoLeader`] is it certain that
    /// nothing is changed.
    pub(crate) fn change(&self, changes: Vec<ItemChange>) -> Result<(), MetadataError> {
        let mut state = self.state.lock();
        let mut change = state.local.ask(changes).map_err(|why| state.refusal(why))?;
        let mut deadline = Instant::now() + METADATA_WAIT;
        let mut has_waited_long = false;
        loop {
            let was_proposed = change.is_proposed();
            match state.local.advance(&mut change) {
                ChangeProgress::Made => return Ok(()),
                ChangeProgress::Refused(why) => return Err(state.refusal(why)),
                ChangeProgress::Deposed => return Err(MetadataError::Deposed),
                ChangeProgress::Waits => {}
            }
            if change.is_proposed() != was_proposed {
                self.wake_replicator(&mut state);
                (deadline, has_waited_long) = (Instant::now() + METADATA_WAIT, false);
            }
            if has_waited_long {
                return Err(MetadataError::Unconfirmed);
            }
            let is_late = self.changed.wait_until(&mut state, deadline).timed_out();
            has_waited_long = is_late || state.is_stopping;
        }
    }

    /// The committed items; none while changes wait for a majority.
    pub(crate) fn committed(&self) -> Option<CommittedItems> {
        let state = self.state.lock();
        state.local.committed().map(|items| CommittedItems {
            version: state.version,
            values: items.values(),
            last: state.local.last(),
            is_leading: state.local.is_leading(),
        })
    }

    /// The number of the present items, which is another one once they may be others.
    pub(crate) fn version(&self) -> u64 {
        self.state.lock().version
    }

    /// Waits until the items may be others than those of this version, or a look is due. False once the node stops.
    pub(crate) fn wait_for_change(&self, version: u64) -> bool {
        let mut state = self.state.lock();
        while state.version == version && !state.is_look_due && !state.is_stopping {
            self.changed.wait(&mut state);
        }
        state.is_look_due = false;
        !state.is_stopping
    }

    /// Ends a wait for changes, because something beside the items has changed.
    pub(crate) fn look_again(&self) {
        self.state.lock().is_look_due = true;
        self.changed.notify_all();
    }

    /// Ends all waits for changes.
    pub(crate) fn stop(&self) {
        self.update(|state| state.is_stopping = true);
    }

    fn update<T>(&self, update: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let result = update(&mut state);
        state.version += 1;
        self.changed.notify_all();
        result
    }

    fn wake_replicator(&self, state: &mut State) {
        if state.local.wakes_writer() {
            self.cluster.replicator.wake(self.id());
        }
    }
}

impl LogSource for Metadata {
    fn id(&self) -> VhostId {
        VhostId::METADATA
    }

    fn name(&self) -> &str {
        "metadata"
    }

    fn progress(&self) -> &DiskProgress {
        &self.progress
    }

    fn take_batch(&self, batch: &mut WriteBatch) -> Option<bool> {
        Some(self.state.lock().local.take_batch(batch))
    }

    fn batch_durable(&self, written: Written) -> bool {
        self.update(|state| state.local.batch_durable(written));
        true
    }
}

impl ReplicaTarget for Metadata {
    fn placement(&self) -> Option<Arc<Placement>> {
        None
    }

    fn apply(&self, entry: &LogEntry, applier: &Applier<RealDirectory>) -> Result<(), String> {
        self.update(|state| {
            state.local.apply_entry(entry, |sink| {
                let applied = applier.apply(entry, &mut |record, _| sink(&record));
                applied.map_err(|fault| fault.to_string())
            })
        })
    }

    fn promote(&self, _: i64, last: Lsn) -> Result<(), String> {
        self.update(|state| {
            state.local.promote(last);
            self.wake_replicator(state);
        });
        Ok(())
    }

    fn log_digest(&self) {
        let mut state = self.state.lock();
        state.local.log_digest();
        self.wake_replicator(&mut state);
    }

    fn hand_over(&self, task: HandOverTask) -> bool {
        self.update(|state| state.local.hand_over(task));
        true
    }

    fn leader(&self) -> Option<Arc<str>> {
        Self::leader(self)
    }

    fn set_leader(&self, leader: Option<Arc<str>>) {
        self.update(|state| state.leader = leader);
    }

    fn depose(&self, _: Deposition) {
        self.update(|state| state.local.depose());
    }
}
