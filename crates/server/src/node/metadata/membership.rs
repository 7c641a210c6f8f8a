//! The nodes of the cluster: their list in the metadata, nodes that join, and nodes that are forgotten.
//!
//! The node that leads the metadata decides. Every node takes the list when it follows the metadata: its links and its
//! replicator then know the new nodes, and the forgotten ones no more. A node that has joined gets the metadata and the
//! vhosts as one does whose disk was replaced: it asks their leaders, which add it as a learner, send their files, and
//! promote it. Leaders remove the members of forgotten nodes, one at a time, while a majority of the others is there.

use std::sync::{Arc, Weak};
use std::time::Instant;

use tokio::runtime::Handle;

use crate::cluster::joining::join::{
    JoinAnswer, JoinQuestion, JoinedCluster, read_question, write_answer,
};
use crate::cluster::levels;
use crate::cluster::{NodeStream, StreamHandler};
use crate::disk::json_files::node_file::NodeFileError;
use crate::disk::stand_alone::{self, StandAloneError};
use crate::limits::{FORGET_SETTLE, FORGET_SETTLE_INTERVAL};
use crate::membership::ids::{DiskId, NodeId};
use crate::membership::node_list::{Admission, Joining, ListedNode, NodeList};
use crate::node::Node;
use crate::node::lifecycle::ExitReason;
use crate::node::metadata::followed::NodeMetadata;
use crate::node::metadata::unable;
use crate::requests::{ChangeError, ForgetError, LifecycleError};

impl Node {
    /// True if the node has come later than its cluster: it has joined, or has replaced a lost disk.
    pub(crate) fn is_newcomer(&self) -> bool {
        self.cluster.as_ref().is_some_and(|links| links.is_newcomer())
    }

    /// The list of a cluster that begins: the nodes of the configuration, with their disks.
    pub(super) fn founders(&self) -> NodeList {
        let Some(links) = &self.cluster else { return NodeList::default() };
        let disks = links.disks();
        let listed = links.options.nodes.iter().filter_map(|node| {
            let disk = *disks.get(&NodeId::of(&node.name))?;
            let (host, port) = (node.host.clone(), node.port);
            let listed = ListedNode { host, port, disk, joins: 0, is_forgotten: false };
            Some((node.name.clone(), listed))
        });
        NodeList(listed.collect())
    }

    /// Takes the list that the metadata have at a position.
    ///
    /// # Errors
    /// The list cannot be written to the disk.
    pub(super) fn settle_nodes(
        &self,
        nodes: &NodeList,
        position: u64,
    ) -> Result<(), NodeFileError> {
        let Some(links) = &self.cluster else { return Ok(()) };
        if !nodes.is_empty() && links.set_nodes(nodes, position)? {
            self.follow_nodes();
        }
        Ok(())
    }

    /// Lets replication follow the list of the nodes, after the links.
    pub(in crate::node) fn follow_nodes(&self) {
        let (Some(links), Some(replication)) = (&self.cluster, &self.replication) else { return };
        replication.follow_nodes(links);
        let count = links.peers().len() + 1;
        if count.is_multiple_of(2) {
            tracing::warn!(
                nodes = count,
                "the cluster has an even number of nodes: it survives the loss of {}, as one with {} nodes does",
                count / 2 - 1,
                count - 1
            );
        }
    }

    /// Answers a node that asks to join.
    fn answer_joining(
        &self,
        name: &str,
        question: JoinQuestion,
        (disk, record_level): (DiskId, u16),
    ) -> JoinAnswer {
        let (Some(links), Some(metadata)) = (&self.cluster, &self.metadata) else {
            return JoinAnswer::NotFounded;
        };
        if !links.is_founded() {
            return JoinAnswer::NotFounded;
        }
        if !metadata.store.is_leading() {
            let leader = metadata.store.leader();
            let peers = links.peers();
            let leader = leader.and_then(|name| peers.iter().find(|it| *it.node.name == *name));
            return match leader {
                Some(leader) => JoinAnswer::Ask(leader.node.clone()),
                None => JoinAnswer::NotNow("no node leads the metadata of the cluster".to_owned()),
            };
        }
        let _one_at_a_time = self.changes.lock();
        if let Err(error) = self.begin_change_of_metadata() {
            return JoinAnswer::NotNow(error.to_string());
        }
        if let Err(refusal) = levels::check_peer(name, record_level, links.record_level()) {
            return JoinAnswer::Refused(refusal.to_string());
        }
        let JoinQuestion { host, port, content } = question;
        let joining = Joining { name: name.to_owned(), host, port, disk };
        let joined = || {
            let record = links.record();
            let (cluster, position) = (record.cluster, record.nodes_position);
            JoinedCluster { cluster, position, nodes: NodeList::clone(&record.nodes) }
        };
        match links.nodes().admit(&joining) {
            Ok(Admission::Listed(disk)) => JoinAnswer::Admitted(joined(), disk),
            Ok(Admission::LostDisk) => JoinAnswer::LostDisk(joined()),
            Ok(Admission::New(node)) => {
                if let Some(content) = content {
                    return JoinAnswer::Refused(format!(
                        "the node has content of its own ({content}), which the cluster does not take: reset it first"
                    ));
                }
                let disk = node.disk;
                if let Err(error) = self.change_node(metadata, name, &node) {
                    return JoinAnswer::NotNow(error.to_string());
                }
                tracing::info!(node = name, "the node joins the cluster");
                JoinAnswer::Admitted(joined(), disk)
            }
            Err(problem) => JoinAnswer::Refused(problem.to_string()),
        }
    }

    /// Puts a node into the list.
    fn change_node(
        &self,
        metadata: &NodeMetadata,
        name: &str,
        node: &ListedNode,
    ) -> Result<(), ChangeError> {
        let changes = self.node_changes(name, node);
        metadata.store.change(changes).map_err(|error| unable(&error))?;
        self.settle_everywhere(metadata).map_err(ChangeError::Unable)
    }

    /// Forgets a node that is not up. This node leads the metadata.
    pub(crate) fn forget(&self, name: &str) -> Result<(), ForgetError> {
        let (Some(links), Some(metadata)) = (&self.cluster, &self.metadata) else {
            return Err(ForgetError::NoCluster);
        };
        let needed_by = self.leaderless_without(name);
        let _one_at_a_time = self.changes.lock();
        self.begin_change_of_metadata()?;
        let id = NodeId::of(name);
        let forgotten = links.nodes().forgotten(name, links.disks().get(&id).copied());
        let forgotten = forgotten.ok_or(ForgetError::NoSuchNode)?;
        let is_connected =
            || links.peer(id).is_some_and(|peer| peer.state.lock().current.is_some());
        if name == self.identity.name || is_connected() {
            return Err(ForgetError::IsUp);
        }
        if !needed_by.is_empty() {
            return Err(ForgetError::NeededBy(needed_by));
        }
        self.change_node(metadata, name, &forgotten)?;
        tracing::warn!(node = name, "the node is forgotten: it is not one of the cluster any more");
        Ok(())
    }
}

impl Node {
    /// Names of the vhosts with a replica on a node that is not up, which have no leader. A node that is down since a moment
    /// may be replaced as a leader within the next one: waits for that, [`FORGET_SETTLE`] at the most.
    fn leaderless_without(&self, name: &str) -> Vec<String> {
        let ends = Instant::now() + FORGET_SETTLE;
        loop {
            let mut vhosts = self.vhost_names();
            vhosts.retain(|vhost| {
                let Some(placement) = self.vhost_placement(vhost) else { return false };
                let leader = placement.leader.filter(|leader| leader != name);
                leader.is_none() && placement.members.iter().any(|member| member == name)
            });
            if vhosts.is_empty() || Instant::now() >= ends {
                return vhosts;
            }
            std::thread::sleep(FORGET_SETTLE_INTERVAL);
        }
    }

    /// Lets this node start anew without the others, whose majority is lost.
    ///
    /// # Errors
    /// [`LifecycleError`]: there is a majority, or this node lacks a replica.
    pub(crate) fn stand_alone(&self) -> Result<(), LifecycleError> {
        if let Some(leader) = self.metadata.as_ref().and_then(|metadata| metadata.store.leader()) {
            return Err(LifecycleError::Refused(format!(
                "the cluster has a majority, and '{leader}' leads it: take nodes that are gone out of it by \
                 forget_cluster_node"
            )));
        }
        stand_alone::begin(&self.disk.data_dir)?;
        self.lifecycle.shutdown.request(ExitReason::Restart);
        Ok(())
    }
}

impl From<StandAloneError> for LifecycleError {
    fn from(error: StandAloneError) -> Self {
        let is_refusal = matches!(
            error,
            StandAloneError::NoCluster
                | StandAloneError::IsAlone
                | StandAloneError::NoReplica { .. }
        );
        let refused = if is_refusal { Self::Refused } else { Self::Failed };
        refused(error.to_string())
    }
}

/// Answers nodes that ask to join.
#[derive(Debug)]
pub(crate) struct JoinDesk {
    node: Weak<Node>,
    /// Runs the answers, which wait for a majority.
    runtime: Handle,
}

impl JoinDesk {
    /// A desk whose answers run on the runtime of the caller.
    pub(crate) fn new(node: &Arc<Node>) -> Self {
        Self { node: Arc::downgrade(node), runtime: Handle::current() }
    }
}

impl StreamHandler for JoinDesk {
    fn accepted(&self, stream: NodeStream) {
        if let Some(node) = self.node.upgrade() {
            self.runtime.spawn(answer(node, stream));
        }
    }
}

async fn answer(node: Arc<Node>, mut stream: NodeStream) {
    let name = stream.peer.node.name.clone();
    let answered = match read_question(&mut stream).await {
        Ok(question) => {
            let told = (stream.disk, stream.record_level);
            let answer = tokio::task::block_in_place(|| node.answer_joining(&name, question, told));
            write_answer(&mut stream, &answer).await
        }
        Err(error) => Err(error),
    };
    if let Err(error) = answered {
        tracing::debug!(node = name, "a question about joining was cut off: {error}");
    }
}
