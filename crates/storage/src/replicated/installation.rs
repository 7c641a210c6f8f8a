//! A shipment that arrives: its files are written, checked, and become the log of the member.

use std::io;

use super::hard_state::{HardState, Identity, Slot, store_slot};
use super::shipment::ShipmentPlan;
use crate::directory::{Directory, DirectoryFile, with_room};
use crate::format::FileHeader;
use crate::manifest::{FileEntry, MANIFEST, Manifest, StoreError};
use crate::recovery::{OpenError, io_error, read_all, scanned_file, write_error};
use crate::segment_reader::scan;

/// Name of the file with the plan of a shipment that arrives.
const PLAN: &str = "shipment";

/// A shipment that arrives in a directory of its own. Without a manifest the directory holds no log.
#[derive(Debug)]
pub struct Installation<D: Directory> {
    directory: D,
    manifest: Manifest,
    /// Bytes that are there of each file of the manifest.
    arrived: Vec<u64>,
    /// The file that is written.
    open: Option<(u64, D::File)>,
}

impl<D: Directory> Installation<D> {
    /// Begins to receive the files of `plan`, or goes on if the directory has a part of the same plan; files of
    /// another plan are removed.
    ///
    /// # Errors
    /// [`OpenError`]: the plan is no possible one, it is for another log, or the disk failed.
    pub fn begin(directory: D, log_id: u64, plan: &ShipmentPlan) -> Result<Self, OpenError> {
        let manifest = decode(log_id, plan)?;
        let names = directory.list().map_err(io_error("list the directory of a shipment"))?;
        if names.iter().any(|name| name == MANIFEST) {
            let problem = "there is a log already; nothing is changed".to_owned();
            return Err(OpenError::Manifest { file: MANIFEST, problem });
        }
        let mut wanted = plan.sender.to_le_bytes().to_vec();
        wanted.extend(&plan.manifest);
        let has_plan = names.iter().any(|name| name == PLAN)
            && directory
                .open(PLAN)
                .and_then(|file| read_all(&file))
                .map_err(io_error("read the plan of a shipment"))?
                == wanted;
        if !has_plan {
            restart(&directory, &names, &wanted).map_err(write_error("begin a shipment"))?;
        }
        let mut arrived = Vec::with_capacity(manifest.files.len());
        for file in &manifest.files {
            let is_there = has_plan && names.contains(&file.name());
            arrived.push(match is_there {
                true => {
                    let size = directory.open(&file.name()).and_then(|file| file.size());
                    size.map_err(io_error(format!("open {}", file.name())))?.min(file.bytes)
                }
                false => 0,
            });
        }
        Ok(Self { directory, manifest, arrived, open: None })
    }

    /// The file whose octets come next, and the number of those that are there.
    fn next_file(&self) -> Option<(usize, FileEntry, u64)> {
        let files = self.manifest.files.iter().zip(&self.arrived).enumerate();
        let mut missing = files.filter(|(_, (file, arrived))| **arrived < file.bytes);
        missing.next().map(|(place, (file, arrived))| (place, *file, *arrived))
    }

    /// File and offset of the next octets; `None` once all are there.
    #[must_use]
    pub fn next(&self) -> Option<(u64, u64)> {
        self.next_file().map(|(_, file, arrived)| (file.id, arrived))
    }

    /// Takes the octets at [`Installation::next`].
    ///
    /// # Errors
    /// The system's error; `InvalidData` if there are more octets than the file has.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some((place, file, offset)) = self.next_file() else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        if bytes.len() as u64 > file.bytes - offset {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let opened = match self.open.take().filter(|(id, _)| *id == file.id) {
            Some((_, opened)) => opened,
            None => match self.directory.create(&file.name()) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.directory.open(&file.name())?
                }
                created => created?,
            },
        };
        with_room(&self.directory, || opened.write_at(bytes, offset))?;
        let arrived = offset + bytes.len() as u64;
        if let Some(count) = self.arrived.get_mut(place) {
            *count = arrived;
        }
        self.open = Some((file.id, opened));
        Ok(())
    }

    /// Checks every octet, then writes the hard state and the manifest, durably. The log can be opened then.
    ///
    /// # Errors
    /// [`OpenError`]: octets are missing or damaged, or the disk failed. A damaged file is removed, so that another
    /// attempt receives it anew.
    pub fn finish(
        self,
        cluster_id: u64,
        member_id: u64,
        hard_state: &HardState,
    ) -> Result<D, OpenError> {
        let Self { directory, manifest, .. } = &self;
        if let Some((id, _)) = self.next() {
            return Err(damaged(format!("octets of file {id} have not arrived")));
        }
        for file in &manifest.files {
            let name = file.name();
            let opened = directory.open(&name).map_err(io_error(format!("open {name}")))?;
            let bytes = read_all(&opened).map_err(io_error(format!("read {name}")))?;
            if !is_whole(manifest, file, &bytes) {
                directory.remove(&name).map_err(write_error(format!("remove {name}")))?;
                return Err(damaged(format!("{name} has arrived damaged")));
            }
            opened.sync().map_err(write_error(format!("sync {name}")))?;
        }
        let (index, term, _) = manifest.group.base;
        let mut state = hard_state.clone();
        state.commit = state.commit.max(index);
        state.term = state.term.max(term);
        let identity = Identity { cluster_id, group: manifest.log_id, member_id };
        store_slot(directory, &Slot { sequence: 1, identity, state })
            .map_err(write_error("write the hard state"))?;
        directory.remove(PLAN).map_err(write_error("remove the plan of a shipment"))?;
        // Storing the manifest makes the names of all files durable before it counts.
        directory.sync().map_err(write_error("sync the directory of a shipment"))?;
        let stored = manifest.store(directory).map_err(StoreError::into_io);
        stored.map_err(write_error("write the manifest"))?;
        Ok(self.directory)
    }
}

/// The manifest of a plan, if a log can have made it.
fn decode(log_id: u64, plan: &ShipmentPlan) -> Result<Manifest, OpenError> {
    let manifest = Manifest::decode(&plan.manifest)
        .map_err(|_| damaged("the plan of the shipment has no valid manifest".to_owned()))?;
    if manifest.log_id != log_id {
        return Err(OpenError::other_log(&manifest, log_id));
    }
    let files = manifest.files.iter();
    let listed: Vec<(u64, u64)> = files.clone().map(|file| (file.id, file.bytes)).collect();
    let (index, term, _) = manifest.group.base;
    let is_ordered = manifest.files.is_sorted_by(|one, other| one.end <= other.first);
    let mut ids: Vec<u64> = files.clone().map(|file| file.id).collect();
    ids.sort_unstable();
    let is_distinct = ids.is_sorted_by(|one, other| one < other);
    let is_next = ids.last().is_none_or(|last| *last < manifest.next_file_id);
    let is_listed = (listed, index, term) == (plan.files.clone(), plan.index, plan.term);
    let is_possible = manifest.is_replicated()
        && manifest.files.iter().all(FileEntry::is_sealed)
        && is_ordered
        && is_distinct
        && is_next;
    if !(is_possible && is_listed) {
        return Err(damaged("the plan of the shipment contradicts itself".to_owned()));
    }
    Ok(manifest)
}

/// True if every octet of a file is as it was written.
fn is_whole(manifest: &Manifest, file: &FileEntry, bytes: &[u8]) -> bool {
    let header = FileHeader::decode(bytes);
    let is_this = header.is_ok_and(|header| {
        (header.log_id, header.file_id, header.layout) == (manifest.log_id, file.id, file.layout)
    });
    let found = scan(bytes, scanned_file(manifest.log_id, file), &mut |_| {});
    is_this && bytes.len() as u64 == file.bytes && found.corruptions.is_empty()
}

/// Removes all files and writes the plan.
fn restart<D: Directory>(directory: &D, names: &[String], plan: &[u8]) -> io::Result<()> {
    for name in names {
        directory.remove(name)?;
    }
    let file = with_room(directory, || directory.create(PLAN))?;
    with_room(directory, || file.write_at(plan, 0))?;
    file.sync()?;
    directory.sync()
}

fn damaged(problem: String) -> OpenError {
    OpenError::Manifest { file: PLAN, problem }
}
