//! The nodes of a cluster at the start of one of them: those that the node remembers, those of a cluster that it joins,
//! or those that the configuration lists or DNS finds.
//!
//! A node without `cluster.json`, or one that has not met all others, first asks the listed nodes whether they belong to a
//! cluster already. If so, it joins that one; a second cluster is never founded beside it. If nobody is there, the
//! nodes found the cluster when all have met; a node that learns later that the others had one, joins it then
//! ([`seek_while_unfounded`]).

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::watch;

use super::discovery::{self, Resolver, WaitLog};
use super::seek::{SeekOutcome, Seeker};
use crate::clock::Clock;
use crate::cluster::links::registry::{ClusterError, Links, join_at_start, stopped};
use crate::config::{ClusterNode, ClusterOptions, Config};
use crate::disk::data_dir::DataDir;
use crate::disk::json_files::cluster_file;
use crate::disk::{reset, stand_alone};
use crate::limits::{DNS_RETRY_INTERVAL, JOIN_RETRY_INTERVAL, JOIN_SEEK_INTERVAL};
use crate::membership::founding::ClusterRecord;
use crate::service_state;

/// The configuration with the nodes of the cluster, as far as they are others than it lists. Waits until they are known.
///
/// # Errors
/// [`ClusterError`], a sentence for the operator.
pub(crate) async fn complete(
    config: &Config,
    resolver: Arc<dyn Resolver>,
) -> Result<Option<Config>, ClusterError> {
    // Nobody else may change the directory meanwhile. Without a cluster the start takes the lock later.
    let lock = match config.cluster.is_on() || config.data_dir.join(cluster_file::NAME).exists() {
        true => DataDir::open(&config.data_dir)?,
        false => return Ok(None),
    };
    reset::finish(&config.data_dir).map_err(ClusterError::Reset)?;
    stand_alone::finish(&config.data_dir)?;
    let known = cluster_file::read(&config.data_dir)?;
    if let Some(record) = known.as_ref().filter(|record| !record.nodes.is_empty()) {
        return Ok(Some(with_record(config, record)));
    }
    let own = config.full_node_name();
    let completed = match &config.cluster.dns {
        Some(dns) => match known.as_ref().and_then(discovery::remembered) {
            Some(names) => {
                Ok(Some(with_nodes(config, discovery::found_nodes(config, dns, &names))))
            }
            None => find(config, &own, dns, known.as_ref(), resolver).await,
        },
        None if config.cluster.is_on() && !known.is_some_and(|known| known.is_founded) => {
            join_listed(config, &own).await
        }
        None => Ok(None),
    };
    drop(lock);
    completed
}

/// The configuration with the nodes that `cluster.json` lists.
fn with_record(config: &Config, record: &ClusterRecord) -> Config {
    let nodes = record.nodes.to_config(&config.cluster.nodes);
    let names = |nodes: &[ClusterNode]| -> BTreeSet<String> {
        nodes.iter().map(|node| node.name.clone()).collect()
    };
    let (ours, configured) = (names(&nodes), names(&config.cluster.nodes));
    if !configured.is_empty() && ours != configured {
        let list = |names: &BTreeSet<String>| Vec::from_iter(names.iter().cloned()).join(", ");
        tracing::info!(
            configured = list(&configured),
            nodes = list(&ours),
            "the configuration lists other nodes than the cluster has: it counts at the first start only; nodes join \
             by themselves or by join_cluster, and leave by forget_cluster_node"
        );
    }
    with_nodes(config, nodes)
}

fn with_nodes(config: &Config, nodes: Vec<ClusterNode>) -> Config {
    let mut config = config.clone();
    config.cluster.nodes = nodes;
    config
}

/// Joins the cluster of the nodes that the configuration lists, if they have one. None if nobody has.
async fn join_listed(config: &Config, own: &str) -> Result<Option<Config>, ClusterError> {
    let nodes = &config.cluster.nodes;
    let listed = nodes.iter().find(|node| node.name == own);
    let Some(listed) = listed.filter(|_| nodes.len() > 1) else { return Ok(None) };
    let seeker = Seeker::new(&config.cluster, listed.clone(), &config.data_dir, Clock::start())?;
    let mut log = Waits::new("this node waits to join its cluster");
    loop {
        match seeker.ask_all(nodes).await {
            SeekOutcome::Nobody | SeekOutcome::Silent(_) => return Ok(None),
            SeekOutcome::Found(record) => return join(config, &record).map(Some),
            SeekOutcome::Refused { node, reason } => {
                return Err(ClusterError::NotAdmitted { node, reason });
            }
            SeekOutcome::NotNow(reason) => log.note(&reason),
        }
        tokio::time::sleep(JOIN_RETRY_INTERVAL).await;
    }
}

/// Waits until DNS lists all nodes of a cluster that is to be founded, or one of a cluster that this node joins.
async fn find(
    config: &Config,
    own: &str,
    dns: &crate::config::DnsDiscovery,
    known: Option<&ClusterRecord>,
    resolver: Arc<dyn Resolver>,
) -> Result<Option<Config>, ClusterError> {
    let mut log = Waits::new("waiting for the nodes of the cluster");
    let listed = config.cluster.found_node(own, dns);
    let seeker = Seeker::new(&config.cluster, listed, &config.data_dir, Clock::start())?;
    loop {
        let (hostname, looks_up) = (dns.hostname.clone(), Arc::clone(&resolver));
        let looked =
            tokio::task::spawn_blocking(move || discovery::look(&*looks_up, &hostname)).await;
        // A look that panics has found nothing.
        let listed = looked.unwrap_or_else(|error| Err(error.to_string()));
        let nodes = listed.as_ref().map(|listed| discovery::names(own, listed)).unwrap_or_default();
        let nodes = discovery::found_nodes(config, dns, &nodes);
        let outcome = seeker.ask_all(&nodes).await;
        let judged = listed.and_then(|listed| discovery::judge(own, dns, &listed, known));
        match (outcome, judged) {
            (SeekOutcome::Found(record), _) => return join(config, &record).map(Some),
            (SeekOutcome::Refused { node, reason }, _) => {
                return Err(ClusterError::NotAdmitted { node, reason });
            }
            (SeekOutcome::NotNow(reason), _)
            | (SeekOutcome::Nobody | SeekOutcome::Silent(_), Err(reason)) => log.note(&reason),
            (SeekOutcome::Nobody | SeekOutcome::Silent(_), Ok(names)) => {
                tracing::info!(nodes = names.join(", "), "DNS lists all nodes of the cluster");
                return Ok(Some(with_nodes(config, nodes)));
            }
        }
        tokio::time::sleep(DNS_RETRY_INTERVAL).await;
    }
}

/// Puts the record of a cluster that this node joins on the disk, and gives up what the node has begun before.
fn join(config: &Config, record: &ClusterRecord) -> Result<Config, ClusterError> {
    join_at_start(&config.data_dir, record)?;
    reset::finish(&config.data_dir).map_err(ClusterError::Reset)?;
    tracing::info!(cluster = %record.cluster, "this node joins a cluster");
    Ok(with_record(config, record))
}

/// Asks the listed nodes again and again while this node has not met all of them: they may belong to a cluster that it
/// could not ask at its start. True when it is to join that one: it must start anew.
pub(crate) async fn seek_while_unfounded(
    links: Arc<Links>,
    data_dir: &std::path::Path,
    mut stopping: watch::Receiver<bool>,
) -> bool {
    let options: &ClusterOptions = &links.options;
    let Some(own) = options.nodes.iter().find(|node| node.name == links.name) else { return false };
    loop {
        tokio::select! {
            () = tokio::time::sleep(JOIN_SEEK_INTERVAL) => {}
            () = stopped(&mut stopping) => return false,
        }
        if links.is_founded() || !links.nodes().is_empty() {
            return false;
        }
        // The directory is that of a running node: the disk is drawn, and nothing is written by the seeker.
        let outcome = match Seeker::new(options, own.clone(), data_dir, links.clock) {
            Ok(seeker) => seeker.ask_all(&options.nodes).await,
            Err(error) => {
                tracing::warn!("cannot ask whether this node may join a cluster: {error}");
                continue;
            }
        };
        let SeekOutcome::Found(record) = outcome else { continue };
        match links.write_joined(&record) {
            Ok(is_written) => return is_written,
            Err(error) => tracing::error!("this node cannot join a cluster: {error}"),
        }
    }
}

/// Logs why a start waits.
struct Waits {
    log: WaitLog,
    began: std::time::Instant,
    what: &'static str,
}

impl Waits {
    fn new(what: &'static str) -> Self {
        Self { log: WaitLog::default(), began: std::time::Instant::now(), what }
    }

    fn note(&mut self, reason: &str) {
        let Self { log, began, what } = self;
        service_state::start_step(&format!("{what}: {reason}"));
        if log.is_due(reason, began.elapsed()) {
            tracing::warn!("{what}: {reason}");
        }
    }
}
