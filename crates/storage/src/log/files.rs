//! Files of the directory: those that do not belong to the log, and the room behind the end of a file.

use std::io;

use crate::directory::{Directory, DirectoryFile};
use crate::manifest::{FileEntry, Manifest};
use crate::recovery::{Damage, OpenError, unlisted, write_error};

/// Removes the files that the manifest does not list, except those of other logs.
pub(crate) fn remove_unlisted<D: Directory>(
    directory: &D,
    names: &[String],
    manifest: &Manifest,
    foreign: &[Damage],
) -> Result<(), OpenError> {
    let is_foreign = |name: &str| foreign.iter().any(|damage| damage.file == name);
    let mut unlisted = unlisted(names, manifest).filter(|name| !is_foreign(name)).peekable();
    if unlisted.peek().is_some() {
        // Synced before files are removed: after a power cut, the manifest must be the one that does
        // not list them.
        directory.sync().map_err(write_error("sync the log's directory"))?;
    }
    for name in unlisted {
        directory.remove(name).map_err(write_error(format!("remove {name}")))?;
    }
    Ok(())
}

/// Makes the file durable in which an earlier process has ended. What was read of it may not have been on the disk, and
/// the manifest is about to say that it is.
pub(crate) fn sync_end<D: Directory>(directory: &D, entry: &FileEntry) -> Result<(), OpenError> {
    let file = match directory.open(&entry.name()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file,
    };
    let synced = file.and_then(|file| file.sync());
    synced.map_err(write_error(format!("sync {}", entry.name())))
}

/// Gives back the room behind the end of a file. If that fails, the room stays in use without harm.
pub(crate) fn truncate<D: Directory>(directory: &D, entry: &FileEntry) {
    let _ = directory.open(&entry.name()).and_then(|file| file.truncate(entry.bytes));
}
