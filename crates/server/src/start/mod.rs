//! Start of a node.

pub(crate) mod endpoints;
pub(crate) mod http_services;
pub(crate) mod start_error;
pub(crate) mod stopped_member;
pub(crate) mod stopped_node;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use broker::VhostOptions;
use broker::access::{PermissionPattern, Permissions};
use broker::page::Paging;
use parking_lot::Mutex;

use crate::auth::ctl_token::CtlToken;
use crate::auth::password::PasswordHash;
use crate::auth::user_slots::UserSlots;
use crate::auth::{Auth, User};
use crate::clock::Clock;
use crate::cluster::Links;
use crate::cluster::joining::joiner::Joiner;
use crate::config::{self, Config, DefaultUserAccess};
use crate::definitions;
use crate::disk::json_files::node_file::{self, FIRST_VHOST_ID, NodeFile, VhostEntry};
use crate::disk::log::persister::Persister;
use crate::disk::node_disk::NodeDisk;
use crate::disk::pages::pager::Pager;
use crate::disk::vhost_files::{self, VhostId};
use crate::history::SharedHistory;
use crate::limits::{RESIDENT_BYTES_MAX, RESIDENT_SHARE, UNACKED_SHARE};
use crate::metadata::Metadata;
use crate::node::Node;
use crate::node::alarms;
use crate::node::alarms::known::Alarms;
use crate::node::alarms::limits::{AlarmLimits, share};
use crate::node::alarms::memory_size;
use crate::node::clients::Clients;
use crate::node::files::NodeFiles;
use crate::node::identity::NodeIdentity;
use crate::node::lifecycle::Lifecycle;
use crate::node::metadata::followed::NodeMetadata;
use crate::node::metadata::global_parameters::GlobalParameters;
use crate::node::permits::Permits;
use crate::node::replication::Replication;
use crate::node::session_settings::SessionSettings;
use crate::node::shown_settings::ShownSettings;
use crate::node::upkeep::Upkeep;
use crate::peers::HttpPeers;
use crate::redrive::Redrives;
use crate::requests::VhostSettings;
use crate::service_state;
use crate::snapshot::node::Listener;
use crate::start::start_error::StartError;
use crate::vhost::{GroupAge, HoldWatch, Threads, Timer, VhostDefinition, Vhosts};

/// Description of the default vhost, as in RabbitMQ.
const DEFAULT_VHOST_DESCRIPTION: &str = "Default virtual host";

impl Node {
    /// Starts a node: opens the data directory, recovers its vhosts and users or creates the default ones,
    /// and imports definitions. `listeners` are those that will accept clients.
    ///
    /// # Errors
    /// [`StartError`], a sentence for the operator.
    pub(crate) fn start(config: &Config, listeners: Vec<Listener>) -> Result<Self, StartError> {
        let disk = NodeDisk::open(&config.data_dir, config.storage.durability)
            .map_err(StartError::from)?;
        let known = node_file::read(&config.data_dir)?;
        let may_begin = known.is_none() || node_file::has_first_format(&config.data_dir);
        let global_parameters = GlobalParameters::open(&config.data_dir, may_begin)?;
        let clock = Clock::start();
        let identity = NodeIdentity::new(config);
        let cluster = Links::open(
            &config.cluster,
            &identity.name,
            &config.data_dir,
            clock,
            config::cluster::home().as_deref(),
        )?;
        let (threads, persister_thread) = start_threads(clock)?;
        let sessions = SessionSettings::new(config, &identity);
        let total = config.total_memory_bytes.or_else(memory_size::total_bytes);
        let alarm_limits = AlarmLimits::new(total, config.memory_watermark, config.disk_free_limit);
        let vhost_options = vhost_options(config, alarm_limits.memory_watermark_bytes());
        let replication =
            cluster.as_ref().map(|links| Replication::start(links, clock)).transpose()?;
        let followed = known.as_ref().and_then(|known| known.followed);
        let users_due =
            cluster.as_ref().map(|links| Arc::clone(&links.users.due)).unwrap_or_default();
        let mut node = Self {
            clock,
            lifecycle: Lifecycle::new(),
            shown_settings: ShownSettings::new(config),
            certificate_files: certificate_files(config, &listeners),
            listeners,
            sessions,
            clients: Clients::new(&identity.name, clock.now().wall_ms() / 1000),
            permits: Permits::new(workers(), config, &alarm_limits),
            auth: Arc::new(Auth::new(loopback_users(config, known.as_ref()))?),
            user_slots: Arc::new(UserSlots::new(users_due)),
            ctl_token: CtlToken::new()?,
            vhosts: Arc::new(Vhosts::new(
                &identity.name,
                config,
                vhost_options,
                &disk.reserve,
                threads.clone(),
                clock,
                replication.as_ref().map(Replication::cluster),
            )),
            global_parameters: Arc::new(global_parameters),
            changes: Mutex::default(),
            importing: Mutex::default(),
            redrives: Arc::new(Redrives::open(&config.data_dir)),
            upkeep: Upkeep::new(config.storage.file_check),
            alarms: Alarms::new(alarm_limits),
            http_peers: cluster.clone().map(HttpPeers::new).map(Arc::new),
            cluster,
            joiner: Joiner::new(config),
            replication,
            metadata: None,
            refusals: Arc::default(),
            history: SharedHistory::default(),
            identity,
            files: NodeFiles::new(config),
            disk,
            threads,
            persister_thread: Mutex::new(Some(persister_thread)),
        };
        node.open_metadata(config, followed)?;
        if known.is_none() {
            // Before the first vhost: a directory with vhosts but without this file has lost it.
            node.save()?;
        }
        let is_new = known.as_ref().is_none_or(|known| known.next_vhost_id == FIRST_VHOST_ID);
        if let Some(known) = known {
            let ids: Vec<VhostId> = known.vhosts.iter().map(|vhost| vhost.id).collect();
            vhost_files::remove_leftovers(&config.data_dir, &ids, known.next_vhost_id);
            node.vhosts.reserve_ids(known.next_vhost_id);
            node.open_vhosts(known.vhosts)?;
            let by_name = known.users.into_iter().map(|user| (user.name.clone(), user));
            node.auth.replace(by_name.collect());
        }
        if is_new {
            node.make_default_vhost(config)?;
            node.make_default_users(config)?;
        }
        match &config.load_definitions {
            None if is_new => node.make_default_user(config)?,
            None => {}
            // As in RabbitMQ, there is no default user where definitions are imported.
            Some(path) => definitions::load(&node, path)?,
        }
        node.save()?;
        Ok(node)
    }

    /// Opens the metadata of the cluster, which `node.json` has followed up to a position.
    fn open_metadata(&mut self, config: &Config, followed: Option<u64>) -> Result<(), StartError> {
        let Some(replication) = &self.replication else { return Ok(()) };
        let (reserve, io) = (&self.disk.reserve, self.vhosts.io());
        let cluster = replication.cluster();
        let age = match followed {
            Some(_) => GroupAge::Old,
            None if self.is_newcomer() => GroupAge::OnLostDisk,
            None => GroupAge::New,
        };
        let store =
            Metadata::open(&config.data_dir, config.storage.durability, reserve, io, cluster, age)?;
        replication.set_replicas(&self.vhosts, &store);
        if followed.is_some() {
            replication.replicator.take_part();
        }
        self.metadata = Some(Arc::new(NodeMetadata::new(store, followed)));
        Ok(())
    }

    /// Recovers vhosts and does the work that has become due meanwhile. Memory and disk are checked before
    /// and during recovery, because the timer serves a vhost as soon as it is open.
    fn open_vhosts(&self, vhosts: Vec<VhostEntry>) -> Result<(), StartError> {
        for vhost in vhosts {
            service_state::start_step(&format!("restoring vhost '{}'", vhost.name));
            alarms::check(self);
            self.vhosts.open(VhostDefinition::new(vhost))?.catch_up(&|| alarms::check(self));
        }
        Ok(())
    }

    /// Makes the configured default vhost.
    fn make_default_vhost(&self, config: &Config) -> Result<(), StartError> {
        let settings = VhostSettings {
            description: DEFAULT_VHOST_DESCRIPTION.to_owned(),
            ..VhostSettings::default()
        };
        let handle = self.vhosts.make(&config.default_user.vhost, Arc::new(settings))?;
        let replaced = self.vhosts.replace(&handle);
        assert!(replaced.is_none(), "the first vhost has the name of another");
        Ok(())
    }

    /// Makes the configured default user.
    fn make_default_user(&self, config: &Config) -> Result<(), StartError> {
        let default = &config.default_user;
        let pattern = |text: &str| PermissionPattern::new(text).map_err(StartError::Permissions);
        let permissions = Permissions {
            configure: pattern(&default.configure)?,
            write: pattern(&default.write)?,
            read: pattern(&default.read)?,
        };
        let password = self.auth.hash_now(&default.name, &default.password)?;
        let mut user = User::new(&default.name, password, default.tags.clone());
        user.permissions.insert(default.vhost.clone(), permissions);
        self.auth.put(user);
        Ok(())
    }

    /// Makes the configured users whose pattern matches the default vhost, with permissions in it.
    fn make_default_users(&self, config: &Config) -> Result<(), StartError> {
        let vhost = &config.default_user.vhost;
        let pattern = |text: &str| PermissionPattern::new(text).map_err(StartError::Permissions);
        for (name, seeded) in &config.default_users {
            if !pattern(&seeded.vhost_pattern)?.allows(vhost) {
                continue;
            }
            let mut user = match (self.auth.user(name), &seeded.password) {
                (Some(user), _) => User::clone(&user),
                (None, None) => User::new(name, PasswordHash::None, seeded.tags.clone()),
                (None, Some(password)) => {
                    let password = self.auth.hash_now(name, password)?;
                    User::new(name, password, seeded.tags.clone())
                }
            };
            let permissions = Permissions {
                configure: pattern(&seeded.configure)?,
                write: pattern(&seeded.write)?,
                read: pattern(&seeded.read)?,
            };
            user.permissions.insert(vhost.clone(), permissions);
            self.auth.put(user);
        }
        Ok(())
    }
}

/// Starts the threads that serve all vhosts. Returns that of the persister, too, which ends last.
fn start_threads(clock: Clock) -> Result<(Threads, JoinHandle<()>), StartError> {
    let timer = Timer::start(clock).map_err(StartError::Timer)?;
    let (persister, persister_thread) = Persister::start().map_err(StartError::Persister)?;
    let pager = Pager::start().map_err(StartError::Pager)?;
    let hold_watch = HoldWatch::start().map_err(StartError::HoldWatch)?;
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        hold_watch.watch_over(runtime);
    }
    Ok((Threads { timer, persister, pager, hold_watch }, persister_thread))
}

/// Users who may log in from this machine only.
fn loopback_users(config: &Config, known: Option<&NodeFile>) -> Vec<String> {
    let mut users = config.loopback_users.clone();
    let default = &config.default_user;
    let name = &default.name;
    match config.default_user_access {
        DefaultUserAccess::LoopbackUsers => return users,
        // Its password counts at the first start only. Later the user may have another one, and definitions may make
        // a user of the same name with the well-known password.
        DefaultUserAccess::Anywhere if config.load_definitions.is_none() => {
            let same = known.and_then(|known| known.users.iter().find(|user| user.name == *name));
            if same.is_none_or(|user| user.password.verify(default.password.as_bytes())) {
                users.retain(|user| user != name);
                return users;
            }
            tracing::warn!(
                "user '{name}' may log in from this machine only: the configured password counts at the first start, \
                 and the user has another one"
            );
        }
        DefaultUserAccess::Anywhere => return users,
        DefaultUserAccess::ThisMachine if known.is_none() && config.load_definitions.is_none() => {
            tracing::warn!(
                "user '{name}' may log in from this machine only: for other machines choose default_user and \
                 default_pass"
            );
        }
        DefaultUserAccess::ThisMachine => {}
    }
    if !users.contains(name) {
        users.push(name.clone());
    }
    users
}

/// Options of vhosts from the configuration, with their share of the memory.
fn vhost_options(config: &Config, memory_watermark_bytes: Option<u64>) -> VhostOptions {
    let unacked_bytes_max = memory_watermark_bytes.map_or(u64::MAX, |bytes| bytes / UNACKED_SHARE);
    let paging = paging(memory_watermark_bytes, config.paging_ratio);
    VhostOptions { paging, unacked_bytes_max, ..config.vhost }
}

/// Bound of the waiting messages in memory.
fn paging(memory_watermark_bytes: Option<u64>, ratio: Option<f64>) -> Paging {
    Paging::beyond(match (memory_watermark_bytes, ratio) {
        (Some(watermark), Some(ratio)) => share(watermark, ratio),
        (Some(watermark), None) => RESIDENT_BYTES_MAX.min(watermark / RESIDENT_SHARE),
        (None, _) => RESIDENT_BYTES_MAX,
    })
}

/// Certificate files of the listeners that speak TLS.
fn certificate_files(config: &Config, listeners: &[Listener]) -> Vec<(Listener, PathBuf)> {
    let file = |listener: &Listener| match listener.protocol {
        "amqp/ssl" => config.tls.certfile.clone(),
        "https" => config.https_options().certfile,
        _ => None,
    };
    listeners.iter().filter_map(|listener| Some((*listener, file(listener)?))).collect()
}

/// Threads that serve clients: as many as the runtime has workers.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
