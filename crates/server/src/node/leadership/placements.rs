//! The nodes that have vhosts: the node that leads the metadata chooses them when a vhost is made or changed, and when
//! nodes come or go; every node follows.

use std::collections::BTreeMap;
use std::sync::Arc;

use replication::MemberId;
use replication::levels::check_placement_level;

use crate::disk::json_files::node_file::VhostEntry;
use crate::membership::node_list::NodeList;
use crate::membership::placement::{Choice, Placement};
use crate::node::Node;
use crate::requests::{
    ChangeError, MemberChange, MemberChangeKind, MemberError, VhostChange, VhostSettings,
};

impl Node {
    /// Chooses the nodes of vhosts, of all nodes of the cluster. Vhosts that are on all nodes are left alone.
    pub(in crate::node) fn place(&self, vhosts: &mut [VhostEntry], nodes: &NodeList) {
        let mut replicas: BTreeMap<String, usize> =
            nodes.members().map(|(name, _)| (name.to_owned(), 0)).collect();
        if replicas.is_empty() || check_placement_level(self.record_level()).is_err() {
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
    pub(in crate::node) fn new_settings(&self) -> VhostSettings {
        let replicas = self.cluster.as_ref().and_then(|links| links.options.default_replicas);
        let replicas = replicas.filter(|_| check_placement_level(self.record_level()).is_ok());
        VhostSettings { replicas, ..VhostSettings::default() }
    }

    /// Checks that all nodes of the cluster know vhosts that are on some of them, if a change sets their number.
    ///
    /// # Errors
    /// [`ChangeError::Unable`].
    pub(in crate::node) fn check_replicas(&self, change: &VhostChange) -> Result<(), ChangeError> {
        match change.replicas.flatten() {
            Some(_) => self.check_placement_level(),
            None => Ok(()),
        }
    }

    fn check_placement_level(&self) -> Result<(), ChangeError> {
        check_placement_level(self.record_level())
            .map_err(|problem| ChangeError::Unable(problem.to_string()))
    }

    /// Gives nodes a replica of vhosts, or takes it away: all of these, or none. The number of replicas of each vhost is that
    /// of its nodes from then on.
    ///
    /// # Errors
    /// [`MemberError`].
    pub(crate) fn commit_members(&self, changes: &[MemberChange]) -> Result<(), MemberError> {
        let (_one_at_a_time, mut desired) = self.begin_change()?;
        let nodes = self.names_of_nodes();
        for MemberChange { vhost, node, kind } in changes {
            if !nodes.contains(node) {
                return Err(MemberError::NoSuchNode);
            }
            let settings = desired.vhosts.get_mut(vhost).ok_or(ChangeError::NoSuchVhost)?;
            let before = desired.placements.get(vhost).cloned();
            let before = before.or_else(|| self.vhosts.get(vhost)?.entry().placement);
            let mut after = before
                .map_or_else(|| Placement::on_all(&nodes), |before| Placement::clone(&before));
            match (kind, after.has(node)) {
                (MemberChangeKind::Add, true) | (MemberChangeKind::Remove, false) => continue,
                (MemberChangeKind::Add, false) if !after.add(node) => {
                    return Err(MemberError::Change(ChangeError::Unable(format!(
                        "node '{node}' has had replicas of vhost '{vhost}' too often; forget it, and let it join again"
                    ))));
                }
                (MemberChangeKind::Add, false) => {}
                (MemberChangeKind::Remove, true) if after.names().count() == 1 => {
                    return Err(MemberError::LastMember(vhost.clone()));
                }
                (MemberChangeKind::Remove, true) => after.remove(node),
            }
            let replicas = u8::try_from(after.names().count()).expect("a cluster has few nodes");
            Arc::make_mut(settings).replicas = Some(replicas);
            desired.placements.insert(vhost.clone(), Arc::new(after));
        }
        if desired.placements.is_empty() {
            return Ok(());
        }
        self.check_placement_level()?;
        Ok(self.commit(desired)?)
    }

    /// Names of the nodes of the cluster, or of this node alone.
    fn names_of_nodes(&self) -> Vec<String> {
        match &self.cluster {
            Some(links) => links.nodes().members().map(|(name, _)| name.to_owned()).collect(),
            None => vec![self.identity.name.clone()],
        }
    }

    /// The members with which the group of a new vhost begins.
    pub(in crate::node) fn first_voters(&self, placement: Option<&Placement>) -> Vec<MemberId> {
        let replication = self.replication.as_ref();
        replication.map(|it| it.first_voters(placement)).unwrap_or_default()
    }

    /// Lets the placements of known vhosts take effect.
    ///
    /// # Errors
    /// A sentence: a vhost cannot be opened.
    pub(in crate::node) fn settle_placements(&self, entries: &[VhostEntry]) -> Result<(), String> {
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
