//! A member of a cluster whose node is stopped: it asks the other nodes before it leaves them, or goes on without them.

use std::path::Path;
use std::sync::Arc;

use axum::http::{Method, StatusCode};

use crate::clock::Clock;
use crate::cluster::{ClusterError, DialError, Links, NodeStream, Purpose, Refusal, RefusalCode};
use crate::config::ClusterOptions;
use crate::disk::json_files::cluster_file;
use crate::limits::FORGET_TIMEOUT;
use crate::peers::answer_on;
use crate::peers::request::{reason_of, request_of_node};

/// The member, by what its disk tells.
#[derive(Debug)]
pub(crate) struct StoppedMember {
    links: Arc<Links>,
}

/// The result of leaving the cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum LeaveOutcome {
    /// The others do not know the node any more, or never took it in.
    Yes,
    /// For this reason, the node is still a member.
    No(String),
}

impl StoppedMember {
    /// The member of a founded cluster; none without one.
    ///
    /// # Errors
    /// [`ClusterError`], a sentence for the operator.
    pub(crate) fn of(
        options: &ClusterOptions,
        data_dir: &Path,
    ) -> Result<Option<Self>, ClusterError> {
        let Some(record) = cluster_file::read(data_dir)?.filter(|record| record.is_founded) else {
            return Ok(None);
        };
        let nodes = match record.nodes.is_empty() {
            true => options.nodes.clone(),
            false => record.nodes.to_config(&options.nodes),
        };
        if nodes.iter().all(|node| node.name == record.node) {
            return Ok(None);
        }
        let options = ClusterOptions { nodes, ..options.clone() };
        let links = Links::unstarted(&options, data_dir, Clock::start(), record)?;
        Ok(Some(Self { links }))
    }

    /// The name of another node that runs and knows this one as a member, if there is one.
    pub(crate) async fn running_member(&self) -> Option<String> {
        for peer in self.links.peers().iter() {
            if self.links.dial_peer(peer, Purpose::Http).await.is_ok() {
                return Some(peer.node.name.clone());
            }
        }
        None
    }

    /// Lets the other nodes forget this one.
    pub(crate) async fn leave(&self) -> LeaveOutcome {
        let mut why = LeaveOutcome::Yes;
        for peer in self.links.peers().iter() {
            let name = &peer.node.name;
            why = match self.links.dial_peer(peer, Purpose::Http).await {
                Ok(stream) => match self.ask_to_forget(stream).await {
                    Ok(()) => return LeaveOutcome::Yes,
                    Err((StatusCode::CONFLICT, reason)) => {
                        return LeaveOutcome::No(format!(
                            "node '{name}' does not forget it: {reason}"
                        ));
                    }
                    // Another node may lead.
                    Err((_, reason)) => {
                        LeaveOutcome::No(format!("node '{name}' does not forget it: {reason}"))
                    }
                },
                Err(DialError::Refused(refusal)) if is_stranger(&refusal) => {
                    return LeaveOutcome::Yes;
                }
                Err(_) if why != LeaveOutcome::Yes => why,
                Err(error) => LeaveOutcome::No(format!("node '{name}' cannot be asked: {error}")),
            };
        }
        why
    }

    /// Asks a node to forget this one. An error is its status and the reason.
    async fn ask_to_forget(&self, stream: NodeStream) -> Result<(), (StatusCode, String)> {
        let path = format!("/api/nodes/{}", self.links.name);
        let request = request_of_node(Method::DELETE, &path, Vec::new());
        let answer = answer_on(stream, request, FORGET_TIMEOUT).await;
        let answer = answer.map_err(|reason| (StatusCode::SERVICE_UNAVAILABLE, reason))?;
        let status = answer.status();
        if status == StatusCode::NO_CONTENT || status == StatusCode::NOT_FOUND {
            return Ok(());
        }
        Err((status, reason_of(answer).await))
    }
}

/// True if a node that refuses this one, or that this one refuses, does not know it as a member.
fn is_stranger(refusal: &Refusal) -> bool {
    matches!(
        refusal.code(),
        RefusalCode::Forgotten
            | RefusalCode::Disk
            | RefusalCode::OwnDisk
            | RefusalCode::Cluster
            | RefusalCode::Node
    )
}
