//! A node that belongs to no founded cluster asks others whether it may join theirs.

use std::path::Path;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::join::{JoinAnswer, JoinQuestion, JoinedCluster, ask};
use crate::clock::Clock;
use crate::cluster::links::dial::DialError;
use crate::cluster::links::registry::{ClusterError, Links};
use crate::cluster::refusal::{Refusal, RefusalCode};
use crate::config::{ClusterNode, ClusterOptions};
use crate::disk::content;
use crate::disk::json_files::cluster_file;
use crate::membership::founding::ClusterRecord;
use crate::membership::ids::{ClusterId, DiskId};

/// Nodes that are asked one after the other, because each names the next.
const HOPS_MAX: usize = 4;

/// The result of asking other nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SeekOutcome {
    /// The record for `cluster.json` of a node that belongs to the cluster of another one.
    Found(ClusterRecord),
    /// No node that answers belongs to a founded cluster.
    Nobody,
    /// As [`SeekOutcome::Nobody`], because a node cannot be asked, for this reason.
    Silent(String),
    /// A decision is not possible now, for this reason.
    NotNow(String),
    /// A node refuses.
    Refused { node: String, reason: String },
}

/// Asks other nodes for a node that has not met its cluster.
#[derive(Debug)]
pub(crate) struct Seeker {
    links: Arc<Links>,
    own: ClusterNode,
    question: JoinQuestion,
}

impl Seeker {
    /// A node of this name and address, whose options list it. Draws the id of its disk, which is in `cluster.json` on
    /// return.
    ///
    /// # Errors
    /// [`ClusterError`], a sentence for the operator.
    pub(crate) fn new(
        options: &ClusterOptions,
        own: ClusterNode,
        data_dir: &Path,
        clock: Clock,
    ) -> Result<Self, ClusterError> {
        let record = match cluster_file::read(data_dir)? {
            Some(record) => record,
            None => {
                let disk = DiskId::first(getrandom::u64()?);
                let record = ClusterRecord::new(&own.name, ClusterId::UNKNOWN, disk);
                cluster_file::write(data_dir, &record)?;
                record
            }
        };
        let content = content::of(data_dir).map_err(ClusterError::Content)?;
        let options = ClusterOptions { nodes: vec![own.clone()], ..options.clone() };
        // Nothing but the disk counts when a node joins.
        let record = ClusterRecord::new(&own.name, ClusterId::UNKNOWN, record.disk);
        let links = Links::unstarted(&options, data_dir, clock, record)?;
        let question = JoinQuestion { host: own.host.clone(), port: own.port, content };
        Ok(Self { links, own, question })
    }

    /// Asks all nodes at once, but this one.
    pub(crate) async fn ask_all(&self, nodes: &[ClusterNode]) -> SeekOutcome {
        let mut asked = JoinSet::new();
        for node in nodes.iter().filter(|node| node.name != self.own.name) {
            let (links, question) = (Arc::clone(&self.links), self.question.clone());
            asked.spawn(ask_through(links, node.clone(), question));
        }
        let mut result = SeekOutcome::Nobody;
        while let Some(answered) = asked.join_next().await {
            // One that panics has answered nothing.
            let Ok((node, answered)) = answered else { continue };
            let outcome = self.judge(&node, answered);
            if rank(&outcome) > rank(&result) {
                result = outcome;
            }
        }
        result
    }

    fn judge(&self, node: &str, answered: Result<JoinAnswer, DialError>) -> SeekOutcome {
        let own = &self.own.name;
        match answered {
            // A founder that the others know already, and that is about to hear so from their links: what it has is the
            // cluster's, and must not be given up.
            Ok(JoinAnswer::Admitted(..)) if self.question.content.is_some() => SeekOutcome::Nobody,
            Ok(JoinAnswer::Admitted(joined, disk)) => {
                let JoinedCluster { cluster, position, nodes } = joined;
                let others = nodes.members().filter(|(name, _)| name != own);
                let peers = others.map(|(name, node)| (name.to_owned(), node.disk)).collect();
                SeekOutcome::Found(ClusterRecord {
                    is_founded: true,
                    is_newcomer: true,
                    peers,
                    nodes: nodes.into(),
                    nodes_position: position,
                    ..ClusterRecord::new(own, cluster, disk)
                })
            }
            Ok(JoinAnswer::LostDisk(JoinedCluster { cluster, position, nodes })) => {
                let disk = self.links.record().disk;
                let record = ClusterRecord::new(own, cluster, disk);
                SeekOutcome::Found(ClusterRecord {
                    nodes: nodes.into(),
                    nodes_position: position,
                    ..record
                })
            }
            Ok(JoinAnswer::NotFounded) => SeekOutcome::Nobody,
            Ok(JoinAnswer::Ask(leader)) => {
                SeekOutcome::NotNow(format!("node '{node}' does not decide, but '{}'", leader.name))
            }
            Ok(JoinAnswer::NotNow(reason)) => SeekOutcome::NotNow(reason),
            Ok(JoinAnswer::Refused(reason)) => {
                SeekOutcome::Refused { node: node.to_owned(), reason }
            }
            // The peer is about to start its service, or to stop.
            Err(DialError::Refused(Refusal::FromPeer(
                RefusalCode::Purpose | RefusalCode::Busy,
            ))) => SeekOutcome::NotNow(format!("node '{node}' does not decide now")),
            Err(error) => {
                tracing::debug!(node, "asked whether this node may join: {error}");
                SeekOutcome::Silent(error.to_string())
            }
        }
    }
}

/// The answer of one node counts more than that of another one.
const fn rank(outcome: &SeekOutcome) -> u8 {
    match outcome {
        SeekOutcome::Nobody => 0,
        SeekOutcome::Silent(_) => 1,
        SeekOutcome::NotNow(_) => 2,
        SeekOutcome::Refused { .. } => 3,
        SeekOutcome::Found(_) => 4,
    }
}

/// Asks a node, and those that it names. Returns the name of the last one with its answer.
async fn ask_through(
    links: Arc<Links>,
    mut node: ClusterNode,
    question: JoinQuestion,
) -> (String, Result<JoinAnswer, DialError>) {
    let mut answered = ask(&links, &node, &question).await;
    for _ in 1..HOPS_MAX {
        let Ok(JoinAnswer::Ask(next)) = answered else { break };
        node = next;
        answered = ask(&links, &node, &question).await;
        if answered.is_err() {
            let reason = format!("node '{}', which decides, does not answer", node.name);
            answered = Ok(JoinAnswer::NotNow(reason));
        }
    }
    (node.name, answered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::node_list::{ListedNode, NodeList};

    fn seeker(content: Option<&str>) -> Seeker {
        let (name, host, key) = ("d@h".to_owned(), "h".to_owned(), String::new());
        let own = ClusterNode { name, host: host.clone(), port: 4, key };
        let secret = Some("the secret of a cluster".to_owned());
        let options = ClusterOptions { nodes: vec![own.clone()], secret, ..Default::default() };
        let record = ClusterRecord::new(&own.name, ClusterId::UNKNOWN, DiskId(7));
        let (path, clock) = (Path::new("."), Clock::start());
        let links = Links::with_record(&options, &own.name, path, clock, None, Some(record));
        let question = JoinQuestion { host, port: 4, content: content.map(str::to_owned) };
        Seeker { links: links.unwrap(), own, question }
    }

    fn joined() -> JoinedCluster {
        let node = |port| ListedNode {
            host: "h".to_owned(),
            port,
            disk: DiskId(u64::from(port)),
            joins: 0,
            is_forgotten: port == 2,
        };
        let nodes = [("a@h", 1), ("b@h", 2), ("d@h", 4)];
        let nodes = NodeList(nodes.map(|(name, port)| (name.to_owned(), node(port))).into());
        JoinedCluster { cluster: ClusterId(5), position: 9, nodes }
    }

    #[test]
    fn admitted_node_begins_with_the_list_and_its_disk() {
        let outcome = seeker(None).judge("a@h", Ok(JoinAnswer::Admitted(joined(), DiskId(8))));
        let SeekOutcome::Found(record) = outcome else { panic!("{outcome:?}") };
        assert!(record.is_founded && record.is_newcomer && record.disk == DiskId(8));
        assert_eq!(record.peers, [("a@h".to_owned(), DiskId(1))].into());
        assert_eq!((record.cluster, record.nodes_position), (ClusterId(5), 9));
        let outcome = seeker(None).judge("a@h", Ok(JoinAnswer::LostDisk(joined())));
        let SeekOutcome::Found(record) = outcome else { panic!("{outcome:?}") };
        assert!(!record.is_founded && record.disk == DiskId(7) && *record.nodes == joined().nodes);
    }

    #[test]
    fn founder_with_content_gives_up_nothing() {
        let admitted = Ok(JoinAnswer::Admitted(joined(), DiskId(7)));
        assert_eq!(
            seeker(Some("vhost '/' has 3 records")).judge("a@h", admitted),
            SeekOutcome::Nobody
        );
    }

    #[test]
    fn answers_that_decide_count_more() {
        let seeker = seeker(None);
        let answers = [
            Err(DialError::Timeout),
            Err(DialError::Refused(Refusal::FromPeer(RefusalCode::Purpose))),
            Ok(JoinAnswer::Refused("full".to_owned())),
            Ok(JoinAnswer::Admitted(joined(), DiskId(7))),
        ];
        let ranks: Vec<u8> =
            answers.into_iter().map(|answer| rank(&seeker.judge("a@h", answer))).collect();
        assert_eq!(ranks, [1, 2, 3, 4]);
    }
}
