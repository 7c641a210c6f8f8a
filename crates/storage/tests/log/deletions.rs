//! Queues that are deleted: the record that says so names the declaration, and ends every message that is in the queue.

use storage::{Durability, Lsn, WriteQueue};

use crate::history::{Shape, open, write_batch};
use simdisk::{Disk, Random};

const QUEUES: u64 = 4;
const SHAPE: Shape =
    Shape { batches: 1, changes: 8, queues: QUEUES, body_max: 700, batch_bytes_max: usize::MAX };

/// The file of the declaration may be rewritten first: the deletion stays nevertheless.
#[test]
fn deletion_is_kept_as_long_as_the_messages_that_it_has_ended() {
    let mut compacted = 0;
    for seed in 0..60 {
        let disk = Disk::new();
        let mut random = Random(seed);
        let (mut log, _, mut book) = open(&disk, Durability::Fsync).unwrap();
        for _ in 0..200 {
            write_batch(&mut log, &mut book, &mut random, SHAPE).unwrap();
            if random.below(10) == 0 {
                let mut batch = WriteQueue::default();
                let queue = u8::try_from(random.below(QUEUES)).unwrap();
                book.delete_or_declare(Lsn(log.last().0 + 1), queue, &mut batch);
                log.write(&mut batch).unwrap();
            }
            if random.below(4) == 0
                && let Some(compaction) = log.compaction()
            {
                compacted += compaction.run().unwrap().files;
            }
        }
        drop(log);
        assert_eq!(open(&disk, Durability::Fsync).unwrap().2, book, "seed {seed}");
    }
    assert!(compacted > 300, "only {compacted} files were compacted");
}
