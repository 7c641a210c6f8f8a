//! The process of a node, from its first log line to its end: it serves, or is stopped and waits to be started again.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};

use crate::auth::ctl_token;
use crate::cluster::joining::discovery::SystemResolver;
use crate::cluster::joining::nodes_at_start;
use crate::cluster::{ClusterError, Purpose, RunningLinks};
use crate::config::Config;
use crate::connection::relay::Adopter;
use crate::disk::data_dir::DataDir;
use crate::disk::{reset, stand_alone};
use crate::limits::STOP_TIMEOUT;
use crate::logging;
use crate::logging::file::LogFile;
use crate::node::lifecycle::ExitReason;
use crate::node::lifecycle::addresses::{self, Addresses};
use crate::node::lifecycle::joining;
use crate::node::metadata::membership::JoinDesk;
use crate::node::replication::ReplicaLinks;
use crate::node::upkeep::watchdog::Watched;
use crate::node::upkeep::{death_writer, file_check, sampler, watchdog};
use crate::node::{Node, alarms};
use crate::start::endpoints::Endpoints;
use crate::start::http_services::HttpServices;
use crate::start::start_error::StartError;
use crate::start::stopped_node::StoppedNode;
use crate::tls::reload;
use crate::{definitions, redrive, service_state};

/// The process of a node, whose log is open.
#[derive(Debug)]
pub struct Process {
    config: Config,
    log_file: Option<Arc<LogFile>>,
    /// True if the node waits for an operator before it serves.
    begins_stopped: bool,
}

/// The reason why a process does not start, or cannot go on: a sentence for the operator.
#[derive(thiserror::Error, Debug)]
#[error("{sentence}")]
pub struct ProcessError {
    sentence: String,
    exit_code: u8,
}

impl ProcessError {
    fn new(error: &StartError, data_dir: &Path) -> Self {
        Self { sentence: error.explained(data_dir), exit_code: error.exit_code() }
    }

    /// Exit code of the process.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.exit_code
    }
}

impl Process {
    /// Opens the log, and takes over the addresses of the image of the process before this one, if there is one.
    ///
    /// # Errors
    /// If the log file cannot be opened.
    pub fn begin(mut config: Config) -> Result<Self, ProcessError> {
        let log_file = logging::start(&config.log).map_err(|error| {
            let path = config.log.file_path().unwrap_or_default();
            ProcessError::new(&StartError::LogFile { path, error }, &config.data_dir)
        })?;
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        raise_descriptor_limit();
        let begins_stopped = addresses::begins_stopped(&mut config);
        Ok(Self { config, log_file, begins_stopped })
    }

    /// Lives until the process is asked to end. `http` answers the requests that listeners and links receive.
    ///
    /// # Errors
    /// [`ProcessError`], for the operator.
    pub async fn live(self, http: HttpServices) -> Result<(), ProcessError> {
        let Self { config, log_file, begins_stopped } = self;
        let lived = live(&config, log_file, begins_stopped, &http).await;
        lived.map_err(|error| ProcessError::new(&error, &config.data_dir))
    }
}

/// Runs the broker, and the stopped node that may follow it, until the process is asked to end.
async fn live(
    config: &Config,
    log_file: Option<Arc<LogFile>>,
    begins_stopped: bool,
    http: &HttpServices,
) -> Result<(), StartError> {
    let mut signals = StopSignals::watch()?;
    service_state::starting();
    let watched = Watched::default();
    tokio::spawn(watchdog::run(Arc::clone(&watched)));
    if begins_stopped {
        match run_stopped(config, http, signals.next()).await? {
            ExitReason::Stop | ExitReason::StopApp | ExitReason::Restart => return Ok(()),
            ExitReason::StartApp => {}
        }
    }
    let addresses = match run(config, log_file, &mut signals, &watched, http).await {
        Ok((ExitReason::StopApp, addresses)) => addresses,
        Ok((ExitReason::Restart, addresses)) => {
            return Err(StartError::NextImage(addresses.begin_anew()));
        }
        Ok((ExitReason::Stop | ExitReason::StartApp, _)) => return Ok(()),
        // The node stays stopped.
        Err(error) if begins_stopped => {
            tracing::error!("{}", error.explained(&config.data_dir));
            Addresses::of(config)
        }
        Err(error) => return Err(error),
    };
    Err(StartError::NextImage(addresses.begin_stopped()))
}

/// Serves a stopped node until an action or `interrupted` ends that.
///
/// # Errors
/// [`StartError`], a sentence for the operator.
async fn run_stopped(
    config: &Config,
    http: &HttpServices,
    interrupted: impl Future<Output = ()>,
) -> Result<ExitReason, StartError> {
    let _lock = DataDir::open(&config.data_dir)?;
    reset::finish(&config.data_dir).map_err(StartError::Reset)?;
    stand_alone::finish(&config.data_dir).map_err(ClusterError::from)?;
    let endpoints = Endpoints::bind_http(config)?;
    let (listeners, addresses) = (endpoints.shown(), endpoints.in_words());
    let node = Arc::new(StoppedNode::new(config)?);
    // Published before the first request is served, so that a program that waits for the stop finds the
    // token.
    let url = ctl_token::url(&listeners, config.path_prefix.as_deref());
    let _published = node.token.publish(&config.data_dir, url.as_deref(), node.name())?;
    let (over, stopping) = watch::channel(false);
    let servers =
        endpoints.serve_http((http.stopped)(Arc::clone(&node)), &stopping, &Arc::default())?;
    tracing::info!("stopped: not serving clients; {addresses} waits for start_app");
    service_state::stopped(&format!("stopped; {addresses} waits for start_app"));
    let end = tokio::select! {
        end = node.shutdown.requested() => end,
        () = interrupted => ExitReason::Stop,
    };
    if end == ExitReason::Stop {
        service_state::stopping();
    }
    // The request that ended the wait is answered.
    over.send_replace(true);
    servers.over().await;
    Ok(end)
}

/// Starts the links of a node with a cluster, and what follows from them.
fn start_cluster(
    config: &Config,
    node: &Arc<Node>,
    endpoints: &mut Endpoints,
) -> Result<Option<RunningLinks>, StartError> {
    let Some(replication) = &node.replication else { return Ok(None) };
    let events = Arc::new(ReplicaLinks(Arc::clone(&replication.replicator)));
    let running = endpoints.start_links(node, events)?;
    if let (Some(metadata), Some(links)) = (&node.metadata, &node.cluster) {
        let followed = Arc::downgrade(node);
        let follow = move || {
            let Some(node) = followed.upgrade() else { return Ok(()) };
            node.follow_metadata()?;
            // A change that no majority confirms is made again later.
            node.keep_record_level().or_else(|problem| {
                tracing::debug!("the level of record kinds does not rise now: {problem}");
                Ok(())
            })
        };
        metadata.start(follow).map_err(StartError::Follow)?;
        let started = replication.start_shipments(links, &config.data_dir);
        started.map_err(StartError::Follow)?;
    }
    Ok(running)
}

/// Runs the broker until it is asked to stop. Returns the reason, and the addresses that it listened on.
async fn run(
    config: &Config,
    log_file: Option<Arc<LogFile>>,
    signals: &mut StopSignals,
    watched: &Watched,
    http: &HttpServices,
) -> Result<(ExitReason, Addresses), StartError> {
    let began = Instant::now();
    let hangup = signal(SignalKind::hangup()).map_err(StartError::Signals)?;
    service_state::start_step("starting");
    let completed = tokio::select! {
        completed = nodes_at_start::complete(config, Arc::new(SystemResolver)) => completed?,
        () = signals.next() => {
            tracing::info!("stopping before the nodes of the cluster are known");
            return Ok((ExitReason::Stop, Addresses::of(config)));
        }
    };
    let config = completed.as_ref().unwrap_or(config);
    let mut endpoints = Endpoints::bind(config)?;
    tokio::spawn(reload::watch(hangup, endpoints.certificates(), log_file));
    let listeners = endpoints.shown();
    let node = Arc::new(Node::start(config, listeners.clone())?);
    watched.set(Arc::downgrade(&node)).expect("a process starts one node");
    // Published before the first client is served, so that a program that waits for the start finds the
    // token.
    let url = ctl_token::url(&listeners, config.path_prefix.as_deref());
    let published =
        node.ctl_token.publish(&config.data_dir, url.as_deref(), &node.identity.name)?;
    let (alive, mut gone) = mpsc::channel::<()>(1);
    let addresses = endpoints.in_words();
    let resumed = node.resume_redrives();
    let links = start_cluster(config, &node, &mut endpoints)?;
    if let Some(links) = &node.cluster {
        links.streams.serve(Purpose::Client, Arc::new(Adopter::new(&node, &alive)));
        links.streams.serve(Purpose::Join, Arc::new(JoinDesk::new(&node)));
        tokio::spawn(joining::watch(Arc::clone(&node)));
        tokio::spawn(redrive::follow_leads(resumed));
    }
    let mut servers = endpoints.serve(&node, &alive, http)?;
    if let (Some(path), Some(_)) = (&config.load_definitions, &node.cluster) {
        let (_, definitions) = definitions::read(path)?;
        tokio::spawn(definitions::import_in_cluster(Arc::clone(&node), definitions));
    }
    start_upkeep(&node, config.statistics_interval);
    drop(alive);
    // COMPAT: end of the start in the log: programs that start containers wait for RabbitMQ's words.
    tracing::info!("Server startup complete");
    tracing::info!(
        took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        "leveret {} started: {addresses}, data in {}, durability {}, presented to clients as {} {}",
        env!("CARGO_PKG_VERSION"),
        config.data_dir.display(),
        config.storage.durability.as_str(),
        config.identity.product,
        config.identity.version,
    );
    service_state::ready(&format!("serving {addresses}"));
    let end = tokio::select! {
        () = signals.next() => ExitReason::Stop,
        end = node.lifecycle.shutdown.requested() => end,
    };
    tracing::info!("stopping");
    if end == ExitReason::Stop {
        service_state::stopping();
    }
    node.begin_stop();
    // Before a client is sent the reason: a client that connects again at once is refused.
    servers.amqp_listeners_closed().await;
    if let Some(replication) = &node.replication {
        replication.replicator.leave();
        tokio::select! {
            () = node.transfer_all_leads() => {}
            () = signals.next() => tracing::warn!("second signal: stopping without another leader"),
        }
    }
    node.close_connections();
    tokio::select! {
        // Every connection holds a sender until it has ended.
        _ = gone.recv() => {}
        () = tokio::time::sleep(STOP_TIMEOUT) => {
            tracing::warn!("timed out waiting for clients to close");
        }
        () = signals.next() => tracing::warn!("second signal: stopping without waiting for clients"),
    }
    // Pending HTTP requests are answered before the node closes.
    servers.over().await;
    node.redrives.stopped().await;
    if let Some(links) = links {
        let stops = Arc::clone(&node);
        let stopped = tokio::task::spawn_blocking(move || stops.stop_replication()).await;
        stopped.expect("the replication of a node stops without a panic");
        links.stop().await;
    }
    node.close();
    drop(published);
    tracing::info!("stopped");
    Ok((end, Addresses::new(listeners)))
}

/// Starts the upkeep of a node.
fn start_upkeep(node: &Arc<Node>, statistics_interval: Duration) {
    tokio::spawn(alarms::watch(Arc::clone(node)));
    tokio::spawn(sampler::run(Arc::clone(node), statistics_interval));
    tokio::spawn(death_writer::run(Arc::clone(node)));
    tokio::spawn(file_check::run(Arc::clone(node)));
}

/// Raises the limit on file descriptors to its maximum: every client needs one.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        Ok(()) => tracing::info!(limit = limit.maximum, "limit of open files and sockets"),
        Err(error) => {
            tracing::warn!(%error, limit = ?limit.current, "cannot raise the limit of open files");
        }
    }
}

/// The signals that stop the broker.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Installs the signal handlers.
    fn watch() -> Result<Self, StartError> {
        let terminate = signal(SignalKind::terminate()).map_err(StartError::Signals)?;
        let interrupt = signal(SignalKind::interrupt()).map_err(StartError::Signals)?;
        Ok(Self { terminate, interrupt })
    }

    /// Waits for the next signal.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
