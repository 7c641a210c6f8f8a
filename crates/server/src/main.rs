//! The broker: `leveret [--config FILE] [--data-dir DIR] [--amqp ADDR:PORT] [--http ADDR:PORT]`.
//!
//! This crate is the shell around the pure ones: sockets, tasks, the clock, the vhosts' locks, the
//! timer, configuration. It decides nothing about messages.

mod alarms;
mod auth;
mod cli;
mod clock;
mod config;
mod connection;
mod data_dir;
mod definitions;
mod limits;
mod listener;
mod logging;
mod node;
mod password;
mod read_buffer;
mod timer;
mod vhosts;
mod wire;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use crate::config::Config;
use crate::limits::STOP_TIMEOUT;
use crate::node::{Node, StartError};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    let config = match arguments.config() {
        Ok(config) => config,
        Err(error) => return cli::fail(&error),
    };
    logging::start(&config.log_level, config.log_format);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return cli::fail(&error),
    };
    match runtime.block_on(run(&config)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the broker until it is asked to stop.
async fn run(config: &Config) -> Result<(), StartError> {
    let mut listeners = Vec::new();
    for address in &config.amqp_listeners {
        listeners.push(listener::bind("AMQP", *address).await?);
    }
    let http = listener::bind("HTTP", config.http_listener).await?;
    let node = Arc::new(Node::start(config)?);
    let (alive, mut gone) = mpsc::channel::<()>(1);
    let (stop, stopping) = watch::channel(false);
    let addresses: Vec<String> = listeners
        .iter()
        .filter_map(|listener| listener.local_addr().ok())
        .map(|address| address.to_string())
        .collect();
    for listener in listeners {
        let accepting =
            listener::accept(listener, Arc::clone(&node), alive.clone(), stopping.clone());
        tokio::spawn(accepting);
    }
    let http_address = http.local_addr().map(|address| address.to_string()).unwrap_or_default();
    let as_seen_by_http: Arc<dyn management::Node> = Arc::clone(&node) as _;
    tokio::spawn(axum::serve(http, management::router(as_seen_by_http)).into_future());
    tokio::spawn(alarms::watch_memory(Arc::clone(&node)));
    drop(alive);
    tracing::info!(
        "leveret {} started: AMQP on {}, HTTP on {}, data in {}, messages in memory",
        env!("CARGO_PKG_VERSION"),
        addresses.join(" and "),
        http_address,
        config.data_dir.display()
    );
    wait_for_stop().await;
    tracing::info!("stopping");
    stop.send_replace(true);
    node.stop();
    // Every connection holds a sender until it has ended.
    if tokio::time::timeout(STOP_TIMEOUT, gone.recv()).await.is_err() {
        tracing::warn!("some clients did not agree to close in time");
    }
    tracing::info!("stopped");
    Ok(())
}

/// Waits for SIGTERM or SIGINT.
async fn wait_for_stop() {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::warn!("cannot listen for signals: kill this process to stop it");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
