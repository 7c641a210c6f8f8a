//! The sealed files of a log as the snapshot for a member that lacks entries.

use std::io;
use std::sync::Arc;

use super::entry::{EntryIndex, Term};
use super::entry_state::{EntryState, ShippedEnd};
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

/// The sealed files of a log up to an entry. They are not removed before the shipment is dropped, and the entries behind
/// them are kept for members that need them, beyond the retention bound, as far as they are no longer than the files.
#[derive(Debug)]
pub struct Shipment<D: Directory> {
    snapshot: LogSnapshot<D>,
    plan: ShipmentPlan,
    /// Keeps the entries behind the files.
    _end: Arc<ShippedEnd>,
}

impl<D: Directory> Shipment<D> {
    pub(super) fn new(snapshot: LogSnapshot<D>, sender: u64, entries: &mut EntryState) -> Self {
        let manifest = snapshot.manifest();
        let (index, term, _) = manifest.group.base;
        let files: Vec<(u64, u64)> =
            manifest.files.iter().map(|file| (file.id, file.bytes)).collect();
        let bytes = files.iter().map(|(_, bytes)| bytes).sum();
        let end = Arc::new(ShippedEnd { index, bytes });
        entries.shipped.retain(|other| other.strong_count() > 0);
        entries.shipped.push(Arc::downgrade(&end));
        let plan = ShipmentPlan { sender, index, term, manifest: manifest.encode(), files };
        Self { snapshot, plan, _end: end }
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
