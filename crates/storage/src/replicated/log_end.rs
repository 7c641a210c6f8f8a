//! The end of an entry as a place in the files: where a log is cut, and where a snapshot ends.

use super::entry::{EntryIndex, Term};
use super::entry_map::EntryMap;
use super::entry_reader::EntryReader;
use super::options::EntryError;
use crate::directory::Directory;
use crate::format::Lsn;
use crate::log::LogEnd;
use crate::manifest::Manifest;

/// The end of the entry `index`, which is followed by others in the files of `manifest`.
///
/// # Errors
/// [`EntryError`]: the entry cannot be read.
///
/// # Panics
/// If the entry or the one behind it is not in the log.
pub(super) fn end_of<D: Directory>(
    directory: &D,
    manifest: &Manifest,
    map: &EntryMap,
    index: EntryIndex,
) -> Result<LogEnd, EntryError> {
    let term: Option<Term> = map.term_of(index);
    let before = (index, term.expect("a log ends behind an entry that it has"));
    // Files in front of the first entry, or with an entry at or before this one.
    let kept = manifest.files.partition_point(|file| file.before.0 < index);
    let dropped = manifest.files.len() - kept;
    if let Some(next) = manifest.files.get(kept)
        && next.before.0 == index
    {
        // The entry is the last before a file.
        return Ok(LogEnd { dropped, sealed_at: None, first: next.first, before });
    }
    let mark = map.mark_of(index).expect("an entry in the middle of a file has a mark");
    let (header, offset) = EntryReader::new(directory).find(index, mark)?;
    let end = offset + header.whole_len();
    Ok(LogEnd { dropped, sealed_at: Some(end), first: Lsn(header.last.0 + 1), before })
}
