//! The broker: `leveret [--config FILE] [--data-dir DIR] [--amqp ADDR:PORT] [--http ADDR:PORT]`, and
//! `leveret check --data-dir DIR`.
//!
//! This crate is the shell around the pure ones: sockets, tasks, the clock, the vhosts' locks, the
//! timer, configuration. It decides nothing about messages.

mod alarms;
mod as_seen_by_http;
mod auth;
mod check;
mod cli;
mod clients;
mod clock;
mod config;
mod connection;
mod data_dir;
mod definitions;
mod global_parameters;
mod http;
mod limits;
mod listener;
mod logging;
mod login_counts;
mod node;
mod node_changes;
mod node_file;
mod own_channel;
mod page_work;
mod pager;
mod password;
mod persister;
mod read_buffer;
mod restoring;
mod sampler;
mod shelf;
mod store;
mod timer;
mod user_slots;
mod vhosts;
mod wire;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use axum::serve::ListenerExt;
use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::config::Config;
use crate::http::HttpListener;
use crate::limits::STOP_TIMEOUT;
use crate::listener::Listener;
use crate::node::{Node, StartError};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    let config = match arguments.config() {
        Ok(config) => config,
        Err(error) => return cli::fail(&error),
    };
    if arguments.checks() {
        return check::run(&config.data_dir);
    }
    logging::start(&config.log_level, config.log_format);
    raise_descriptor_limit();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return cli::fail(&error),
    };
    match runtime.block_on(run(&config)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if tracing::enabled!(tracing::Level::ERROR) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
        Err(error) => cli::fail(&error),
    }
}

/// Runs the broker until it is asked to stop.
async fn run(config: &Config) -> Result<(), StartError> {
    let began = Instant::now();
    let mut signals = StopSignals::watch()?;
    let mut listeners = Vec::new();
    for address in &config.amqp_listeners {
        listeners.push(Listener::bind("AMQP", *address)?);
    }
    let http = Listener::bind("HTTP", config.http_listener)?;
    let of = |listener: &Listener, protocol| {
        Some(management::Listener { protocol, address: listener.local_addr().ok()? })
    };
    let amqp: Vec<_> = listeners.iter().filter_map(|listener| of(listener, "amqp")).collect();
    let addresses: Vec<String> = amqp.iter().map(|one| one.address.to_string()).collect();
    let all = amqp.into_iter().chain(of(&http, "http")).collect();
    let node = Arc::new(Node::start(config, all)?);
    let (alive, mut gone) = mpsc::channel::<()>(1);
    for listener in listeners {
        tokio::spawn(listener::accept_amqp(listener, Arc::clone(&node), alive.clone()));
    }
    let http_address = http.local_addr().map(|address| address.to_string()).unwrap_or_default();
    let as_seen_by_http: Arc<dyn management::Node> = Arc::clone(&node) as _;
    let router = management::router(as_seen_by_http);
    let router = router.into_make_service_with_connect_info::<SocketAddr>();
    // Of a listener that is tapped axum knows that its clients have addresses.
    let http = axum::serve(HttpListener::new(http).tap_io(|_| {}), router);
    tokio::spawn(http.into_future());
    tokio::spawn(alarms::watch(Arc::clone(&node)));
    tokio::spawn(sampler::run(Arc::clone(&node), config.statistics_interval));
    drop(alive);
    tracing::info!(
        took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        "leveret {} started: AMQP on {}, HTTP on {}, data in {}, durability {}",
        env!("CARGO_PKG_VERSION"),
        addresses.join(" and "),
        http_address,
        config.data_dir.display(),
        config.durability.as_str()
    );
    signals.next().await;
    tracing::info!("stopping");
    node.stop();
    tokio::select! {
        // Every connection holds a sender until it has ended.
        _ = gone.recv() => {}
        () = tokio::time::sleep(STOP_TIMEOUT) => {
            tracing::warn!("some clients did not agree to close in time");
        }
        () = signals.next() => tracing::warn!("asked again: not waiting for clients"),
    }
    node.close();
    tracing::info!("stopped");
    Ok(())
}

/// Takes as many file descriptors as the system lets us have: every client needs one.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%error, limit = ?limit.current, "cannot raise the limit of open files");
    }
}

/// The signals that ask the broker to stop.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Watches for them from now on.
    fn watch() -> Result<Self, StartError> {
        let terminate = signal(SignalKind::terminate()).map_err(StartError::Signals)?;
        let interrupt = signal(SignalKind::interrupt()).map_err(StartError::Signals)?;
        Ok(Self { terminate, interrupt })
    }

    /// The next of them.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
