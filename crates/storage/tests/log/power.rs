//! The log on a disk whose power is cut: at every operation of small histories, and at generated ones
//! of long histories, over and over. What is read back is what was confirmed, or that and what was being
//! written: the whole of it, or its first changes if it was cut into several batches; nothing else, ever.

use crate::book::Book;
use crate::history::{Progress, Shape, open, run};
use simdisk::{Disk, Random};
use storage::Durability;

const SMALL: Shape =
    Shape { batches: 12, changes: 6, queues: 3, body_max: 900, batch_bytes_max: usize::MAX };
const LONG: Shape =
    Shape { batches: 120, changes: 12, queues: 4, body_max: 700, batch_bytes_max: usize::MAX };
/// Most writes are cut into several batches.
const CUT: usize = 1000;

/// Panics unless the book that was read back is one that the crash may have left.
fn check(read: &Book, progress: &Progress, shape: Shape, what: &str) {
    let is_cut = shape.batch_bytes_max == CUT;
    let is_attempted = match is_cut {
        true => progress.attempted.contains(read),
        false => progress.attempted.last() == Some(read),
    };
    if *read == progress.confirmed || is_attempted {
        return;
    }
    let missing: Vec<_> =
        progress.confirmed.copies.keys().filter(|c| !read.copies.contains_key(c)).collect();
    let extra: Vec<_> =
        read.copies.keys().filter(|c| !progress.confirmed.copies.contains_key(c)).collect();
    panic!("{what}: missing {missing:?}, too many {extra:?}");
}

#[test]
fn small_history_survives_a_power_cut_at_every_operation() {
    small_histories_survive(SMALL, 0..12);
}

#[test]
fn small_history_in_small_batches_survives_a_power_cut_at_every_operation() {
    small_histories_survive(Shape { changes: 9, batch_bytes_max: CUT, ..SMALL }, 0..8);
}

fn small_histories_survive(shape: Shape, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let whole = Disk::new();
        let (mut log, _, book) = open(&whole, Durability::Fsync).unwrap();
        run(&mut log, book, &mut Random(seed), shape);
        for cut_at in 0..whole.operations() {
            for fate in 0..3 {
                let disk = Disk::new();
                disk.cut_power_at(cut_at);
                let progress = match open(&disk, Durability::Fsync) {
                    Ok((mut log, _, book)) => run(&mut log, book, &mut Random(seed), shape),
                    Err(_) => Progress::default(),
                };
                let disk = disk.after_cut(&mut Random(fate));
                let what = format!("seed {seed} cut at {cut_at} fate {fate}");
                let (_, report, read) =
                    open(&disk, Durability::Fsync).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(report.damages.is_empty(), "{what}: {:?}", report.damages);
                check(&read, &progress, shape, &what);
            }
        }
    }
}

/// A process is killed, the next one reads what was written and not synced, and then the power goes: what the second
/// process has read stays.
#[test]
fn end_that_was_read_after_a_kill_survives_a_power_cut() {
    let whole = Disk::new();
    let (mut log, _, book) = open(&whole, Durability::Fsync).unwrap();
    run(&mut log, book, &mut Random(5), SMALL);
    for cut_at in 0..whole.operations() {
        for fate in 0..3 {
            let disk = Disk::new();
            disk.cut_power_at(cut_at);
            if let Ok((mut log, _, book)) = open(&disk, Durability::Fsync) {
                run(&mut log, book, &mut Random(5), SMALL);
            }
            disk.after_kill(&mut Random(fate));
            let what = format!("killed at {cut_at}, fate {fate}");
            let (_, _, first) = open(&disk, Durability::Fsync).unwrap();
            let disk = disk.after_cut(&mut Random(fate));
            let (_, report, second) =
                open(&disk, Durability::Fsync).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(report.damages.is_empty(), "{what}: {:?}", report.damages);
            assert!(first == second, "{what}: records that were read are missing");
        }
    }
}

#[test]
fn long_history_survives_repeated_power_cuts() {
    long_histories_survive(LONG, 0..60);
}

#[test]
fn long_history_in_small_batches_survives_repeated_power_cuts() {
    long_histories_survive(Shape { changes: 30, batch_bytes_max: CUT, ..LONG }, 100..140);
}

fn long_histories_survive(shape: Shape, seeds: std::ops::Range<u64>) {
    let mut compacted = 0;
    for seed in seeds {
        let mut random = Random(seed);
        let mut disk = Disk::new();
        let mut progress = Progress::default();
        for life in 0..12 {
            let what = format!("seed {seed} life {life}");
            // The power may go while the log is still being opened.
            disk.cut_power_at(random.below(300));
            if let Ok((mut log, report, read)) = open(&disk, Durability::Fsync) {
                assert!(report.damages.is_empty(), "{what}: {:?}", report.damages);
                check(&read, &progress, shape, &what);
                progress = run(&mut log, read, &mut random, shape);
                compacted += progress.compacted;
            }
            disk = disk.after_cut(&mut random);
        }
    }
    assert!(compacted > 500, "only {compacted} files were compacted");
}

#[test]
fn closed_log_is_distinguished_from_a_crashed_one() {
    let disk = Disk::new();
    let (mut log, report, book) = open(&disk, Durability::Fsync).unwrap();
    assert!(!report.was_open, "the log is new");
    run(&mut log, book, &mut Random(1), LONG);
    drop(log);
    let (log, report, _) = open(&disk, Durability::Fsync).unwrap();
    assert!(report.was_open, "a crash after writes");
    drop(log);
    let (log, report, _) = open(&disk, Durability::Fsync).unwrap();
    assert!(report.was_open, "a crash without a write");
    log.close().unwrap();
    let (mut log, report, book) = open(&disk, Durability::Fsync).unwrap();
    assert!(!report.was_open, "closed without a write");
    run(&mut log, book, &mut Random(2), LONG);
    log.close().unwrap();
    let (_, report, _) = open(&disk, Durability::Fsync).unwrap();
    assert!(!report.was_open, "closed after writes");
}

#[test]
fn closed_log_reads_back_and_frees_space() {
    for seed in 0..20 {
        let disk = Disk::new();
        let (mut log, _, book) = open(&disk, Durability::Fsync).unwrap();
        let shape = Shape { batches: 600, ..LONG };
        let progress = run(&mut log, book, &mut Random(seed), shape);
        drop(log);
        let (mut log, report, mut book) = open(&disk, Durability::Fsync).unwrap();
        assert_eq!(book, progress.confirmed);
        assert_eq!(report.torn_bytes, 0);
        // Everything goes.
        let mut batch = storage::WriteQueue::default();
        let mut lsn = log.last();
        for copy in book.copies.keys().copied().collect::<Vec<_>>() {
            lsn.0 += 1;
            book.settle(lsn, copy, &mut batch);
        }
        log.write(&mut batch).unwrap();
        drop(log);
        let (log, _, _) = open(&disk, Durability::Fsync).unwrap();
        while let Some(compaction) = log.compaction() {
            compaction.run().unwrap();
        }
        drop(log);
        let (_, _, book) = open(&disk, Durability::Fsync).unwrap();
        assert_eq!(book, Book::default());
        let bytes: usize = disk.files().iter().map(|(_, len)| len).sum();
        assert!(bytes < 64 * 1024, "{:?}", disk.files());
    }
}

#[test]
fn durability_os_loses_only_the_end_in_a_power_cut() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let disk = Disk::new();
        let (mut log, _, book) = open(&disk, Durability::Os).unwrap();
        // Every book on the way.
        let mut books = vec![Book::default()];
        let mut book = book;
        for _ in 0..40 {
            let shape = Shape { batches: 1, ..LONG };
            let progress = run(&mut log, book, &mut random, shape);
            books.push(progress.confirmed.clone());
            book = progress.confirmed;
        }
        drop(log);
        let disk = disk.after_cut(&mut random);
        let (_, report, read) = open(&disk, Durability::Os).unwrap();
        assert!(report.damages.is_empty(), "seed {seed}: {:?}", report.damages);
        assert!(books.contains(&read), "seed {seed}");
    }
}
