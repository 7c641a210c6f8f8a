//! The beginning of a replicated log: what an opening finds, and the founding of a group.

use super::entry::{EntryIndex, Term};
use super::hard_state::{HardState, HardStateFile, Identity, Slot, read_newest, store_slot};
use super::options::{Founding, LoneLog, ReplicatedOptions};
use super::quarantine::refuse_marked;
use crate::check;
use crate::directory::Directory;
use crate::format::{FORMAT_VERSION_REPLICATED, Lsn};
use crate::manifest::{Manifest, StoreError};
use crate::recovery::{IgnoreRecords, OpenError, io_error, read_manifest, write_error};

/// Entry and term of the snapshot that the content of a log without a group becomes.
const ADOPTED: (EntryIndex, Term, Lsn) = (EntryIndex(1), Term(1), Lsn(0));

/// Base of a log that begins with entry 1.
const NOTHING: (EntryIndex, Term, Lsn) = (EntryIndex(0), Term(0), Lsn(0));

/// Reads manifest and hard state, and founds the group if the directory holds no replicated log.
///
/// # Errors
/// [`OpenError`].
pub(super) fn read_or_found<D: Directory>(
    directory: &D,
    options: ReplicatedOptions,
) -> Result<(Manifest, HardStateFile<D>), OpenError> {
    let names = directory.list().map_err(io_error("list the log's directory"))?;
    refuse_marked(directory, &names)?;
    let log_id = options.log.log_id;
    let identity =
        Identity { cluster_id: options.cluster_id, group: log_id, member_id: options.member_id };
    let manifest = match read_manifest(directory, &names)? {
        Some(manifest) if manifest.log_id != log_id => {
            return Err(OpenError::other_log(&manifest, log_id));
        }
        manifest => manifest,
    };
    let slot = read_newest(directory);
    let (manifest, slot) = match manifest {
        Some(manifest) if manifest.is_replicated() => {
            let Some(slot) = slot? else { return Err(OpenError::does_not_vote("missing")) };
            (manifest, slot)
        }
        manifest => {
            check_unused(slot)?;
            found(directory, options, manifest, identity)?
        }
    };
    if slot.identity != identity {
        let Identity { cluster_id, group, member_id } = slot.identity;
        let problem =
            format!("belongs to member {member_id} of group {group} in cluster {cluster_id}");
        return Err(OpenError::does_not_vote(problem));
    }
    Ok((manifest, HardStateFile::open(directory, slot)?))
}

/// Refuses a hard state that was used, though there is no replicated log beside it.
fn check_unused(slot: Result<Option<Slot>, OpenError>) -> Result<(), OpenError> {
    match slot {
        Ok(Some(slot)) if slot.sequence > 1 => {
            Err(OpenError::does_not_vote("the log beside it is missing"))
        }
        // A founding that was cut off leaves the first state, or a part of it.
        Ok(_) | Err(OpenError::DoesNotVote { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Refuses a log without a group that is not empty.
fn refuse_content<D: Directory>(directory: &D, log_id: u64) -> Result<(), OpenError> {
    let report = check(directory, log_id, &mut IgnoreRecords)?;
    match (report.records, report.damages.len()) {
        (0, 0) => Ok(()),
        (records, damages) => Err(OpenError::HasContent { records, damages }),
    }
}

/// Writes the first hard state. The manifest that makes the log one of a group is stored once the log is open.
fn found<D: Directory>(
    directory: &D,
    options: ReplicatedOptions,
    manifest: Option<Manifest>,
    identity: Identity,
) -> Result<(Manifest, Slot), OpenError> {
    let Some(Founding { voters, learners, lone_log }) = options.founding else {
        return Err(match manifest {
            Some(_) => OpenError::is_not_replicated(),
            None => OpenError::no_manifest(),
        });
    };
    let (mut manifest, base) = match (manifest, lone_log) {
        (Some(manifest), LoneLog::Adopt) => (manifest, ADOPTED),
        (Some(manifest), LoneLog::Replace) => {
            refuse_content(directory, identity.group)?;
            let next_file_id = manifest.next_file_id;
            let empty = Manifest { next_file_id, ..Manifest::new(identity.group) };
            // Before the opening removes the files that are not listed any more.
            let stored = empty.store(directory).map_err(StoreError::into_io);
            stored.map_err(write_error("write the manifest"))?;
            (empty, NOTHING)
        }
        (None, _) if !options.log.create_if_missing => return Err(OpenError::no_manifest()),
        (None, _) => (Manifest::new(identity.group), NOTHING),
    };
    manifest.format_version = FORMAT_VERSION_REPLICATED;
    manifest.group.base = base;
    let (commit, term, _) = base;
    let state = HardState { term, vote: 0, commit, voters, learners, clock: None };
    let slot = Slot { sequence: 1, identity, state };
    store_slot(directory, &slot).map_err(write_error("write the hard state"))?;
    Ok((manifest, slot))
}
