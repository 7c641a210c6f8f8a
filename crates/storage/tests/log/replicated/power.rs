//! The replicated log on a disk whose power is cut: what was synced is there, nothing above a cut comes back, and
//! nothing above the commit is read as if it were committed.

use storage::{Durability, EntryIndex};

use super::world::{World, open, open_with, options};
use simdisk::{Disk, Random};

/// Runs steps until the disk fails or `steps` are done.
fn run(world: &mut World, random: &mut Random, steps: u64) {
    for _ in 0..steps {
        if world.step(random).is_err() {
            return;
        }
    }
}

#[test]
fn small_history_survives_a_power_cut_at_every_operation() {
    for seed in 0..6 {
        let whole = Disk::new();
        let mut world = World::new(&whole).unwrap();
        run(&mut world, &mut Random(seed), 45);
        for cut_at in 0..whole.operations() {
            for fate in 0..2 {
                let disk = Disk::new();
                disk.cut_power_at(cut_at);
                let what = format!("seed {seed} cut at {cut_at} fate {fate}");
                let world = World::new(&disk).map(|mut world| {
                    run(&mut world, &mut Random(seed), 45);
                    world
                });
                let disk = disk.after_cut(&mut Random(fate));
                let opened = open(&disk).unwrap_or_else(|error| panic!("{what}: {error}"));
                match world {
                    Ok(mut world) => world.reopened(opened, &what),
                    Err(_) => assert_eq!(opened.log.last_index().0, 0, "{what}"),
                }
            }
        }
    }
}

#[test]
fn long_history_survives_repeated_power_cuts() {
    let (mut compacted, mut cuts, mut steps) = (0, 0, 0);
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut disk = Disk::new();
        let mut world = World::new(&disk).unwrap();
        for life in 0..12 {
            let what = format!("seed {seed} life {life}");
            disk.cut_power_at(disk.operations() + random.below(500));
            run(&mut world, &mut random, 400);
            loop {
                disk = disk.after_cut(&mut random);
                // The power may go while the log is still being opened.
                if random.below(3) == 0 {
                    disk.cut_power_at(random.below(12));
                }
                match open(&disk) {
                    Ok(opened) => {
                        disk.cut_power_at(u64::MAX);
                        world.reopened(opened, &what);
                        break;
                    }
                    Err(error) => {
                        assert!(error.to_string().contains("no power"), "{what}: {error}")
                    }
                }
            }
        }
        compacted += world.compacted;
        cuts += world.cuts;
        steps += world.steps;
    }
    assert!(compacted > 250, "only {compacted} files were compacted");
    assert!(cuts > 250, "only {cuts} suffixes were cut off");
    assert!(steps > 10_000, "only {steps} steps");
}

#[test]
fn durability_os_loses_only_the_end_in_a_power_cut() {
    let mut lost = 0;
    for seed in 0..100 {
        let mut random = Random(seed);
        let disk = Disk::new();
        let mut world = World::new(&disk).unwrap();
        let os = || options(Durability::Os);
        world.reopened(open_with(&disk, os()).unwrap(), "os");
        run(&mut world, &mut random, 80);
        let opened = open_with(&disk.after_cut(&mut random), os()).unwrap();
        assert_eq!(opened.report.damages, [], "seed {seed}");
        let (first, last) = (opened.log.first_index().0, opened.log.last_index().0);
        lost += world.model.last().saturating_sub(last);
        let read = opened.log.entries(EntryIndex(first), EntryIndex(last + 1), usize::MAX).unwrap();
        for entry in &read {
            assert!(*entry == world.model.entries[&entry.index.0].entry, "seed {seed}");
        }
        let applied = opened.log.applier().applied().0;
        assert!(applied <= world.model.commit, "seed {seed}");
        assert!(opened.book == *world.model.book_at(applied), "seed {seed}");
    }
    assert!(lost > 100, "{lost}");
}

/// A crash need not be told again what was committed when a file was begun.
#[test]
fn file_that_is_begun_brings_the_commit_along() {
    let disk = Disk::new();
    let mut world = World::new(&disk).unwrap();
    let mut random = Random(3);
    world.new_term(&mut random).unwrap();
    world.append(&mut random).unwrap();
    world.append(&mut random).unwrap();
    let commit = EntryIndex(world.model.last());
    world.model.commit = commit.0;
    world.log.commit(commit);
    assert_eq!(open(&disk.copy()).unwrap().log.committed(), EntryIndex(0));
    world.log.seal().unwrap();
    world.append(&mut random).unwrap();
    let opened = open(&disk.after_cut(&mut random)).unwrap();
    assert_eq!(opened.log.committed(), commit);
    world.reopened(opened, "sealed");
}

/// The first entries behind a cut are torn: they had not been durable, though entries with their indexes had.
#[test]
fn torn_entries_behind_a_cut_are_no_damage() {
    let mut torn = 0;
    for seed in 0..60 {
        let mut random = Random(seed);
        let disk = Disk::new();
        let mut world = World::new(&disk).unwrap();
        world.new_term(&mut random).unwrap();
        for _ in 0..6 {
            world.append(&mut random).unwrap();
        }
        world.log.truncate_after(EntryIndex(2)).unwrap();
        world.model.cut_behind(2);
        // The write happens, its sync does not.
        disk.cut_power_at(disk.operations() + 1);
        assert!(world.append(&mut random).is_err());
        let opened = open(&disk.after_cut(&mut random)).unwrap();
        torn += u64::from(opened.report.torn_bytes > 0);
        world.reopened(opened, &format!("seed {seed}"));
    }
    assert!(torn > 10, "{torn}");
}

#[test]
fn closed_log_knows_all_that_was_committed() {
    for seed in 0..30 {
        let mut random = Random(seed);
        let disk = Disk::new();
        let mut world = World::new(&disk).unwrap();
        for life in 0..5 {
            run(&mut world, &mut random, 60);
            world.check_all();
            let World { log, model, .. } = world;
            log.close().unwrap();
            let opened = open(&disk.after_cut(&mut random)).unwrap();
            assert!(!opened.report.was_open);
            assert_eq!(opened.log.applier().applied().0, model.commit, "seed {seed}");
            let opened = open(&disk).unwrap();
            world = World { ..reborn(opened, model, life) };
        }
    }
}

/// A world that goes on with a log that was closed.
fn reborn(opened: super::world::Opened, model: super::world::Model, life: u64) -> World {
    let fresh = Disk::new();
    let mut world = World::new(&fresh).unwrap();
    world.votes = vec![(opened.log.hard_state().term.0, opened.log.hard_state().vote)];
    world.needed_from = u64::MAX;
    world.model = model;
    world.reopened(opened, &format!("life {life}"));
    world.needed_from = world.log.first_index().0;
    world
}
