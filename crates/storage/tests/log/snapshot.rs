//! Snapshots, written to another disk while the log goes on and is compacted, at any number of operations before
//! either disk fails.

use std::io;

use storage::{Directory, DirectoryFile, Durability, SnapshotCopy};

use crate::history::{Shape, open, run};
use simdisk::{Disk, Random};

const SHAPE: Shape =
    Shape { batches: 40, changes: 12, queues: 4, body_max: 700, batch_bytes_max: usize::MAX };

/// Copies files from one disk to another, in place of links.
struct Copy<'a> {
    from: &'a Disk,
    to: &'a Disk,
    copied: u64,
}

impl SnapshotCopy for Copy<'_> {
    fn link(&mut self, name: &str, bytes: u64) -> io::Result<()> {
        let mut content = vec![0; usize::try_from(bytes).unwrap()];
        let count = self.from.open(name)?.read_at(&mut content, 0)?;
        assert_eq!(count, content.len(), "{name} has all bytes that the manifest lists");
        let file = self.to.create(name)?;
        file.write_at(&content, 0)?;
        file.sync()
    }

    fn copied(&mut self, bytes: u64) -> io::Result<()> {
        self.copied += bytes;
        Ok(())
    }
}

#[test]
fn snapshot_has_what_was_confirmed_at_its_position() {
    let (mut compacted, mut kept) = (0, 0);
    for seed in 0..60 {
        let (disk, backup) = (Disk::new(), Disk::new());
        let mut random = Random(seed);
        let (mut log, _, book) = open(&disk, Durability::Fsync).unwrap();
        let then = run(&mut log, book, &mut random, SHAPE).confirmed;
        let snapshot = log.snapshot();
        let position = log.last();
        assert_eq!(snapshot.position(), position);
        let files = disk.files().len();
        let later = run(&mut log, then.clone(), &mut random, SHAPE);
        for _ in 0..20 {
            let Some(compaction) = log.compaction() else { break };
            compacted += compaction.run().unwrap().files;
        }
        let mut copy = Copy { from: &disk, to: &backup, copied: 0 };
        snapshot.write_to(&backup, &mut copy).unwrap();
        assert!(copy.copied > 0);
        let during = disk.files().len();
        drop(snapshot);
        kept += during - disk.files().len();
        assert!(during >= files, "no file is removed while the snapshot exists");
        let backup = backup.after_cut(&mut random);
        let (_, report, book) = open(&backup, Durability::Fsync).unwrap();
        assert!(report.damages.is_empty(), "seed {seed}: {:?}", report.damages);
        assert_eq!((report.last, report.torn_bytes), (position, 0), "seed {seed}");
        assert!(book == then, "seed {seed}");
        drop(log);
        assert!(open(&disk, Durability::Fsync).unwrap().2 == later.confirmed, "seed {seed}");
    }
    assert!(compacted > 60 && kept > 60, "{compacted} files compacted, {kept} kept meanwhile");
}

#[test]
fn snapshot_that_loses_its_disk_is_no_log() {
    let disk = Disk::new();
    let (mut log, _, book) = open(&disk, Durability::Fsync).unwrap();
    let mut random = Random(7);
    let then = run(&mut log, book, &mut random, SHAPE).confirmed;
    for operations in 0.. {
        let backup = Disk::new();
        backup.cut_power_at(operations);
        let mut copy = Copy { from: &disk, to: &backup, copied: 0 };
        let written = log.snapshot().write_to(&backup, &mut copy);
        let backup = backup.after_cut(&mut random);
        let names = backup.list().unwrap();
        if names.iter().any(|name| name == "manifest") {
            // A manifest is there only if every file is whole.
            assert!(open(&backup, Durability::Fsync).unwrap().2 == then, "{operations}");
        } else {
            assert!(written.is_err(), "{operations}");
        }
        if written.is_ok() {
            assert!(operations > 5);
            return;
        }
    }
}
