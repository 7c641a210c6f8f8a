//! Shipments: the sealed files of a log become the log of another member, and backups end at what is applied.

use std::io;

use storage::{
    Directory, DirectoryFile, Durability, EntryIndex, HardState, Installation, OpenError,
    ReplicatedOptions, Shipment, SnapshotCopy, Term,
};

use super::world::{LOG, Model, Opened, World, open, open_with, options};
use simdisk::{Disk, Random};

const OTHER: u64 = 2 << 16 | 1;

fn receiver() -> ReplicatedOptions {
    ReplicatedOptions { member_id: OTHER, founding: None, ..options(Durability::Fsync) }
}

/// A log whose end is sealed and applied.
fn world(seed: u64, steps: u64) -> (Disk, World, Random) {
    let disk = Disk::new();
    let mut world = World::new(&disk).unwrap();
    let mut random = Random(seed);
    for _ in 0..steps {
        world.step(&mut random).unwrap();
    }
    (disk, world, random)
}

/// Commits and applies everything.
fn settle(world: &mut World) {
    world.model.commit = world.model.last();
    world.log.commit(EntryIndex(world.model.commit));
    let applier = world.log.applier();
    for index in applier.applied().0 + 1..=world.model.commit {
        let entry = &world.model.entries[&index];
        applier.applied_by_leader(EntryIndex(index), &entry.facts);
        world.living = entry.book.clone();
    }
}

/// Copies octets until all are there, or `pieces` have been copied.
fn copy(
    shipment: &Shipment<Disk>,
    installation: &mut Installation<Disk>,
    piece: usize,
    pieces: usize,
) -> io::Result<()> {
    let mut bytes = vec![0; piece];
    for _ in 0..pieces {
        let Some((file, offset)) = installation.next() else { return Ok(()) };
        let count = shipment.read(file, offset, &mut bytes)?;
        assert!(count > 0, "there are octets where the plan says so");
        installation.write(&bytes[..count])?;
    }
    Ok(())
}

fn state() -> HardState {
    HardState {
        term: Term(0),
        vote: 0,
        commit: EntryIndex(0),
        voters: vec![1],
        learners: vec![OTHER],
        clock: None,
    }
}

#[test]
fn shipment_is_the_log_of_another_member() {
    let (mut gone, mut rewritten) = (0, 0);
    for seed in 0..30 {
        let (_, mut world, mut random) = world(seed, 150);
        let sealed = world.log.seal().unwrap();
        settle(&mut world);
        for _ in 0..random.below(4) {
            world.log.set_needed_from(EntryIndex(sealed.0 + 1));
            if let Some(compaction) = world.log.compaction() {
                rewritten += compaction.run().unwrap().files;
            }
        }
        let shipment = world.log.sealed_up_to(sealed).unwrap();
        let plan = shipment.plan().clone();
        assert_eq!(plan.index, sealed);
        assert_eq!(plan.term, world.log.term_of(sealed).unwrap());
        // The sender goes on, and its files are rewritten meanwhile.
        let book = world.living.clone();
        let then = world.model.clone();
        for _ in 0..30 {
            world.step(&mut random).unwrap();
        }
        settle(&mut world);
        world.log.set_needed_from(EntryIndex(world.model.last() + 1));
        while let Some(compaction) = world.log.compaction() {
            gone += compaction.run().unwrap().files;
        }
        let mut disk = Disk::new();
        let mut lives = 0;
        // The receiver loses its power on the way, and goes on.
        let disk = loop {
            lives += 1;
            disk.cut_power_at(random.below(40 * lives));
            let done = || -> Result<Disk, OpenError> {
                let mut installation = Installation::begin(disk.clone(), LOG, &plan)?;
                let failed =
                    |error| OpenError::Io { doing: "copy".to_owned(), error, is_write: true };
                copy(&shipment, &mut installation, 3000, usize::MAX).map_err(failed)?;
                installation.finish(5, OTHER, &state())
            };
            let result = done();
            disk = disk.after_cut(&mut random);
            match result {
                Ok(_) => break disk,
                Err(_) if disk.list().unwrap().iter().any(|name| name == "manifest") => break disk,
                Err(_) => {}
            }
        };
        let opened = open_with(&disk, receiver()).unwrap();
        assert_eq!(opened.report.damages, []);
        assert_eq!(opened.log.applier().applied(), sealed);
        assert_eq!(opened.log.last_index(), sealed);
        assert!(opened.book == book, "seed {seed}: another book at entry {sealed}");
        assert_eq!(opened.log.last_position(), then.position_at(sealed.0));
        goes_on(&disk, opened, then, world.model.term, &mut random);
    }
    assert!(gone > 30 && rewritten > 30, "{gone} files replaced meanwhile, {rewritten} before");
}

/// The receiver takes entries behind the shipment, and survives crashes.
fn goes_on(disk: &Disk, opened: Opened, then: Model, term: u64, random: &mut Random) {
    let mut world = World::new(&Disk::new()).unwrap();
    world.votes = vec![(opened.log.hard_state().term.0, 0)];
    world.needed_from = u64::MAX;
    world.model = then;
    world.model.commit = world.model.last();
    world.reopened(opened, "installed");
    world.model.term = world.model.term.max(term);
    world.new_term(random).unwrap();
    for _ in 0..40 {
        world.step(random).unwrap();
    }
    let disk = disk.after_cut(random);
    world.reopened(open_with(&disk, receiver()).unwrap(), "installed and crashed");
}

#[test]
fn shipment_reaches_what_compactions_considered() {
    let (_, mut world, _) = world(2, 200);
    let sealed = world.log.seal().unwrap();
    let more = world.model.proposal(&mut Random(1), 3);
    world.log.append(&super::world::plain(&more)).unwrap();
    world.model.add(&more);
    // Not all that is sealed is applied.
    assert!(world.log.applier().applied() < sealed);
    assert!(world.log.sealed_up_to(sealed).is_none());
    settle(&mut world);
    assert!(world.log.sealed_up_to(sealed).is_some());
    assert!(world.log.sealed_up_to(EntryIndex(sealed.0 + 1)).is_none());
    world.log.set_needed_from(EntryIndex(sealed.0 + 1));
    assert!(world.log.compaction().unwrap().run().unwrap().files > 0);
    // The rewritten files lack what entries behind the sealed ones have ended.
    assert!(world.log.sealed_up_to(sealed).is_none());
    let sealed = world.log.seal().unwrap();
    assert!(world.log.sealed_up_to(sealed).is_some());
}

/// A leader whose newest entries are not committed ships what is.
#[test]
fn shipment_ends_with_the_last_applied_entry() {
    let mut seen_none = 0;
    for seed in 0..30 {
        let (_, mut world, mut random) = world(seed, 100);
        settle(&mut world);
        let applied = world.log.applier().applied();
        let book = world.living.clone();
        let then = world.model.clone();
        for _ in 0..1 + random.below(5) {
            let more = world.model.proposal(&mut random, 3);
            world.log.append(&super::world::plain(&more)).unwrap();
            world.model.add(&more);
        }
        let in_active = world.log.sealed_up_to_applied().unwrap();
        if random.percent(50) {
            // Compactions consider all that is applied.
            world.log.set_needed_from(EntryIndex(u64::MAX));
            while let Some(compaction) = world.log.compaction() {
                compaction.run().unwrap();
            }
        }
        let last = world.log.seal().unwrap();
        assert!(applied < last && world.log.sealed_up_to(last).is_none());
        seen_none += usize::from(in_active.is_none());
        let shipment = world.log.sealed_up_to_applied().unwrap().unwrap();
        assert_eq!(shipment.plan().index, applied);
        let disk = Disk::new();
        let mut installation = Installation::begin(disk.clone(), LOG, shipment.plan()).unwrap();
        copy(&shipment, &mut installation, 3000, usize::MAX).unwrap();
        installation.finish(5, OTHER, &state()).unwrap();
        let opened = open_with(&disk, receiver()).unwrap();
        assert_eq!(opened.report.damages, []);
        assert_eq!((opened.log.applier().applied(), opened.log.last_index()), (applied, applied));
        assert!(opened.book == book, "seed {seed}: another book at entry {applied}");
        goes_on(&disk, opened, then, world.model.term, &mut random);
    }
    // Otherwise the entry was the last of its file.
    assert!(seen_none > 5, "{seen_none}");
}

/// Otherwise a member that gets files more slowly than entries are written never has all of them.
#[test]
fn entries_behind_a_shipment_are_kept_as_long_as_it_is_on_its_way() {
    let (disk, mut random) = (Disk::new(), Random(7));
    let mut world = World::new(&disk).unwrap();
    let keeps_nothing = ReplicatedOptions { retention_bytes: 0, ..options(Durability::Fsync) };
    world.log = open_with(&disk, keeps_nothing).unwrap().log;
    for _ in 0..60 {
        world.step(&mut random).unwrap();
    }
    let sealed = world.log.seal().unwrap();
    settle(&mut world);
    let shipment = world.log.sealed_up_to(sealed).unwrap();
    let bytes: u64 = shipment.plan().files.iter().map(|(_, bytes)| bytes).sum();
    let compact = |world: &mut World| {
        world.log.set_needed_from(EntryIndex(1));
        while let Some(compaction) = world.log.compaction() {
            compaction.run().unwrap();
        }
        world.log.first_index()
    };
    for _ in 0..8 {
        world.step(&mut random).unwrap();
    }
    world.log.seal().unwrap();
    settle(&mut world);
    assert!(bytes > 0 && world.log.last_index() > sealed);
    let first = compact(&mut world);
    assert!(first.0 <= sealed.0 + 1, "{first} behind {sealed}, {bytes} bytes");
    drop(shipment);
    let first = compact(&mut world);
    assert!(first.0 > sealed.0 + 1, "{first} behind {sealed}");
}

#[test]
fn damaged_shipment_is_not_installed() {
    let (_, mut world, mut random) = world(4, 150);
    let sealed = world.log.seal().unwrap();
    settle(&mut world);
    let shipment = world.log.sealed_up_to(sealed).unwrap();
    let plan = shipment.plan();
    for _ in 0..60 {
        let disk = Disk::new();
        let mut installation = Installation::begin(disk.clone(), LOG, plan).unwrap();
        let error = installation.write(&vec![0; 1 << 20]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        copy(&shipment, &mut installation, 1 << 20, usize::MAX).unwrap();
        let files: Vec<_> =
            disk.files().into_iter().filter(|(name, _)| name.ends_with(".log")).collect();
        let (name, len) = &files[usize::try_from(random.below(files.len() as u64)).unwrap()];
        // The rest of the header's block is not read.
        let at = 4096 + usize::try_from(random.below(*len as u64 - 4096)).unwrap();
        let gap = {
            let mut byte = 0;
            disk.damage(name, |bytes| {
                byte = bytes[at];
                bytes[at] ^= 0x40;
            });
            byte == 0
        };
        match installation.finish(5, OTHER, &state()) {
            // A gap behind a batch has no meaning.
            Ok(disk) => {
                assert!(gap, "{name} at {at}");
                assert!(open_with(&disk, receiver()).unwrap().book == world.living);
            }
            Err(error) => {
                assert!(error.to_string().contains("has arrived damaged"), "{error}");
                assert!(disk.list().unwrap().iter().all(|name| name != "manifest"));
                // The file is received again.
                let mut installation = Installation::begin(disk, LOG, plan).unwrap();
                copy(&shipment, &mut installation, 5000, usize::MAX).unwrap();
                let disk = installation.finish(5, OTHER, &state()).unwrap();
                assert!(open_with(&disk, receiver()).unwrap().book == world.living);
            }
        }
    }
}

#[test]
fn files_of_two_senders_do_not_mix() {
    let (_, mut world, _) = world(4, 150);
    let sealed = world.log.seal().unwrap();
    settle(&mut world);
    let shipment = world.log.sealed_up_to(sealed).unwrap();
    let plan = shipment.plan().clone();
    let disk = Disk::new();
    let mut installation = Installation::begin(disk.clone(), LOG, &plan).unwrap();
    copy(&shipment, &mut installation, 1000, 7).unwrap();
    let at = installation.next();
    assert!(at.is_some_and(|(_, offset)| offset > 0));
    drop(installation);
    let again = Installation::begin(disk.clone(), LOG, &plan).unwrap();
    assert_eq!(again.next(), at);
    drop(again);
    let other = storage::ShipmentPlan { sender: 9, ..plan };
    let anew = Installation::begin(disk, LOG, &other).unwrap();
    assert_eq!(anew.next(), Some((other.files[0].0, 0)));
}

#[test]
fn impossible_plan_is_refused() {
    let (_, mut world, _) = world(4, 150);
    let sealed = world.log.seal().unwrap();
    settle(&mut world);
    let plan = world.log.sealed_up_to(sealed).unwrap().plan().clone();
    let changes: [fn(&mut storage::ShipmentPlan); 5] = [
        |plan| plan.index.0 += 1,
        |plan| plan.term.0 += 1,
        |plan| plan.files[0].1 += 1,
        |plan| plan.files.truncate(1),
        |plan| plan.manifest[60] ^= 1,
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut changed = plan.clone();
        change(&mut changed);
        let disk = Disk::new();
        assert!(Installation::begin(disk.clone(), LOG, &changed).is_err(), "change {at}");
        assert_eq!(disk.files(), []);
    }
    assert!(Installation::begin(Disk::new(), LOG + 1, &plan).is_err());
}

/// Copies files in place of links.
struct Copy<'a>(&'a Disk, &'a Disk);

impl SnapshotCopy for Copy<'_> {
    fn link(&mut self, name: &str, bytes: u64) -> io::Result<()> {
        let mut content = vec![0; usize::try_from(bytes).unwrap()];
        let count = self.0.open(name)?.read_at(&mut content, 0)?;
        assert_eq!(count, content.len(), "{name} has all bytes that the manifest lists");
        let file = self.1.create(name)?;
        file.write_at(&content, 0)?;
        file.sync()
    }

    fn copied(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn backup_ends_with_the_last_applied_entry() {
    let mut shorter = 0;
    for seed in 0..60 {
        let (disk, mut world, mut random) = world(seed, 100);
        let applied = world.log.applier().applied();
        let snapshot = world.log.snapshot().unwrap();
        shorter += usize::from(applied < world.log.last_index());
        assert_eq!(snapshot.position(), world.model.position_at(applied.0));
        let book = world.living.clone();
        for _ in 0..30 {
            world.step(&mut random).unwrap();
        }
        let backup = Disk::new();
        snapshot.write_to(&backup, &mut Copy(&disk, &backup)).unwrap();
        let opened = open(&backup.after_cut(&mut random)).unwrap();
        assert_eq!(opened.report.damages, [], "seed {seed}");
        assert_eq!(opened.log.last_index(), applied, "seed {seed}");
        assert!(opened.book == book, "seed {seed}");
    }
    assert!(shorter > 30, "{shorter}");
}
