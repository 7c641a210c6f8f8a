//! Files of a log that is in use are read again: each octet that has changed is told, or counts for nothing.

use storage::{Durability, IgnoreRecords, Log, VerifiableFile, check};

use crate::history::{Shape, open, run};
use simdisk::{Disk, Random};

/// A log so small that every byte of it can be damaged.
const SMALL: Shape =
    Shape { batches: 20, changes: 6, queues: 3, body_max: 200, batch_bytes_max: usize::MAX };

/// The files of a log, each with what `verify` tells of it; and the bytes that were read.
fn verified(log: &Log<Disk>) -> (Vec<(VerifiableFile, Vec<String>)>, u64) {
    let (mut all, mut behind, mut bytes) = (Vec::new(), 0, 0);
    loop {
        // As a node does: no file is kept for longer than it is read.
        let snapshot = log.snapshot();
        let Some(file) = snapshot.file_behind(behind) else { return (all, bytes) };
        let mut read = |count| {
            bytes += count;
            Ok(())
        };
        let damages = snapshot.verify(file, &mut read).unwrap();
        all.push((file, damages.iter().map(ToString::to_string).collect()));
        behind = file.id;
    }
}

/// The log of a disk with several files, of which some were rewritten.
fn used() -> (Disk, Log<Disk>) {
    let disk = Disk::new();
    let (mut log, _, book) = open(&disk, Durability::Fsync).unwrap();
    let mut random = Random(11);
    let progress = run(&mut log, book, &mut random, SMALL);
    if let Some(compaction) = log.compaction() {
        compaction.run().unwrap();
    }
    run(&mut log, progress.confirmed, &mut random, SMALL);
    (disk, log)
}

#[test]
fn whole_files_have_nothing_to_tell() {
    let (_disk, log) = used();
    let (files, bytes) = verified(&log);
    assert!(files.len() > 2, "{files:?}");
    assert!(files.iter().all(|(_, told)| told.is_empty()), "{files:?}");
    let used: u64 = files.iter().map(|(file, _)| file.bytes).sum();
    assert!(bytes > 0 && bytes < used, "{bytes} bytes of {used}, without the headers of files");
}

#[test]
fn changed_octets_are_told_or_count_for_nothing() {
    let (disk, log) = used();
    let (mut told, mut unused) = (0, 0);
    for (file, _) in verified(&log).0 {
        let name = file.name();
        for at in 0..usize::try_from(file.bytes).unwrap() {
            let flip = || disk.damage(&name, |bytes| bytes[at] ^= 1 << (at % 8));
            flip();
            let snapshot = log.snapshot();
            let damages = snapshot.verify(file, &mut |_| Ok(())).unwrap();
            match damages.first() {
                Some(damage) => {
                    told += 1;
                    assert_eq!(damage.file, name);
                    assert!(damage.offset <= at as u64, "{damage} for {at}");
                    assert!((at as u64) < damage.offset + damage.len, "{damage} for {at}");
                }
                None => {
                    unused += 1;
                    let report = check(&disk.copy(), 77, &mut IgnoreRecords).unwrap();
                    assert!(report.damages.is_empty(), "{:?} for {at}", report.damages);
                }
            }
            flip();
        }
    }
    assert!(told > 5000 && unused > 100, "{told} told, {unused} unused");
}

#[test]
fn missing_and_cut_files_are_told() {
    let (disk, log) = used();
    let snapshot = log.snapshot();
    let first = snapshot.file_behind(0).unwrap();
    disk.damage(&first.name(), |bytes| bytes.truncate(bytes.len() / 2));
    assert!(!snapshot.verify(first, &mut |_| Ok(())).unwrap().is_empty());
    storage::Directory::remove(&disk, &first.name()).unwrap();
    let damages = snapshot.verify(first, &mut |_| Ok(())).unwrap();
    assert_eq!(damages.first().map(|damage| damage.problem), Some("missing"));
}
