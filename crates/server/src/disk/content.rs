//! The content of a data directory that is not one of a cluster: what a node would give up by joining another cluster.

use std::path::Path;

use storage::RealDirectory;

use crate::disk::json_files::node_file;
use crate::disk::vhost_files::vhost_path;

/// A description of what the vhosts of a data directory have, which nobody writes; none if all are empty.
///
/// # Errors
/// A sentence: the directory cannot be read.
pub(crate) fn of(data_dir: &Path) -> Result<Option<String>, String> {
    let known = node_file::read(data_dir).map_err(|error| error.to_string())?;
    for vhost in known.map(|known| known.vhosts).unwrap_or_default() {
        let path = vhost_path(data_dir, vhost.id);
        if !path.exists() {
            continue;
        }
        let unreadable = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let directory = RealDirectory::open(&path).map_err(|error| unreadable(&error))?;
        if !storage::has_log(&directory).map_err(|error| unreadable(&error))? {
            continue;
        }
        let report = storage::check(&directory, vhost.id.0, &mut storage::IgnoreRecords);
        let report = report.map_err(|error| unreadable(&error))?;
        if report.records > 0 || !report.damages.is_empty() {
            return Ok(Some(format!("vhost '{}' has {} records", vhost.name, report.records)));
        }
    }
    Ok(None)
}
