//! `cluster.json`: the cluster that a data directory belongs to, the id of its disk, and the disks of the other nodes.
//! Replaced as a whole, durably, with a checksum.

use std::path::{Path, PathBuf};

use crate::disk::json_files::node_file::{self, NodeFileError};
use crate::disk::json_files::sealed_json::{self, SealedError, SealedObject};
use crate::membership::founding::ClusterRecord;

/// Name of the file.
pub(crate) const NAME: &str = "cluster.json";
const FORMAT: u64 = 1;

/// The reason why the file cannot be used.
#[derive(thiserror::Error, Debug)]
pub(crate) enum ClusterFileError {
    #[error("cannot read {path}: {error}")]
    Read { path: PathBuf, error: std::io::Error },
    #[error("{path} {error}; without it the node could vote twice, so that nothing is changed")]
    Sealed { path: PathBuf, error: SealedError },
}

/// Reads the file of a data directory; none if there is none.
///
/// # Errors
/// [`ClusterFileError`], a sentence for the operator.
pub(crate) fn read(data_dir: &Path) -> Result<Option<ClusterRecord>, ClusterFileError> {
    let path = data_dir.join(NAME);
    match sealed_json::read(&path) {
        Ok(None) => Ok(None),
        Ok(Some(text)) => match sealed_json::open(&text, FORMAT..=FORMAT) {
            Ok((_, record)) => Ok(Some(record)),
            Err(error) => Err(ClusterFileError::Sealed { path, error }),
        },
        Err(error) => Err(ClusterFileError::Read { path, error }),
    }
}

/// Replaces the file of a data directory, durably.
///
/// # Errors
/// [`NodeFileError::Write`] or [`NodeFileError::Replace`].
pub(crate) fn write(data_dir: &Path, record: &ClusterRecord) -> Result<(), NodeFileError> {
    let text = sealed_json::text(&SealedObject { format: FORMAT, content: record }, true);
    node_file::replace(data_dir, NAME, &text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::MetadataExt as _;

    use replication::levels::FIRST_RECORD_LEVEL;
    use serde_json::Value;

    use super::*;
    use crate::membership::ids::{ClusterId, DiskId};
    use crate::membership::node_list::{ListedNode, NodeList};

    #[test]
    fn cluster_file_reads_back_and_is_private() {
        let folder =
            std::env::temp_dir().join(format!("leveret-cluster-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert!(read(&folder).unwrap().is_none());
        let (host, disk) = ("h".to_owned(), DiskId(2));
        let b = ListedNode { host, port: 1, disk, joins: 1, is_forgotten: false };
        let record = ClusterRecord {
            node: "a@h".to_owned(),
            cluster: ClusterId(1),
            disk: DiskId(u64::MAX),
            is_founded: true,
            is_newcomer: true,
            peers: BTreeMap::from([("b@h".to_owned(), DiskId(2))]),
            nodes: NodeList([("b@h".to_owned(), b)].into()).into(),
            nodes_position: 9,
            record_level: 2,
            are_nodes_due: true,
        };
        write(&folder, &record).unwrap();
        assert_eq!(read(&folder).unwrap(), Some(record));
        let path = folder.join(NAME);
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&path).unwrap();
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] ^= 1;
            std::fs::write(&path, &changed).unwrap();
            let is_space = text.as_bytes()[at].is_ascii_whitespace();
            assert!(read(&folder).is_err() || is_space, "byte {at}");
        }
        let mut first: Value = serde_json::from_str(&text).unwrap();
        for later in ["newcomer", "nodes", "nodes_position", "record_level", "nodes_due", "sha256"]
        {
            first.as_object_mut().unwrap().remove(later);
        }
        std::fs::write(&path, sealed_json::text(&first, false)).unwrap();
        let read_back = read(&folder).unwrap().unwrap();
        assert!(read_back.is_founded && !read_back.is_newcomer && read_back.nodes.is_empty());
        assert_eq!(read_back.record_level, FIRST_RECORD_LEVEL);
        std::fs::write(&path, "{\"format\": 2}").unwrap();
        let error = read(&folder).unwrap_err().to_string();
        assert!(
            error.contains("has format version 2, but this Leveret knows version 1"),
            "{error}"
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
