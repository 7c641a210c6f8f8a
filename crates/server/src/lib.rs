//! The shell around the pure crates: sockets, tasks, the clock, the locks of the vhosts, the timer,
//! configuration. The shell decides nothing about messages.
//!
//! [`main`] is the program `leveret`; [`Embedded`] is a broker inside another program.

mod allocator;
mod auth;
mod check;
mod cli;
mod clock;
mod cluster;
mod config;
mod connection;
mod definitions;
mod disk;
mod embedded;
mod http;
mod limits;
mod logging;
mod membership;
mod metadata;
mod node;
mod redrive;
mod replicas;
mod service_state;
mod shipments;
mod sockets;
mod source;
mod start;
mod tls;
mod vhost;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::auth::ctl_token;
use crate::cluster::joining::discovery::SystemResolver;
use crate::cluster::joining::nodes_at_start;
use crate::cluster::{Purpose, RunningLinks};
use crate::config::Config;
use crate::connection::relay::Adopter;
use crate::limits::{EXIT_CONFIG, STOP_TIMEOUT};
use crate::logging::file::LogFile;
use crate::node::lifecycle::ExitReason;
use crate::node::lifecycle::addresses::{self, Addresses};
use crate::node::lifecycle::joining;
use crate::node::metadata::membership::JoinDesk;
use crate::node::replication::ReplicaLinks;
use crate::node::upkeep::watchdog::Watched;
use crate::node::upkeep::{death_writer, sampler, watchdog};
use crate::node::{Node, alarms};
use crate::start::endpoints::Endpoints;
use crate::start::start_error::StartError;
use crate::start::stopped_node;
use crate::tls::reload;

pub use embedded::{Configuration, Embedded};

/// Reads lines of a file of the history of dead letters as at a start, writes the deaths as lines and reads them again,
/// for fuzzing. Returns the number of deaths.
///
/// # Panics
/// When the deaths are not the same.
pub fn check_death_lines(lines: &[u8]) -> usize {
    disk::deaths::files::check_lines(lines)
}

/// Reads the bytes of another node, in pieces of at most `piece_bytes`, for fuzzing: with reader 0 the messages of a
/// handshake, with 1 the chunks of a link, with 3 a message about joining, with others a frame of the link itself. Returns a description of what was read, and of the error if there is one.
///
/// # Panics
/// When a hello or a frame of the link is not written as it was read.
pub fn check_link_bytes(reader: u8, bytes: &[u8], piece_bytes: usize) -> Vec<String> {
    cluster::check_bytes(reader, bytes, piece_bytes)
}

/// Reads the frame with which a node hands over a client, or with `is_answer` the answer to it, for fuzzing.
///
/// # Panics
/// When a frame that was read is not written as one that is read again with the same result.
pub fn check_adopt_bytes(is_answer: bool, bytes: &[u8]) {
    connection::relay::check_bytes(is_answer, bytes);
}

/// The program `leveret`, with the command line of this process.
pub fn main() -> ExitCode {
    allocator::decline_huge_pages();
    let arguments = cli::Arguments::parse();
    if let Some(page) = arguments.man_page() {
        return cli::print_man_page(page);
    }
    let mut config = match arguments.config() {
        Ok(config) => config,
        Err(error) => return cli::refuse(&error, EXIT_CONFIG),
    };
    // Log lines show the path, so it must not depend on the working directory.
    match std::path::absolute(&config.data_dir) {
        Ok(data_dir) => config.data_dir = data_dir,
        Err(error) => return cli::fail(&error, 1),
    }
    if arguments.checks() {
        return check::run(&config.data_dir);
    }
    if arguments.prints_config() {
        return cli::print_config(&config);
    }
    let log_file = match logging::start(&config.log) {
        Ok(log_file) => log_file,
        Err(error) => {
            let path = config.log.file_path().unwrap_or_default();
            return cli::fail(&StartError::LogFile { path, error }, EXIT_CONFIG);
        }
    };
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    raise_descriptor_limit();
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    if std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1) {
        // One works for a vhost, another one hears the clients of the others.
        threads.worker_threads(2);
    }
    let runtime = match threads.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return cli::fail(&error, 1),
    };
    let begins_stopped = addresses::begins_stopped(&mut config);
    match runtime.block_on(live(&config, log_file, begins_stopped)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let explained = error.explained(&config.data_dir);
            match tracing::enabled!(tracing::Level::ERROR) {
                true => tracing::error!("{explained}"),
                false => cli::print_problem(&explained),
            }
            ExitCode::from(error.exit_code())
        }
    }
}

/// Runs the broker, and the stopped node that may follow it, until the process is asked to end.
async fn live(
    config: &Config,
    log_file: Option<Arc<LogFile>>,
    begins_stopped: bool,
) -> Result<(), StartError> {
    let mut signals = StopSignals::watch()?;
    service_state::starting();
    let watched = Watched::default();
    tokio::spawn(watchdog::run(Arc::clone(&watched)));
    if begins_stopped {
        match stopped_node::run(config, signals.next()).await? {
            ExitReason::Stop | ExitReason::StopApp | ExitReason::Restart => return Ok(()),
            ExitReason::StartApp => {}
        }
    }
    let addresses = match run(config, log_file, &mut signals, &watched).await {
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
    let mut servers = endpoints.serve(&node, &alive)?;
    if let (Some(path), Some(_)) = (&config.load_definitions, &node.cluster) {
        let (_, definitions) = definitions::read(path)?;
        tokio::spawn(definitions::import_in_cluster(Arc::clone(&node), definitions));
    }
    tokio::spawn(alarms::watch(Arc::clone(&node)));
    tokio::spawn(allocator::give_back());
    tokio::spawn(sampler::run(Arc::clone(&node), config.statistics_interval));
    tokio::spawn(death_writer::run(Arc::clone(&node)));
    drop(alive);
    // COMPAT: end of the start in the log: programs that start containers wait for RabbitMQ's words.
    tracing::info!("Server startup complete");
    tracing::info!(
        took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        "leveret {} started: {addresses}, data in {}, durability {}, presented to clients as {} {}",
        env!("CARGO_PKG_VERSION"),
        config.data_dir.display(),
        config.durability.as_str(),
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
