//! Progress reports of recovery.

use storage::{Durability, Log, Record, References};

use crate::history::{Shape, open, options, run};
use simdisk::{Disk, Random};

const SHAPE: Shape =
    Shape { batches: 200, changes: 8, queues: 3, body_max: 400, batch_bytes_max: usize::MAX };

#[test]
fn progress_reports_every_file_once_and_ends_at_100_percent() {
    let disk = Disk::new();
    let (mut log, _, book) = open(&disk, Durability::Fsync).unwrap();
    run(&mut log, book, &mut Random(1), SHAPE);
    drop(log);
    let mut told = Vec::new();
    let mut seen = 0;
    let mut each = |_: Record<'_>, _: &mut References<'_>| seen += 1;
    let opened =
        Log::open(disk, options(Durability::Fsync), &mut each, &mut |done| told.push(done));
    let (_, report) = opened.unwrap();
    assert!(told.len() > 3, "{} files", told.len());
    for (at, done) in told.iter().enumerate() {
        assert_eq!((done.files, done.files_total), (at + 1, told.len()));
        assert_eq!(done.bytes_total, told[0].bytes_total);
    }
    assert!(told.is_sorted_by(|a, b| a.bytes < b.bytes && a.records <= b.records));
    assert!(told[0].percent() < 100, "{:?}", told[0]);
    let last = told.last().unwrap();
    assert_eq!((last.bytes, last.percent()), (last.bytes_total, 100));
    assert_eq!((last.records, seen), (report.records, report.records));
    // What is read of the last file ends before its size does.
    assert!(last.bytes >= report.bytes, "{last:?} {report:?}");
}

#[test]
fn progress_of_a_new_log_is_empty() {
    let mut told = 0;
    let mut each = |_: Record<'_>, _: &mut References<'_>| {};
    Log::open(Disk::new(), options(Durability::Fsync), &mut each, &mut |_| told += 1).unwrap();
    assert_eq!(told, 0);
}
