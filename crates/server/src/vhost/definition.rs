//! Definition of a vhost by users and the cluster. It stays when the replica of the node is opened anew.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard, RwLock};
use replication::MemberId;

use crate::disk::json_files::node_file::VhostEntry;
use crate::disk::vhost_files::VhostId;
use crate::membership::placement::Placement;
use crate::requests::VhostSettings;

/// The definition of a vhost, which all its handles share, one after the other.
#[derive(Debug)]
pub(crate) struct VhostDefinition {
    id: VhostId,
    name: Arc<str>,
    /// The members with which the group of the vhost has begun; none if these are the founders of the cluster.
    voters: Vec<MemberId>,
    settings: RwLock<Arc<VhostSettings>>,
    /// In a cluster, the nodes that have the vhost; none for all.
    placement: RwLock<Option<Arc<Placement>>>,
    /// Held while the replica of this node is opened or removed, and while the vhost is.
    opening: Mutex<()>,
}

impl VhostDefinition {
    /// The definition that `node.json` or the metadata of the cluster have.
    pub(crate) fn new(entry: VhostEntry) -> Arc<Self> {
        let VhostEntry { name, id, settings, voters, placement } = entry;
        Arc::new(Self {
            id,
            name: name.into(),
            voters,
            settings: RwLock::new(settings),
            placement: RwLock::new(placement),
            opening: Mutex::default(),
        })
    }

    /// The id, which no other vhost of the node has had.
    pub(super) fn id(&self) -> VhostId {
        self.id
    }

    /// The name.
    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The entry of the vhost in `node.json`.
    pub(super) fn entry(&self) -> VhostEntry {
        VhostEntry {
            name: self.name.to_string(),
            id: self.id,
            settings: self.settings(),
            voters: self.voters.clone(),
            placement: self.placement(),
        }
    }

    /// The description, limits and other settings.
    pub(super) fn settings(&self) -> Arc<VhostSettings> {
        Arc::clone(&self.settings.read())
    }

    /// Replaces the settings, of which the core of the vhost does not know yet.
    pub(super) fn set_settings(&self, settings: Arc<VhostSettings>) {
        *self.settings.write() = settings;
    }

    /// The nodes that have the vhost; none for all.
    pub(super) fn placement(&self) -> Option<Arc<Placement>> {
        self.placement.read().clone()
    }

    /// Replaces the placement. False if it was the same.
    pub(super) fn set_placement(&self, placement: Option<Arc<Placement>>) -> bool {
        let mut known = self.placement.write();
        let is_new = *known != placement;
        *known = placement;
        is_new
    }

    /// Waits until the replica of this node is neither opened nor removed by another thread, and keeps others from it.
    pub(super) fn opening(&self) -> MutexGuard<'_, ()> {
        self.opening.lock()
    }

    /// As [`Self::opening`], but none if another thread is at it.
    pub(super) fn try_opening(&self) -> Option<MutexGuard<'_, ()>> {
        self.opening.try_lock()
    }
}
