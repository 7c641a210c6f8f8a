//! The metadata of a cluster of one node, on a disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use replication::{GroupId, NodeId, RunId};
use serde_json::{Value, json};
use storage::{
    Applier, EntryIndex, FORMAT_VERSION_OLDEST, Flags, Founding, HardState, IoCounters, LogEntry,
    LogOptions, Lsn, NewRecord, RealDirectory, ReplicatedLog, ReplicatedOptions, Term, WriteBatch,
    WriteQueue,
};

use super::{ItemChange, ItemKey, Metadata, MetadataError};
use crate::clock::Clock;
use crate::config::Durability;
use crate::disk::reserve::Reserve;
use crate::disk::vhost_files::VhostId;
use crate::replicas::{Deposition, Nodes, ReplicaTarget as _, Replicator};
use crate::vhost::{Cluster, GroupAge};

const PATIENCE: Duration = Duration::from_secs(120);

/// A node whose cluster has no other.
struct Alone {
    folder: PathBuf,
    replicator: Arc<Replicator>,
    thread: Option<std::thread::JoinHandle<()>>,
    metadata: Arc<Metadata>,
}

impl Alone {
    fn start(test: &str) -> Self {
        let name = format!("leveret-metadata-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let me = NodeId::new(7).unwrap();
        let nodes = Nodes::alone(me, "a@h");
        let (replicator, thread) =
            Replicator::start(nodes, Clock::start(), RunId(1), Duration::from_secs(60), None)
                .unwrap();
        let cluster = Cluster { replicator: Arc::clone(&replicator), retention_bytes: 1 << 20 };
        let reserve = Arc::new(Reserve::open(&folder));
        let io = Arc::new(IoCounters::default());
        let metadata =
            Metadata::open(&folder, Durability::Os, &reserve, &io, cluster, GroupAge::New).unwrap();
        Self { folder, replicator, thread: Some(thread), metadata }
    }

    /// Lets the node vote, and waits until it leads.
    fn lead(&self) {
        self.replicator.founded();
        let until = Instant::now() + PATIENCE;
        // The version of before: a change between the two questions must not be waited for.
        let mut version = self.metadata.version();
        while !self.metadata.is_leading() {
            assert!(Instant::now() < until, "the only node becomes the leader");
            self.metadata.wait_for_change(version);
            version = self.metadata.version();
        }
        // The digest with which a lead begins.
        self.metadata.change(Vec::new()).unwrap();
    }

    fn stop(&mut self) {
        self.metadata.stop();
        self.replicator.stop();
        self.thread.take().unwrap().join().unwrap();
    }

    fn values(&self) -> Vec<(ItemKey, Value)> {
        let items = self.metadata.committed().expect("nothing waits for a majority");
        items.values.into_iter().map(|(key, value)| (key, Value::clone(&value))).collect()
    }
}

fn put(key: ItemKey, value: Value) -> ItemChange {
    ItemChange { key, value: Some(value) }
}

fn user(name: &str) -> ItemKey {
    ItemKey::User(name.to_owned())
}

#[test]
fn metadata_are_read_back_after_a_restart() {
    let mut node = Alone::start("back");
    assert_eq!(node.metadata.change(Vec::new()), Err(MetadataError::NoLeader));
    node.lead();
    let first = vec![put(ItemKey::NextVhostId, json!(2)), put(user("anna"), json!({"tags": []}))];
    node.metadata.change(first).unwrap();
    for number in 0..200 {
        node.metadata.change(vec![put(user("bob"), json!(number))]).unwrap();
    }
    let removed = ItemChange { key: user("anna"), value: None };
    node.metadata.change(vec![removed.clone(), put(user("carl"), json!(1))]).unwrap();
    // Nothing to remove, and nothing new.
    node.metadata.change(vec![removed, put(user("carl"), json!(1))]).unwrap();
    let expected =
        [(ItemKey::NextVhostId, json!(2)), (user("bob"), json!(199)), (user("carl"), json!(1))];
    assert_eq!(node.values(), expected);
    node.stop();
    let mut again = Alone::start("back");
    assert_eq!(again.values(), expected);
    again.lead();
    assert_eq!(again.values(), expected);
    again.stop();
    std::fs::remove_dir_all(&again.folder).unwrap();
}

#[test]
fn item_that_changes_and_is_removed_within_an_entry_is_gone_after_a_restart() {
    let mut node = Alone::start("spent");
    node.lead();
    node.metadata.change(vec![put(user("anna"), json!(1))]).unwrap();
    let removed = ItemChange { key: user("anna"), value: None };
    node.metadata.change(vec![put(user("anna"), json!(2)), removed]).unwrap();
    assert_eq!(node.values(), []);
    node.stop();
    let mut again = Alone::start("spent");
    assert_eq!(again.values(), []);
    again.stop();
    std::fs::remove_dir_all(&again.folder).unwrap();
}

#[test]
fn large_change_takes_several_entries() {
    let mut node = Alone::start("large");
    node.lead();
    let text = "x".repeat(100_000);
    let changes = (0..100).map(|number| put(user(&number.to_string()), json!(text)));
    node.metadata.change(changes.collect()).unwrap();
    node.stop();
    let mut again = Alone::start("large");
    assert_eq!(again.values().len(), 100);
    again.stop();
    std::fs::remove_dir_all(&again.folder).unwrap();
}

/// A log in a folder of its own, and the entries of another leader that it has committed.
fn committed(folder: &Path, records: &[&[(u8, &[u8])]]) -> (Applier<RealDirectory>, Vec<LogEntry>) {
    let options = ReplicatedOptions {
        log: LogOptions { log_id: GroupId::METADATA.0, ..LogOptions::default() },
        cluster_id: 5,
        member_id: 7,
        founding: Some(Founding { voters: vec![7], ..Founding::default() }),
        tail_bytes_max: 1 << 20,
        retention_bytes: u64::MAX,
    };
    let directory = RealDirectory::open(folder).unwrap();
    let opened = ReplicatedLog::open(directory, options, &mut storage::IgnoreRecords, &mut |_| {});
    let (mut log, _) = opened.unwrap();
    let (mut last, mut entries) = (0, Vec::new());
    for (index, records) in (1..).zip(records) {
        let (mut queue, mut batch) = (WriteQueue::default(), WriteBatch::default());
        for (place, (kind, payload)) in records.iter().enumerate() {
            last += 1;
            let record = NewRecord {
                lsn: Lsn(last),
                target: Lsn(0),
                kind: *kind,
                flags: Flags::NONE,
                references: 1,
                format_version: FORMAT_VERSION_OLDEST,
                is_joined: place > 0,
            };
            queue.push(record, |out| out.extend_from_slice(payload));
        }
        queue.take_batch(&mut batch);
        let sealed = batch.seal_as_entry(GroupId::METADATA.0, EntryIndex(index), Term(1), 0);
        entries.push(sealed.unwrap().0);
    }
    log.save_hard_state(&HardState { term: Term(1), ..log.hard_state().clone() }).unwrap();
    log.append(&entries).unwrap();
    log.commit(log.last_index());
    (log.applier(), entries)
}

#[test]
fn record_of_a_later_version_is_not_skipped() {
    const PUT: u8 = 1;
    // The keys of user `a`, and of an item that nobody knows yet.
    let (user_a, later): (&[u8], &[u8]) = (b"\x03\x01\0\0\0a7", b"\x63\0\0\0\x007");
    for (kind, payload, why) in [
        (99, user_a, "record 3: a record has kind 99, which this version does not know"),
        (PUT, later, "record 3: an item has kind 99, which this version does not know"),
    ] {
        let mut node = Alone::start("later");
        let folder = node.folder.join("of-the-leader");
        std::fs::create_dir_all(&folder).unwrap();
        let known = b"\x03\x01\0\0\0b8";
        let records: [&[(u8, &[u8])]; 2] =
            [&[(PUT, user_a)], &[(PUT, known), (kind, payload), (PUT, b"\x03\x01\0\0\0c9")]];
        let (applier, entries) = committed(&folder, &records);
        assert_eq!(node.metadata.apply(&entries[0], &applier), Ok(()));
        assert_eq!(node.metadata.apply(&entries[1], &applier), Err(why.to_owned()));
        // A part of an entry is not shown; the thread that applies hands on nothing more.
        assert!(node.metadata.committed().is_none());
        node.stop();
        std::fs::remove_dir_all(&node.folder).unwrap();
    }
}

/// A node that was deposed tells those that wait, and goes on with what its log has.
#[test]
fn change_of_a_deposed_leader_is_not_known_to_be_made() {
    let mut node = Alone::start("deposed");
    node.lead();
    node.metadata.change(vec![put(user("anna"), json!(1))]).unwrap();
    node.stop();
    let waits = std::thread::spawn({
        let metadata = Arc::clone(&node.metadata);
        move || metadata.change(vec![put(user("bob"), json!(1))])
    });
    // No replicator takes the change.
    let until = Instant::now() + PATIENCE;
    while node.metadata.committed().is_some() {
        assert!(Instant::now() < until, "the change waits for a majority");
        std::thread::yield_now();
    }
    node.metadata.depose(Deposition::LeaderChanged);
    assert_eq!(waits.join().unwrap(), Err(MetadataError::Deposed));
    assert!(node.metadata.committed().is_none());
    assert_eq!(node.metadata.change(Vec::new()), Err(MetadataError::NoLeader));
    node.metadata.reopen().unwrap();
    assert_eq!(node.values(), [(user("anna"), json!(1))]);
    std::fs::remove_dir_all(&node.folder).unwrap();
}

/// Otherwise changes would be refused until the new leader sends something.
#[test]
fn leader_is_known_while_the_metadata_are_opened_anew() {
    let mut node = Alone::start("known-leader");
    for (leader, known) in [("b@h", Some("b@h")), ("a@h", None)] {
        node.metadata.set_leader(Some(leader.into()));
        node.replicator.end_replica(VhostId::METADATA);
        node.metadata.reopen().unwrap();
        assert_eq!(node.metadata.leader().as_deref(), known);
    }
    node.stop();
    std::fs::remove_dir_all(&node.folder).unwrap();
}

/// Otherwise a vhost whose record has rotted would be removed from this node, with its files.
#[test]
fn items_of_a_damaged_log_are_not_shown() {
    let mut node = Alone::start("damaged");
    node.lead();
    for name in ["anna", "bob"] {
        node.metadata.change(vec![put(user(name), json!(1))]).unwrap();
    }
    node.stop();
    let mut rotten = 0;
    for entry in std::fs::read_dir(node.folder.join("metadata")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        if let Some(at) = bytes.windows(4).position(|window| window == b"anna") {
            bytes[at] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            rotten += 1;
        }
    }
    assert_eq!(rotten, 1);
    let mut again = Alone::start("damaged");
    assert!(again.metadata.committed().is_none());
    again.stop();
    std::fs::remove_dir_all(&again.folder).unwrap();
}
