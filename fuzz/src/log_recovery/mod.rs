//! The log's recovery: a log on the simulated disk is damaged, and opened.
//!
//! The first byte chooses the log, the second whether checksums are corrected after the damage; the rest
//! are changes to its files. After any change, the log opens or gives the reason why not; records in front of
//! the damage are read, no record is read that was not written, and the log can be continued.

#[allow(
    unreachable_pub,
    dead_code,
    reason = "shared with the tests of the log, which use all of it"
)]
#[path = "../../../crates/storage/tests/log/book.rs"]
mod book;
mod change;
#[allow(
    unreachable_pub,
    dead_code,
    reason = "shared with the tests of the log, which use all of it"
)]
#[path = "../../../crates/storage/tests/log/history.rs"]
mod history;
mod mend;

use std::collections::BTreeMap;

use arbitrary::{Arbitrary as _, Unstructured};
use simdisk::{Disk, Random};
use storage::{
    Directory as _, DirectoryFile as _, Durability, Flags, Log, Lsn, NewRecord, OpenError,
    OpenReport, Record, References, WriteQueue,
};

use self::change::Change;
use self::history::{Shape, options};

/// So many changes there are at most.
const CHANGES_MAX: usize = 16;

/// Logs that are damaged: by generated histories, and one that an earlier version has written.
const LOGS: u8 = 4;
const SHAPE: Shape =
    Shape { batches: 14, changes: 4, queues: 3, body_max: 60, batch_bytes_max: usize::MAX };

/// The files of the log that an earlier version has written.
const EARLIER: &[(&str, &[u8])] = &[
    ("manifest", include_bytes!("../../../crates/storage/tests/fixtures/v1/manifest")),
    (
        "0000000000000006.log",
        include_bytes!("../../../crates/storage/tests/fixtures/v1/0000000000000006.log"),
    ),
    (
        "0000000000000007.log",
        include_bytes!("../../../crates/storage/tests/fixtures/v1/0000000000000007.log"),
    ),
    (
        "0000000000000008.log",
        include_bytes!("../../../crates/storage/tests/fixtures/v1/0000000000000008.log"),
    ),
    (
        "0000000000000009.log",
        include_bytes!("../../../crates/storage/tests/fixtures/v1/0000000000000009.log"),
    ),
];

/// Content of a record: its subject, its kind, its payload.
type Said = (Lsn, u8, Vec<u8>);

/// Records by position.
type Records = BTreeMap<Lsn, Said>;

thread_local! {
    /// Each log as it was written: making one takes longer than reading it.
    static WHOLE: [(Disk, Records); LOGS as usize] = std::array::from_fn(whole);
}

/// Checks changes to the files of a log.
pub fn check(input: &[u8]) {
    let mut input = Unstructured::new(input);
    let Ok([log, mends]) = <[u8; 2]>::arbitrary(&mut input) else { return };
    let (disk, written) = WHOLE.with(|logs| {
        let (disk, written) = &logs[usize::from(log % LOGS)];
        (disk.copy(), written.clone())
    });
    let files: Vec<String> = disk.files().into_iter().map(|(name, _)| name).collect();
    let mut first_changed = files.len();
    let mut offset = usize::MAX;
    for _ in 0..CHANGES_MAX {
        if input.is_empty() {
            break;
        }
        let Ok(change) = Change::arbitrary(&mut input) else { break };
        let (file, at) = change.make(&disk, &files);
        // Log files stand in the order of their names, the manifest behind them.
        match file.cmp(&first_changed) {
            std::cmp::Ordering::Less => (first_changed, offset) = (file, at),
            std::cmp::Ordering::Equal => offset = offset.min(at),
            std::cmp::Ordering::Greater => {}
        }
    }
    if mends & 1 == 1 {
        mend::checksums(&disk);
        // What was written is not what is there, but it opens or says why not.
        let _ = read(&disk);
        return;
    }
    let mut kept = written.clone();
    if first_changed < files.len() {
        let before = files[first_changed].ends_with(".log").then(|| {
            let cut = WHOLE.with(|logs| logs[usize::from(log % LOGS)].0.copy());
            cut_off(&cut, &files[first_changed..], offset);
            read_quietly(&cut).expect("a log that is cut off opens")
        });
        kept = before.unwrap_or_default();
    }
    damaged(&disk, &written, &kept);
}

/// Opens a damaged log, of which `kept` must be there and nothing but `written`.
fn damaged(disk: &Disk, written: &Records, kept: &Records) {
    let checked = storage::check(disk, 77, &mut storage::IgnoreRecords);
    let (mut log, report, found) = match read(disk) {
        Ok(opened) => opened,
        // The manifest says which files there are: without it nothing is read, and nothing changed.
        Err(OpenError::Manifest { .. } | OpenError::Version { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    match checked {
        Ok(checked) => assert_eq!(checked.records, report.records),
        // Nothing is left of it, as of one that was being begun: it is begun again.
        Err(OpenError::Manifest { .. }) => assert!(found.is_empty(), "{report:?}"),
        Err(error) => panic!("what opens can be checked: {error}"),
    }
    for (lsn, said) in &found {
        assert_eq!(written.get(lsn), Some(said), "{lsn} was never written");
    }
    for lsn in kept.keys() {
        assert!(found.contains_key(lsn), "{lsn} was whole before the damage: {report:?}");
    }
    let next = Lsn(log.last().0 + 1);
    let mut batch = WriteQueue::default();
    let (kind, flags) = (1, Flags::NONE);
    let (target, format_version, is_joined) = (Lsn(0), 1, false);
    let record =
        NewRecord { lsn: next, target, kind, flags, references: 1, format_version, is_joined };
    batch.push(record, |bytes| bytes.extend(b"behind the damage"));
    log.write(&mut batch).expect("it can be written on");
    drop(log);
    let (_, again, mut same) = read(disk).expect("it opens again");
    assert!(again.damages.len() <= report.damages.len(), "{again:?} after {report:?}");
    let last = same.remove(&next).expect("what was written behind the damage");
    assert_eq!(last.2, b"behind the damage");
    assert_eq!(same, found, "the same is read again");
}

/// Ends the first of these files at `offset`, and takes away the others.
fn cut_off(disk: &Disk, files: &[String], offset: usize) {
    for (place, name) in files.iter().filter(|name| name.ends_with(".log")).enumerate() {
        disk.damage(name, |bytes| bytes.truncate(if place == 0 { offset } else { 0 }));
    }
}

fn read(disk: &Disk) -> Result<(Log<Disk>, OpenReport, Records), OpenError> {
    let mut records = Records::new();
    let mut each = |record: Record<'_>, _: &mut References<'_>| {
        let said = (record.target, record.kind, record.payload.to_vec());
        records.insert(record.lsn, said);
    };
    let (log, report) =
        Log::open(disk.clone(), options(Durability::Fsync), &mut each, &mut |_| {})?;
    Ok((log, report, records))
}

fn read_quietly(disk: &Disk) -> Result<Records, OpenError> {
    read(disk).map(|(_, _, records)| records)
}

/// A log that was closed well.
fn whole(number: usize) -> (Disk, Records) {
    let disk = Disk::new();
    if number == 0 {
        for (name, bytes) in EARLIER {
            let file = disk.create(name).expect("a new file");
            file.write_at(bytes, 0).expect("a disk with power");
        }
    } else {
        for turn in 0..2 {
            let (mut log, _, book) = history::open(&disk, Durability::Fsync).expect("a log");
            let mut random = Random(number as u64 * 2 + turn);
            history::run(&mut log, book, &mut random, SHAPE);
            log.close().expect("a disk with power");
        }
    }
    // Opened once, so that what a start itself changes has been changed.
    let (log, _, _) = read(&disk).expect("a log");
    log.close().expect("a disk with power");
    let records = read_quietly(&disk.copy()).expect("a log");
    (disk, records)
}
