//! The sealed files of a log as the snapshot for a member that lacks entries, and their installation there.

use std::io;

use super::entry::{EntryIndex, Term};
use super::hard_state::HardState;
use crate::directory::Directory;
use crate::recovery::OpenError;

/// List of the files of a shipment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShipmentPlan {
    /// The sender's member id: files of different senders never mix.
    pub sender: u64,
    /// Last entry whose effects are in the files.
    pub index: EntryIndex,
    /// Term of that entry.
    pub term: Term,
    /// Bytes of the manifest that the receiver writes.
    pub manifest: Vec<u8>,
    /// Id and bytes in use of each file, in order.
    pub files: Vec<(u64, u64)>,
}

/// The sealed files of a log up to an entry. They are not removed before the shipment is dropped.
#[derive(Debug)]
pub struct Shipment<D: Directory> {
    directory: std::sync::Arc<D>,
}

impl<D: Directory> Shipment<D> {
    /// List of the files.
    #[must_use]
    pub fn plan(&self) -> &ShipmentPlan {
        let _ = &self.directory;
        unimplemented!()
    }

    /// Reads octets of a file, until `bytes` is full or the bytes in use end. Returns the number of bytes read.
    ///
    /// # Errors
    /// The system's error; `NotFound` for a file that is not in the plan.
    pub fn read(&self, file: u64, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let _ = (file, offset, bytes);
        unimplemented!()
    }
}

/// A shipment that arrives in a directory of its own. Without a manifest the directory holds no log.
#[derive(Debug)]
pub struct Installation<D: Directory> {
    directory: D,
}

impl<D: Directory> Installation<D> {
    /// Begins to receive the files of `plan`, or goes on if the directory has a part of the same plan; files of
    /// another plan are removed.
    ///
    /// # Errors
    /// [`OpenError`]: the plan is no possible one, it is for another log, or the disk failed.
    pub fn begin(directory: D, log_id: u64, plan: &ShipmentPlan) -> Result<Self, OpenError> {
        let _ = (log_id, plan);
        Ok(Self { directory })
    }

    /// File and offset of the next octets; `None` once all are there.
    #[must_use]
    pub fn next(&self) -> Option<(u64, u64)> {
        unimplemented!()
    }

    /// Takes the octets at [`Installation::next`].
    ///
    /// # Errors
    /// The system's error; `InvalidData` if there are more octets than the file has.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let _ = (&self.directory, bytes);
        unimplemented!()
    }

    /// Checks every octet, then writes the hard state and the manifest, durably. The log can be opened then.
    ///
    /// # Errors
    /// [`OpenError`]: octets are missing or damaged, or the disk failed.
    pub fn finish(
        self,
        cluster_id: u64,
        member_id: u64,
        hard_state: &HardState,
    ) -> Result<D, OpenError> {
        let _ = (cluster_id, member_id, hard_state);
        unimplemented!()
    }
}
