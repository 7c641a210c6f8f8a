//! Generated histories: batches of changes to a book, with compactions between them.

use storage::{
    Durability, FORMAT_VERSION_OLDEST, Log, LogOptions, Lsn, OpenError, OpenReport, Record,
    References, WriteQueue,
};

use super::book::{Book, Copy, format_version};
use simdisk::{Disk, Random};

/// Shape of a generated history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) batches: u64,
    pub(crate) changes: u64,
    pub(crate) queues: u64,
    pub(crate) body_max: u64,
    /// Bytes of records at which a batch is full.
    pub(crate) batch_bytes_max: usize,
}

/// Progress of a history.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The book as of the last write that succeeded.
    pub(crate) confirmed: Book,
    /// The books on the way of the write that failed, if one did: after each of its changes.
    pub(crate) attempted: Vec<Book>,
    /// Files that compactions removed.
    pub(crate) compacted: usize,
}

pub(crate) fn options(durability: Durability) -> LogOptions {
    LogOptions {
        log_id: 77,
        durability,
        segment_bytes_min: 8192,
        segment_bytes_max: 16384,
        ..LogOptions::default()
    }
}

/// Opens the log on a disk and reads its book.
pub(crate) fn open(
    disk: &Disk,
    durability: Durability,
) -> Result<(Log<Disk>, OpenReport, Book), OpenError> {
    let mut book = Book::default();
    let mut needed = FORMAT_VERSION_OLDEST;
    let mut read = |record: Record<'_>, references: &mut References<'_>| {
        needed = needed.max(format_version(record.kind));
        book.read(record, references);
    };
    let (log, report) = Log::open(disk.clone(), options(durability), &mut read, &mut |_| {})?;
    assert!(report.format_version >= needed, "an earlier build would leave out records");
    Ok((log, report, book))
}

/// Goes on with `book` until all is done or the disk fails.
pub(crate) fn run(
    log: &mut Log<Disk>,
    mut book: Book,
    random: &mut Random,
    shape: Shape,
) -> Progress {
    let mut progress = Progress { confirmed: book.clone(), ..Progress::default() };
    for _ in 0..shape.batches {
        if let Err(on_the_way) = write_batch(log, &mut book, random, shape) {
            progress.attempted = on_the_way;
            return progress;
        }
        progress.confirmed = book.clone();
        if random.below(4) == 0
            && let Some(compaction) = log.compaction()
        {
            match compaction.run() {
                Ok(compacted) => progress.compacted += compacted.files,
                Err(_) => return progress,
            }
        }
        if random.below(8) == 0
            && let Some(preparation) = log.prepare_next_segment()
        {
            log.install_next_segment(preparation.run().ok());
        }
    }
    progress
}

/// Writes a batch of changes to `book`. If the disk fails, returns the books on the way: after each of its changes.
pub(crate) fn write_batch(
    log: &mut Log<Disk>,
    book: &mut Book,
    random: &mut Random,
    shape: Shape,
) -> Result<(), Vec<Book>> {
    let mut lsn = log.last();
    let mut batch = WriteQueue::with_batch_bytes_max(shape.batch_bytes_max);
    let mut on_the_way = Vec::new();
    for _ in 0..1 + random.below(shape.changes) {
        lsn = Lsn(lsn.0 + 1);
        change(book, lsn, &mut batch, random, shape);
        on_the_way.push(book.clone());
    }
    match log.write(&mut batch) {
        Ok(written) => {
            assert_eq!(written.durable, lsn);
            Ok(())
        }
        Err(_) => Err(on_the_way),
    }
}

pub(crate) fn change(
    book: &mut Book,
    lsn: Lsn,
    batch: &mut WriteQueue,
    random: &mut Random,
    shape: Shape,
) {
    let copy = pick(book, random);
    match (random.below(100), copy) {
        (0, _) => book.purge(lsn, queue(random, shape), batch),
        (1..=30, Some(copy)) => book.settle(lsn, copy, batch),
        (31..=40, Some(copy)) => book.move_to(lsn, copy, &some_queues(random, shape), batch),
        (41..=50, Some(copy)) => book.take_back(lsn, copy, batch),
        (51..=55, Some(copy)) => book.advance(lsn, copy, batch),
        _ => {
            let len = usize::try_from(random.below(shape.body_max)).unwrap();
            let body: Vec<u8> =
                std::iter::repeat_with(|| random.next().to_le_bytes()[0]).take(len).collect();
            book.publish(lsn, &some_queues(random, shape), &body, batch);
        }
    }
}

fn queue(random: &mut Random, shape: Shape) -> u8 {
    u8::try_from(random.below(shape.queues)).unwrap()
}

fn some_queues(random: &mut Random, shape: Shape) -> Vec<u8> {
    let mut queues: Vec<u8> = (0..1 + random.below(3)).map(|_| queue(random, shape)).collect();
    queues.sort_unstable();
    queues.dedup();
    queues
}

/// Mostly the oldest, sometimes any.
fn pick(book: &Book, random: &mut Random) -> Option<Copy> {
    let len = book.copies.len() as u64;
    let at = if random.below(3) > 0 { random.below(len.min(3)) } else { random.below(len) };
    book.copies.keys().nth(usize::try_from(at).unwrap()).copied()
}
