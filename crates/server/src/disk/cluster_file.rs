//! `cluster.json`: the cluster that a data directory belongs to, the id of its disk, and the disks of the other nodes.
//! Replaced as a whole, durably, with a checksum.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::cluster::founding::ClusterRecord;
use crate::cluster::ids::{ClusterId, DiskId};
use crate::disk::node_file::{self, NodeFileError, checksum};

/// Name of the file.
pub(crate) const NAME: &str = "cluster.json";
const FORMAT: u64 = 1;
const CHECKSUM: &str = "sha256";

/// The reason why the file cannot be used.
#[derive(thiserror::Error, Debug)]
pub(crate) enum ClusterFileError {
    #[error("cannot read {path}: {error}")]
    Read { path: PathBuf, error: io::Error },
    #[error(
        "{path} is damaged: {problem}; without it the node could vote twice, so that nothing is changed"
    )]
    Damaged { path: PathBuf, problem: &'static str },
    #[error("{path} has format version {version}, but this Leveret knows version {FORMAT}")]
    Version { path: PathBuf, version: u64 },
}

/// Reads the file of a data directory; none if there is none.
///
/// # Errors
/// [`ClusterFileError`], a sentence for the operator.
pub(crate) fn read(data_dir: &Path) -> Result<Option<ClusterRecord>, ClusterFileError> {
    let path = data_dir.join(NAME);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ClusterFileError::Read { path, error }),
    };
    let damaged = |problem| ClusterFileError::Damaged { path: path.clone(), problem };
    let mut root: Value = serde_json::from_slice(&text).map_err(|_| damaged("it is not JSON"))?;
    match root.get("format").and_then(Value::as_u64) {
        Some(FORMAT) => {}
        Some(version) => return Err(ClusterFileError::Version { path, version }),
        None => return Err(damaged("'format' is missing")),
    }
    let told = root.as_object_mut().and_then(|root| root.remove(CHECKSUM));
    if told != Some(Value::String(checksum(&root))) {
        return Err(damaged("'sha256' does not fit what it says"));
    }
    parse(&root).ok_or_else(|| damaged("something in it is missing or of the wrong type")).map(Some)
}

fn parse(root: &Value) -> Option<ClusterRecord> {
    let mut peers = BTreeMap::new();
    for (name, disk) in root.get("disks")?.as_object()? {
        peers.insert(name.clone(), DiskId(id(disk)?));
    }
    Some(ClusterRecord {
        node: root.get("node")?.as_str()?.to_owned(),
        cluster: ClusterId(id(root.get("cluster")?)?),
        disk: DiskId(id(root.get("disk")?)?),
        is_founded: root.get("founded")?.as_bool()?,
        peers,
    })
}

/// An id: 16 hexadecimal digits.
fn id(value: &Value) -> Option<u64> {
    value
        .as_str()
        .filter(|text| text.len() == 16)
        .and_then(|text| u64::from_str_radix(text, 16).ok())
}

/// Replaces the file of a data directory, durably.
///
/// # Errors
/// [`NodeFileError::Write`] or [`NodeFileError::Replace`].
pub(crate) fn write(data_dir: &Path, record: &ClusterRecord) -> Result<(), NodeFileError> {
    let disks = record.peers.iter().map(|(name, disk)| (name.clone(), json!(disk.to_string())));
    let mut root = json!({
        "format": FORMAT,
        "node": record.node,
        "cluster": record.cluster.to_string(),
        "disk": record.disk.to_string(),
        "founded": record.is_founded,
        "disks": Value::Object(disks.collect::<Map<String, Value>>()),
    });
    root[CHECKSUM] = Value::String(checksum(&root));
    node_file::replace(data_dir, NAME, &format!("{root:#}\n"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn cluster_file_reads_back_and_is_private() {
        let folder =
            std::env::temp_dir().join(format!("leveret-cluster-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert!(read(&folder).unwrap().is_none());
        let record = ClusterRecord {
            node: "a@h".to_owned(),
            cluster: ClusterId(1),
            disk: DiskId(u64::MAX),
            is_founded: true,
            peers: BTreeMap::from([("b@h".to_owned(), DiskId(2))]),
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
        std::fs::write(&path, "{\"format\": 2}").unwrap();
        assert!(matches!(read(&folder), Err(ClusterFileError::Version { version: 2, .. })));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
