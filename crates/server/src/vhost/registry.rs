//! The registry of vhosts by name: creation, recovery, look-up, removal.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use broker::{Lsn, Vhost, VhostOptions};
use management::{VhostLimit, VhostSettings, maximum};
use parking_lot::{Mutex, RwLock};
use storage::IoCounters;
use tokio::sync::Semaphore;

use super::brain::Brain;
use super::effects::Outputs;
use super::handle::{State, Threads, VhostHandle};
use super::lock::TimedLock;
use super::pressure::MemoryPressure;
use super::timer::WakeUp;
use crate::clock::{Clock, VhostClock};
use crate::config::{Config, Durability};
use crate::disk::death_files::DeathFiles;
use crate::disk::log_writer::LogSource;
use crate::disk::node_file::{FIRST_VHOST_ID, VhostEntry};
use crate::disk::progress::DiskProgress;
use crate::disk::recovery::{self, RestoreError, Restored, VhostFiles};
use crate::disk::reserve::Reserve;
use crate::disk::vhost_files::{self, VhostId};
use crate::limits::PAGE_LOOKS_MAX;

/// All vhosts, by name.
#[derive(Debug)]
pub(crate) struct Vhosts {
    handles: RwLock<BTreeMap<String, Arc<VhostHandle>>>,
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
    ) -> Self {
        Self {
            handles: RwLock::default(),
            alarm: Arc::default(),
            options,
            threads,
            node_name: node_name.to_owned(),
            data_dir: config.data_dir.clone(),
            durability: config.durability,
            reserve: Arc::clone(reserve),
            io: Arc::default(),
            clock,
            next_id: AtomicU64::new(FIRST_VHOST_ID),
        }
    }

    /// Operations on the files of all vhosts.
    pub(crate) fn io(&self) -> &IoCounters {
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
        self.begin(VhostEntry { name: name.to_owned(), id, settings }, true)
    }

    /// Makes a vhost available by its name.
    pub(crate) fn insert(&self, handle: &Arc<VhostHandle>) {
        self.handles.write().insert(handle.name.to_string(), Arc::clone(handle));
        // The vhost has missed earlier changes of the alarm.
        handle.alarm_changed();
    }

    /// Removes a vhost, so that it cannot be found any more.
    pub(crate) fn remove(&self, name: &str) -> Option<Arc<VhostHandle>> {
        self.handles.write().remove(name)
    }

    /// Recovers a vhost from its log. Call [`VhostHandle::catch_up`] before clients connect, because work has
    /// become due meanwhile.
    ///
    /// # Errors
    /// If the operating system provides no randomness for its seed, or the disk refuses.
    pub(crate) fn open(&self, entry: VhostEntry) -> Result<Arc<VhostHandle>, VhostError> {
        let handle = self.begin(entry, false)?;
        self.insert(&handle);
        Ok(handle)
    }

    /// Reserves all ids below `next_id`.
    pub(crate) fn reserve_ids(&self, next_id: u64) {
        self.next_id.fetch_max(next_id, Ordering::AcqRel);
    }

    fn begin(&self, entry: VhostEntry, is_new: bool) -> Result<Arc<VhostHandle>, VhostError> {
        let VhostEntry { name, id, settings } = entry;
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)?;
        let options = VhostOptions {
            default_queue_type: settings.default_queue_type,
            queues_max: maximum(&settings.limits, VhostLimit::MaxQueues),
            ..self.options
        };
        let mut vhost = Vhost::new(&name, seed, options);
        vhost.set_node_name(&self.node_name);
        let files = VhostFiles {
            id,
            path: &vhost_files::vhost_path(&self.data_dir, id),
            is_new,
            durability: self.durability,
            reserve: &self.reserve,
            io: &self.io,
        };
        let Restored { log, mut vhost, page_files, problems } =
            recovery::restore(&files, vhost, self.clock.now())?;
        vhost.set_tracing(settings.tracing);
        vhost.set_alarm(self.clock.now(), self.alarm.load(Ordering::SeqCst));
        let durable = Lsn(log.last().0);
        let path = vhost_files::vhost_path(&self.data_dir, id);
        let (mut death_files, deaths) = DeathFiles::open(&path, options.dead_letter_history);
        death_files.restored(vhost.restore_deaths(self.clock.now(), deaths));
        let state = State { brain: Brain::Leads(Box::new(vhost)), outputs: Outputs::default(), shutdown: None, settings };
        let handle = Arc::new(VhostHandle {
            id,
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
            replica: None,
        });
        // The threads must know the vhost before any event in it.
        let Threads { timer, persister, pager } = &self.threads;
        let (target, source) = (Arc::downgrade(&handle), Arc::downgrade(&handle));
        timer.add(id, target);
        pager.add(id, source);
        persister.add(Arc::clone(&handle) as Arc<dyn LogSource>, log);
        Ok(handle)
    }

    /// Sets or clears the alarm of all vhosts. During an alarm no vhost makes dead letters.
    pub(crate) fn set_alarm(&self, has_alarm: bool) {
        self.alarm.store(has_alarm, Ordering::SeqCst);
        self.all().iter().for_each(|handle| handle.alarm_changed());
    }
}

/// Reason why a vhost cannot be created or recovered.
#[derive(thiserror::Error, Debug)]
pub(crate) enum VhostError {
    #[error("the system has no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
    #[error(transparent)]
    Restore(#[from] RestoreError),
}
