//! The replicated log on a disk that is full: what does not fit is written when there is room.

use storage::EntryIndex;

use super::world::{World, open, plain};
use simdisk::{Disk, Random};

fn world(seed: u64) -> (Disk, World, Random) {
    let disk = Disk::new();
    let mut world = World::new(&disk).unwrap();
    let mut random = Random(seed);
    world.new_term(&mut random).unwrap();
    (disk, world, random)
}

#[test]
fn entries_without_room_are_written_when_there_is_room() {
    let mut refused = 0;
    for seed in 0..40 {
        let (disk, mut world, mut random) = world(seed);
        for _ in 0..40 {
            disk.limit_room(usize::try_from(random.below(12_000)).unwrap());
            let made = world.model.proposal(&mut random, 6);
            while let Err(error) = world.log.append(&plain(&made)) {
                assert!(error.is_full(), "seed {seed}: {error}");
                refused += 1;
                world.check_all();
                let crashed = open(&disk.copy()).unwrap();
                assert_eq!(crashed.log.last_index(), world.log.last_index(), "seed {seed}");
                disk.limit_room(usize::try_from(random.below(40_000)).unwrap());
            }
            world.model.add(&made);
            world.commit(&mut random);
            world.apply(&mut random);
        }
        world.check_all();
        disk.limit_room(100_000);
        let opened = open(&disk).unwrap();
        world.reopened(opened, &format!("seed {seed}"));
    }
    assert!(refused > 50, "{refused}");
}

#[test]
fn log_without_room_is_cut_off_when_there_is_room() {
    let (disk, mut world, mut random) = world(5);
    for _ in 0..20 {
        world.append(&mut random).unwrap();
    }
    let last = world.log.last_index();
    for room in [100, 8192 + 50] {
        disk.limit_room(room);
        let error = world.log.truncate_after(EntryIndex(10)).unwrap_err();
        assert!(error.is_full(), "{error}");
        assert_eq!(world.log.last_index(), last);
        world.check_all();
    }
    disk.limit_room(20_000);
    world.log.truncate_after(EntryIndex(10)).unwrap();
    world.model.cut_behind(10);
    world.check_all();
    world.append(&mut random).unwrap();
    disk.limit_room(100_000);
    world.reopened(open(&disk).unwrap(), "cut off");
}

#[test]
fn hard_state_needs_no_room() {
    let (disk, mut world, mut random) = world(6);
    world.append(&mut random).unwrap();
    disk.limit_room(0);
    for _ in 0..4 {
        world.new_term(&mut random).unwrap();
    }
    disk.limit_room(100_000);
    world.reopened(open(&disk).unwrap(), "full");
}
