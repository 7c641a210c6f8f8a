//! The log on a disk that is full: half a file is not left behind, a smaller one is made where a large
//! one does not fit, and what is in the log stays.

use crate::book::Book;
use crate::history::{open, options};
use simdisk::Disk;
use storage::{Durability, Log, LogError, Lsn, WriteBatch, WriteQueue};

const BODY: [u8; 700] = [7; 700];

/// Publishes one message.
fn publish(log: &mut Log<Disk>, book: &mut Book) -> Result<(), LogError> {
    let mut batch = WriteQueue::default();
    book.publish(Lsn(log.last().0 + 1), &[0], &BODY, &mut batch);
    log.write(&mut batch).map(drop)
}

/// A log whose file is more than half full, so that the next is to be made.
fn half_full(disk: &Disk) -> (Log<Disk>, Book) {
    let (mut log, _, mut book) = open(disk, Durability::Fsync).unwrap();
    for _ in 0..3 {
        publish(&mut log, &mut book).unwrap();
    }
    (log, book)
}

#[test]
fn segment_that_does_not_fit_is_removed() {
    let disk = Disk::new();
    let (mut log, mut book) = half_full(&disk);
    disk.limit_room(5000);
    let before = disk.files();
    let preparation = log.prepare_next_segment().unwrap();
    log.install_next_segment(preparation.run().ok());
    assert_eq!(disk.files(), before);
    assert!(log.prepare_next_segment().is_none(), "it is tried again and again");
    publish(&mut log, &mut book).unwrap();
    publish(&mut log, &mut book).unwrap();
    assert!(publish(&mut log, &mut book).is_err());
    assert_eq!(disk.files(), before);
    disk.limit_room(100_000);
    let (_, report, read) = open(&disk, Durability::Fsync).unwrap();
    assert_eq!(report.damages, []);
    assert_eq!(read.copies.len(), 5);
}

#[test]
fn segment_is_created_when_there_is_room_again() {
    let disk = Disk::new();
    let (mut log, mut book) = half_full(&disk);
    disk.limit_room(5000);
    let preparation = log.prepare_next_segment().unwrap();
    log.install_next_segment(preparation.run().ok());
    disk.limit_room(100_000);
    for _ in 0..3 {
        publish(&mut log, &mut book).unwrap();
    }
    assert!(log.prepare_next_segment().is_some(), "the next file is made ahead again");
    drop(log);
    assert_eq!(open(&disk, Durability::Fsync).unwrap().2, book);
}

#[test]
fn segment_is_smaller_when_a_large_one_does_not_fit() {
    let disk = Disk::new();
    let (mut log, _, mut book) = open(&disk, Durability::Fsync).unwrap();
    while disk
        .files()
        .iter()
        .all(|(_, len)| *len < options(Durability::Fsync).segment_bytes_max.try_into().unwrap())
    {
        publish(&mut log, &mut book).unwrap();
    }
    // Large ones are made by now; there is room for a small one, and the manifest.
    disk.limit_room(8192 + 4096);
    let before = disk.files().len();
    while disk.files().len() == before {
        publish(&mut log, &mut book).unwrap();
    }
    let last = disk.files().into_iter().rev().find(|(name, _)| name.ends_with(".log")).unwrap();
    assert_eq!(last.1, 8192);
    drop(log);
    disk.limit_room(100_000);
    assert_eq!(open(&disk, Durability::Fsync).unwrap().2, book);
}

#[test]
fn segment_that_is_too_small_is_removed() {
    let disk = Disk::new();
    let (mut log, mut book) = half_full(&disk);
    let preparation = log.prepare_next_segment().unwrap();
    log.install_next_segment(preparation.run().ok());
    let mut batch = WriteQueue::default();
    book.publish(Lsn(log.last().0 + 1), &[0], &[1; 50_000], &mut batch);
    log.write(&mut batch).unwrap();
    assert_eq!(logs(&disk), 2, "{:?}", disk.files());
    drop(log);
    assert_eq!(open(&disk, Durability::Fsync).unwrap().2, book);
}

fn logs(disk: &Disk) -> usize {
    disk.files().iter().filter(|(name, _)| name.ends_with(".log")).count()
}

#[test]
fn batch_without_room_is_written_when_there_is_room() {
    let disk = Disk::new();
    let (mut log, mut book) = half_full(&disk);
    disk.limit_room(100);
    let mut batch = WriteQueue::default();
    let mut waiting = WriteBatch::default();
    let confirmed = book.clone();
    book.publish(Lsn(log.last().0 + 1), &[0], &[1; 5000], &mut batch);
    batch.take_batch(&mut waiting);
    for _ in 0..3 {
        let error = log.write_batch(&mut waiting).unwrap_err();
        assert!(error.is_full(), "{error}");
        let crashed = disk.copy();
        assert_eq!(
            open(&crashed, Durability::Fsync).unwrap().2,
            confirmed,
            "nothing of it is there"
        );
    }
    // Room for the file, and none for the manifest that lists it.
    disk.limit_room(12_288 + 50);
    assert!(log.write_batch(&mut waiting).unwrap_err().is_full());
    let made = logs(&disk);
    disk.limit_room(1000);
    log.write_batch(&mut waiting).unwrap();
    assert_eq!(logs(&disk), made, "the file was made once: {:?}", disk.files());
    publish(&mut log, &mut book).unwrap();
    drop(log);
    disk.limit_room(100_000);
    let (_, report, read) = open(&disk, Durability::Fsync).unwrap();
    assert_eq!((report.damages, read), (vec![], book));
}

#[test]
fn reserve_is_used_for_needed_segments_only() {
    let disk = Disk::new();
    let (mut log, mut book) = half_full(&disk);
    disk.limit_room(1000);
    disk.reserve(12_000);
    let preparation = log.prepare_next_segment().unwrap();
    assert!(preparation.run().is_err());
    log.install_next_segment(None);
    for _ in 0..7 {
        publish(&mut log, &mut book).unwrap();
    }
    drop(log);
    disk.limit_room(8250);
    // The start gives back what is behind the ends of files before it needs room.
    let (log, report, read) = open(&disk, Durability::Fsync).unwrap();
    assert_eq!((report.damages, &read), (vec![], &book));
    drop(log);
    disk.limit_room(100_000);
    assert_eq!(open(&disk, Durability::Fsync).unwrap().2, book);
}

#[test]
fn compaction_without_room_leaves_no_file() {
    let disk = Disk::new();
    let (mut log, _, mut book) = open(&disk, Durability::Fsync).unwrap();
    for _ in 0..40 {
        publish(&mut log, &mut book).unwrap();
    }
    let mut batch = WriteQueue::default();
    let mut lsn = log.last();
    for copy in book.copies.keys().copied().collect::<Vec<_>>().into_iter().step_by(3) {
        lsn.0 += 1;
        book.settle(lsn, copy, &mut batch);
    }
    for copy in book.copies.keys().copied().collect::<Vec<_>>().into_iter().step_by(2) {
        lsn.0 += 1;
        book.settle(lsn, copy, &mut batch);
    }
    log.write(&mut batch).unwrap();
    disk.limit_room(3000);
    let before = disk.files();
    assert!(log.compaction().unwrap().run().is_err());
    assert_eq!(disk.files(), before);
    disk.limit_room(3000);
    disk.reserve(100_000);
    let compacted = log.compaction().unwrap().run().unwrap();
    assert!(compacted.bytes_after < compacted.bytes_before, "{compacted:?}");
    drop(log);
    assert_eq!(open(&disk, Durability::Fsync).unwrap().2, book);
}
