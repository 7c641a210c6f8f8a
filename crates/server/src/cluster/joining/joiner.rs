//! A node that joins the cluster of another one by command.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use super::seek::{SeekOutcome, Seeker};
use crate::clock::Clock;
use crate::cluster::links::registry::{Links, join_at_start};
use crate::config::{CLUSTER_PORT, ClusterNode, ClusterOptions, Config};
use crate::disk::json_files::cluster_file;
use crate::requests::LifecycleError;

/// A node that may join the cluster of another one, by command.
#[derive(Debug)]
pub(crate) struct Joiner {
    options: ClusterOptions,
    /// The node itself, with the address at which others reach it.
    own: ClusterNode,
    data_dir: PathBuf,
}

impl Joiner {
    /// A joiner with a configuration.
    pub(crate) fn new(config: &Config) -> Self {
        let options = config.cluster.clone();
        let name = config.full_node_name();
        let listed = options.nodes.iter().find(|node| node.name == name).cloned();
        let own = listed.unwrap_or_else(|| {
            let host = name.split_once('@').map_or("", |(_, host)| host).to_owned();
            let port = options.listeners.first().map_or(CLUSTER_PORT, SocketAddr::port);
            ClusterNode { name, host, port, key: "join_cluster".to_owned() }
        });
        Self { options, own, data_dir: config.data_dir.clone() }
    }

    /// Joins the cluster of the node that `seed` names: the next start takes part in it. `links` are those of a node that
    /// runs with a cluster.
    ///
    /// # Errors
    /// [`LifecycleError`], a sentence for the operator.
    pub(crate) async fn join(
        &self,
        seed: &str,
        links: Option<&Arc<Links>>,
    ) -> Result<(), LifecycleError> {
        let refused = LifecycleError::Refused;
        let seed = ClusterNode::parse(seed, "join_cluster")
            .map_err(|why| refused(format!("the node {why}")))?;
        if seed.name == self.own.name {
            return Err(refused("a node cannot join itself".to_owned()));
        }
        let failed = |error: &dyn std::fmt::Display| LifecycleError::Failed(error.to_string());
        let known = cluster_file::read(&self.data_dir).map_err(|error| failed(&error))?;
        if known.is_some_and(|known| known.is_founded) {
            let text = "the node belongs to a cluster already: reset it first".to_owned();
            return Err(refused(text));
        }
        let seeker = Seeker::new(&self.options, self.own.clone(), &self.data_dir, Clock::start());
        let seeker = seeker.map_err(|error| refused(error.to_string()))?;
        match seeker.ask_all(std::slice::from_ref(&seed)).await {
            SeekOutcome::Found(record) if record.is_founded => {
                let written = match links {
                    Some(links) => links.write_joined(&record),
                    None => join_at_start(&self.data_dir, &record).map(|()| true),
                };
                match written.map_err(|error| failed(&error))? {
                    true => {
                        tracing::info!(cluster = %record.cluster, "this node joins a cluster");
                        Ok(())
                    }
                    false => Err(refused("the node belongs to a cluster already".to_owned())),
                }
            }
            SeekOutcome::Found(_) => Err(refused(format!(
                "the cluster of node '{}' knows this node with another disk, which it has lost: forget it there \
                 (forget_cluster_node {}), and join again",
                seed.name, self.own.name
            ))),
            SeekOutcome::Nobody => Err(refused(format!(
                "node '{}' belongs to no cluster that is founded: its configuration must list nodes, at least itself, and \
                 all of them must have met",
                seed.name
            ))),
            SeekOutcome::Silent(reason) => Err(refused(format!(
                "node '{}' cannot be asked at {}, where its links must listen: {reason}",
                seed.name,
                seed.address()
            ))),
            SeekOutcome::NotNow(reason) => Err(refused(reason)),
            SeekOutcome::Refused { node, reason } => {
                Err(refused(format!("node '{node}' does not take this node in: {reason}")))
            }
        }
    }
}
