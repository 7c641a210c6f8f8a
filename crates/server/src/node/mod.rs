//! The node: what all connections share, from start to stop.

pub(crate) mod alarm_limits;
pub(crate) mod alarms;
pub(crate) mod global_parameters;
pub(crate) mod lifecycle;
pub(crate) mod sampler;
pub(crate) mod stopped_node;
pub(crate) mod users_and_vhosts;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use amqp::reply_code::ReplyCode;
use amqp::table::Table;
use broker::VhostOptions;
use broker::access::{PermissionPattern, Permissions};
use broker::page::Paging;
use broker::refusal::Refusal;
use management::{Identity, Listener, SharedHistory, VhostSettings};
use parking_lot::Mutex;
use session::{ServerIdentity, SessionOptions};
use tokio::sync::{Semaphore, watch};

use crate::auth::ctl_token::CtlToken;
use crate::auth::password::{HashError, PasswordHash};
use crate::auth::user_slots::UserSlots;
use crate::auth::{Auth, AuthError, User};
use crate::clock::Clock;
use crate::config::{AnonymousLogin, CertificateLogin, Config, Durability, SeededUser};
use crate::connection::read_scheduler::ReadPermits;
use crate::connection::registry::Clients;
use crate::connection::slots::ConnectionSlots;
use crate::definitions::{self, DefinitionsError};
use crate::disk::data_dir::{DataDir, DataDirError};
use crate::disk::node_file::{self, FIRST_VHOST_ID, NodeFile, NodeFileError, VhostEntry};
use crate::disk::pager::Pager;
use crate::disk::persister::Persister;
use crate::disk::private_files;
use crate::disk::reserve::Reserve;
use crate::disk::reset;
use crate::disk::vhost_files::{self, VhostId};
use crate::limits::{METRICS_AT_ONCE, RESIDENT_BYTES_MAX, RESIDENT_SHARE, UNACKED_SHARE};
use crate::node::alarm_limits::{AlarmLimits, share};
use crate::node::alarms::Alarm;
use crate::node::global_parameters::GlobalParameters;
use crate::node::lifecycle::ShutdownRequest;
use crate::redrive::Redrives;
use crate::tls::TlsError;
use crate::vhost::{Threads, Timer, VhostError, Vhosts};

/// Why a node does not start.
#[derive(thiserror::Error, Debug)]
pub(crate) enum StartError {
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error("cannot start the timer: {0}")]
    Timer(io::Error),
    #[error("cannot start the writer of the log: {0}")]
    Persister(io::Error),
    #[error("cannot start the writer of pages: {0}")]
    Pager(io::Error),
    #[error(transparent)]
    NodeFile(#[from] NodeFileError),
    #[error(transparent)]
    Vhost(#[from] VhostError),
    #[error("cannot start the threads for HTTP: {0}")]
    Http(io::Error),
    #[error("cannot watch for signals: {0}")]
    Signals(io::Error),
    #[error(transparent)]
    Auth(#[from] AuthError),
    #[error("cannot make the default user: {0}")]
    DefaultUser(#[from] HashError),
    #[error("permissions of the default user: {0}")]
    Permissions(String),
    #[error("{0}")]
    Definitions(#[from] DefinitionsError),
    #[error("cannot open the log file: {0}")]
    LogFile(io::Error),
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    #[error("the system has no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
    #[error("cannot forget what a reset has left: {0}")]
    Reset(io::Error),
    #[error("cannot write ctl.json into the data directory: {0}")]
    CtlFile(io::Error),
    #[error("cannot stay as a stopped node: {0}")]
    NextImage(io::Error),
    #[error("cannot listen for {what} on {address}: {error}")]
    Listen { what: &'static str, address: SocketAddr, error: io::Error },
}

/// What RabbitMQ says of the vhost that is there from the beginning.
const DEFAULT_VHOST_DESCRIPTION: &str = "Default virtual host";

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) clock: Clock,
    session_options: Arc<SessionOptions>,
    /// Of clients whose certificate was verified.
    certified_session_options: Arc<SessionOptions>,
    pub(crate) certificate_login: CertificateLogin,
    pub(crate) anonymous_login: AnonymousLogin,
    pub(crate) vhosts: Vhosts,
    pub(crate) auth: Auth,
    pub(crate) user_slots: Arc<UserSlots>,
    /// Held while users or vhosts change.
    pub(crate) changes: Mutex<()>,
    pub(crate) clients: Clients,
    /// Whose turn it is to be read, of those who have more to say than is read at once.
    pub(crate) read_permits: ReadPermits,
    /// Whose turn it is to make metrics.
    pub(crate) metrics_permits: Semaphore,
    pub(crate) history: SharedHistory,
    /// Jobs that send dead messages back.
    pub(crate) redrives: Arc<Redrives>,
    pub(crate) alarm: watch::Sender<Option<Alarm>>,
    pub(crate) alarm_limits: AlarmLimits,
    /// True once the broker stops, for everybody to watch.
    pub(crate) stopping: watch::Sender<bool>,
    /// True while no AMQP clients are accepted.
    pub(crate) listeners_suspended: watch::Sender<bool>,
    /// That it is to stop.
    pub(crate) ending: ShutdownRequest,
    /// The token of whoever operates it from its own machine.
    pub(crate) ctl_token: CtlToken,
    /// Its name, as RabbitMQ names nodes.
    pub(crate) name: String,
    /// What clients are told that it is.
    pub(crate) identity: Identity,
    /// What the cluster is called unless a global parameter says something else.
    default_cluster_name: String,
    pub(crate) global_parameters: Arc<GlobalParameters>,
    pub(crate) durability: Durability,
    pub(crate) listeners: Vec<Listener>,
    /// What those of them that speak TLS have their certificates from.
    pub(crate) certificate_files: Vec<(Listener, PathBuf)>,
    pub(crate) started: Instant,
    /// Places for connections; none for any number.
    pub(crate) connection_slots: Option<ConnectionSlots>,
    default_users: BTreeMap<String, SeededUser>,
    /// Held by who takes definitions in.
    pub(crate) importing: Mutex<()>,
    pub(crate) reserve: Arc<Reserve>,
    pub(crate) threads: Threads,
    /// The persister's thread, until the node has ended.
    persister_thread: Mutex<Option<JoinHandle<()>>>,
    pub(crate) data_dir: PathBuf,
    pub(crate) lock: DataDir,
}

/// What clients are told of the node when they connect.
fn server_properties(identity: &Identity, cluster_name: &str) -> Table {
    session::server_properties(ServerIdentity {
        product: &identity.product,
        version: &identity.version,
        leveret_version: env!("CARGO_PKG_VERSION"),
        cluster_name,
    })
}

impl Node {
    /// Brings vhosts back from their logs, and does what fell due in them meanwhile. Memory and disk are
    /// looked at before and all the while: the timer has its turns in a vhost as soon as it is there.
    fn open_vhosts(&self, vhosts: Vec<VhostEntry>) -> Result<(), StartError> {
        for vhost in vhosts {
            alarms::look(self);
            self.vhosts.open(vhost)?.catch_up(&|| alarms::look(self));
        }
        Ok(())
    }

    /// Opens the data directory, brings back what is in it, or makes the default vhost and user, and
    /// takes the definitions. `listeners` are those that clients will be accepted from.
    ///
    /// # Errors
    /// [`StartError`], a sentence for the operator.
    pub(crate) fn start(config: &Config, listeners: Vec<Listener>) -> Result<Self, StartError> {
        let (lock, reserve) = take_data_dir(&config.data_dir)?;
        let known = node_file::read(&config.data_dir)?;
        let may_begin = known.is_none() || node_file::has_first_format(&config.data_dir);
        let global_parameters = GlobalParameters::open(&config.data_dir, may_begin)?;
        let clock = Clock::start();
        let timer = Timer::start(clock).map_err(StartError::Timer)?;
        let (persister, persister_thread) = Persister::start().map_err(StartError::Persister)?;
        let pager = Pager::start().map_err(StartError::Pager)?;
        let mut session_options = config.session.clone();
        let name = node_name(config.node_name.as_deref());
        let cluster_name = config.cluster_name.clone().unwrap_or_else(|| name.clone());
        session_options.server_properties = server_properties(&config.identity, &cluster_name);
        session_options.mechanisms = config.mechanisms();
        let certified_session_options = session_options.clone();
        session_options.mechanisms.retain(|name| *name != session::EXTERNAL);
        let total = config.total_memory_bytes.or_else(alarms::total_bytes);
        let alarm_limits = AlarmLimits::new(total, config.memory_watermark, config.disk_free_limit);
        let vhost_options = vhost_options(config, alarm_limits.memory_watermark_bytes());
        let threads = Threads { timer, persister, pager };
        let node = Self {
            clock,
            session_options: Arc::new(session_options),
            certified_session_options: Arc::new(certified_session_options),
            certificate_login: config.certificate_login,
            anonymous_login: config.anonymous_login.clone(),
            vhosts: Vhosts::new(&name, config, vhost_options, &reserve, threads.clone(), clock),
            read_permits: ReadPermits::new(workers()),
            metrics_permits: Semaphore::new(METRICS_AT_ONCE),
            history: SharedHistory::default(),
            redrives: Arc::default(),
            clients: Clients::new(&name, clock.now().wall_ms / 1000),
            auth: Auth::new(config.loopback_users.clone())?,
            user_slots: Arc::default(),
            changes: Mutex::default(),
            alarm: alarms::channel(),
            alarm_limits,
            stopping: watch::Sender::new(false),
            listeners_suspended: watch::Sender::new(false),
            ending: ShutdownRequest::new(),
            ctl_token: CtlToken::new()?,
            name,
            identity: config.identity.clone(),
            default_cluster_name: cluster_name,
            global_parameters: Arc::new(global_parameters),
            durability: config.durability,
            certificate_files: certificate_files(config, &listeners),
            listeners,
            started: Instant::now(),
            connection_slots: config.connections_max.map(ConnectionSlots::new),
            default_users: config.default_users.clone(),
            importing: Mutex::new(()),
            reserve,
            threads,
            persister_thread: Mutex::new(Some(persister_thread)),
            data_dir: config.data_dir.clone(),
            lock,
        };
        if known.is_none() {
            // From now on a directory with vhosts and without this file has lost it.
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
            let settings = VhostSettings {
                description: DEFAULT_VHOST_DESCRIPTION.to_owned(),
                ..VhostSettings::default()
            };
            let handle = node.vhosts.make(&config.default_user.vhost, Arc::new(settings))?;
            node.vhosts.insert(&handle);
            node.make_default_users(&config.default_user.vhost)?;
        }
        match &config.load_definitions {
            None if is_new => node.make_default_user(config)?,
            None => {}
            // As in RabbitMQ: whoever brings definitions brings his users.
            Some(path) => definitions::load(&node, path)?,
        }
        node.save()?;
        Ok(node)
    }

    /// What the cluster is called.
    pub(crate) fn cluster_name(&self) -> String {
        let name = self.global_parameters.text("cluster_name");
        name.unwrap_or_else(|| self.default_cluster_name.clone())
    }

    /// What clients can log in with, by name.
    pub(crate) fn mechanisms(&self) -> &[&'static str] {
        &self.certified_session_options.mechanisms
    }

    /// What a connection is offered: only clients with a verified certificate may log in by it.
    pub(crate) fn session_options(&self, has_certificate: bool) -> Arc<SessionOptions> {
        Arc::clone(match has_certificate {
            true => &self.certified_session_options,
            false => &self.session_options,
        })
    }

    /// Writes down which vhosts and users there are, and lets it count for those who are connected.
    ///
    /// # Errors
    /// [`NodeFileError`], a sentence for the operator.
    pub(crate) fn save(&self) -> Result<(), NodeFileError> {
        let _one_at_a_time = self.changes.lock();
        let (next_vhost_id, vhosts) = self.vhosts.entries();
        let users = self.auth.users();
        let contents = NodeFile { next_vhost_id, vhosts, users: users.clone() };
        node_file::write(&self.data_dir, &contents)?;
        users.iter().for_each(|user| self.refresh_access(&user.name));
        Ok(())
    }

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

    /// Makes the configured users whose pattern a new vhost's name matches, and lets them in.
    ///
    /// # Errors
    /// [`StartError`], a sentence for the operator.
    pub(crate) fn make_default_users(&self, vhost: &str) -> Result<(), StartError> {
        let pattern = |text: &str| PermissionPattern::new(text).map_err(StartError::Permissions);
        for (name, seeded) in &self.default_users {
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
            user.permissions.insert(vhost.to_owned(), permissions);
            self.auth.put(user);
        }
        Ok(())
    }

    /// Tells every client that the broker stops: those in a vhost why, others by the end of their
    /// sockets.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
        let text = "broker forced connection closure with reason 'shutdown'";
        let refusal = Refusal::new(ReplyCode::ConnectionForced, text);
        for handle in self.vhosts.all() {
            handle.stop(&refusal);
        }
    }

    /// Writes what is left to the disk, after everybody has gone, and ends the threads.
    pub(crate) fn close(&self) {
        self.threads.persister.stop();
        if let Some(writer) = self.persister_thread.lock().take()
            && writer.join().is_err()
        {
            tracing::error!("the writer of the log has failed");
        }
        self.threads.timer.stop();
        self.threads.pager.stop();
    }
}

/// Takes a data directory for this process, ends what a reset has left, and makes room in it: whatever
/// comes after that writes a little.
fn take_data_dir(data_dir: &Path) -> Result<(DataDir, Arc<Reserve>), StartError> {
    let lock = DataDir::open(data_dir)?;
    private_files::tighten(data_dir);
    reset::finish(data_dir).map_err(StartError::Reset)?;
    vhost_files::remove_stale_pages(data_dir);
    Ok((lock, Arc::new(Reserve::open(data_dir))))
}

/// What the configuration grants to vhosts, with the memory that they may take.
fn vhost_options(config: &Config, memory_watermark_bytes: Option<u64>) -> VhostOptions {
    let unacked_bytes_max = memory_watermark_bytes.map_or(u64::MAX, |bytes| bytes / UNACKED_SHARE);
    let paging = paging(memory_watermark_bytes, config.paging_ratio);
    VhostOptions { paging, unacked_bytes_max, ..config.vhost }
}

/// What of the messages that wait is kept in memory.
fn paging(memory_watermark_bytes: Option<u64>, ratio: Option<f64>) -> Paging {
    Paging::beyond(match (memory_watermark_bytes, ratio) {
        (Some(watermark), Some(ratio)) => share(watermark, ratio),
        (Some(watermark), None) => RESIDENT_BYTES_MAX.min(watermark / RESIDENT_SHARE),
        (None, _) => RESIDENT_BYTES_MAX,
    })
}

fn certificate_files(config: &Config, listeners: &[Listener]) -> Vec<(Listener, PathBuf)> {
    let file = |listener: &Listener| match listener.protocol {
        "amqp/ssl" => config.tls.certfile.clone(),
        "https" => config.https_options().certfile,
        _ => None,
    };
    listeners.iter().filter_map(|listener| Some((*listener, file(listener)?))).collect()
}

/// Threads that serve clients: as many as the runtime has.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The name that was given, with this machine's if it has none.
pub(crate) fn node_name(given: Option<&str>) -> String {
    let given = given.unwrap_or("leveret");
    if given.contains('@') {
        return given.to_owned();
    }
    format!("{given}@{}", rustix::system::uname().nodename().to_string_lossy())
}
