//! Replicated logs with damage: every changed octet of a committed entry is reported, and a lost hard state ends the
//! vote.

use storage::{EntryContent, EntryError, EntryIndex, LogEntry, OpenError, Term, check};

use super::world::{LOG, Opened, World, open};
use crate::book::Book;
use simdisk::{Disk, Random};

/// A log with committed entries that was closed, or not.
fn world(seed: u64, steps: u64) -> (Disk, World) {
    let disk = Disk::new();
    let mut world = World::new(&disk).unwrap();
    let mut random = Random(seed);
    for _ in 0..steps {
        world.step(&mut random).unwrap();
    }
    (disk, world)
}

/// Committed entries with a small log, all of which is known to be committed.
fn closed(seed: u64, steps: u64) -> (Disk, Book, u64) {
    let (disk, mut world) = world(seed, steps);
    let last = world.model.last();
    world.log.commit(EntryIndex(last));
    let book = world.model.book_at(last).clone();
    world.log.close().unwrap();
    (disk, book, last)
}

#[test]
fn changed_bytes_are_reported_or_harmless() {
    let (disk, book, last) = closed(21, 26);
    let mut told = 0;
    for (name, len) in disk.files() {
        for at in 0..len {
            let copy = disk.copy();
            copy.damage(&name, |bytes| bytes[at] ^= 1 << (at % 8));
            match open(&copy) {
                Ok(Opened { report, book: read, log }) if report.damages.is_empty() => {
                    assert_eq!(log.last_index().0, last, "{name} at {at}");
                    assert!(read == book, "{name} at {at}");
                }
                Ok(Opened { report, .. }) => {
                    told += 1;
                    let damage = &report.damages[0];
                    assert_eq!(damage.file, name, "{damage} for {at}");
                    assert!(damage.offset <= at as u64, "{damage} for {at}");
                    assert!((at as u64) < damage.offset + damage.len, "{damage} for {at}");
                }
                Err(
                    OpenError::Manifest { .. }
                    | OpenError::Version { .. }
                    | OpenError::DoesNotVote { .. },
                ) => told += 1,
                Err(error) => panic!("{name} at {at}: {error}"),
            }
        }
    }
    assert!(told > 3000, "{told}");
}

/// Bytes behind the last sync look like a torn end, unless the log knows that they were committed.
#[test]
fn rot_in_committed_entries_of_an_open_log_is_reported() {
    let mut reported = 0;
    for seed in 0..200 {
        let (disk, mut world) = world(seed, 30);
        let mut random = Random(seed);
        let last = world.model.last();
        world.log.commit(EntryIndex(last));
        world.model.commit = last;
        // The hard state knows the commit.
        world.new_term(&mut random).unwrap();
        let logs: Vec<_> =
            disk.files().into_iter().filter(|(name, _)| name.ends_with(".log")).collect();
        let (name, len) = &logs[usize::try_from(random.below(logs.len() as u64)).unwrap()];
        let at = 4096 + usize::try_from(random.below(*len as u64 - 4096)).unwrap();
        let copy = disk.copy();
        copy.damage(name, |bytes| bytes[at] ^= 0x10);
        match open(&copy) {
            Ok(Opened { report, log, book }) if report.damages.is_empty() => {
                assert_eq!(log.last_index().0, last, "seed {seed}: {name} at {at}");
                assert!(book == *world.model.book_at(last), "seed {seed}: {name} at {at}");
            }
            Ok(_) => reported += 1,
            Err(error) => panic!("seed {seed}: {name} at {at}: {error}"),
        }
    }
    assert!(reported > 50, "{reported}");
}

/// An entry that a member has acknowledged counts for the majority, though the member does not know of the commit.
#[test]
fn rot_in_entries_that_are_not_known_to_be_committed_is_reported() {
    for seed in 0..60 {
        let (disk, mut world) = world(seed, 0);
        let mut random = Random(seed);
        world.new_term(&mut random).unwrap();
        // In one file, each with a sync of its own; some have no position.
        let mut ends = Vec::new();
        while ends.len() < 5 {
            let kind = random.below(2);
            let content = match kind {
                0 => EntryContent::Empty,
                _ => EntryContent::Membership(vec![3; 50].into()),
            };
            let (index, term) = (EntryIndex(1 + ends.len() as u64), Term(world.model.term));
            let entry = LogEntry { index, term, axis_us: 1, content };
            world.log.append(&[entry]).unwrap();
            ends.push(80 + if kind == 0 { 0 } else { 56 });
        }
        let logs = disk.files().into_iter().filter(|(name, _)| name.ends_with(".log"));
        let [(name, _)] = &logs.collect::<Vec<_>>()[..] else { panic!("{:?}", disk.files()) };
        // The last may be a torn end; all before it were durable when it was written.
        let len = ends[..4].iter().sum::<u64>();
        let at = 4096 + usize::try_from(random.below(len)).unwrap();
        disk.damage(name, |bytes| bytes[at] ^= 1);
        let opened = open(&disk).unwrap();
        // The six octets behind a membership have no meaning.
        let is_whole = opened.log.last_index().0 == 5;
        assert!(is_whole || !opened.report.damages.is_empty(), "seed {seed}: {at}");
    }
}

#[test]
fn rot_under_an_open_log_is_reported_by_reads() {
    let (disk, mut world) = world(8, 0);
    let mut random = Random(8);
    world.new_term(&mut random).unwrap();
    for _ in 0..30 {
        world.append(&mut random).unwrap();
    }
    let last = world.model.last();
    let mut damaged = 0;
    for (name, len) in disk.files().into_iter().filter(|(name, _)| name.ends_with(".log")) {
        for at in (4096..len).step_by(97) {
            disk.damage(&name, |bytes| bytes[at] ^= 2);
            for index in 1..=last {
                match world.log.entries(EntryIndex(index), EntryIndex(index + 1), 0) {
                    Ok(read) => assert!(read[0] == world.model.entries[&index].entry),
                    Err(EntryError::Damaged { file, .. }) => {
                        assert_eq!(file, name);
                        damaged += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            disk.damage(&name, |bytes| bytes[at] ^= 2);
        }
    }
    assert!(damaged > 100, "{damaged}");
}

#[test]
fn member_without_its_hard_state_does_not_vote() {
    let (disk, ..) = closed(3, 40);
    let said = |change: &dyn Fn(&mut Vec<u8>)| {
        let copy = disk.copy();
        copy.damage("raft", |bytes| change(bytes));
        open(&copy).err().map(|error| error.to_string())
    };
    let damaged = "raft: both copies of the hard state are damaged; the member does not vote";
    let both = said(&|bytes| {
        bytes[40] ^= 1;
        bytes[4096 + 40] ^= 1;
    });
    assert_eq!(both.as_deref(), Some(damaged));
    assert_eq!(said(&|bytes| bytes.clear()).as_deref(), Some(damaged));
    let copy = disk.copy();
    storage::Directory::remove(&copy, "raft").unwrap();
    let error = open(&copy).err().unwrap();
    assert!(matches!(error, OpenError::DoesNotVote { .. }));
    assert_eq!(error.to_string(), "raft: missing; the member does not vote");
    assert_eq!(check(&copy, LOG, &mut storage::IgnoreRecords).unwrap().damages, []);
}

#[test]
fn quarantined_member_does_not_vote_in_a_later_process() {
    let (disk, mut world) = world(5, 20);
    world.log.disqualify("the log lacks entries").unwrap();
    let expected =
        "raft: the member was quarantined (the log lacks entries); the member does not vote";
    for copy in [disk.copy(), disk.after_cut(&mut Random(6))] {
        let error = open(&copy).err().unwrap();
        assert!(matches!(error, OpenError::DoesNotVote { .. }));
        assert_eq!(error.to_string(), expected);
    }
}

/// The file of the hard state is an earlier one: an entry of a newer term betrays it.
#[test]
fn member_whose_entries_are_newer_than_its_hard_state_does_not_vote() {
    let (disk, mut world) = world(7, 0);
    let mut random = Random(7);
    let mut earlier = Vec::new();
    for _ in 0..2 {
        disk.damage("raft", |bytes| earlier.clone_from(bytes));
        world.new_term(&mut random).unwrap();
        while world.model.entries.values().next_back().map(|last| last.entry.term.0)
            != Some(world.model.term)
        {
            world.append(&mut random).unwrap();
        }
    }
    assert_eq!(open(&disk.copy()).unwrap().log.hard_state().term.0, world.model.term);
    disk.damage("raft", |bytes| *bytes = earlier);
    let error = open(&disk).err().unwrap();
    assert!(error.to_string().contains("which is newer"), "{error}");
}

/// A member that forgets its vote might vote twice.
#[test]
fn hard_state_is_known_whichever_slot_rots() {
    let (disk, mut world) = world(11, 0);
    let mut random = Random(11);
    for slots in [[0, 4096], [4096, 0]] {
        world.new_term(&mut random).unwrap();
        let state = world.log.hard_state().clone();
        let copy = disk.copy();
        // The second slot rots once the first one was written anew.
        for slot in slots {
            copy.damage("raft", |bytes| bytes[slot + random.below(512) as usize] ^= 4);
            assert_eq!(*open(&copy).unwrap().log.hard_state(), state);
        }
    }
}

#[test]
fn log_that_vanished_beside_its_hard_state_does_not_vote() {
    let (disk, ..) = closed(3, 40);
    let names: Vec<_> = disk.files().into_iter().map(|(name, _)| name).collect();
    for name in names.iter().filter(|name| *name != "raft") {
        storage::Directory::remove(&disk, name).unwrap();
    }
    let error = open(&disk).err().unwrap();
    let said = "raft: the log beside it is missing; the member does not vote";
    assert_eq!(error.to_string(), said);
}

#[test]
fn lost_entries_that_were_committed_are_reported() {
    let (disk, mut world) = world(7, 0);
    let mut random = Random(7);
    world.new_term(&mut random).unwrap();
    world.append(&mut random).unwrap();
    world.log.commit(EntryIndex(world.model.last()));
    world.model.commit = world.model.last();
    world.new_term(&mut random).unwrap();
    let logs = disk.files().into_iter().map(|(name, _)| name).filter(|name| name.ends_with(".log"));
    let [name] = &logs.collect::<Vec<_>>()[..] else { panic!("{:?}", disk.files()) };
    // All of the entries look as if they had never been written.
    disk.damage(name, |bytes| bytes[4096..].fill(0));
    let opened = open(&disk).unwrap();
    let [damage] = &opened.report.damages[..] else { panic!("{:?}", opened.report) };
    assert_eq!(damage.problem, "entries that were committed are missing");
}
