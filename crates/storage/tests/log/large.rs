//! Much that is written at once: batches are cut between records, and no length is ever shortened.

use storage::{Body, Durability, Flags, Lsn, NewRecord, WriteBatch, WriteQueue};

use crate::book::Book;
use crate::history::open;
use simdisk::Disk;

const BATCH_BYTES: usize = 4096;

/// Bytes of a batch in a file: magic, length, count.
fn batches(bytes: &[u8]) -> Vec<(u32, u32)> {
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut found = Vec::new();
    let mut at = 4096;
    while at + 48 <= bytes.len() && bytes[at..].starts_with(b"BTCH") {
        let (length, count) = (number(at + 8), number(at + 12));
        found.push((length, count));
        at = (at + 48 + length as usize).next_multiple_of(8);
    }
    found
}

fn batches_on(disk: &Disk) -> Vec<(u32, u32)> {
    let logs = disk.files().into_iter().filter(|(name, _)| name.ends_with(".log"));
    logs.flat_map(|(name, _)| {
        let mut bytes = Vec::new();
        disk.damage(&name, |found| bytes.clone_from(found));
        batches(&bytes)
    })
    .collect()
}

#[test]
fn large_batch_is_cut_between_records() {
    let disk = Disk::new();
    let (mut log, _, mut book) = open(&disk, Durability::Fsync).unwrap();
    let mut pending = WriteQueue::with_batch_bytes_max(BATCH_BYTES);
    for lsn in 1..=200 {
        book.publish(
            Lsn(lsn),
            &[0, 1],
            &vec![7; 300 + usize::try_from(lsn).unwrap()],
            &mut pending,
        );
    }
    let waited = pending.bytes();
    let written = log.write(&mut pending).unwrap();
    assert_eq!((written.durable, written.records), (Lsn(200), 200));
    assert!(pending.is_empty() && pending.bytes() == 0);
    let found = batches_on(&disk);
    assert!(found.len() > 10, "{found:?}");
    assert!(found.iter().all(|(length, _)| (*length as usize) < BATCH_BYTES + 600), "{found:?}");
    assert_eq!(found.iter().map(|(length, _)| *length as usize).sum::<usize>(), waited);
    drop(log);
    let (_, report, read) = open(&disk, Durability::Fsync).unwrap();
    assert_eq!((report.damages, report.records, read), (vec![], 200, book));
}

#[test]
fn full_batch_is_not_changed_by_later_records() {
    let disk = Disk::new();
    let (mut log, _, mut book) = open(&disk, Durability::Fsync).unwrap();
    let mut pending = WriteQueue::with_batch_bytes_max(BATCH_BYTES);
    book.publish(Lsn(1), &[0], &[1; 100], &mut pending);
    book.publish(Lsn(2), &[0], &[2; BATCH_BYTES], &mut pending);
    // In the next batch: both need the record, because the first batch may be all that a power cut leaves.
    book.move_to(Lsn(3), (Lsn(1), 0), &[1], &mut pending);
    book.settle(Lsn(4), (Lsn(2), 0), &mut pending);
    // In its own batch nothing is left of this one.
    book.publish(Lsn(5), &[0], &[5; 500], &mut pending);
    book.settle(Lsn(6), (Lsn(5), 0), &mut pending);
    let mut first = WriteBatch::default();
    assert!(pending.take_batch(&mut first), "there is a second batch");
    assert_eq!(first.last(), Lsn(2));
    assert_eq!(log.write_batch(&mut first).unwrap().durable, Lsn(2));
    let (_, _, half) = open(&disk.copy(), Durability::Fsync).unwrap();
    assert_eq!(half.copies.keys().collect::<Vec<_>>(), [&(Lsn(1), 0), &(Lsn(2), 0)]);
    let written = log.write(&mut pending).unwrap();
    assert_eq!((written.durable, written.records), (Lsn(6), 2));
    drop(log);
    assert_eq!(open(&disk, Durability::Fsync).unwrap().2, book);
}

#[test]
fn purge_is_in_the_batch_that_omits_the_records_it_ends() {
    let disk = Disk::new();
    let (mut log, _, mut book) = open(&disk, Durability::Fsync).unwrap();
    let mut pending = WriteQueue::with_batch_bytes_max(BATCH_BYTES);
    book.publish(Lsn(1), &[0], &[1; 100], &mut pending);
    book.publish(Lsn(2), &[1], &[2; BATCH_BYTES], &mut pending);
    book.purge(Lsn(3), 0, &mut pending);
    let mut first = WriteBatch::default();
    assert!(pending.take_batch(&mut first));
    log.write_batch(&mut first).unwrap();
    let (_, _, half) = open(&disk.copy(), Durability::Fsync).unwrap();
    assert_eq!(half.copies.len(), 2, "nothing is gone before the purge is there");
    log.write(&mut pending).unwrap();
    drop(log);
    assert_eq!(open(&disk, Durability::Fsync).unwrap().2, book);
}

#[test]
fn joined_records_are_in_one_batch() {
    let mut pending = WriteQueue::with_batch_bytes_max(BATCH_BYTES);
    let push = |pending: &mut WriteQueue, lsn, is_joined| {
        let (target, kind, flags) = (Lsn(0), 1, Flags::NONE);
        let record = NewRecord {
            lsn: Lsn(lsn),
            target,
            kind,
            flags,
            references: 1,
            format_version: 1,
            is_joined,
        };
        pending.push_with_body(record, |_| {}, Body::new(vec![0; BATCH_BYTES]));
    };
    push(&mut pending, 1, false);
    push(&mut pending, 2, true);
    push(&mut pending, 3, true);
    push(&mut pending, 4, false);
    let mut batch = WriteBatch::default();
    assert!(pending.take_batch(&mut batch));
    assert_eq!(batch.last(), Lsn(3));
}

#[test]
fn ended_records_use_no_memory() {
    let mut pending = WriteQueue::with_batch_bytes_max(BATCH_BYTES);
    let mut book = Book::default();
    for lsn in (1..=10_000).step_by(2) {
        book.publish(Lsn(lsn), &[0], &[1; 1000], &mut pending);
        book.settle(Lsn(lsn + 1), (Lsn(lsn), 0), &mut pending);
        assert!(pending.bytes() < 2 * BATCH_BYTES, "{} bytes wait", pending.bytes());
    }
    let disk = Disk::new();
    let (mut log, _, _) = open(&disk, Durability::Fsync).unwrap();
    let written = log.write(&mut pending).unwrap();
    assert_eq!((written.durable, written.records), (Lsn(10_000), 0));
}

#[test]
#[should_panic(expected = "is longer than the log allows")]
fn record_that_is_too_long_is_not_written() {
    /// More bytes than any message has, without their memory.
    struct Huge(Box<[u8]>);
    impl AsRef<[u8]> for Huge {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    let (lsn, target, kind, flags) = (Lsn(1), Lsn(0), 1, Flags::NONE);
    let record =
        NewRecord { lsn, target, kind, flags, references: 1, format_version: 1, is_joined: false };
    // Zeros that are never written take no memory.
    let huge = vec![0; storage::limits::RECORD_BYTES_MAX + 1].into_boxed_slice();
    WriteQueue::default().push_with_body(record, |_| {}, Body::new(Huge(huge)));
}
