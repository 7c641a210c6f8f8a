//! `cluster.json`: the cluster that a data directory belongs to, the id of its disk, and the disks of the other nodes.
//! Replaced as a whole, durably, with a checksum.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use replication::levels::FIRST_RECORD_LEVEL;
use serde_json::{Map, Value, json};

use crate::disk::json_files::node_file::{self, NodeFileError};
use crate::disk::json_files::sealed_json::{self, SealedObject};
use crate::membership::founding::ClusterRecord;
use crate::membership::ids::{ClusterId, DiskId};
use crate::membership::node_list::{JOINS_MAX, ListedNode, NodeList};

/// Name of the file.
pub(crate) const NAME: &str = "cluster.json";
const FORMAT: u64 = 1;

/// The reason why the file cannot be used.
#[derive(thiserror::Error, Debug)]
pub(crate) enum ClusterFileError {
    #[error("cannot read {path}: {error}")]
    Read { path: PathBuf, error: std::io::Error },
    #[error(
        "{path} is damaged: {problem}; without it the node could vote twice, so that nothing is changed"
    )]
    Damaged { path: PathBuf, problem: String },
    #[error("{path} has format version {version}, but this Leveret knows version {FORMAT}")]
    Version { path: PathBuf, version: u64 },
}

/// Reads the file of a data directory; none if there is none.
///
/// # Errors
/// [`ClusterFileError`], a sentence for the operator.
pub(crate) fn read(data_dir: &Path) -> Result<Option<ClusterRecord>, ClusterFileError> {
    let path = data_dir.join(NAME);
    let text = match sealed_json::read(&path) {
        Ok(Some(text)) => text,
        Ok(None) => return Ok(None),
        Err(error) => return Err(ClusterFileError::Read { path, error }),
    };
    let damaged = |problem| ClusterFileError::Damaged { path: path.clone(), problem };
    let sealed = SealedObject::parse(&text).map_err(|_| damaged("it is not JSON".to_owned()))?;
    let version = sealed.format().map_err(damaged)?;
    if version != FORMAT {
        return Err(ClusterFileError::Version { path, version });
    }
    let root = sealed.open().map(Value::Object).map_err(damaged)?;
    let wrong = "something in it is missing or of the wrong type";
    parse(&root).ok_or_else(|| damaged(wrong.to_owned())).map(Some)
}

fn parse(root: &Value) -> Option<ClusterRecord> {
    let mut peers = BTreeMap::new();
    for (name, disk) in root.get("disks")?.as_object()? {
        peers.insert(name.clone(), DiskId::parse(disk.as_str()?)?);
    }
    Some(ClusterRecord {
        node: root.get("node")?.as_str()?.to_owned(),
        cluster: ClusterId::parse(root.get("cluster")?.as_str()?)?,
        disk: DiskId::parse(root.get("disk")?.as_str()?)?,
        is_founded: root.get("founded")?.as_bool()?,
        // The first builds with clusters did not write these.
        is_newcomer: root.get("newcomer").map_or(Some(false), Value::as_bool)?,
        peers,
        nodes: root.get("nodes").map_or_else(|| Some(NodeList::default()), node_list)?.into(),
        nodes_position: root.get("nodes_position").map_or(Some(0), Value::as_u64)?,
        record_level: root.get("record_level").map_or(Some(FIRST_RECORD_LEVEL), record_level)?,
        are_nodes_due: root.get("nodes_due").map_or(Some(false), Value::as_bool)?,
    })
}

/// The item of a level of record kinds.
pub(crate) fn record_level_value(level: u16) -> Value {
    Value::from(level)
}

/// The level of an item; none if the item is not that of a level.
pub(crate) fn record_level(value: &Value) -> Option<u16> {
    value.as_u64()?.try_into().ok()
}

fn node_list(value: &Value) -> Option<NodeList> {
    let nodes = value.as_object()?.iter();
    nodes
        .map(|(name, value)| Some((name.clone(), node(value)?)))
        .collect::<Option<_>>()
        .map(NodeList)
}

/// The item of a node.
pub(crate) fn node_value(node: &ListedNode) -> Value {
    json!({
        "host": node.host,
        "port": node.port,
        "disk": node.disk.to_string(),
        "joins": node.joins,
        "forgotten": node.is_forgotten,
    })
}

/// The node of an item; none if the item is not that of a node.
pub(crate) fn node(value: &Value) -> Option<ListedNode> {
    let joins = value.get("joins")?.as_u64()?.try_into().ok()?;
    Some(ListedNode {
        host: value.get("host")?.as_str()?.to_owned(),
        port: value.get("port")?.as_u64()?.try_into().ok()?,
        disk: DiskId::parse(value.get("disk")?.as_str()?)?,
        joins: Some(joins).filter(|joins| *joins <= JOINS_MAX)?,
        is_forgotten: value.get("forgotten")?.as_bool()?,
    })
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
        "newcomer": record.is_newcomer,
        "disks": Value::Object(disks.collect::<Map<String, Value>>()),
        "nodes": record.nodes.0.iter().map(|(name, node)| (name.clone(), node_value(node))).collect::<Value>(),
        "nodes_position": record.nodes_position,
        "record_level": record.record_level,
    });
    if record.are_nodes_due {
        root["nodes_due"] = Value::Bool(true);
    }
    node_file::replace(data_dir, NAME, &sealed_json::text(root, true))
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
        std::fs::write(&path, sealed_json::text(first, false)).unwrap();
        let read_back = read(&folder).unwrap().unwrap();
        assert!(read_back.is_founded && !read_back.is_newcomer && read_back.nodes.is_empty());
        assert_eq!(read_back.record_level, FIRST_RECORD_LEVEL);
        std::fs::write(&path, "{\"format\": 2}").unwrap();
        assert!(matches!(read(&folder), Err(ClusterFileError::Version { version: 2, .. })));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
