//! A node that goes on without the other nodes of its cluster: the only one of a cluster with a new id, with the users,
//! vhosts and messages that it has.
//!
//! For clusters that have lost their majority for good, and for backups of a node of a cluster. The others cannot link
//! with the node any more, because the cluster has another id: should they come back, there are two clusters, which never
//! mix. A mark file with the new id exists while this runs; if it exists at a start, the start first finishes it.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use storage::{IgnoreRecords, LogOptions, OpenError, RealDirectory, ReplicatedLog, SavedMember};

use crate::disk::access::about;
use crate::disk::json_files::cluster_file::{self, ClusterFileError};
use crate::disk::json_files::node_file::{self, NodeFileError};
use crate::disk::private_files::{self, sync};
use crate::disk::recovery::MemberIdentity;
use crate::disk::vhost_files::{VhostId, replica_path};
use crate::membership::founding::ClusterRecord;
use crate::membership::ids::{ClusterId, NodeId};
use crate::membership::node_list::NodeList;

/// The mark file.
pub(crate) const MARK: &str = "standing-alone";

/// The reason why a node cannot go on alone; each is a sentence for the operator.
#[derive(thiserror::Error, Debug)]
pub(crate) enum StandAloneError {
    #[error("the node does not belong to a cluster that has begun")]
    NoCluster,
    #[error("the node is the only one of its cluster already")]
    IsAlone,
    #[error("the node has no usable replica of {group}, {problem}: use another node")]
    NoReplica { group: String, problem: String },
    #[error("{path}: {error}")]
    Log { path: PathBuf, error: OpenError },
    #[error("{path} is damaged: remove it to start as before, if nothing else was changed yet")]
    Mark { path: PathBuf },
    #[error(transparent)]
    Cluster(#[from] ClusterFileError),
    #[error(transparent)]
    File(#[from] NodeFileError),
    #[error("the disk refuses: {0}")]
    Disk(#[from] io::Error),
    #[error("the system has no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
}

/// A replica of this node.
struct Group {
    id: VhostId,
    /// The group in words.
    name: String,
    path: PathBuf,
}

/// The replicas that the node must have, and those that a crash left behind before `node.json` listed them. Vhosts that
/// other nodes have begin anew.
fn groups(data_dir: &Path, node: &str) -> Result<Vec<Group>, StandAloneError> {
    let known = node_file::read(data_dir)?.ok_or(StandAloneError::NoCluster)?;
    let vhosts = known.vhosts.into_iter().filter(|vhost| vhost.is_on(node));
    let vhosts = vhosts.map(|vhost| (vhost.id, format!("vhost '{}'", vhost.name)));
    let mut names = BTreeMap::from([(VhostId::METADATA, "the metadata".to_owned())]);
    names.extend(vhosts);
    let vhosts = data_dir.join("vhosts");
    for entry in std::fs::read_dir(&vhosts).map_err(about(&vhosts))? {
        let name = entry?.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse().ok()).map(VhostId) else {
            continue;
        };
        let path = replica_path(data_dir, id);
        let directory = RealDirectory::open(&path).map_err(about(&path))?;
        if let Ok(Some(_)) = storage::saved_member(&directory) {
            names.entry(id).or_insert_with(|| format!("the vhost with id {}", id.0));
        }
    }
    let group = |(id, name)| Group { id, name, path: replica_path(data_dir, id) };
    Ok(names.into_iter().map(group).collect())
}

/// The cluster that the node is one of.
fn founded_record(data_dir: &Path) -> Result<ClusterRecord, StandAloneError> {
    let record = cluster_file::read(data_dir)?;
    let is_listed =
        |record: &ClusterRecord| record.is_founded && record.nodes.member(&record.node).is_some();
    record.filter(is_listed).ok_or(StandAloneError::NoCluster)
}

impl Group {
    fn no_replica(&self, problem: impl Into<String>) -> StandAloneError {
        StandAloneError::NoReplica { group: self.name.clone(), problem: problem.into() }
    }

    fn open_failed(&self, error: OpenError) -> StandAloneError {
        match error {
            OpenError::Io { .. } | OpenError::Version { .. } => {
                StandAloneError::Log { path: self.path.clone(), error }
            }
            OpenError::Manifest { .. }
            | OpenError::DoesNotVote { .. }
            | OpenError::HasContent { .. } => self.no_replica(error.to_string()),
        }
    }

    fn directory(&self) -> Result<RealDirectory, StandAloneError> {
        // Opening makes a directory that is missing.
        match self.path.exists() {
            true => Ok(RealDirectory::open(&self.path).map_err(about(&self.path))?),
            false => Err(self.no_replica("because its directory is missing")),
        }
    }

    /// The directory, and the member whose replica is there.
    fn member(&self) -> Result<(RealDirectory, SavedMember), StandAloneError> {
        let directory = self.directory()?;
        let saved = storage::saved_member(&directory).map_err(|error| self.open_failed(error))?;
        let saved = saved.ok_or_else(|| self.no_replica("which has not begun here"))?;
        Ok((directory, saved))
    }

    /// Checks, without changing anything, that the replica is one of the node and whole.
    fn check(&self, me: NodeId) -> Result<(), StandAloneError> {
        let (directory, saved) = self.member()?;
        let is_own = replication::MemberId::new(saved.member_id)
            .is_some_and(|member| member.node().get() == me.0);
        if !is_own {
            return Err(self.no_replica("which is that of another node"));
        }
        let report = storage::check(&directory, self.id.0, &mut IgnoreRecords);
        let report = report.map_err(|error| self.open_failed(error))?;
        match report.damages.first() {
            Some(damage) => Err(self.no_replica(format!("which is damaged ({damage})"))),
            None => Ok(()),
        }
    }

    /// Makes the member the only one of its group.
    fn stand_alone(&self, cluster: ClusterId) -> Result<(), StandAloneError> {
        let (directory, saved) = self.member()?;
        if saved.cluster_id == cluster.0 {
            // Done before a crash.
            return Ok(());
        }
        let identity = MemberIdentity {
            cluster_id: saved.cluster_id,
            member_id: saved.member_id,
            voters: Vec::new(),
            retention_bytes: 0,
        };
        let options = identity.options(LogOptions { log_id: self.id.0, ..LogOptions::default() });
        let options = storage::ReplicatedOptions { founding: None, ..options };
        let opened = ReplicatedLog::open(directory, options, &mut IgnoreRecords, &mut |_| {});
        let (log, _) = opened.map_err(|error| self.open_failed(error))?;
        log.stand_alone(cluster.0).map_err(|error| io::Error::other(error).into())
    }
}

/// Checks that the node can go on alone, as far as that can be told without reading the logs. The node may run.
///
/// # Errors
/// [`StandAloneError`].
pub(crate) fn begin(data_dir: &Path) -> Result<(), StandAloneError> {
    let record = founded_record(data_dir)?;
    if record.nodes.members().count() == 1 {
        return Err(StandAloneError::IsAlone);
    }
    groups(data_dir, &record.node)?.iter().try_for_each(|group| group.member().map(drop))?;
    mark(data_dir)?;
    tracing::warn!(node = record.node, "the node is to go on without the others at its next start");
    Ok(())
}

/// Lets the first start from a directory make its node the only one of a new cluster.
///
/// # Errors
/// [`StandAloneError`].
pub(crate) fn mark(data_dir: &Path) -> Result<(), StandAloneError> {
    let cluster = ClusterId(getrandom::u64()?.max(1));
    let path = data_dir.join(MARK);
    let written = private_files::create(&path)
        .and_then(|mut mark| writeln!(mark, "{cluster}").and_then(|()| mark.sync_all()));
    written.map_err(about(&path))?;
    Ok(sync(data_dir).map_err(about(data_dir))?)
}

/// Finishes what [`mark`] began. The data directory is not in use. If a replica cannot be used, nothing is changed, and
/// the mark is removed.
///
/// # Errors
/// [`StandAloneError`].
pub(crate) fn finish(data_dir: &Path) -> Result<(), StandAloneError> {
    let mark = data_dir.join(MARK);
    let text = match std::fs::read_to_string(&mark) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(about(&mark)(error).into()),
    };
    let cluster = ClusterId::parse(text.trim_end());
    let cluster = cluster.ok_or_else(|| StandAloneError::Mark { path: mark.clone() })?;
    let record = founded_record(data_dir)?;
    if record.cluster != cluster {
        let groups = usable_groups(data_dir, &record).or_else(|error| {
            std::fs::remove_file(&mark).map_err(about(&mark))?;
            Err(error)
        })?;
        groups.iter().try_for_each(|group| group.stand_alone(cluster))?;
        // Last, because with the new id in it no start looks at the replicas again.
        cluster_file::write(data_dir, &alone(record, cluster))?;
    }
    std::fs::remove_file(&mark).map_err(about(&mark))?;
    sync(data_dir)?;
    tracing::warn!(
        %cluster,
        "this node goes on alone, as the only one of a new cluster; the other nodes must be reset before they join it"
    );
    Ok(())
}

/// The replicas of the node, of which each is whole.
fn usable_groups(data_dir: &Path, record: &ClusterRecord) -> Result<Vec<Group>, StandAloneError> {
    let (groups, me) = (groups(data_dir, &record.node)?, NodeId::of(&record.node));
    groups.iter().try_for_each(|group| group.check(me))?;
    Ok(groups)
}

/// The record of a node whose cluster is `cluster`, and has forgotten all other nodes.
fn alone(record: ClusterRecord, cluster: ClusterId) -> ClusterRecord {
    let mut nodes = NodeList::clone(&record.nodes);
    let others: Vec<String> =
        nodes.0.keys().filter(|name| **name != record.node).cloned().collect();
    for name in others {
        let disk = record.peers.get(&name).copied();
        if let Some(forgotten) = nodes.forgotten(&name, disk) {
            nodes.0.insert(name, forgotten);
        }
    }
    let (peers, nodes) = (BTreeMap::new(), Arc::new(nodes));
    ClusterRecord { cluster, peers, nodes, are_nodes_due: true, ..record }
}

#[cfg(test)]
mod tests {
    use replication::MemberId;
    use storage::{Founding, ReplicatedOptions};

    use super::*;
    use crate::disk::json_files::node_file::{NodeFile, VhostEntry};
    use crate::membership::ids::DiskId;
    use crate::membership::node_list::ListedNode;

    const GROUPS: [VhostId; 3] = [VhostId::METADATA, VhostId(1), VhostId(2)];
    const OLD: ClusterId = ClusterId(5);

    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// The data directory of node `a@h`, of a cluster of three.
    fn founded(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("leveret-{test}-{}", std::process::id()));
        let me = NodeId::of("a@h").0 << 16 | 1;
        for id in GROUPS {
            let replica = replica_path(&path, id);
            std::fs::create_dir_all(&replica).unwrap();
            let log = LogOptions { log_id: id.0, create_if_missing: true, ..LogOptions::default() };
            let options = ReplicatedOptions {
                log,
                cluster_id: OLD.0,
                member_id: me,
                founding: Some(Founding { voters: vec![me, me + 65_536], ..Founding::default() }),
                tail_bytes_max: 0,
                retention_bytes: 0,
            };
            let directory = RealDirectory::open(&replica).unwrap();
            ReplicatedLog::open(directory, options, &mut IgnoreRecords, &mut |_| {}).unwrap();
        }
        let vhost = |id: u64| VhostEntry {
            name: format!("v{id}"),
            id: VhostId(id),
            settings: Arc::default(),
            voters: vec![MemberId::new(me).unwrap()],
            placement: None,
        };
        let vhosts = [1, 2].map(vhost).into();
        let file = NodeFile { next_vhost_id: 3, vhosts, users: vec![], followed: Some(1) };
        node_file::write(&path, &file).unwrap();
        let listed = |name: &str| {
            let (host, disk) = ("h".to_owned(), DiskId(7));
            let node = ListedNode { host, port: 1, disk, joins: 0, is_forgotten: false };
            (name.to_owned(), node)
        };
        let record = ClusterRecord {
            is_founded: true,
            nodes: NodeList(["a@h", "b@h", "c@h"].map(listed).into()).into(),
            ..ClusterRecord::new("a@h", OLD, DiskId(7))
        };
        cluster_file::write(&path, &record).unwrap();
        Folder(path)
    }

    fn clusters(path: &Path) -> Vec<ClusterId> {
        let saved = |id: &VhostId| {
            let directory = RealDirectory::open(&replica_path(path, *id)).unwrap();
            ClusterId(storage::saved_member(&directory).unwrap().unwrap().cluster_id)
        };
        let record = cluster_file::read(path).unwrap().unwrap();
        GROUPS.iter().map(saved).chain([record.cluster]).collect()
    }

    #[test]
    fn crash_at_any_replica_is_finished_by_the_next_start() {
        for done in 0..=GROUPS.len() {
            let folder = founded(&format!("alone-{done}"));
            let path = &folder.0;
            finish(path).unwrap();
            assert_eq!(clusters(path), [OLD; 4]);
            begin(path).unwrap();
            let text = std::fs::read_to_string(path.join(MARK)).unwrap();
            let new = ClusterId::parse(text.trim_end()).unwrap();
            for group in &groups(path, "a@h").unwrap()[..done] {
                group.stand_alone(new).unwrap();
            }
            finish(path).unwrap();
            assert_eq!(clusters(path), [new; 4], "{done} were done");
            let record = cluster_file::read(path).unwrap().unwrap();
            let members: Vec<&str> = record.nodes.members().map(|(name, _)| name).collect();
            assert_eq!((members, record.are_nodes_due), (vec!["a@h"], true));
            assert!(!path.join(MARK).exists());
            finish(path).unwrap();
            assert!(matches!(begin(path), Err(StandAloneError::IsAlone)));
            assert_eq!(clusters(path), [new; 4]);
        }
    }

    #[test]
    fn node_that_lacks_a_whole_replica_is_left_as_it_was() {
        let folder = founded("alone-lacks");
        let path = &folder.0;
        mark(path).unwrap();
        let lost = replica_path(path, VhostId(2));
        std::fs::rename(&lost, path.join("kept")).unwrap();
        assert_eq!(
            finish(path).unwrap_err().to_string(),
            "the node has no usable replica of vhost 'v2', because its directory is missing: use another node"
        );
        assert!(begin(path).is_err());
        assert!(!path.join(MARK).exists());
        std::fs::rename(path.join("kept"), &lost).unwrap();
        finish(path).unwrap();
        assert_eq!(clusters(path), [OLD; 4]);
        std::fs::remove_file(path.join(cluster_file::NAME)).unwrap();
        assert!(matches!(begin(path), Err(StandAloneError::NoCluster)));
    }
}
