//! The check of a log: all of it is read, and nothing is changed.

use crate::directory::Directory;
use crate::recovery::{
    DamageHandling, OpenError, OpenReport, RecordSink, foreign_files, io_error, read_files,
    read_manifest,
};
use crate::replicated::{EntryReading, known_commit};

/// Reads the log with the id `log_id` without changing it, and passes every record to `each`, in order; of a
/// replicated log, those of entries that are known to be committed.
///
/// # Errors
/// [`OpenError`]: there is no log or another one, it cannot be read, or a newer version has written it.
pub fn check<D: Directory>(
    directory: &D,
    log_id: u64,
    each: &mut dyn RecordSink,
) -> Result<OpenReport, OpenError> {
    let names = directory.list().map_err(io_error("list the log's directory"))?;
    let Some(mut manifest) = read_manifest(directory, &names)? else {
        return Err(OpenError::no_manifest());
    };
    if manifest.log_id != log_id {
        return Err(OpenError::other_log(&manifest, log_id));
    }
    let (format_version, files) = (manifest.format_version, manifest.files.len());
    let mut report = OpenReport { format_version, files, ..OpenReport::default() };
    let mut entries = match manifest.is_replicated() {
        true => Some(EntryReading::new(known_commit(directory, &manifest)?)),
        false => None,
    };
    read_files(
        directory,
        &mut manifest,
        DamageHandling::ReportOnly,
        entries.as_mut(),
        &mut report,
        each,
        &mut |_| {},
    )?;
    report.damages.extend(foreign_files(directory, &names, &manifest)?);
    Ok(report)
}
