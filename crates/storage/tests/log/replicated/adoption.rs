//! A log without a group becomes that of a group: its content is the snapshot at entry 1.

use storage::{
    Durability, EntryIndex, Founding, Log, LogOptions, LoneLog, Lsn, OpenError, ReplicatedLog,
    ReplicatedOptions, Term, check,
};

use super::world::{LOG, Model, Opened, World, open, open_with, options};
use crate::book::Book;
use crate::history::{self, Progress, Shape};
use simdisk::{Disk, Random};

const LONE: Shape =
    Shape { batches: 50, changes: 8, queues: 4, body_max: 500, batch_bytes_max: usize::MAX };

/// A log without a group, and its book.
pub(super) fn lone(disk: &Disk, seed: u64) -> (Book, Lsn) {
    let (mut log, _, book) = history::open(disk, Durability::Fsync).unwrap();
    let Progress { confirmed, .. } = history::run(&mut log, book, &mut Random(seed), LONE);
    (confirmed, log.last())
}

/// The world of a log whose content is the snapshot at entry 1.
pub(super) fn adopted(opened: Opened, book: Book, last: Lsn) -> World {
    let mut world = World::new(&Disk::new()).unwrap();
    world.model = Model { base: (1, book, last), commit: 1, term: 1, ..Model::default() };
    world.votes = vec![(1, 0)];
    world.needed_from = 2;
    world.reopened(opened, "adopted");
    world
}

#[test]
fn log_without_a_group_becomes_the_snapshot_at_entry_1() {
    for seed in 0..10 {
        let disk = Disk::new();
        let (book, last) = lone(&disk, seed);
        let opened = open(&disk).unwrap();
        assert_eq!(opened.report.format_version, 3);
        assert_eq!(
            (opened.log.first_index(), opened.log.last_index()),
            (EntryIndex(2), EntryIndex(1))
        );
        assert_eq!(opened.log.term_of(EntryIndex(1)).unwrap(), Term(1));
        assert_eq!(opened.log.last_position(), last);
        let mut world = adopted(opened, book, last);
        let mut random = Random(seed);
        let mut disk = disk;
        for life in 0..4 {
            disk.cut_power_at(disk.operations() + 100 + random.below(300));
            while world.step(&mut random).is_ok() {}
            disk = disk.after_cut(&mut random);
            world.reopened(open(&disk).unwrap(), &format!("seed {seed} life {life}"));
        }
        assert!(world.compacted > 0, "old and new files are rewritten");
    }
}

#[test]
fn adoption_survives_a_power_cut_at_every_operation() {
    let before = Disk::new();
    let (book, last) = lone(&before, 3);
    for cut_at in 0.. {
        let disk = before.copy();
        disk.cut_power_at(cut_at);
        let is_done = open(&disk).is_ok();
        let disk = disk.after_cut(&mut Random(cut_at));
        let manifest_version = format_version(&disk);
        if manifest_version < 3 {
            // A node that is taken out of the cluster before it has joined is as it was.
            let (_, _, read) = history::open(&disk.copy(), Durability::Fsync).unwrap();
            assert!(read == book, "cut at {cut_at}");
        }
        adopted(open(&disk).unwrap(), book.clone(), last);
        if is_done {
            assert!(cut_at > 8 && manifest_version == 3);
            return;
        }
    }
}

fn format_version(disk: &Disk) -> u32 {
    let mut version = 0;
    disk.damage("manifest", |bytes| version = u32::from_le_bytes(bytes[8..12].try_into().unwrap()));
    version
}

#[test]
fn log_of_a_group_is_not_opened_as_one_without() {
    let disk = Disk::new();
    drop(open(&disk).unwrap());
    let options = LogOptions { log_id: LOG, ..LogOptions::default() };
    let error = Log::open(disk, options, &mut storage::IgnoreRecords, &mut |_| {}).err().unwrap();
    let said = "manifest: belongs to a replicated log; nothing is changed";
    assert_eq!(error.to_string(), said);
}

#[test]
fn group_is_founded_only_when_asked() {
    let unfounded = || ReplicatedOptions { founding: None, ..options(Durability::Fsync) };
    let disk = Disk::new();
    let error = open_with(&disk, unfounded()).err().unwrap();
    assert_eq!(error.to_string(), "manifest: missing");
    let (book, _) = lone(&disk, 1);
    let error = open_with(&disk, unfounded()).err().unwrap();
    let said = "manifest: belongs to a log without a group; nothing is changed";
    assert_eq!(error.to_string(), said);
    assert!(history::open(&disk, Durability::Fsync).unwrap().2 == book);
    drop(open(&disk).unwrap());
    assert!(open_with(&disk, unfounded()).unwrap().book == book);
}

#[test]
fn hard_state_has_the_founding_members() {
    let disk = Disk::new();
    let founding = Founding { voters: vec![1, 2, 3], learners: vec![4], ..Founding::default() };
    let founding = Some(founding);
    let opened =
        open_with(&disk, ReplicatedOptions { founding, ..options(Durability::Fsync) }).unwrap();
    let state = opened.log.hard_state().clone();
    assert_eq!((&*state.voters, &*state.learners), (&[1, 2, 3][..], &[4][..]));
    drop(opened);
    // A later opening does not found again.
    let opened = open(&disk).unwrap();
    assert_eq!(*opened.log.hard_state(), state);
}

#[test]
fn check_reads_what_is_committed() {
    let disk = Disk::new();
    let mut world = World::new(&disk).unwrap();
    let mut random = Random(9);
    for _ in 0..60 {
        world.step(&mut random).unwrap();
    }
    let opened = open(&disk.copy()).unwrap();
    assert!(opened.log.applier().applied() < opened.log.last_index());
    let mut book = Book::default();
    let report = check(
        &disk,
        LOG,
        &mut |record: storage::Record<'_>, references: &mut storage::References<'_>| {
            book.read(record, references)
        },
    );
    assert_eq!(report.unwrap().damages, []);
    assert!(book == opened.book);
}

#[test]
fn log_of_another_group_or_member_is_refused() {
    let disk = Disk::new();
    drop(open(&disk).unwrap());
    let said = |change: fn(&mut ReplicatedOptions)| {
        let mut other = options(Durability::Fsync);
        change(&mut other);
        let opened =
            ReplicatedLog::open(disk.clone(), other, &mut storage::IgnoreRecords, &mut |_| {});
        opened.err().unwrap()
    };
    let error = said(|options| options.log.log_id = 78);
    assert!(matches!(error, OpenError::Manifest { .. }), "{error}");
    for change in [(|options| options.member_id += 1) as fn(&mut ReplicatedOptions), |options| {
        options.cluster_id += 1
    }] {
        let error = said(change);
        assert!(matches!(error, OpenError::DoesNotVote { .. }), "{error}");
        let told =
            "raft: belongs to member 65537 of group 77 in cluster 5; the member does not vote";
        assert_eq!(error.to_string(), told);
    }
}

fn replacing() -> ReplicatedOptions {
    let founding = options(Durability::Fsync)
        .founding
        .map(|founding| Founding { lone_log: LoneLog::Replace, ..founding });
    ReplicatedOptions { founding, ..options(Durability::Fsync) }
}

#[test]
fn log_without_records_is_replaced_by_that_of_a_group_which_begins() {
    let before = Disk::new();
    // Opened twice: the second file of a log has another id than that of a new one.
    drop(history::open(&before, Durability::Fsync).unwrap());
    drop(history::open(&before, Durability::Fsync).unwrap());
    for cut_at in 0.. {
        let disk = before.copy();
        disk.cut_power_at(cut_at);
        let is_done = open_with(&disk, replacing()).is_ok();
        let disk = disk.after_cut(&mut Random(cut_at));
        let opened = open_with(&disk, replacing()).unwrap();
        assert_eq!(opened.report.damages, [], "cut at {cut_at}");
        // As in a new log: the members of the group agree on the entry that comes first.
        assert_eq!(opened.log.first_index(), EntryIndex(1));
        assert_eq!(opened.log.last_index(), EntryIndex(0));
        assert_eq!(opened.log.hard_state().commit, EntryIndex(0));
        assert_eq!(opened.log.last_position(), Lsn(0));
        if is_done {
            return;
        }
    }
}

#[test]
fn log_with_records_is_not_replaced() {
    let disk = Disk::new();
    let (book, _) = lone(&disk, 4);
    let error = open_with(&disk, replacing()).err().unwrap();
    assert!(matches!(error, OpenError::HasContent { damages: 0, .. }), "{error}");
    assert!(history::open(&disk, Durability::Fsync).unwrap().2 == book);
}
