//! The registry of vhosts by name: creation, look-up, removal.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use broker::VhostOptions;
use parking_lot::RwLock;
use replication::BeginError;
use storage::IoCounters;

use super::cluster::Cluster;
use super::definition::VhostDefinition;
use super::found_member::GroupAge;
use super::handle::{Threads, VhostHandle};
use super::place::Presence;
use crate::clock::Clock;
use crate::config::{Config, Durability};
use crate::disk::json_files::node_file::{FIRST_VHOST_ID, VhostEntry};
use crate::disk::recovery::RestoreError;
use crate::disk::reserve::Reserve;
use crate::disk::vhost_files::{self, VhostId};
use crate::limits::{LEADER_CHECK_INTERVAL, LEADER_WAIT};
use crate::replicas::ShipmentNeed;
use crate::requests::VhostSettings;
use crate::shipments::directories;

/// All vhosts, by name.
#[derive(Debug)]
pub(crate) struct Vhosts {
    handles: RwLock<BTreeMap<String, Arc<VhostHandle>>>,
    /// True while an alarm is on.
    pub(super) alarm: Arc<AtomicBool>,
    pub(super) options: VhostOptions,
    pub(super) threads: Threads,
    pub(super) node_name: String,
    pub(super) data_dir: PathBuf,
    pub(super) durability: Durability,
    pub(super) reserve: Arc<Reserve>,
    pub(super) io: Arc<IoCounters>,
    pub(super) clock: Clock,
    /// None if the node is alone.
    pub(super) cluster: Option<Cluster>,
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
            alarm: Arc::default(),
            options,
            threads,
            node_name: node_name.to_owned(),
            data_dir: config.data_dir.clone(),
            durability: config.storage.durability,
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

    /// Waits until this node serves the vhost or knows the node that does, but no longer than [`LEADER_WAIT`], and not
    /// while this node hears no majority that may elect one: whoever asks can ask another node.
    pub(crate) async fn leader_settled(&self, name: &str) {
        let wait = async {
            // The handle is another one after this node has lost the lead.
            while let Some(handle) = self.get(name) {
                let changed = handle.disk.changed();
                handle.long_hold_ended().await;
                // What was given up is opened anew soon, also where nobody is elected.
                if handle.has_settled() || !handle.may_elect() && !handle.is_deposed() {
                    return;
                }
                let _ = tokio::time::timeout(LEADER_CHECK_INTERVAL, changed).await;
            }
        };
        // Whoever asks sees what there is after the time.
        let _ = tokio::time::timeout(LEADER_WAIT, wait).await;
    }

    /// True if this node serves the vhost or knows the node that does, or nobody will soon, or if there is no such vhost.
    pub(crate) fn has_leader_settled(&self, name: &str) -> bool {
        self.get(name).is_none_or(|handle| handle.has_settled() || !handle.may_elect())
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
        let name = name.to_owned();
        let entry = VhostEntry { name, id, settings, voters: Vec::new(), placement: None };
        self.begin(VhostDefinition::new(entry), GroupAge::New)
    }

    /// Makes a vhost that was begun available by its name, and returns another one that had the name until now: there is
    /// no moment without a vhost of this name.
    pub(crate) fn replace(&self, handle: &Arc<VhostHandle>) -> Option<Arc<VhostHandle>> {
        let before = self.get(handle.name());
        let _not_reopened_meanwhile = before.as_ref().map(|it| it.definition.opening());
        self.insert(handle)
    }

    pub(super) fn insert(&self, handle: &Arc<VhostHandle>) -> Option<Arc<VhostHandle>> {
        let before = self.handles.write().insert(handle.name.to_string(), Arc::clone(handle));
        // The vhost has missed earlier changes of the alarm.
        handle.alarm_changed();
        if let Some(place) = &handle.place {
            // Not earlier: what is rebuilt is opened by the name of the vhost.
            match place.presence {
                Presence::Lost => {
                    place.replicator.want(handle.id, ShipmentNeed::Replacement, None);
                }
                Presence::Here | Presence::Elsewhere => {}
            }
        }
        before
    }

    /// Removes a vhost, so that it cannot be found and is not opened anew any more.
    pub(crate) fn remove(&self, name: &str) -> Option<Arc<VhostHandle>> {
        let known = self.get(name)?;
        // Before the lock of the list: whoever opens a replica inserts it while it holds this one.
        let _not_reopened_meanwhile = known.definition.opening();
        self.handles.write().remove(name)
    }

    /// Recovers a vhost from its log. Call [`VhostHandle::catch_up`] before clients connect, because work has
    /// become due meanwhile.
    ///
    /// # Errors
    /// If the operating system provides no randomness for its seed, or the disk refuses.
    pub(crate) fn open(
        &self,
        definition: Arc<VhostDefinition>,
    ) -> Result<Arc<VhostHandle>, VhostError> {
        let handle = self.begin(definition, GroupAge::Old)?;
        self.insert(&handle);
        Ok(handle)
    }

    /// Replaces the settings of a vhost.
    pub(crate) fn set_settings(&self, handle: &VhostHandle, settings: Arc<VhostSettings>) {
        handle.definition.set_settings(settings);
        // The handle is another one if the replica was opened anew meanwhile.
        if let Some(handle) = self.of_id(handle.id) {
            handle.settings_changed();
        }
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
        definition: Arc<VhostDefinition>,
        age: GroupAge,
    ) -> Result<Arc<VhostHandle>, VhostError> {
        match &self.cluster {
            None => self.begin_alone(definition, age == GroupAge::New),
            Some(cluster) => {
                // The process before may have ended while files of a leader took the place of the replica.
                directories::resume(&self.data_dir, definition.id()).map_err(|error| {
                    let path = vhost_files::vhost_path(&self.data_dir, definition.id());
                    RestoreError::Directory { path, error }
                })?;
                self.begin_replica(cluster, definition, age, None)
            }
        }
    }

    /// Sets or clears the alarm of all vhosts. During an alarm no vhost makes dead letters.
    pub(crate) fn set_alarm(&self, has_alarm: bool) {
        self.alarm.store(has_alarm, Ordering::SeqCst);
        self.all().iter().for_each(|handle| handle.alarm_changed());
    }

    /// Names of the vhosts that other nodes have, and this one not.
    pub(crate) fn elsewhere(&self) -> Vec<String> {
        let all = self.all().into_iter().filter(|handle| handle.is_elsewhere());
        all.map(|handle| handle.name().to_owned()).collect()
    }

    /// The vhost of this id, which may be deleted.
    pub(crate) fn of_id(&self, id: VhostId) -> Option<Arc<VhostHandle>> {
        self.all().into_iter().find(|handle| handle.id == id)
    }
}

/// Reason why a vhost cannot be created or recovered.
#[derive(thiserror::Error, Debug)]
pub(crate) enum VhostError {
    #[error("vhost '{vhost}': {error}")]
    Member { vhost: String, error: BeginError },
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    #[error("the system has no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
    #[error(transparent)]
    Restore(#[from] RestoreError),
}
