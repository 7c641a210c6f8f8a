//! Logs that earlier versions wrote: every version reads them as they were meant.
//!
//! `FIXTURE=1 cargo test -p leveret-storage --test log` writes the files of the version at hand,
//! once, when it has a new number; a fixture that is there is never written again. A log has the oldest version
//! that suffices for its records.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::book::Book;
use crate::history::{Shape, open, run};
use simdisk::{Disk, Random};
use storage::{
    Directory, DirectoryFile, Durability, FORMAT_VERSION, Log, Lsn, WriteBatch, WriteQueue,
};

pub(crate) fn folder(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/v{version}"))
}

pub(crate) fn shown(book: &Book) -> String {
    let mut out = String::new();
    for ((lsn, queue), copy) in &book.copies {
        let returns = copy.returns;
        let body: String = copy.body.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(out, "{lsn} in {queue}, returned {returns} times: [{body}]").unwrap();
    }
    out
}

fn write_fixture(folder: &Path) {
    let disk = Disk::new();
    let (mut log, _, book) = open(&disk, Durability::Fsync).unwrap();
    let shape =
        Shape { batches: 60, changes: 6, queues: 3, body_max: 120, batch_bytes_max: usize::MAX };
    let progress = run(&mut log, book, &mut Random(2026), shape);
    assert!(progress.compacted > 0, "a file that was written anew belongs to it");
    write_files(&disk, folder);
    std::fs::write(folder.join("expected.txt"), shown(&progress.confirmed)).unwrap();
}

/// Writes the files of a disk into a folder.
pub(crate) fn write_files(disk: &Disk, folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    for (name, len) in disk.files() {
        let mut bytes = vec![0; len];
        disk.open(&name).unwrap().read_at(&mut bytes, 0).unwrap();
        std::fs::write(folder.join(name), bytes).unwrap();
    }
}

/// The fixture of a version, as a disk and the expected text.
pub(crate) fn read_fixture(version: u32) -> (Disk, String) {
    let disk = Disk::new();
    let mut expected = String::new();
    for entry in std::fs::read_dir(folder(version)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name == "expected.txt" {
            expected = std::fs::read_to_string(&path).unwrap();
            continue;
        }
        let file = disk.create(name).unwrap();
        file.write_at(&std::fs::read(&path).unwrap(), 0).unwrap();
    }
    (disk, expected)
}

#[test]
fn logs_of_every_version_are_read() {
    if std::env::var_os("FIXTURE").is_some() && !folder(FORMAT_VERSION).exists() {
        write_fixture(&folder(FORMAT_VERSION));
    }
    for version in 1..=FORMAT_VERSION {
        let (disk, expected) = read_fixture(version);
        let (_, report, book) = open(&disk, Durability::Fsync).unwrap();
        assert!(report.damages.is_empty(), "version {version}: {:?}", report.damages);
        assert_eq!(shown(&book), expected, "version {version}");
        assert_eq!(report.format_version, version);
    }
}

fn format_version(disk: &Disk) -> u32 {
    let mut manifest = [0; 12];
    disk.open("manifest").unwrap().read_at(&mut manifest, 0).unwrap();
    u32::from_le_bytes(manifest[8..].try_into().unwrap())
}

/// Writes one change of `book`, at the next position.
fn write(log: &mut Log<Disk>, change: impl FnOnce(Lsn, &mut WriteQueue)) {
    let mut batch = WriteQueue::default();
    change(Lsn(log.last().0 + 1), &mut batch);
    log.write(&mut batch).unwrap();
}

#[test]
fn format_version_is_the_oldest_that_suffices() {
    let disk = Disk::new();
    let (mut log, _, mut book) = open(&disk, Durability::Fsync).unwrap();
    write(&mut log, |lsn, batch| book.publish(lsn, &[0], b"body", batch));
    drop(log);
    let (mut log, ..) = open(&disk, Durability::Fsync).unwrap();
    assert_eq!(format_version(&disk), 1);
    let copy = *book.copies.keys().next().unwrap();
    write(&mut log, |lsn, batch| book.advance(lsn, copy, batch));
    assert_eq!(format_version(&disk), 2);
    write(&mut log, |lsn, batch| book.take_back(lsn, copy, batch));
    drop(log);
    let (_, report, read) = open(&disk, Durability::Fsync).unwrap();
    assert_eq!((report.format_version, format_version(&disk)), (2, 2));
    assert_eq!(read, book);
}

/// A full disk has no room for the manifest either: the batch is written when there is room again.
#[test]
fn newer_format_version_waits_for_room() {
    let disk = Disk::new();
    let (mut log, _, mut book) = open(&disk, Durability::Fsync).unwrap();
    write(&mut log, |lsn, batch| book.publish(lsn, &[0], b"body", batch));
    let copy = *book.copies.keys().next().unwrap();
    let mut batch = WriteQueue::default();
    book.advance(Lsn(log.last().0 + 1), copy, &mut batch);
    let mut newer = WriteBatch::default();
    batch.take_batch(&mut newer);
    assert!(log.needs_new_manifest(&newer));
    disk.limit_room(10);
    assert!(log.write_batch(&mut newer).is_err_and(|error| error.is_full()));
    assert_eq!(format_version(&disk), 1);
    disk.limit_room(1000);
    log.write_batch(&mut newer).unwrap();
    assert_eq!(format_version(&disk), 2);
    drop(log);
    disk.limit_room(100_000);
    assert_eq!(open(&disk, Durability::Fsync).unwrap().2, book);
}
