//! The registry of vhosts by name: creation, recovery, look-up, removal.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use broker::{Lsn, Vhost, VhostOptions};
use management::{VhostLimit, VhostSettings, maximum};
use parking_lot::{Mutex, RwLock};
use replication::{BeginError, GroupId, Member, MemberId, QuarantineReason};
use storage::{IoCounters, RealDirectory, ReplicatedLog};
use tokio::sync::Semaphore;
use vhost_log::LogQueue;

use super::brain::Brain;
use super::cluster::Cluster;
use super::effects::Outputs;
use super::found_member::{FoundMember, GroupAge, found_member, is_loss, tell_lost};
use super::handle::{State, Threads, VhostHandle};
use super::lock::TimedLock;
use super::pressure::MemoryPressure;
use super::replica::{Presence, Replica};
use super::timer::WakeUp;
use crate::clock::{Clock, VhostClock};
use crate::config::{Config, Durability};
use crate::disk::death_files::DeathFiles;
use crate::disk::log_replay::LogReplay;
use crate::disk::log_writer::LogSource;
use crate::disk::node_file::{FIRST_VHOST_ID, VhostEntry};
use crate::disk::page_files::PageFiles;
use crate::disk::progress::DiskProgress;
use crate::disk::recovery::{self, RestoreError, Restored, RestoredReplica, VhostFiles};
use crate::disk::reserve::Reserve;
use crate::disk::vhost_files::{self, VhostId};
use crate::limits::{LEADER_CHECK_INTERVAL, LEADER_WAIT, PAGE_LOOKS_MAX};
use crate::metadata::placement::Placement;
use crate::replicas::{Deposition, Reopens, ReplicaTarget, ShipmentNeed};

/// All vhosts, by name.
#[derive(Debug)]
pub(crate) struct Vhosts {
    handles: RwLock<BTreeMap<String, Arc<VhostHandle>>>,
    /// Held while a replica is opened anew, or a vhost is removed.
    reopening: Mutex<()>,
    /// True while an alarm is on.
    alarm: Arc<AtomicBool>,
    options: VhostOptions,
    threads: Threads,
    node_name: String,
    data_dir: PathBuf,
    durability: Durability,
    reserve: Arc<Reserve>,
    io: Arc<IoCounters>,
    clock: Clock,
    /// None if the node is alone.
    cluster: Option<Cluster>,
    /// An id that is greater than those of all vhosts so far.
    next_id: AtomicU64,
}

impl Vhosts {
    /// Creates an empty registry. `options` apply to every vhost.
    pub(crate) fn new(
        node_name: &str,
        config: &Config,
        options: VhostOptions,
        reserve: &Arc<Reserve>,
        threads: Threads,
        clock: Clock,
        cluster: Option<Cluster>,
    ) -> Self {
        Self {
            handles: RwLock::default(),
            reopening: Mutex::default(),
            alarm: Arc::default(),
            options,
            threads,
            node_name: node_name.to_owned(),
            data_dir: config.data_dir.clone(),
            durability: config.durability,
            reserve: Arc::clone(reserve),
            io: Arc::default(),
            clock,
            cluster,
            next_id: AtomicU64::new(FIRST_VHOST_ID),
        }
    }

    /// Operations on the files of all vhosts, and of the metadata.
    pub(crate) fn io(&self) -> &Arc<IoCounters> {
        &self.io
    }

    /// The options of every vhost.
    pub(crate) fn options(&self) -> VhostOptions {
        self.options
    }

    /// The vhost with this name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<VhostHandle>> {
        self.handles.read().get(name).cloned()
    }

    /// Waits until this node serves the vhost or knows the node that does, but no longer than [`LEADER_WAIT`].
    pub(crate) async fn leader_settled(&self, name: &str) {
        let wait = async {
            // The handle is another one after this node has lost the lead.
            while let Some(handle) = self.get(name) {
                let changed = handle.disk.changed();
                handle.long_hold_ended().await;
                if handle.has_settled() {
                    return;
                }
                let _ = tokio::time::timeout(LEADER_CHECK_INTERVAL, changed).await;
            }
        };
        // Whoever asks sees what there is after the time.
        let _ = tokio::time::timeout(LEADER_WAIT, wait).await;
    }

    /// True if this node serves the vhost or knows the node that does, or if there is no such vhost.
    pub(crate) fn has_leader_settled(&self, name: &str) -> bool {
        self.get(name).is_none_or(|handle| handle.has_settled())
    }

    /// Name of the other node that leads the vhost, as far as known; none if this node serves it.
    pub(crate) fn leader_elsewhere(&self, name: &str) -> Option<Arc<str>> {
        let leader = self.get(name)?.not_leading().leader?;
        (*leader != *self.node_name).then_some(leader)
    }

    /// All vhosts, by name.
    pub(crate) fn all(&self) -> Vec<Arc<VhostHandle>> {
        self.handles.read().values().cloned().collect()
    }

    /// The next id, and the entries of all vhosts in `node.json`.
    pub(crate) fn entries(&self) -> (u64, Vec<VhostEntry>) {
        let entries = self.handles.read().values().map(|handle| handle.entry()).collect();
        (self.next_id.load(Ordering::Acquire), entries)
    }

    /// Creates a vhost, which cannot be found before it is inserted.
    ///
    /// # Errors
    /// If the operating system provides no randomness for its seed, or the disk refuses.
    pub(crate) fn make(
        &self,
        name: &str,
        settings: Arc<VhostSettings>,
    ) -> Result<Arc<VhostHandle>, VhostError> {
        // An existing directory belonged to a vhost that was being created when the broker ended.
        let id = loop {
            let id = VhostId(self.next_id.fetch_add(1, Ordering::AcqRel));
            if !vhost_files::vhost_path(&self.data_dir, id).exists() {
                break id;
            }
        };
        self.begin(
            VhostEntry { name: name.to_owned(), id, settings, voters: Vec::new(), placement: None },
            GroupAge::New,
        )
    }

    /// Makes a vhost that was begun available by its name, and returns another one that had the name until now: there is
    /// no moment without a vhost of this name.
    pub(crate) fn replace(&self, handle: &Arc<VhostHandle>) -> Option<Arc<VhostHandle>> {
        let _not_reopened_meanwhile = self.reopening.lock();
        self.insert(handle)
    }

    fn insert(&self, handle: &Arc<VhostHandle>) -> Option<Arc<VhostHandle>> {
        let before = self.handles.write().insert(handle.name.to_string(), Arc::clone(handle));
        // The vhost has missed earlier changes of the alarm.
        handle.alarm_changed();
        if let Some(replica) = &handle.replica {
            // Not earlier: what is rebuilt is opened by the name of the vhost.
            match replica.presence {
                Presence::Lost => {
                    replica.replicator.want(handle.id, ShipmentNeed::Replacement, None);
                }
                Presence::Here | Presence::Elsewhere => {}
            }
        }
        before
    }

    /// Removes a vhost, so that it cannot be found and is not opened anew any more.
    pub(crate) fn remove(&self, name: &str) -> Option<Arc<VhostHandle>> {
        let _not_reopened_meanwhile = self.reopening.lock();
        self.handles.write().remove(name)
    }

    /// Recovers a vhost from its log. Call [`VhostHandle::catch_up`] before clients connect, because work has
    /// become due meanwhile.
    ///
    /// # Errors
    /// If the operating system provides no randomness for its seed, or the disk refuses.
    pub(crate) fn open(&self, entry: VhostEntry) -> Result<Arc<VhostHandle>, VhostError> {
        let handle = self.begin(entry, GroupAge::Old)?;
        self.insert(&handle);
        Ok(handle)
    }

    /// Reserves all ids below `next_id`.
    pub(crate) fn reserve_ids(&self, next_id: u64) {
        self.next_id.fetch_max(next_id, Ordering::AcqRel);
    }

    /// Opens a vhost, which cannot be found before it is inserted. The log of a new one is created. The age counts in a
    /// cluster: without one a vhost is new, or has a log.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn begin(
        &self,
        entry: VhostEntry,
        age: GroupAge,
    ) -> Result<Arc<VhostHandle>, VhostError> {
        match &self.cluster {
            None => self.begin_alone(entry, age == GroupAge::New),
            Some(cluster) => self.begin_replica(cluster, entry, age),
        }
    }

    /// An empty vhost with its options.
    fn empty_vhost(&self, entry: &VhostEntry) -> Result<Vhost, VhostError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)?;
        let options = VhostOptions {
            default_queue_type: entry.settings.default_queue_type,
            queues_max: maximum(&entry.settings.limits, VhostLimit::MaxQueues),
            delivers_after_commit: self.cluster.is_some(),
            ..self.options
        };
        let mut vhost = Vhost::new(&entry.name, seed, options);
        vhost.set_node_name(&self.node_name);
        Ok(vhost)
    }

    /// Recovers a vhost that only this node has.
    fn begin_alone(&self, entry: VhostEntry, is_new: bool) -> Result<Arc<VhostHandle>, VhostError> {
        let vhost = self.empty_vhost(&entry)?;
        let path = vhost_files::vhost_path(&self.data_dir, entry.id);
        let files = self.files(&entry, &path, is_new);
        let Restored { log, mut vhost, page_files, problems } =
            recovery::restore(&files, vhost, self.clock.now())?;
        vhost.set_tracing(entry.settings.tracing);
        vhost.set_alarm(self.clock.now(), self.alarm.load(Ordering::SeqCst));
        let durable = Lsn(log.last().0);
        let (mut death_files, deaths) = DeathFiles::open(&path, self.options.dead_letter_history);
        death_files.restored(vhost.restore_deaths(self.clock.now(), deaths));
        let brain = Brain::Leads(Box::new(vhost));
        let parts = Parts { brain, durable, page_files, problems, death_files, replica: None };
        let handle = self.handle(entry, parts);
        self.threads.persister.add(Arc::clone(&handle) as Arc<dyn LogSource>, log);
        Ok(handle)
    }

    /// Recovers the replica of a vhost and lets it take part in its group.
    fn begin_replica(
        &self,
        cluster: &Cluster,
        entry: VhostEntry,
        age: GroupAge,
    ) -> Result<Arc<VhostHandle>, VhostError> {
        let path = vhost_files::vhost_path(&self.data_dir, entry.id);
        let unusable = |error| RestoreError::Directory { path: path.clone(), error };
        let (found, is_new) = self.find_member(cluster, &entry, age).map_err(unusable)?;
        let files = self.files(&entry, &path, is_new);
        let vhost = self.empty_vhost(&entry)?;
        let opened = match found {
            Some(FoundMember::Member(me)) => {
                self.open_member(cluster, &entry, &files, me, vhost)?
            }
            Some(FoundMember::Lost(why)) => OpenedMember::lost(cluster, &entry, &why, vhost),
            None => OpenedMember::elsewhere(cluster, &entry, vhost),
        };
        let (member, presence, follower, page_files, problems) = match opened {
            OpenedMember::Member { member, replica, page_files, problems } => {
                (Some(*member), Presence::Here, replica, page_files, problems)
            }
            OpenedMember::Without { presence, vhost } => {
                std::fs::create_dir_all(&path).map_err(unusable)?;
                let (replica, page_files) =
                    recovery::empty_replica(&files, vhost, self.clock.now())?;
                (None, presence, replica, page_files, 0)
            }
        };
        let last = member.as_ref().map(|member| member.log().applier().applied_position());
        let durable = Lsn(last.map_or(0, |last| last.0));
        let (death_files, deaths) = DeathFiles::open(&path, self.options.dead_letter_history);
        let replica = Some(Replica::new(Arc::clone(&cluster.replicator), presence, deaths));
        let parts = Parts {
            brain: Brain::Follows(Box::new(follower)),
            durable,
            page_files,
            problems,
            death_files,
            replica,
        };
        let handle = self.handle(entry, parts);
        let target = Arc::clone(&handle) as Arc<dyn ReplicaTarget>;
        match member {
            Some(member) => cluster.replicator.add(target, member),
            None => cluster.replicator.add_without_member(target),
        }
        Ok(handle)
    }

    /// The member of a vhost on this node, or none if other nodes have the vhost. True if its group begins.
    fn find_member(
        &self,
        cluster: &Cluster,
        entry: &VhostEntry,
        age: GroupAge,
    ) -> std::io::Result<(Option<FoundMember>, bool)> {
        let first = cluster.replicator.nodes().my_first_member();
        let Some(placed) = cluster.first_member(entry.placement.as_deref()) else {
            if !vhost_files::has_log(&self.data_dir, entry.id) {
                return Ok((None, false));
            }
            // Its group may not have removed it yet.
            let found = found_member(&self.data_dir, entry.id, first, GroupAge::Old)?;
            return Ok((Some(found).filter(|found| !found.is_lost()), false));
        };
        // Only those begin a group that it begins with, and one that was without the group is not what it was.
        let begins = cluster.begins_with(&entry.voters, placed);
        let is_later = age == GroupAge::New && !begins || placed != first;
        let age = if is_later { GroupAge::OnLostDisk } else { age };
        let found = found_member(&self.data_dir, entry.id, placed, age)?;
        Ok((Some(found), age == GroupAge::New))
    }

    /// Opens the log of a replica and begins its member.
    fn open_member(
        &self,
        cluster: &Cluster,
        entry: &VhostEntry,
        files: &VhostFiles<'_>,
        me: MemberId,
        vhost: Vhost,
    ) -> Result<OpenedMember, VhostError> {
        let identity = cluster.identity(me, &entry.voters);
        let restored = recovery::restore_replica(files, identity, vhost, self.clock.now());
        let RestoredReplica { log, replica, page_files, fault, problems } = match restored {
            Ok(restored) => restored,
            Err(RestoreError::Log { error, .. }) if is_loss(&error) => {
                let vhost = self.empty_vhost(entry)?;
                return Ok(OpenedMember::lost(cluster, entry, &error.to_string(), vhost));
            }
            Err(error) => return Err(error.into()),
        };
        let config = cluster.member_config(GroupId(entry.id.0), me)?;
        let mut member = match Member::open(config, log) {
            Ok(member) => member,
            Err(BeginError::Contradiction(why)) => {
                let vhost = self.empty_vhost(entry)?;
                return Ok(OpenedMember::lost(cluster, entry, &why, vhost));
            }
            Err(error) => {
                return Err(VhostError::Member { vhost: entry.name.clone(), error });
            }
        };
        if let Some(fault) = fault {
            member.quarantine(QuarantineReason::Damaged(fault));
        }
        Ok(OpenedMember::Member { member: Box::new(member), replica, page_files, problems })
    }

    /// The files of a vhost at `path`.
    fn files<'a>(&'a self, entry: &VhostEntry, path: &'a Path, is_new: bool) -> VhostFiles<'a> {
        VhostFiles {
            id: entry.id,
            path,
            is_new,
            durability: self.durability,
            reserve: &self.reserve,
            io: &self.io,
        }
    }

    /// A handle that the timer and the pager know.
    fn handle(&self, entry: VhostEntry, parts: Parts) -> Arc<VhostHandle> {
        let VhostEntry { name, id, settings, voters, placement } = entry;
        let Parts { brain, durable, page_files, problems, death_files, replica } = parts;
        let log = if replica.is_some() { LogQueue::on_axis() } else { LogQueue::default() };
        let outputs = Outputs { log, ..Outputs::default() };
        let state = State { brain, outputs, shutdown: None, settings };
        let handle = Arc::new(VhostHandle {
            id,
            voters,
            placement: RwLock::new(placement),
            name: name.into(),
            state: TimedLock::new(state),
            wake_up: WakeUp::new(id, self.clock),
            threads: self.threads.clone(),
            disk: DiskProgress::new(durable),
            page_files,
            log_problems: problems,
            death_files: Mutex::new(death_files),
            browse_permits: Semaphore::new(PAGE_LOOKS_MAX),
            pressure: MemoryPressure::new(Arc::clone(&self.alarm)),
            clock: VhostClock::new(self.clock),
            replica,
        });
        // The threads must know the vhost before any event in it.
        let Threads { timer, pager, .. } = &self.threads;
        let (target, source) = (Arc::downgrade(&handle), Arc::downgrade(&handle));
        timer.add(id, target);
        pager.add(id, source);
        handle
    }

    /// Sets or clears the alarm of all vhosts. During an alarm no vhost makes dead letters.
    pub(crate) fn set_alarm(&self, has_alarm: bool) {
        self.alarm.store(has_alarm, Ordering::SeqCst);
        self.all().iter().for_each(|handle| handle.alarm_changed());
    }
}

/// The member of a vhost on this node, if it can take part.
#[expect(clippy::large_enum_variant, reason = "one is made when a vhost is opened")]
enum OpenedMember {
    Member {
        member: Box<Member<ReplicatedLog<RealDirectory>>>,
        replica: LogReplay,
        page_files: Arc<PageFiles>,
        problems: u64,
    },
    Without {
        presence: Presence,
        /// An empty vhost.
        vhost: Vhost,
    },
}

impl OpenedMember {
    /// No member, because the replica must be rebuilt, unless other nodes have the vhost by now.
    fn lost(cluster: &Cluster, entry: &VhostEntry, why: &str, vhost: Vhost) -> Self {
        if cluster.first_member(entry.placement.as_deref()).is_none() {
            tracing::warn!(
                vhost = entry.name,
                "a replica that is not needed any more is lost: {why}"
            );
            return Self::elsewhere(cluster, entry, vhost);
        }
        tell_lost(&entry.name, why);
        cluster.replicator.statuses().note_lost(entry.id, &entry.name);
        Self::Without { presence: Presence::Lost, vhost }
    }

    /// No member, because other nodes have the vhost.
    fn elsewhere(cluster: &Cluster, entry: &VhostEntry, vhost: Vhost) -> Self {
        cluster.replicator.statuses().forget(entry.id);
        Self::Without { presence: Presence::Elsewhere, vhost }
    }
}

/// The parts of a handle that depend on the role of the node.
struct Parts {
    brain: Brain,
    durable: Lsn,
    page_files: Arc<PageFiles>,
    problems: u64,
    death_files: DeathFiles,
    replica: Option<Replica>,
}

impl Vhosts {
    /// Names of the vhosts that other nodes have, and this one not.
    pub(crate) fn elsewhere(&self) -> Vec<String> {
        let all = self.all().into_iter().filter(|handle| handle.is_elsewhere());
        all.map(|handle| handle.name().to_owned()).collect()
    }

    /// The vhost of this id, which may be deleted.
    pub(crate) fn of_id(&self, id: VhostId) -> Option<Arc<VhostHandle>> {
        self.all().into_iter().find(|handle| handle.id == id)
    }

    /// Lets the placement of a vhost take effect. A replica that is to come is asked for, one that is lost is not any more;
    /// one that is to go goes when its group has removed it.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn set_placement(
        &self,
        handle: &Arc<VhostHandle>,
        placement: Option<Arc<Placement>>,
    ) -> Result<(), VhostError> {
        if *handle.placement.read() == placement {
            return Ok(());
        }
        *handle.placement.write() = placement;
        let presence = handle.replica.as_ref().map(|replica| replica.presence);
        let is_placed = handle.is_placed_here();
        let is_other = match presence {
            Some(Presence::Elsewhere) => is_placed,
            Some(Presence::Lost) => !is_placed,
            // Its group removes it.
            Some(Presence::Here) | None => false,
        };
        if is_other {
            let _not_opened_meanwhile = self.reopening.lock();
            handle.depose(Deposition::LeaderChanged);
            self.open(handle.entry())?;
        }
        Ok(())
    }
}

impl Reopens for Vhosts {
    fn reopen(&self, vhost: VhostId) -> Result<(), String> {
        let _not_removed_meanwhile = self.reopening.lock();
        let Some(handle) = self.of_id(vhost) else { return Ok(()) };
        self.open(handle.entry()).map(drop).map_err(|error| error.to_string())
    }

    fn leave(&self, vhost: VhostId) -> Result<(), String> {
        let _not_removed_meanwhile = self.reopening.lock();
        let Some(handle) = self.of_id(vhost) else { return Ok(()) };
        handle.depose(Deposition::LeaderChanged);
        handle.stop_writing_deaths();
        vhost_files::remove_vhost(&self.data_dir, vhost).map_err(|error| error.to_string())?;
        tracing::info!(vhost = handle.name(), "this node has no replica of the vhost any more");
        self.open(handle.entry()).map(drop).map_err(|error| error.to_string())
    }
}

/// Reason why a vhost cannot be created or recovered.
#[derive(thiserror::Error, Debug)]
pub(crate) enum VhostError {
    #[error("vhost '{vhost}': {error}")]
    Member { vhost: String, error: BeginError },
    #[error("the system has no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
    #[error(transparent)]
    Restore(#[from] RestoreError),
}
