//! Compactions while records end: between two files that a compaction reads, batches are written.

use std::sync::{Arc, Mutex};

use storage::{Durability, Log, Lsn, WriteQueue};

use crate::book::Book;
use crate::history::{Shape, open, run, write_batch};
use simdisk::{Disk, Random};

const BEFORE: Shape =
    Shape { batches: 60, changes: 12, queues: 4, body_max: 700, batch_bytes_max: usize::MAX };
/// Few messages come, so that many of those there are end.
const MEANWHILE: Shape =
    Shape { batches: 1, changes: 60, queues: 4, body_max: 10, batch_bytes_max: usize::MAX };

#[test]
fn records_that_end_during_a_compaction_stay_ended() {
    let mut compacted = 0;
    for seed in 0..300 {
        let disk = Disk::new();
        let mut random = Random(seed);
        let (mut log, _, book) = open(&disk, Durability::Fsync).unwrap();
        let progress = run(&mut log, book, &mut random, BEFORE);
        let Some(compaction) = log.compaction() else { continue };
        let state = Arc::new(Mutex::new((log, progress.confirmed, random)));
        let meanwhile = Arc::clone(&state);
        disk.on_open(Some(Box::new(move || {
            let (log, book, random) = &mut *meanwhile.lock().unwrap();
            write_batch(log, book, random, MEANWHILE).unwrap();
        })));
        compacted += compaction.run().unwrap().files;
        disk.on_open(None);
        let (log, book, _) = Arc::into_inner(state).unwrap().into_inner().unwrap();
        drop(log);
        assert!(open(&disk, Durability::Fsync).unwrap().2 == book, "seed {seed}");
    }
    assert!(compacted > 300, "only {compacted} files were compacted");
}

#[test]
fn purge_is_kept_while_a_record_is_rewritten_that_ends_meanwhile() {
    let disk = Disk::new();
    let (mut log, _, mut book) = open(&disk, Durability::Fsync).unwrap();
    let body = [7; 600];
    let write = |log: &mut Log<Disk>, change: &mut dyn FnMut(Lsn, &mut WriteQueue)| {
        let mut batch = WriteQueue::default();
        change(Lsn(log.last().0 + 1), &mut batch);
        log.write(&mut batch).unwrap();
    };
    write(&mut log, &mut |lsn, batch| book.publish(lsn, &[1, 2], &body, batch));
    let shared = (log.last(), 2);
    for queue in std::iter::repeat_n(1, 20) {
        write(&mut log, &mut |lsn, batch| book.publish(lsn, &[queue], &body, batch));
    }
    // The purge of the queue is in the second file.
    write(&mut log, &mut |lsn, batch| book.purge(lsn, 1, batch));
    for _ in 0..20 {
        write(&mut log, &mut |lsn, batch| book.publish(lsn, &[1], &body, batch));
    }
    for copy in book.copies_in(1) {
        write(&mut log, &mut |lsn, batch| book.settle(lsn, copy, batch));
    }
    let compaction = log.compaction().unwrap();
    let state = Arc::new(Mutex::new((log, book, 0)));
    let meanwhile = Arc::clone(&state);
    disk.on_open(Some(Box::new(move || {
        let (log, book, opened) = &mut *meanwhile.lock().unwrap();
        *opened += 1;
        if *opened == 2 {
            write(log, &mut |lsn, batch| book.settle(lsn, shared, batch));
        }
    })));
    assert!(compaction.run().unwrap().files > 1);
    disk.on_open(None);
    let (log, book, _) = Arc::into_inner(state).unwrap().into_inner().unwrap();
    drop(log);
    assert_eq!(book, Book::default());
    assert_eq!(open(&disk, Durability::Fsync).unwrap().2, book);
}
