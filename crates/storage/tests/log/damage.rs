//! Logs with damage to durable bytes: they are reported and put aside, and never served.

use crate::book::{Book, CopyState};
use crate::history::{Shape, open, options, run};
use simdisk::{Disk, Random};
use storage::{Durability, Log, LogOptions, OpenError};

const SHAPE: Shape =
    Shape { batches: 60, changes: 8, queues: 3, body_max: 400, batch_bytes_max: 1500 };

/// A log so small that every byte of it can be damaged.
const SMALL: Shape =
    Shape { batches: 14, changes: 4, queues: 3, body_max: 60, batch_bytes_max: usize::MAX };

/// A log that was closed well, and what is in it.
fn whole(seed: u64) -> (Disk, Book) {
    closed(seed, SHAPE)
}

fn closed(seed: u64, shape: Shape) -> (Disk, Book) {
    let disk = Disk::new();
    let (mut log, _, book) = open(&disk, Durability::Fsync).unwrap();
    let progress = run(&mut log, book, &mut Random(seed), shape);
    log.close().unwrap();
    (disk, progress.confirmed)
}

/// A log of several files, each of which counts.
fn small() -> (Disk, Book) {
    let (disk, _) = closed(5, SMALL);
    let (mut log, _, book) = open(&disk, Durability::Fsync).unwrap();
    let progress = run(&mut log, book, &mut Random(6), SMALL);
    log.close().unwrap();
    (disk, progress.confirmed)
}

/// Every copy that was read back says what was published.
fn assert_nothing_is_invented(read: &Book, published: &Book, everything: &Book) {
    for (copy, CopyState { body, .. }) in &read.copies {
        let original = published.copies.get(copy).or_else(|| everything.copies.get(copy));
        if let Some(CopyState { body: original, .. }) = original {
            assert_eq!(body, original, "{copy:?}");
        }
    }
}

#[test]
fn changed_bytes_are_reported_or_harmless() {
    let (disk, book) = small();
    let files = disk.files();
    assert!(files.len() > 2, "{files:?}");
    let mut told = 0;
    for (name, len) in &files {
        for at in 0..*len {
            let copy = disk.copy();
            copy.damage(name, |bytes| bytes[at] ^= 1 << (at % 8));
            match open(&copy, Durability::Fsync) {
                Ok((_, report, read)) if report.damages.is_empty() => {
                    assert_eq!(read, book, "{name} at {at}");
                }
                Ok((_, report, read)) => {
                    told += 1;
                    let damage = &report.damages[0];
                    assert_eq!(damage.file, *name);
                    assert!(damage.offset <= at as u64, "{damage} for {at}");
                    assert!((at as u64) < damage.offset + damage.len, "{damage} for {at}");
                    assert!(damage.kept_in.is_some(), "{damage}");
                    assert_nothing_is_invented(&read, &book, &book);
                    // It is reported again, and nothing more is lost.
                    let (_, again, same) = open(&copy, Durability::Fsync).unwrap();
                    assert!(again.damages.len() <= report.damages.len());
                    assert_eq!(same, read);
                }
                Err(OpenError::Manifest { .. } | OpenError::Version { .. }) => told += 1,
                Err(error) => panic!("{name} at {at}: {error}"),
            }
        }
    }
    assert!(told > 2500, "{told}");
}

#[test]
fn lost_blocks_are_reported_or_harmless() {
    const BLOCK: usize = 4096;
    let (disk, book) = whole(11);
    let mut told = 0;
    for (name, len) in disk.files() {
        for at in (0..len).step_by(512) {
            for fill in [0, 0xFF] {
                let copy = disk.copy();
                copy.damage(&name, |bytes| bytes[at..len.min(at + BLOCK)].fill(fill));
                match open(&copy, Durability::Fsync) {
                    Ok((_, report, read)) if report.damages.is_empty() => {
                        assert_eq!(read, book, "{name} at {at}");
                    }
                    Ok((_, report, read)) => {
                        told += 1;
                        assert!(report.damages.iter().all(|damage| damage.file == name));
                        assert_nothing_is_invented(&read, &book, &book);
                    }
                    Err(OpenError::Manifest { file, .. }) => assert_eq!(file, name),
                    Err(error) => panic!("{name} at {at}: {error}"),
                }
            }
        }
    }
    assert!(told > 50, "{told}");
}

#[test]
fn bytes_behind_the_end_are_ignored() {
    let (disk, book) = whole(12);
    for (name, _) in disk.files() {
        let copy = disk.copy();
        copy.damage(&name, |bytes| bytes.extend((0..5000).map(|at| (at % 251) as u8)));
        match open(&copy, Durability::Fsync) {
            Ok((_, report, read)) => assert_eq!((report.damages, read), (vec![], book.clone())),
            Err(OpenError::Manifest { file, .. }) => assert_eq!(file, name),
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

#[test]
fn exchanged_files_are_reported() {
    let (disk, _) = small();
    let files = disk.files();
    // A file that was made ahead is all zeros and does not count.
    let counts = |name: &str| {
        let mut first = 0;
        disk.damage(name, |bytes| first = bytes[0]);
        name.ends_with(".log") && first != 0
    };
    let logs: Vec<_> = files.iter().filter(|(name, _)| counts(name)).collect();
    let [(one, _), (other, _), ..] = logs[..] else { panic!("{files:?}") };
    let mut bytes = Vec::new();
    disk.damage(one, |first| bytes.clone_from(first));
    disk.damage(other, |second| std::mem::swap(second, &mut bytes));
    disk.damage(one, |first| *first = bytes);
    let (_, report, _) = open(&disk, Durability::Fsync).unwrap();
    for name in [one, other] {
        let told = report.damages.iter().find(|damage| damage.file == *name).unwrap();
        assert_eq!((told.problem, told.offset), ("belongs to another log", 0));
        let kept = told.kept_in.as_ref().unwrap();
        assert!(disk.files().iter().any(|(name, len)| name == kept && *len as u64 == told.len));
    }
}

#[test]
fn log_without_a_manifest_is_not_changed() {
    // One file alone might be a log that was being begun: not if something is in it.
    let disk = Disk::new();
    let (mut log, _, book) = open(&disk, Durability::Fsync).unwrap();
    run(&mut log, book, &mut Random(13), Shape { batches: 1, ..SMALL });
    drop(log);
    storage::Directory::remove(&disk, "manifest").unwrap();
    let before = disk.files();
    assert_eq!(before.len(), 1);
    let error = open(&disk, Durability::Fsync).err().unwrap().to_string();
    let said = "manifest: missing, though there is 0000000000000001.log; nothing is changed";
    assert_eq!(error, said);
    assert_eq!(disk.files(), before);
}

#[test]
fn manifest_of_another_log_is_refused() {
    let (disk, _) = whole(14);
    let options = LogOptions { log_id: 78, ..options(Durability::Fsync) };
    let error =
        Log::open(disk.clone(), options, &mut storage::IgnoreRecords, &mut |_| {}).err().unwrap();
    let said = "manifest: belongs to log 77, and this is log 78; nothing is changed";
    assert_eq!(error.to_string(), said);
    let error = storage::check(&disk, 78, &mut storage::IgnoreRecords).err().unwrap();
    assert_eq!(error.to_string(), said);
    let report = storage::check(&disk, 77, &mut storage::IgnoreRecords).unwrap();
    assert_eq!(report.damages, []);
}

#[test]
fn unlisted_file_of_another_log_is_reported_and_kept() {
    let (disk, book) = whole(15);
    let other = Disk::new();
    let options = LogOptions { log_id: 78, ..options(Durability::Fsync) };
    let (mut log, _) =
        Log::open(other.clone(), options, &mut storage::IgnoreRecords, &mut |_| {}).unwrap();
    run(&mut log, Book::default(), &mut Random(16), SMALL);
    let mut bytes = Vec::new();
    other.damage("0000000000000001.log", |file| bytes.clone_from(file));
    let name = "00000000000000ff.log";
    let file = storage::Directory::create(&disk, name).unwrap();
    storage::DirectoryFile::write_at(&file, &bytes, 0).unwrap();
    for _ in 0..2 {
        let checked = storage::check(&disk, 77, &mut storage::IgnoreRecords).unwrap();
        let (_, report, read) = open(&disk, Durability::Fsync).unwrap();
        assert_eq!(read, book);
        for damages in [checked.damages, report.damages] {
            let [damage] = &damages[..] else { panic!("{damages:?}") };
            let said = (damage.file.as_str(), damage.problem);
            assert_eq!(said, (name, "belongs to another log and is left here"));
        }
    }
    assert!(disk.files().iter().any(|(file, len)| file == name && *len == bytes.len()));
}

#[test]
fn missing_log_is_not_created_unless_asked() {
    let options = LogOptions { create_if_missing: false, ..options(Durability::Fsync) };
    let disk = Disk::new();
    let error =
        Log::open(disk.clone(), options, &mut storage::IgnoreRecords, &mut |_| {}).err().unwrap();
    assert_eq!(error.to_string(), "manifest: missing");
    assert_eq!(disk.files(), []);
}

#[test]
fn truncated_file_is_reported() {
    let (disk, book) = whole(6);
    for (name, len) in disk.files().iter().filter(|(name, _)| name.ends_with(".log")) {
        for keep in (0..*len).step_by(61) {
            let copy = disk.copy();
            copy.damage(name, |bytes| bytes.truncate(keep));
            let (_, report, read) = open(&copy, Durability::Fsync).unwrap();
            assert!(read == book || !report.damages.is_empty(), "{name} cut at {keep}");
        }
    }
}

#[test]
fn missing_file_is_reported() {
    let (disk, book) = whole(7);
    for (name, _) in disk.files() {
        let copy = disk.copy();
        storage::Directory::remove(&copy, &name).unwrap();
        match open(&copy, Durability::Fsync) {
            Ok((_, report, read)) if report.damages.is_empty() => assert_eq!(read, book, "{name}"),
            Ok((_, report, _)) => {
                assert_eq!(
                    (&report.damages[0].file, report.damages[0].problem),
                    (&name, "missing")
                );
            }
            Err(OpenError::Manifest { file, .. }) => assert_eq!(file, name),
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

#[test]
fn files_of_another_log_are_not_read() {
    let (disk, _) = whole(8);
    let (other, book) = whole(9);
    let is_log = |(name, _): &(String, usize)| name.ends_with(".log");
    let name = other.files().into_iter().find(is_log).unwrap().0;
    let mut foreign = Vec::new();
    let theirs = disk.files().into_iter().find(is_log).unwrap().0;
    disk.damage(&theirs, |bytes| foreign = bytes.clone());
    // Another log's id in every header.
    other.damage(&name, |bytes| *bytes = foreign);
    let (_, report, read) = open(&other, Durability::Fsync).unwrap();
    // Both logs have the same id here, so that only the file's own id distinguishes them.
    assert!(read == book || !report.damages.is_empty());
}

/// Gives a header of this size the format version 9.
fn make_newer(bytes: &mut [u8], header_bytes: usize) {
    let header = &mut bytes[..header_bytes];
    header[8] = 9;
    header[12..16].fill(0);
    let crc = crc32c::crc32c(header);
    header[12..16].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn newer_format_is_refused_with_a_message() {
    let (disk, _) = whole(10);
    disk.damage("manifest", |bytes| {
        let size = bytes.len();
        make_newer(bytes, size);
    });
    let error = open(&disk, Durability::Fsync).err().unwrap();
    assert_eq!(
        error.to_string(),
        "manifest has format version 9, but this Leveret knows version 3"
    );
}

/// Neither a segment created in advance is removed nor damage copied: the newer version may need the files.
#[test]
fn refusal_of_a_newer_segment_changes_nothing() {
    let (disk, _) = whole(10);
    let logs: Vec<_> = disk
        .files()
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| name.ends_with(".log"))
        .collect();
    let [first, .., last] = &*logs else { panic!("{logs:?}") };
    disk.damage(first, |bytes| bytes[5000] ^= 1);
    disk.damage(last, |bytes| make_newer(bytes, 64));
    let spare = storage::Directory::create(&disk, "00000000000000ff.log").unwrap();
    storage::DirectoryFile::write_at(&spare, &[0; 8192], 0).unwrap();
    let before = disk.files();
    let error = open(&disk, Durability::Fsync).err().unwrap();
    assert_eq!(
        error.to_string(),
        format!("{last} has format version 9, but this Leveret knows version 2")
    );
    assert_eq!(disk.files(), before);
}
