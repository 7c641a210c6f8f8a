//! A group of one member, on a disk, whose vhost is a list of times.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use replica::{Deposition, HandOverTask, Next};
use replication::{
    ClockBounds, ClockReading, ClusterId, CommitNews, GroupId, Member, MemberConfig, NodeId,
    QuarantineReason, RunId,
};
use storage::{
    Applier, EntryContent, EntryIndex, Flags, Founding, HardState, LogEntry, LogOptions, Lsn,
    NewRecord, RealDirectory, ReplicatedLog, ReplicatedOptions, Term, WriteBatch, WriteQueue,
    Written,
};

use super::apply::ApplyQueue;
use super::disk_watch::DiskWatch;
use super::driver::{Clocks, ReplicaDriver};
use super::member_log::MemberLog;
use super::nodes::Nodes;
use super::report::Report;
use super::target::ReplicaTarget;
use crate::disk::log::log_writer::LogSource;
use crate::disk::progress::DiskProgress;
use crate::disk::vhost_files::VhostId;
use crate::membership::placement::Placement;

const VHOST: VhostId = VhostId(1);
/// Microseconds that pass while the vhost is asked for a batch.
const PAUSE_US: u64 = 5_000;

/// A vhost that writes the time into each record.
#[derive(Debug)]
struct Times {
    progress: DiskProgress,
    clock_us: AtomicU64,
    next: AtomicU64,
    /// True while other threads hold the vhost.
    is_busy: AtomicBool,
    durable: Mutex<Vec<Lsn>>,
    deposed: Mutex<Vec<Deposition>>,
    /// Record that ends without a record that says so, as one on a page that was dropped late; 0 for none.
    ends: AtomicU64,
    /// Entries that were passed on to be applied.
    met: Mutex<Vec<EntryIndex>>,
    /// The first entry that has something unknown; 0 for none.
    unknown_from: AtomicU64,
}

impl Times {
    fn new() -> Self {
        Self {
            progress: DiskProgress::new(broker::Lsn(0)),
            clock_us: AtomicU64::new(1_000_000),
            next: AtomicU64::new(1),
            is_busy: AtomicBool::new(false),
            durable: Mutex::default(),
            deposed: Mutex::default(),
            ends: AtomicU64::new(0),
            met: Mutex::default(),
            unknown_from: AtomicU64::new(0),
        }
    }
}

impl LogSource for Times {
    fn id(&self) -> VhostId {
        VHOST
    }

    fn name(&self) -> &str {
        "/"
    }

    fn progress(&self) -> &DiskProgress {
        &self.progress
    }

    fn take_batch(&self, batch: &mut WriteBatch) -> Option<bool> {
        if self.is_busy.load(Ordering::Acquire) {
            return None;
        }
        let mut queue = WriteQueue::default();
        let ended = self.ends.swap(0, Ordering::AcqRel);
        if ended > 0 {
            queue.release(Lsn(ended));
            queue.take_batch(batch);
            return Some(false);
        }
        let now_us = self.clock_us.fetch_add(PAUSE_US, Ordering::AcqRel) + PAUSE_US;
        let record = NewRecord {
            lsn: Lsn(self.next.fetch_add(1, Ordering::AcqRel)),
            target: Lsn(0),
            kind: 1,
            flags: Flags::default(),
            references: 1,
            format_version: 1,
            is_joined: false,
        };
        queue.push(record, |out| out.extend(now_us.to_le_bytes()));
        queue.take_batch(batch);
        Some(false)
    }

    fn batch_durable(&self, written: Written) -> bool {
        self.durable.lock().push(written.durable);
        true
    }
}

impl ReplicaTarget for Times {
    fn placement(&self) -> Option<Arc<Placement>> {
        None
    }

    fn apply(&self, entry: &LogEntry, applier: &Applier<RealDirectory>) -> Result<(), String> {
        self.met.lock().push(entry.index);
        let unknown_from = self.unknown_from.load(Ordering::Acquire);
        if unknown_from > 0 && entry.index.0 >= unknown_from {
            return Err("unknown".to_owned());
        }
        applier.apply(entry, &mut |_, _| {}).map_err(|fault| fault.to_string())
    }

    fn promote(&self, _: i64, _: Lsn) -> Result<(), String> {
        Ok(())
    }

    fn log_digest(&self) {}

    fn hand_over(&self, _: HandOverTask) -> bool {
        true
    }

    fn leader(&self) -> Option<Arc<str>> {
        None
    }

    fn set_leader(&self, _: Option<Arc<str>>) {}

    fn depose(&self, why: Deposition) {
        self.deposed.lock().push(why);
    }
}

/// A directory of the test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("leveret-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The log of a group whose only member is `voter`.
    fn log(&self, voter: u64) -> MemberLog {
        let options = ReplicatedOptions {
            log: LogOptions { log_id: VHOST.0, ..LogOptions::default() },
            cluster_id: 5,
            member_id: voter,
            founding: Some(Founding { voters: vec![voter], ..Founding::default() }),
            tail_bytes_max: 1 << 20,
            retention_bytes: u64::MAX,
        };
        let directory = RealDirectory::open(&self.0).unwrap();
        ReplicatedLog::open(directory, options, &mut storage::IgnoreRecords, &mut |_| {}).unwrap().0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A replica that is driven without a thread.
struct Driven {
    driver: ReplicaDriver,
    target: Arc<Times>,
    watch: Arc<DiskWatch>,
    nodes: Nodes,
    bounds: ClockBounds,
    reports: std::sync::mpsc::Receiver<Report>,
    ticks: u64,
}

impl Driven {
    /// Writes that take longer than `timeout` count as stalled.
    fn new(folder: &Folder, timeout: Duration) -> Self {
        let me = NodeId::new(7).unwrap();
        let member_id = me.member(1);
        let config = MemberConfig {
            cluster: ClusterId(5),
            group: GroupId(VHOST.0),
            me: member_id,
            seed: 1,
            tells_commits: CommitNews::AtTick,
        };
        let member = Member::open(config, folder.log(member_id.get())).unwrap();
        let target = Arc::new(Times::new());
        let (tell, reports) = std::sync::mpsc::channel();
        let report = Box::new(move |report| tell.send(report).unwrap());
        let vhost: Arc<Times> = Arc::clone(&target);
        let watch = DiskWatch::start(timeout).unwrap();
        let watched = Arc::clone(&watch);
        let mut driver = ReplicaDriver::start(vhost, member, None, watched, report).unwrap();
        driver.replica.take_part(0);
        let nodes = Nodes::alone(me, "a@127.0.0.1");
        Self { driver, target, watch, nodes, bounds: ClockBounds::default(), reports, ticks: 0 }
    }

    fn tick(&mut self) {
        self.ticks += 1;
        self.driver.replica.tick_to(self.ticks);
    }

    fn advance(&mut self) -> Next {
        self.advance_counted().0
    }

    /// Advances; also how often frames could leave.
    fn advance_counted(&mut self) -> (Next, u32) {
        let clock_us = &self.target.clock_us;
        let read = || {
            let monotonic_us = clock_us.load(Ordering::Acquire);
            let now = ClockReading { run: RunId(1), monotonic_us, wall_us: monotonic_us };
            (now, monotonic_us)
        };
        let clocks = Clocks { read: &read, bounds: &self.bounds };
        let mut sends = 0;
        let mut send = |frames: &mut Vec<_>| {
            sends += 1;
            frames.clear();
        };
        let next = self.driver.advance(clocks, &self.nodes, &mut Vec::new(), &mut send, &|| ());
        (next, sends)
    }

    /// Ticks until the member leads and its vhost is promoted.
    fn lead(&mut self) {
        for _ in 0..100 {
            self.tick();
            while self.advance() == Next::After(Duration::ZERO) {}
            if self.driver.replica.member().axis().is_some()
                && let Ok(Report::Promoted(term)) = self.reports.recv()
            {
                self.driver.promoted(term);
                return;
            }
        }
        panic!("the only member of a group is not elected");
    }
}

/// Times of the entries with records, each with the times in its records.
fn entries(driver: &ReplicaDriver) -> Vec<(u64, u64)> {
    let log = driver.replica.member().log();
    let end = EntryIndex(log.last_index().0 + 1);
    let mut found = Vec::new();
    for entry in log.entries(log.first_index(), end, 1 << 20).unwrap() {
        if let EntryContent::Records(records) = &entry.content {
            let last = records.bytes.last_chunk::<8>().unwrap();
            found.push((entry.axis_us, u64::from_le_bytes(*last)));
        }
    }
    found
}

#[test]
fn no_record_is_newer_than_its_entry() {
    let folder = Folder::new("replica-times");
    let mut driven = Driven::new(&folder, Duration::from_secs(60));
    driven.lead();
    for _ in 0..3 {
        driven.driver.replica.set_dirty();
        while driven.advance() == Next::After(Duration::ZERO) {}
    }
    assert_eq!(*driven.target.durable.lock(), [Lsn(1), Lsn(2), Lsn(3)]);
    for (entry_us, record_us) in entries(&driven.driver) {
        assert!(record_us <= entry_us, "a record of {record_us} is in an entry of {entry_us}");
    }
    driven.driver.stop();
}

#[test]
fn batch_that_only_ends_records_is_followed_by_others() {
    let folder = Folder::new("replica-ends");
    let mut driven = Driven::new(&folder, Duration::from_secs(60));
    driven.lead();
    for ends in [0, 1, 0] {
        driven.target.ends.store(ends, Ordering::Release);
        driven.driver.replica.set_dirty();
        while driven.advance() == Next::After(Duration::ZERO) {}
    }
    assert_eq!(*driven.target.durable.lock(), [Lsn(1), Lsn(0), Lsn(2)]);
    assert!(driven.driver.replica.is_quiet());
    driven.driver.stop();
}

/// Such as a record of a later version.
#[test]
fn entry_that_cannot_be_applied_is_never_skipped() {
    let folder = Folder::new("replica-unknown");
    let mut log = folder.log(7);
    let entry = |index| LogEntry {
        index: EntryIndex(index),
        term: Term(1),
        axis_us: 0,
        content: EntryContent::Empty,
    };
    log.save_hard_state(&HardState { term: Term(1), ..log.hard_state().clone() }).unwrap();
    log.append(&[entry(1), entry(2), entry(3)]).unwrap();
    log.commit(EntryIndex(3));
    let target = Arc::new(Times::new());
    target.unknown_from.store(2, Ordering::Release);
    let (tell, reports) = std::sync::mpsc::channel();
    let report = Box::new(move |report| tell.send(report).unwrap());
    let vhost: Arc<Times> = Arc::clone(&target);
    let queue = ApplyQueue::start(vhost, log.applier(), report).unwrap();
    (1..=3).for_each(|index| queue.apply(entry(index)));
    queue.end();
    assert_eq!(*target.met.lock(), [EntryIndex(1), EntryIndex(2)]);
    assert_eq!(log.applier().applied(), EntryIndex(1));
    let told: Vec<Report> = reports.iter().collect();
    assert!(
        matches!(&told[..], [Report::Unusable(QuarantineReason::Diverged(why))] if why == "unknown"),
        "{told:?}"
    );
}

#[test]
fn replica_that_leads_no_more_proposes_nothing() {
    let folder = Folder::new("replica-lead-lost");
    let mut driven = Driven::new(&folder, Duration::from_secs(60));
    driven.lead();
    // The vhost has records, and before the next turn the member learns that it leads no more.
    driven.driver.replica.set_dirty();
    driven.driver.replica.quarantine(QuarantineReason::Diverged("it has been replaced".to_owned()));
    assert_eq!(driven.advance(), Next::Rebuild);
    assert_eq!(*driven.target.durable.lock(), [] as [Lsn; 0], "nothing is confirmed any more");
    assert_eq!(entries(&driven.driver), []);
    driven.driver.end();
}

#[test]
fn stalled_disk_ends_the_lead() {
    let folder = Folder::new("replica-stall");
    let mut driven = Driven::new(&folder, Duration::from_millis(20));
    driven.lead();
    let watch = Arc::clone(&driven.watch);
    // A write that does not end until the watch has seen it.
    watch.begin();
    while driven.target.deposed.lock().is_empty() {
        std::thread::yield_now();
    }
    watch.finish();
    assert_eq!(*driven.target.deposed.lock(), [Deposition::DiskStalls]);
    assert_eq!(driven.advance(), Next::Reopen, "the replica is opened anew when the disk answers");
    assert_eq!(*driven.target.durable.lock(), [] as [Lsn; 0], "nothing is confirmed any more");
    driven.driver.end();
    watch.end();
}

/// Otherwise the others would elect another leader while this one delivers a large backlog, for example.
#[test]
fn leader_of_a_busy_vhost_tells_that_it_lives() {
    let folder = Folder::new("busy-vhost");
    let mut driven = Driven::new(&folder, Duration::from_secs(60));
    driven.lead();
    while driven.advance() != Next::Idle {}
    let durable = driven.target.durable.lock().len();
    driven.target.is_busy.store(true, Ordering::Release);
    driven.driver.replica.set_dirty();
    assert!(matches!(driven.advance(), Next::After(wait) if !wait.is_zero()));
    for _ in 0..20 {
        driven.tick();
        let (next, sends) = driven.advance_counted();
        assert!(sends > 0 && matches!(next, Next::After(_)), "{next:?}");
    }
    driven.target.is_busy.store(false, Ordering::Release);
    while driven.advance() != Next::Idle {}
    assert_eq!(driven.target.durable.lock().len(), durable + 1);
}
