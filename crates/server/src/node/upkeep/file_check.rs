//! The check of the files that are in use: logs are read again, so that an octet that has changed on the disk is known
//! before the next start needs it.
//!
//! A file is read with a pause after each piece, and without the pages that the system has cached. On a node of a
//! cluster, a damaged replica is rebuilt from the files of its leader.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Advice, fadvise};
use storage::{Damage, EntryIndex, LogSnapshot, RealDirectory, VerifiableFile};

use crate::disk::recovery::damaged_record;
use crate::disk::vhost_files::{VhostId, replica_path};
use crate::limits::{DAMAGED_FILES_KEPT, DAMAGES_TOLD};
use crate::node::Node;
use crate::requests::{DamagedFile, FileRepair, Leader};
use crate::snapshot::replication::{ReplicaGroup, ReplicaSnapshot};

/// Checks the files at an interval and on demand, until the broker stops.
pub(crate) async fn run(node: Arc<Node>) {
    loop {
        node.upkeep.file_checks.wait(|| node.now_ms()).await;
        check(&node).await;
        let ended_ms = node.now_ms();
        let mut known = node.upkeep.file_checks.known.lock();
        known.is_running = false;
        known.ended_ms = Some(ended_ms);
        known.ended += 1;
        let (files, bytes, damaged) = (known.files, known.bytes, known.damaged.len());
        drop(known);
        tracing::info!(files, bytes, damaged, "checked the files of the logs");
    }
}

/// A log to check.
#[derive(Debug)]
struct CheckedLog {
    id: VhostId,
    name: String,
    path: PathBuf,
}

/// Reads the logs of all vhosts that this node has, and the log of the metadata.
async fn check(node: &Arc<Node>) {
    let elsewhere = node.vhosts.elsewhere();
    let (_, vhosts) = node.vhosts.entries();
    let here = vhosts.into_iter().filter(|vhost| !elsewhere.contains(&vhost.name));
    let mut logs: Vec<(VhostId, String)> = here.map(|vhost| (vhost.id, vhost.name)).collect();
    if node.replication.is_some() {
        logs.push((VhostId::METADATA, "metadata".to_owned()));
    }
    let mut checked = Vec::new();
    for (id, name) in logs {
        let path = replica_path(&node.disk.data_dir, id);
        let log = Arc::new(CheckedLog { id, name, path });
        let (reader, of) = (Arc::clone(node), Arc::clone(&log));
        let Some(Ok(Some(files))) = aside(move || snapshot(&reader, &of)).await else { continue };
        node.upkeep.file_checks.known.lock().bytes_total += files.bytes();
        // Files that are made from now on are for the next check: a busy log would be read for ever.
        checked.push((log, files.last_file_id()));
    }
    for (log, until) in checked {
        check_log(node, &log, until).await;
    }
}

/// The result of blocking work on a thread of its own; none if it panicked, or the runtime ends.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

/// Reads the files of a log up to `until`, one after the other.
async fn check_log(node: &Arc<Node>, log: &Arc<CheckedLog>, until: u64) {
    let mut behind = 0;
    loop {
        let (reader, of) = (Arc::clone(node), Arc::clone(log));
        let Some(read) = aside(move || read_next(&reader, &of, behind, until)).await else {
            return;
        };
        let (file, damages) = match read {
            Ok(Some(read)) => read,
            Ok(None) => return,
            Err(error) => {
                tracing::error!(vhost = log.name, %error, "cannot check the files of a log");
                let mut known = node.upkeep.file_checks.known.lock();
                known.unread.push((log.name.clone(), error.to_string()));
                return;
            }
        };
        behind = file.id;
        node.upkeep.file_checks.known.lock().files += 1;
        if !damages.is_empty() && report(node, log, file, &damages).await == FileRepair::Rebuilt {
            // All other files of the replica are replaced as well.
            return;
        }
    }
}

/// Reads the next file of a log. None behind the last one, or if the log is gone, or the broker stops.
fn read_next(
    node: &Node,
    log: &CheckedLog,
    behind: u64,
    until: u64,
) -> io::Result<Option<(VerifiableFile, Vec<Damage>)>> {
    let (mut found, checks) = (None, &node.upkeep.file_checks);
    // What seems to be damaged is read once more: the log may be deleted or replaced just now.
    for _ in 0..2 {
        let Some(snapshot) = snapshot(node, log)? else { return Ok(None) };
        let next = snapshot.file_behind(behind).filter(|file| file.id <= until);
        let Some(file) = next else { return Ok(None) };
        let path = log.path.join(file.name());
        forget_cached(&path);
        let damages = match snapshot
            .verify(file, &mut |bytes| checks.pace(bytes, &node.lifecycle.stopping))
        {
            Ok(damages) => damages,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            Err(error) => return Err(error),
        };
        forget_cached(&path);
        let is_whole = damages.is_empty();
        found = Some((file, damages));
        if is_whole {
            break;
        }
    }
    Ok(found)
}

/// The files of a log as they are now; none if the log is gone or is rebuilt, or the broker stops.
fn snapshot(node: &Node, log: &CheckedLog) -> io::Result<Option<LogSnapshot<RealDirectory>>> {
    Ok(match &node.replication {
        Some(replication) => replication.replicator.snapshot(log.id, EntryIndex(0)).ok(),
        None => node.threads.persister.snapshot(log.id),
    })
}

/// Lets the system read a file from the disk, not from its memory, and takes that memory back afterwards.
fn forget_cached(path: &Path) {
    if let Ok(file) = File::open(path) {
        // Without it the check sees what is in memory.
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
    }
}

/// Reports a damaged file, and begins its repair if another node has the log.
async fn report(
    node: &Arc<Node>,
    log: &CheckedLog,
    file: VerifiableFile,
    damages: &[Damage],
) -> FileRepair {
    let first = damages.iter().take(DAMAGES_TOLD);
    let in_words: Vec<String> =
        first.map(|damage| format!("{damage}{}", damaged_record(damage))).collect();
    let file = log.path.join(file.name());
    let file = file.strip_prefix(&node.disk.data_dir).unwrap_or(&file).display().to_string();
    tracing::error!(
        vhost = log.name,
        file,
        places = damages.len(),
        first = in_words.first().map(String::as_str).unwrap_or_default(),
        "a file has changed since it was written"
    );
    let repair = repair(node, log, &file).await;
    let damaged = DamagedFile {
        vhost: log.name.clone(),
        file,
        damages: in_words,
        places: damages.len() as u64,
        repair: repair.clone(),
    };
    let mut known = node.upkeep.file_checks.known.lock();
    known.damaged.push(damaged);
    let surplus = known.damaged.len().saturating_sub(DAMAGED_FILES_KEPT);
    known.damaged.drain(..surplus);
    repair
}

/// Replaces the replica of a log by the files of another node, if that costs no majority.
async fn repair(node: &Arc<Node>, log: &CheckedLog, file: &str) -> FileRepair {
    let Some(replication) = &node.replication else {
        return FileRepair::None("no other node has the log");
    };
    let of_metadata = log.id == VhostId::METADATA;
    if let Some(reason) = not_repairable(node, &log.name, of_metadata) {
        return FileRepair::None(reason);
    }
    let leads = || match of_metadata {
        true => node.leader_of_metadata() == Leader::Here,
        false => node.leader_of_vhost(&log.name) == Leader::Here,
    };
    if leads() {
        // Whether another node leads now is looked at below.
        match of_metadata {
            true => drop(replication.replicator.transfer(log.id, None).await),
            false => drop(node.transfer_leader(&log.name, None).await),
        }
    }
    if leads() {
        return FileRepair::None("this node leads, and no other one takes the lead");
    }
    replication.replicator.damaged(log.id, format!("{file} has changed since it was written"));
    FileRepair::Rebuilt
}

/// The reason why the replica of a log must stay although it is damaged; none if another one can take its place.
fn not_repairable(node: &Node, name: &str, of_metadata: bool) -> Option<&'static str> {
    let replicas = node.cluster().replication.replicas;
    let is_this = |one: &&ReplicaSnapshot| {
        one.vhost == name && (one.group == ReplicaGroup::Metadata) == of_metadata
    };
    let voters = replicas.iter().find(is_this).map(|one| one.voters.clone()).unwrap_or_default();
    let others: Vec<&String> = voters.iter().filter(|one| **one != node.identity.name).collect();
    let connected = node.connected_peers();
    if others.is_empty() {
        return Some("no other node has the log");
    }
    let is_away = others.into_iter().any(|one| !connected.contains(one));
    is_away.then_some("not all nodes that have the log are connected")
}
