//! The sealed files of a log as the snapshot for a member that lacks entries.

use std::io;

use super::entry::{EntryIndex, Term};
use crate::directory::{Directory, DirectoryFile};
use crate::manifest::file_name;
use crate::snapshot::LogSnapshot;

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
    snapshot: LogSnapshot<D>,
    plan: ShipmentPlan,
}

impl<D: Directory> Shipment<D> {
    pub(super) fn new(snapshot: LogSnapshot<D>, sender: u64) -> Self {
        let manifest = snapshot.manifest();
        let (index, term, _) = manifest.group.base;
        let files = manifest.files.iter().map(|file| (file.id, file.bytes)).collect();
        let plan = ShipmentPlan { sender, index, term, manifest: manifest.encode(), files };
        Self { snapshot, plan }
    }

    /// List of the files.
    #[must_use]
    pub fn plan(&self) -> &ShipmentPlan {
        &self.plan
    }

    /// Reads octets of a file, until `bytes` is full or the bytes in use end. Returns the number of bytes read.
    ///
    /// # Errors
    /// The system's error; `NotFound` for a file that is not in the plan.
    pub fn read(&self, file: u64, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let listed = self.plan.files.iter().find(|(id, _)| *id == file);
        let (_, end) = listed.ok_or(io::ErrorKind::NotFound)?;
        let left = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = bytes.len().min(left);
        let opened = self.snapshot.directory().open(&file_name(file))?;
        opened.read_at(bytes.get_mut(..len).unwrap_or_default(), offset)
    }
}
