//! The nodes that have vhosts: the node that leads the metadata chooses them when a vhost is made or changed, and when
//! nodes come or go; every node follows.

use std::collections::BTreeMap;
use std::sync::Arc;

use management::{ChangeError, VhostChange, VhostSettings};
use replication::MemberId;

use crate::cluster::PLACEMENT_LEVEL;
use crate::cluster::node_list::NodeList;
use crate::disk::node_file::VhostEntry;
use crate::metadata::placement::{Choice, Placement};
use crate::node::Node;

impl Node {
    /// Chooses the nodes of vhosts, of all nodes of the cluster. Vhosts that are on all nodes are left alone.
    pub(super) fn place(&self, vhosts: &mut [VhostEntry], nodes: &NodeList) {
        let mut replicas: BTreeMap<String, usize> =
            nodes.members().map(|(name, _)| (name.to_owned(), 0)).collect();
        if replicas.is_empty() || self.record_level() < PLACEMENT_LEVEL {
            return;
        }
        for vhost in &*vhosts {
            replicas.iter_mut().for_each(|(name, count)| *count += usize::from(vhost.is_on(name)));
        }
        let ready = self.replication.as_ref().map(|it| it.metadata_voters()).unwrap_or_default();
        let is_ready = |name: &str| ready.iter().any(|voter| **voter == *name);
        for vhost in vhosts {
            let wanted = vhost.settings.replicas;
            let before = match (&vhost.placement, wanted) {
                (None, None) => continue,
                (None, Some(_)) => Placement::on_all(replicas.keys()),
                (Some(placement), _) => Placement::clone(placement),
            };
            let leader = self.vhosts.get(&vhost.name).and_then(|handle| handle.leader());
            let mut placement = before.clone();
            placement.choose(&Choice {
                wanted: wanted.map_or(replicas.len(), |wanted| replicas.len().min(wanted.into())),
                nodes: &replicas,
                leader: leader.as_deref(),
                is_ready: &is_ready,
            });
            for (name, count) in &mut replicas {
                *count += usize::from(placement.has(name));
                *count -= usize::from(before.has(name));
            }
            if vhost.placement.as_deref() != Some(&placement) {
                let names: Vec<&str> = placement.names().collect();
                tracing::info!(vhost = vhost.name, nodes = ?names, "the vhost is to be on these nodes");
                vhost.placement = Some(Arc::new(placement));
            }
        }
    }

    /// The settings of a new vhost.
    pub(super) fn new_settings(&self) -> VhostSettings {
        let replicas = self.cluster.as_ref().and_then(|links| links.options.default_replicas);
        let replicas = replicas.filter(|_| self.record_level() >= PLACEMENT_LEVEL);
        VhostSettings { replicas, ..VhostSettings::default() }
    }

    /// Checks that all nodes of the cluster know vhosts that are on some of them, if a change sets their number.
    ///
    /// # Errors
    /// [`ChangeError::Unable`].
    pub(super) fn check_replicas(&self, change: &VhostChange) -> Result<(), ChangeError> {
        let level = self.record_level();
        if change.replicas.flatten().is_some() && level < PLACEMENT_LEVEL {
            return Err(ChangeError::Unable(format!(
                "the number of replicas can be set once all nodes read records of level {PLACEMENT_LEVEL}; the cluster \
                 has level {level}"
            )));
        }
        Ok(())
    }

    /// The members with which the group of a new vhost begins.
    pub(super) fn first_voters(&self, placement: Option<&Placement>) -> Vec<MemberId> {
        let replication = self.replication.as_ref();
        replication.map(|it| it.first_voters(placement)).unwrap_or_default()
    }

    /// Lets the placements of known vhosts take effect.
    ///
    /// # Errors
    /// A sentence: a vhost cannot be opened.
    pub(super) fn settle_placements(&self, entries: &[VhostEntry]) -> Result<(), String> {
        for entry in entries {
            let Some(handle) = self.vhosts.get(&entry.name) else { continue };
            if handle.id() == entry.id {
                let placed = self.vhosts.set_placement(&handle, entry.placement.clone());
                placed.map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }
}
