//! The leads of this node: their transfer to other nodes by command, for balance, and before the node stops.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::disk::vhost_files::VhostId;
use crate::limits::{LEADER_CHECK_INTERVAL, LEADER_WAIT, LEADS_TRANSFER_TIMEOUT};
use crate::node::Node;
use crate::peers::questions::{leader_request, names_leader};
use crate::replicas::TransferError;
use crate::requests::ChangeError;

impl Node {
    /// Transfers the lead of a vhost to the named node, or to the one that is most up to date. Returns the name of the
    /// leader then.
    ///
    /// # Errors
    /// If this node does not lead, or goes on to.
    pub async fn transfer_leader(
        &self,
        vhost: &str,
        to: Option<&str>,
    ) -> Result<String, ChangeError> {
        let handle = self.vhosts.get(vhost).ok_or(ChangeError::NoSuchVhost)?;
        let Some(replication) = &self.replication else {
            let text = "this node is not one of a cluster: it leads all its vhosts";
            return Err(ChangeError::Invalid(text.to_owned()));
        };
        let unknown =
            |name: &str| ChangeError::Invalid(format!("node '{name}' is not one of the cluster"));
        let nodes = replication.replicator.nodes();
        let to = to.map(|name| nodes.named(name).ok_or_else(|| unknown(name))).transpose()?;
        if !handle.is_led_here() {
            return Err(handle.not_leading().into());
        }
        if to != Some(nodes.me) {
            let transferred = replication.replicator.transfer(handle.id(), to).await;
            match transferred {
                Ok(()) => {}
                Err(TransferError::NotLeading) => return Err(handle.not_leading().into()),
                Err(error) => return Err(ChangeError::Unable(format!("vhost '{vhost}': {error}"))),
            }
        }
        self.vhosts.leader_settled(vhost).await;
        let handle = self.vhosts.get(vhost).ok_or(ChangeError::NoSuchVhost)?;
        let leader = handle.leader().ok_or_else(|| ChangeError::from(handle.not_leading()))?;
        if to.is_some_and(|to| nodes.name_of(to).is_some_and(|to| to != leader)) {
            return Err(handle.not_leading().into());
        }
        self.leader_named(vhost, &leader).await;
        Ok(leader.to_string())
    }

    /// Waits until every node that is connected names this leader of a vhost, or it leads no more, but no longer than
    /// [`LEADER_WAIT`]: whoever has transferred a lead sees the new leader on all nodes.
    async fn leader_named(&self, vhost: &str, leader: &str) {
        let leads = || {
            let known = self.vhosts.get(vhost).and_then(|handle| handle.leader());
            known.is_some_and(|known| *known == *leader)
        };
        let wait = async {
            for peer in self.connected_peers() {
                while leads() && self.connected_peers().contains(&peer) {
                    let answer = self.answer_of_peer(&peer, leader_request(vhost), LEADER_WAIT);
                    if let Ok(answer) = answer.await
                        && names_leader(answer, leader).await
                    {
                        break;
                    }
                    tokio::time::sleep(LEADER_CHECK_INTERVAL).await;
                }
            }
        };
        // A node that is late names it later.
        let _ = tokio::time::timeout(LEADER_WAIT, wait).await;
    }

    /// Transfers leads of these vhosts, one at a time, until this node has no more than its share of them. Returns the vhosts
    /// that another node leads now.
    pub async fn rebalance_leaders(&self, vhosts: &[String]) -> Vec<String> {
        let mut moved = Vec::new();
        let Some(replication) = &self.replication else { return moved };
        let nodes = replication.replicator.nodes();
        let me = Arc::clone(&nodes.my_name);
        let mut counts: BTreeMap<Arc<str>, usize> =
            nodes.sorted_names().into_iter().map(|name| (name, 0)).collect();
        let mut mine = Vec::new();
        for handle in vhosts.iter().filter_map(|name| self.vhosts.get(name)) {
            let Some(leader) = handle.leader() else { continue };
            if leader == me {
                mine.push(handle.name().to_owned());
            }
            if let Some(count) = counts.get_mut(&leader) {
                *count += 1;
            }
        }
        for vhost in mine {
            let own = counts.get(&me).copied().unwrap_or_default();
            let mut others: Vec<(usize, Arc<str>)> =
                counts.iter().map(|(name, count)| (*count, Arc::clone(name))).collect();
            others.sort_unstable();
            // One that is away takes no lead; the next one may.
            let takes = others.into_iter().filter(|(count, name)| *name != me && count + 1 < own);
            for (_, name) in takes {
                if self.transfer_leader(&vhost, Some(&name)).await.is_ok() {
                    *counts.entry(name).or_default() += 1;
                    *counts.entry(Arc::clone(&me)).or_insert(1) -= 1;
                    moved.push(vhost);
                    break;
                }
            }
        }
        moved
    }

    /// Transfers all leads, so that other nodes serve before the clients of this one are closed. Those that no other node
    /// takes in time stay.
    pub(crate) async fn transfer_all_leads(&self) {
        let Some(replication) = &self.replication else { return };
        let mut transfers = tokio::task::JoinSet::new();
        let vhosts = self.vhosts.all().into_iter().map(|handle| handle.id());
        for id in vhosts.chain([VhostId::METADATA]) {
            let replicator = Arc::clone(&replication.replicator);
            transfers.spawn(async move { replicator.transfer(id, None).await });
        }
        let mut kept = 0;
        let all = async {
            while let Some(transferred) = transfers.join_next().await {
                let is_kept =
                    matches!(transferred, Ok(Err(error)) if error != TransferError::NotLeading);
                kept += u32::from(is_kept);
            }
        };
        let is_late = tokio::time::timeout(LEADS_TRANSFER_TIMEOUT, all).await.is_err();
        if is_late || kept > 0 {
            tracing::warn!(kept, is_late, "no other node has taken the lead of some vhosts");
        }
    }

    /// Lets this node lead only what no other can, and transfers what it leads; or takes that back.
    pub(crate) async fn drain_leads(&self, is_drained: bool) {
        self.lifecycle.is_drained.store(is_drained, std::sync::atomic::Ordering::Release);
        if is_drained {
            tracing::info!(
                "the node is drained: it accepts no AMQP clients, and lets other nodes lead"
            );
        } else {
            tracing::info!("the node is not drained any more");
        }
        let Some(replication) = &self.replication else { return };
        replication.replicator.set_reluctant(is_drained);
        if is_drained {
            self.transfer_all_leads().await;
            let names = self.vhosts.all().into_iter().map(|handle| handle.name().to_owned());
            let settled = async {
                for name in names {
                    self.vhosts.leader_settled(&name).await;
                }
                self.leader_of_metadata_settled().await;
            };
            // Whoever asks sees what there is after the time.
            let _ = tokio::time::timeout(LEADS_TRANSFER_TIMEOUT, settled).await;
        }
    }
}
