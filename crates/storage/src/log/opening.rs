//! Opening of the files of a log: reading them, and beginning a new segment behind them.

use std::sync::Arc;

use super::files::{remove_unlisted, sync_end, truncate};
use super::options::LogOptions;
use super::segments::Segments;
use super::shared::lock;
use crate::directory::Directory;
use crate::format::{FIRST_BATCH, Layout, Lsn};
use crate::manifest::{FileEntry, MANIFEST, Manifest, file_id};
use crate::recovery::{
    Damage, DamageHandling, OpenError, OpenReport, ReadProgress, RecordSink, foreign_files,
    io_error, read_files, refuse_newer_files,
};
use crate::replicated::EntryReading;

/// Reads the files of `manifest` and begins a new segment. `reading` is for a replicated log. The manifest is
/// stored as one of its format version.
pub(crate) fn open_segments<D: Directory>(
    directory: D,
    options: LogOptions,
    mut manifest: Manifest,
    mut reading: Option<EntryReading>,
    each: &mut dyn RecordSink,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<(Segments<D>, OpenReport), OpenError> {
    let directory = Arc::new(directory);
    let names = directory.list().map_err(io_error("list the log's directory"))?;
    refuse_newer_files(&*directory, &manifest)?;
    // Unlisted files are removed before anything new is written: the disk may be full.
    let foreign = foreign_files(&*directory, &names, &manifest)?;
    remove_unlisted(&*directory, &names, &manifest, &foreign)?;
    let was_sealed: Vec<bool> = manifest.files.iter().map(FileEntry::is_sealed).collect();
    let mut report = OpenReport::default();
    let handling = DamageHandling::Preserve;
    let liveness = read_files(
        &*directory,
        &mut manifest,
        handling,
        reading.as_mut(),
        &mut report,
        each,
        progress,
    )?;
    for (entry, was_sealed) in manifest.files.iter().zip(was_sealed) {
        if !was_sealed {
            truncate(&*directory, entry);
            sync_end(&*directory, entry)?;
        }
    }
    // Two files with records must not begin at the same position: `start` begins one at the end of the last.
    let has_entries = |file: &FileEntry| file.layout == Layout::Entries && file.bytes > FIRST_BATCH;
    manifest.files.retain(|file| !file.is_range_empty() || has_entries(file));
    let used = names.iter().filter_map(|name| file_id(name)).max().map_or(1, |id| id + 1);
    manifest.next_file_id = manifest.next_file_id.max(used);
    let entries = reading.map(|reading| {
        if let Some(after) = reading.lacks_committed_behind(&manifest.group) {
            report.damages.push(missing_entries(after));
        }
        let (entries, last) = reading.finish(&manifest.group, report.last);
        report.last = last;
        manifest.group.commit = manifest.group.commit.max(entries.commit);
        entries
    });
    let segments = Segments::start(directory, options, manifest, liveness, entries, &mut report)?;
    let listed = lock(&segments.shared).manifest.clone();
    let names = segments.directory.list().map_err(io_error("list the log's directory"))?;
    remove_unlisted(&*segments.directory, &names, &listed, &foreign)?;
    report.damages.extend(foreign);
    Ok((segments, report))
}

/// Damage of a log that lacks entries although they are known to be committed.
fn missing_entries(after: Lsn) -> Damage {
    Damage {
        file: MANIFEST.to_owned(),
        offset: 0,
        len: 0,
        after,
        problem: "entries that were committed are missing",
        kept_in: None,
        record: None,
    }
}
