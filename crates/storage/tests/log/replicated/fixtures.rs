//! A replicated log that an earlier build wrote: every version reads it as it was meant.
//!
//! It was a log without a group, so that it has files of both layouts, and ends with entries that are not known to be
//! committed. `FIXTURE=1` writes it, once.

use std::fmt::Write as _;

use storage::{EntryContent, EntryIndex, FORMAT_VERSION_REPLICATED};

use super::adoption::{adopted, lone};
use super::world::{Opened, open};
use crate::fixtures::{folder, read_fixture, shown, write_files};
use simdisk::{Disk, Random};

fn text(opened: &Opened) -> String {
    let log = &opened.log;
    let mut out = shown(&opened.book);
    let state = log.hard_state();
    let (first, last) = (log.first_index(), log.last_index());
    let term = log.term_of(EntryIndex(first.0 - 1)).unwrap();
    writeln!(out, "applied {}, first {first} behind term {term}", log.applier().applied()).unwrap();
    writeln!(out, "term {}, vote {}, voters {:?}", state.term, state.vote, state.voters).unwrap();
    for entry in log.entries(first, EntryIndex(last.0 + 1), usize::MAX).unwrap() {
        let kind = match &entry.content {
            EntryContent::Records(records) => {
                format!("{} records, {} to {}", records.count, records.first, records.last)
            }
            EntryContent::Empty => "empty".to_owned(),
            EntryContent::Membership(_) => "membership".to_owned(),
        };
        let (index, term, axis_us) = (entry.index, entry.term, entry.axis_us);
        let crc = crc32c::crc32c(entry.content.octets());
        assert_eq!(log.verify(&entry), Ok(()));
        writeln!(out, "entry {index} of term {term} at {axis_us}: {kind}, CRC {crc:08x}").unwrap();
    }
    out
}

fn write_fixture() {
    let disk = Disk::new();
    let (book, last) = lone(&disk, 2026);
    let mut world = adopted(open(&disk).unwrap(), book, last);
    let mut random = Random(2026);
    for _ in 0..120 {
        world.step(&mut random).unwrap();
    }
    assert!(world.compacted > 0 && world.log.committed() < world.log.last_index());
    drop(world);
    let folder = folder(FORMAT_VERSION_REPLICATED);
    write_files(&disk, &folder);
    std::fs::write(folder.join("expected.txt"), text(&open(&disk).unwrap())).unwrap();
}

#[test]
fn replicated_log_of_every_version_is_read() {
    if std::env::var_os("FIXTURE").is_some() && !folder(FORMAT_VERSION_REPLICATED).exists() {
        write_fixture();
    }
    let (disk, expected) = read_fixture(FORMAT_VERSION_REPLICATED);
    let versions: Vec<u8> = disk
        .files()
        .into_iter()
        .filter(|(name, _)| name.ends_with(".log"))
        .map(|(name, _)| {
            let mut version = 0;
            disk.damage(&name, |bytes| version = bytes[8]);
            version
        })
        .collect();
    assert!(versions.contains(&1) && versions.contains(&2), "{versions:?}");
    let opened = open(&disk).unwrap();
    assert_eq!(opened.report.damages, []);
    assert_eq!(opened.report.format_version, FORMAT_VERSION_REPLICATED);
    assert_eq!(text(&opened), expected);
}
