//! The metadata of a cluster on this node: a member of its group, as the replicator drives it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex, MutexGuard};
use replica::metadata::{ItemChange, ItemKey, Items, MetadataRecord};
use serde_json::Value;
use storage::{
    Applier, EntryContent, FORMAT_VERSION_OLDEST, Flags, IoCounters, LogEntry, Lsn, NewRecord,
    RealDirectory, WriteBatch, WriteQueue, Written,
};

use super::opening::{LogPlace, MetadataOpenError, Opened, OpenedLog};
use super::placement::Placement;
use crate::config::Durability;
use crate::disk::log_writer::LogSource;
use crate::disk::progress::DiskProgress;
use crate::disk::reserve::Reserve;
use crate::disk::vhost_files::{self, VhostId};
use crate::limits::{METADATA_ENTRY_BYTES_MAX, METADATA_WAIT};
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

/// The part of this node in the group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Follows,
    Leads,
    /// Another node is to lead: no changes are made meanwhile.
    HandsOver,
    /// The node led, and the log is opened anew.
    Deposed,
}

#[derive(Debug)]
struct State {
    role: Role,
    /// The items with everything that was applied or proposed.
    items: Items,
    queue: WriteQueue,
    /// True if the replicator knows of records that wait.
    replicator_knows: bool,
    /// The last position that was given.
    last: Lsn,
    /// The last position that a majority has.
    durable: Lsn,
    leader: Option<Arc<str>>,
    /// Number of changes of the state.
    version: u64,
    /// Number of leads that this node has lost.
    lost_leads: u64,
    /// True if somebody has asked the thread that follows to look again.
    is_look_due: bool,
    is_stopping: bool,
}

impl State {
    fn new(items: Items, last: Lsn) -> Self {
        Self {
            role: Role::Follows,
            items,
            queue: WriteQueue::default(),
            replicator_knows: false,
            last,
            durable: last,
            leader: None,
            version: 1,
            lost_leads: 0,
            is_look_due: false,
            is_stopping: false,
        }
    }

    /// Appends the record of a change, in one entry with the record before if `is_joined`.
    fn push(&mut self, record: &MetadataRecord, target: Lsn, is_joined: bool) -> Lsn {
        let lsn = Lsn(self.last.0 + 1);
        let releases = target != Lsn(0);
        let new = NewRecord {
            lsn,
            target,
            kind: record.kind(),
            flags: if releases { Flags::RELEASES } else { Flags::NONE },
            references: record.references(),
            format_version: FORMAT_VERSION_OLDEST,
            is_joined,
        };
        self.queue.push(new, |out| record.encode(out));
        self.last = lsn;
        lsn
    }

    /// Appends a change of an item, and makes it.
    fn push_change(&mut self, change: ItemChange, is_joined: bool) {
        let target = self.items.lsn(&change.key);
        let record = MetadataRecord::Change(change.clone());
        let lsn = self.push(&record, target, is_joined);
        self.items.change(lsn, change);
    }

    /// Appends a digest of all items, in an entry of its own.
    fn push_digest(&mut self) {
        let digest = MetadataRecord::Digest(self.items.digest());
        self.push(&digest, Lsn(0), false);
        self.queue.end_batch();
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
            state: Mutex::new(State::new(Items::default(), Lsn(0))),
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
        self.update(|state| {
            let (version, lost_leads) = (state.version, state.lost_leads);
            let is_stopping = state.is_stopping;
            // The next frame of the leader may be a while away, and nobody has told that it leads no more.
            let leader = state.leader.take().filter(|leader| *leader != my_name);
            *state = State { version, lost_leads, is_stopping, leader, ..State::new(items, last) };
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
        self.state.lock().role == Role::Leads
    }

    /// Makes changes, and waits until a majority has them. Nothing is written for changes that change nothing.
    ///
    /// # Errors
    /// [`MetadataError`]. Only with [`MetadataError::NotLeading`] and [`MetadataError::NoLeader`] is it certain that
    /// nothing is changed.
    pub(crate) fn change(&self, changes: Vec<ItemChange>) -> Result<(), MetadataError> {
        let mut state = self.state.lock();
        if state.role != Role::Leads {
            let leader = state.leader.clone().filter(|_| state.role == Role::Follows);
            return Err(leader
                .map_or(MetadataError::NoLeader, |leader| MetadataError::NotLeading { leader }));
        }
        // The items of a change that was not confirmed in time may still be taken back.
        self.wait_until_durable(&mut state)?;
        let mut entry_begins_at = None;
        for change in changes {
            if !state.items.is_news(&change) {
                continue;
            }
            let bytes = state.queue.bytes();
            let is_joined =
                entry_begins_at.is_some_and(|begin| bytes - begin < METADATA_ENTRY_BYTES_MAX);
            if !is_joined {
                state.queue.end_batch();
                entry_begins_at = Some(bytes);
            }
            state.push_change(change, is_joined);
        }
        self.wake_replicator(&mut state);
        self.wait_until_durable(&mut state)
    }

    fn wait_until_durable(&self, state: &mut MutexGuard<'_, State>) -> Result<(), MetadataError> {
        let (deadline, lost_leads) = (Instant::now() + METADATA_WAIT, state.lost_leads);
        while state.durable < state.last {
            let is_late = self.changed.wait_until(state, deadline).timed_out();
            if state.lost_leads != lost_leads {
                return Err(MetadataError::Deposed);
            }
            if is_late || state.is_stopping {
                return Err(MetadataError::Unconfirmed);
            }
        }
        Ok(())
    }

    /// The committed items; none while changes wait for a majority.
    pub(crate) fn committed(&self) -> Option<CommittedItems> {
        let state = self.state.lock();
        let is_settled = state.role != Role::Deposed && state.durable >= state.last;
        is_settled.then(|| CommittedItems {
            version: state.version,
            values: state.items.values(),
            last: state.last,
            is_leading: state.role == Role::Leads,
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

    fn update(&self, update: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        update(&mut state);
        state.version += 1;
        self.changed.notify_all();
    }

    fn wake_replicator(&self, state: &mut State) {
        if !state.queue.is_empty() && !std::mem::replace(&mut state.replicator_knows, true) {
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
        let mut state = self.state.lock();
        let has_more = state.queue.take_batch(batch);
        state.replicator_knows = has_more;
        Some(has_more)
    }

    fn batch_durable(&self, written: Written) -> bool {
        self.update(|state| state.durable = state.durable.max(written.durable));
        true
    }
}

impl ReplicaTarget for Metadata {
    fn placement(&self) -> Option<Arc<Placement>> {
        None
    }

    fn apply(&self, entry: &LogEntry, applier: &Applier<RealDirectory>) -> Result<(), String> {
        let mut result = Ok(());
        self.update(|state| {
            assert!(state.role == Role::Follows, "a leader gets entries of another leader");
            let mut problem = None;
            let applied = applier.apply(entry, &mut |record, _| {
                if problem.is_none() {
                    let failed = state.items.apply(&record).err();
                    problem = failed.map(|why| format!("record {}: {why}", record.lsn));
                }
            });
            result = match problem {
                Some(problem) => Err(problem),
                None => applied.map_err(|fault| fault.to_string()),
            };
            if let EntryContent::Records(records) = &entry.content {
                (state.last, state.durable) = (records.last, records.last);
            }
        });
        result
    }

    fn promote(&self, _: i64, last: Lsn) -> Result<(), String> {
        self.update(|state| {
            state.role = Role::Leads;
            (state.last, state.durable) = (last, last);
            state.push_digest();
            self.wake_replicator(state);
        });
        Ok(())
    }

    fn log_digest(&self) {
        let mut state = self.state.lock();
        if state.role == Role::Leads && state.durable >= state.last {
            state.push_digest();
            self.wake_replicator(&mut state);
        }
    }

    fn hand_over(&self, task: HandOverTask) -> bool {
        self.update(|state| match (task, state.role) {
            (HandOverTask::Halt, Role::Leads) => state.role = Role::HandsOver,
            (HandOverTask::Resume, Role::HandsOver) => state.role = Role::Leads,
            (HandOverTask::Halt | HandOverTask::KeepLeading | HandOverTask::Resume, _) => {}
        });
        true
    }

    fn leader(&self) -> Option<Arc<str>> {
        Self::leader(self)
    }

    fn set_leader(&self, leader: Option<Arc<str>>) {
        self.update(|state| state.leader = leader);
    }

    fn depose(&self, _: Deposition) {
        self.update(|state| {
            state.role = Role::Deposed;
            state.queue.clear();
            state.lost_leads += 1;
        });
    }
}
