//! Logs with damage to what had been durable: it is told and put aside, and nothing of it is served.

use crate::book::Book;
use crate::disk::{Disk, Random};
use crate::history::{Shape, open, run};
use storage::OpenError;

const SHAPE: Shape = Shape { batches: 60, changes: 8, queues: 3, body_max: 400 };

/// A log that was closed well, and what is in it.
fn whole(seed: u64) -> (Disk, Book) {
    let disk = Disk::new();
    let (mut log, _, book) = open(&disk, true).unwrap();
    let progress = run(&mut log, book, &mut Random(seed), SHAPE);
    drop(log);
    // Opened once more, so that every file with records is sealed.
    drop(open(&disk, true).unwrap());
    (disk, progress.confirmed)
}

/// Every copy that was read back says what was published.
fn assert_nothing_is_invented(read: &Book, published: &Book, everything: &Book) {
    for (copy, (body, _)) in &read.copies {
        let original = published.copies.get(copy).or_else(|| everything.copies.get(copy));
        if let Some((original, _)) = original {
            assert_eq!(body, original, "{copy:?}");
        }
    }
}

#[test]
fn a_changed_octet_is_told_or_does_not_matter() {
    let (disk, book) = whole(5);
    let files = disk.files();
    let mut told = 0;
    for (name, len) in &files {
        for at in (0..*len).step_by(7) {
            let copy = disk.copy();
            copy.damage(name, |octets| octets[at] ^= 0x10);
            match open(&copy, true) {
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
                    // It is told again, and nothing more is lost.
                    let (_, again, same) = open(&copy, true).unwrap();
                    assert!(again.damages.len() <= report.damages.len());
                    assert_eq!(same, read);
                }
                Err(OpenError::Manifest { .. } | OpenError::Version { .. }) => told += 1,
                Err(error) => panic!("{name} at {at}: {error}"),
            }
        }
    }
    assert!(told > 100, "{told}");
}

#[test]
fn a_file_that_is_cut_is_told() {
    let (disk, book) = whole(6);
    for (name, len) in disk.files().iter().filter(|(name, _)| name.ends_with(".log")) {
        for keep in (0..*len).step_by(61) {
            let copy = disk.copy();
            copy.damage(name, |octets| octets.truncate(keep));
            let (_, report, read) = open(&copy, true).unwrap();
            assert!(read == book || !report.damages.is_empty(), "{name} cut at {keep}");
        }
    }
}

#[test]
fn a_file_that_is_missing_is_told() {
    let (disk, book) = whole(7);
    for (name, _) in disk.files() {
        let copy = disk.copy();
        storage::Directory::remove(&copy, &name).unwrap();
        match open(&copy, true) {
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
    disk.damage(&theirs, |octets| foreign = octets.clone());
    // Another log's id in every header.
    other.damage(&name, |octets| *octets = foreign);
    let (_, report, read) = open(&other, true).unwrap();
    // Both logs have the same id here, so that only the file's own id tells them apart.
    assert!(read == book || !report.damages.is_empty());
}

#[test]
fn a_newer_format_is_refused_in_a_sentence() {
    let (disk, _) = whole(10);
    disk.damage("manifest", |octets| {
        octets[8] = 9;
        octets[12..16].fill(0);
        let crc = crc32c::crc32c(octets);
        octets[12..16].copy_from_slice(&crc.to_le_bytes());
    });
    let error = open(&disk, true).err().unwrap();
    assert_eq!(
        error.to_string(),
        "manifest has format version 9, but this Leveret knows version 1"
    );
}
