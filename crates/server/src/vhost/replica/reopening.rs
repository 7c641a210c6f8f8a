//! Replicas that are opened anew: after the lead was lost, in the place of those that are lost or have left, and for another
//! placement.

use std::sync::Arc;

use crate::disk::vhost_files::{self, VhostId};
use crate::limits::EXIT_DISK;
use crate::membership::placement::Placement;
use crate::replicas::{Deposition, ReplicaTarget as _};
use crate::vhost::found_member::GroupAge;
use crate::vhost::handle::VhostHandle;
use crate::vhost::place::Presence;
use crate::vhost::registry::{VhostError, Vhosts};

impl Vhosts {
    /// Lets the placement of a vhost take effect. A replica that is to come is asked for, one that is lost is not any more;
    /// one that is to go goes when its group has removed it.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn set_placement(
        self: &Arc<Self>,
        handle: &VhostHandle,
        placement: Option<Arc<Placement>>,
    ) -> Result<(), VhostError> {
        let definition = &handle.definition;
        if !definition.set_placement(placement) {
            return Ok(());
        }
        if let Some(_not_opened_meanwhile) = definition.try_opening() {
            return self.fit_placement(handle.id);
        }
        // A replica with much content takes long to open, and other vhosts do not wait for that.
        let (vhosts, definition) = (Arc::clone(self), Arc::clone(definition));
        let run = move || {
            let _not_opened_meanwhile = definition.opening();
            if let Err(error) = vhosts.fit_placement(definition.id()) {
                tracing::error!(%error, "the broker ends");
                std::process::exit(EXIT_DISK);
            }
        };
        std::thread::Builder::new()
            .name("placement".to_owned())
            .spawn(run)
            .map(drop)
            .map_err(VhostError::Thread)
    }

    /// Opens the replica of a vhost anew if it was opened for another placement. Call it while no other thread opens it.
    fn fit_placement(&self, vhost: VhostId) -> Result<(), VhostError> {
        let Some(handle) = self.of_id(vhost) else { return Ok(()) };
        let is_placed = handle.is_placed_here();
        let is_other = match handle.place.as_ref().map(|place| place.presence) {
            Some(Presence::Elsewhere) => is_placed,
            Some(Presence::Lost) => !is_placed,
            // Its group removes it.
            Some(Presence::Here) | None => false,
        };
        if is_other {
            self.open_anew(&handle)?;
        }
        Ok(())
    }

    /// Opens the replica of a vhost in place of one that has ended, or has never run. Call it while no other thread opens it.
    fn open_anew(&self, handle: &VhostHandle) -> Result<(), VhostError> {
        let cluster = self.cluster.as_ref().expect("a vhost of one node alone is opened once");
        if !handle.is_deposed() {
            handle.depose(Deposition::LeaderChanged);
        }
        let age = match handle.is_elsewhere() {
            true => GroupAge::Elsewhere,
            false => GroupAge::Old,
        };
        // The next frame of the leader may be a while away, and nobody has told that it leads no more.
        let leader = handle.leader().filter(|_| !handle.is_led_here());
        let opened = self.begin_replica(cluster, Arc::clone(&handle.definition), age, leader)?;
        self.insert(&opened);
        Ok(())
    }

    /// Lets `install` put the files of a replica in their place, and opens it. The replica that was there has ended. No other
    /// thread opens or removes it meanwhile. Does nothing if the vhost is deleted.
    ///
    /// # Errors
    /// The sentence of `install`, or that the replica cannot be opened.
    pub(crate) fn open_installed(
        &self,
        vhost: VhostId,
        install: impl FnOnce(&VhostHandle) -> Result<(), String>,
    ) -> Result<(), String> {
        let Some(definition) = self.of_id(vhost).map(|it| Arc::clone(&it.definition)) else {
            return Ok(());
        };
        let _not_opened_meanwhile = definition.opening();
        // Again, because the vhost may have been deleted or opened during the wait.
        let Some(handle) = self.of_id(vhost) else { return Ok(()) };
        install(&handle)?;
        self.open_anew(&handle).map_err(|error| error.to_string())
    }

    /// Opens the replica of a vhost again, from its log, and passes it to the replicator. Nothing happens if the vhost is
    /// deleted.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub(crate) fn reopen(&self, vhost: VhostId) -> Result<(), String> {
        self.open_installed(vhost, |_| Ok(()))
    }

    /// Removes the files of the replica of a vhost, which its group does without. Nothing happens if the vhost is deleted.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub(crate) fn leave(&self, vhost: VhostId) -> Result<(), String> {
        self.open_installed(vhost, |handle| {
            handle.stop_writing_deaths();
            let removed = vhost_files::remove_vhost(&self.data_dir, vhost);
            removed.map_err(|error| error.to_string())?;
            tracing::info!(vhost = handle.name(), "this node has no replica of the vhost any more");
            Ok(())
        })
    }
}
