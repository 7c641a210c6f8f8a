//! Calls that would break the log: each is refused at once.

use std::panic::{AssertUnwindSafe, catch_unwind};

use storage::{
    Durability, EntryContent, EntryFacts, EntryFault, EntryIndex, EntryRecords, HardState,
    LogEntry, LogError, Lsn, OpenError, ReplicatedOptions, SavedMember, Term, WriteBatch,
    WriteQueue,
};

use super::world::{LOG, World, open, open_with, options, plain};
use crate::book::Book;
use simdisk::{Disk, Random};

/// A log with entries, of which some are committed and applied.
fn world() -> (Disk, World, Random) {
    let disk = Disk::new();
    let mut world = World::new(&disk).unwrap();
    let mut random = Random(4);
    world.new_term(&mut random).unwrap();
    for _ in 0..8 {
        world.append(&mut random).unwrap();
    }
    world.model.commit = 5;
    world.log.commit(EntryIndex(5));
    (disk, world, random)
}

fn panics(work: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(work)).expect_err("a refusal");
    match payload.downcast::<String>() {
        Ok(said) => *said,
        Err(payload) => payload.downcast_ref::<&str>().unwrap().to_string(),
    }
}

#[test]
fn committed_entry_is_not_cut_off() {
    let (_, mut world, _) = world();
    let said = panics(|| drop(world.log.truncate_after(EntryIndex(4))));
    assert_eq!(said, "entry 5 is committed and is not cut off at 4");
    world.log.truncate_after(EntryIndex(5)).unwrap();
    assert_eq!(world.log.last_index(), EntryIndex(5));
}

#[test]
fn entry_that_is_not_committed_is_not_applied() {
    let (_, mut world, _) = world();
    let applier = world.log.applier();
    let entries = world.log.entries(EntryIndex(1), EntryIndex(7), usize::MAX).unwrap();
    for entry in &entries[..5] {
        applier.apply(entry, &mut |_, _| {}).unwrap();
    }
    let said = panics(|| applier.apply(&entries[5], &mut |_, _| {}).unwrap());
    assert_eq!(said, "entry 6 is applied, but 5 is the last committed");
    world.log.commit(EntryIndex(6));
    applier.apply(&entries[5], &mut |_, _| {}).unwrap();
}

#[test]
fn entry_is_applied_once_and_in_order() {
    let (_, world, _) = world();
    let applier = world.log.applier();
    let entries = world.log.entries(EntryIndex(1), EntryIndex(6), usize::MAX).unwrap();
    let out_of_order = |at: usize| panics(|| applier.apply(&entries[at], &mut |_, _| {}).unwrap());
    assert!(out_of_order(1).contains("entries are applied one behind the other"));
    applier.apply(&entries[0], &mut |_, _| {}).unwrap();
    assert!(out_of_order(0).contains("entries are applied one behind the other"));
}

#[test]
fn commit_is_within_the_log_and_never_falls() {
    let (_, mut world, _) = world();
    let last = world.log.last_index().0;
    let said = panics(|| world.log.commit(EntryIndex(last + 1)));
    assert_eq!(said, format!("entry {} is committed, but {last} is the last", last + 1));
    world.log.commit(EntryIndex(2));
    assert_eq!(world.log.committed(), EntryIndex(5));
}

#[test]
fn term_is_saved_before_its_entries() {
    let (_, mut world, mut random) = world();
    world.model.term += 1;
    let made = world.model.proposal(&mut random, 1);
    let said = panics(|| drop(world.log.append(&plain(&made))));
    assert_eq!(said, format!("term {} is saved before its entries are appended", world.model.term));
}

#[test]
fn term_and_vote_do_not_change_back() {
    let (_, mut world, _) = world();
    let state = HardState { vote: 7, ..world.log.hard_state().clone() };
    let term = state.term.0;
    let old = HardState { term: Term(term - 1), ..state.clone() };
    let said = panics(|| drop(world.log.save_hard_state(&old)));
    assert_eq!(said, format!("the term falls from {term} to {}", term - 1));
    let next = HardState { term: Term(term + 1), ..state };
    world.log.save_hard_state(&next).unwrap();
    let other = HardState { vote: 8, ..next.clone() };
    let said = panics(|| drop(world.log.save_hard_state(&other)));
    assert_eq!(said, format!("member 7 has the vote in term {}, not 8", term + 1));
    world.log.save_hard_state(&next).unwrap();
}

#[test]
fn saved_commit_is_in_the_log_and_never_falls() {
    let (disk, mut world, _) = world();
    let last = world.log.last_index();
    let saved = |world: &mut World, commit| {
        let state = HardState { commit: EntryIndex(commit), ..world.log.hard_state().clone() };
        world.log.save_hard_state(&state).unwrap();
        world.log.hard_state().commit.0
    };
    assert_eq!(saved(&mut world, 5), 5);
    assert_eq!(saved(&mut world, 3), 5);
    // The entries behind the last are perhaps received, but not written yet.
    assert_eq!(saved(&mut world, last.0 + 7), last.0);
    let opened = open(&disk).unwrap();
    assert_eq!(opened.report.damages, []);
    assert_eq!(opened.log.hard_state().commit, last);
}

#[test]
fn entry_with_a_gap_is_not_appended() {
    let (_, mut world, mut random) = world();
    let made = loop {
        let made = world.model.proposal(&mut random, 2);
        if made.len() == 2 {
            break made;
        }
    };
    let said = panics(|| drop(world.log.append(&plain(&made[1..]))));
    assert!(said.contains("entries follow each other without a gap"), "{said}");
}

/// A leader of another log may send any positions: they are refused, and the log goes on.
#[test]
fn entry_whose_position_is_taken_is_refused() {
    let (disk, mut world, mut random) = world();
    let last = world.log.last_position();
    let content = |entry: &LogEntry| match &entry.content {
        EntryContent::Records(records) => Some(records.clone()),
        EntryContent::Empty | EntryContent::Membership(_) => None,
    };
    let made = loop {
        let made = world.model.proposal(&mut random, 1);
        if made.first().is_some_and(|made| content(&made.entry).is_some()) {
            break plain(&made);
        }
    };
    let entry = &made[0];
    let taken = EntryRecords { first: last, ..content(entry).unwrap() };
    let taken = LogEntry { content: EntryContent::Records(taken), ..*entry };
    let error = world.log.append(&[taken]).unwrap_err();
    let fault = EntryFault::Order { index: entry.index, lsn: last };
    assert!(matches!(error, LogError::Entry(of) if of == fault));
    world.check_all();
    world.log.append(&made).unwrap();
    assert_eq!(open(&disk).unwrap().log.last_index(), entry.index);
}

#[test]
fn log_that_failed_refuses_everything() {
    for step in 0..4 {
        let (disk, mut world, mut random) = world();
        disk.cut_power_at(disk.operations());
        let work = |world: &mut World, random: &mut Random| match step {
            0 => world.append(random),
            1 => world.log.truncate_after(EntryIndex(5)),
            2 => world.new_term(random),
            _ => world.log.seal().map(drop),
        };
        assert!(matches!(work(&mut world, &mut random), Err(LogError::Io { .. })), "step {step}");
        // The disk answers again, but what is on it is unknown.
        disk.cut_power_at(u64::MAX);
        let made = plain(&world.model.proposal(&mut random, 3));
        assert!(matches!(world.log.append(&made), Err(LogError::Failed)), "step {step}");
        let cut = world.log.truncate_after(EntryIndex(5));
        assert!(matches!(cut, Err(LogError::Failed)), "step {step}");
        let state = world.log.hard_state().clone();
        let saved = world.log.save_hard_state(&state);
        assert!(matches!(saved, Err(LogError::Failed)), "step {step}");
        assert!(matches!(world.log.close(), Err(LogError::Failed)), "step {step}");
    }
}

/// A file of entries without records begins at the same position as the next one, whose records stay known.
#[test]
fn file_without_records_is_removed_alone() {
    let disk = Disk::new();
    let mut world = World::new(&disk).unwrap();
    let mut random = Random(11);
    world.new_term(&mut random).unwrap();
    let empty = |index| {
        let (index, term) = (EntryIndex(index), world.model.term);
        LogEntry { index, term: Term(term), axis_us: 0, content: EntryContent::Empty }
    };
    let entries = [empty(1), empty(2)];
    world.log.append(&entries).unwrap();
    world.log.seal().unwrap();
    let mut queue = WriteQueue::default();
    let mut book = Book::default();
    let mut append = |world: &mut World, index, change: &dyn Fn(&mut Book, &mut WriteQueue)| {
        let mut batch = WriteBatch::default();
        change(&mut book, &mut queue);
        queue.take_batch(&mut batch);
        let sealed = batch.seal_as_entry(LOG, EntryIndex(index), Term(world.model.term), 0);
        let (entry, facts) = sealed.unwrap();
        world.log.append(&[entry]).unwrap();
        world.log.seal().unwrap();
        world.log.commit(EntryIndex(index));
        let applier = world.log.applier();
        while applier.applied().0 + 1 < index {
            let next = EntryIndex(applier.applied().0 + 1);
            applier.applied_by_leader(next, &EntryFacts::default());
        }
        applier.applied_by_leader(EntryIndex(index), &facts);
    };
    append(&mut world, 3, &|book, queue| book.publish(Lsn(1), &[0], b"body", queue));
    // A member needs the message, so that its file stays as it is.
    world.log.set_needed_from(EntryIndex(3));
    let removed = world.log.compaction().unwrap().run().unwrap();
    assert_eq!((removed.files, removed.bytes_after), (1, 0));
    append(&mut world, 4, &|book, queue| book.settle(Lsn(2), (Lsn(1), 0), queue));
    world.log.set_needed_from(EntryIndex(5));
    assert!(world.log.compaction().unwrap().run().unwrap().files > 0, "the message is gone");
    assert_eq!(open(&disk).unwrap().book, Book::default());
}

/// A compaction that ends while the log looks for the end of an entry changes the number of files.
#[test]
fn log_is_cut_off_while_it_is_compacted() {
    let (disk, mut world, mut random) = world();
    world.log.truncate_after(EntryIndex(5)).unwrap();
    world.model.cut_behind(5);
    for _ in 0..40 {
        world.append(&mut random).unwrap();
    }
    world.model.commit = world.model.last() - 6;
    world.log.commit(EntryIndex(world.model.commit));
    while world.log.applier().applied().0 < world.model.commit {
        world.apply(&mut random);
    }
    world.needed_from = world.model.commit;
    world.log.set_needed_from(EntryIndex(world.needed_from));
    let mut compaction = world.log.compaction();
    assert!(compaction.is_some());
    let files = disk.files().len();
    disk.on_open(Some(Box::new(move || {
        if let Some(compaction) = compaction.take() {
            assert!(compaction.run().unwrap().files > 1);
        }
    })));
    world.log.truncate_after(EntryIndex(world.model.commit + 2)).unwrap();
    disk.on_open(None);
    assert!(disk.files().len() < files);
    world.model.cut_behind(world.model.commit + 2);
    world.check_all();
    world.append(&mut random).unwrap();
    world.reopened(open(&disk).unwrap(), "cut off");
}

#[test]
fn member_that_stands_alone_has_everything_and_is_the_only_voter_of_another_cluster() {
    let (disk, world, _) = world();
    let last = world.model.last();
    assert!(last > 5, "some entries are not committed");
    let identity = options(Durability::Fsync);
    world.log.stand_alone(9).unwrap();
    let saved = storage::saved_member(&disk).unwrap().unwrap();
    assert_eq!((saved.cluster_id, saved.member_id), (9, identity.member_id));
    let HardState { term, vote, commit, voters, learners, .. } = saved.state;
    assert_eq!((term, vote, commit), (Term(world.model.term + 1), 0, EntryIndex(last)));
    assert_eq!((voters, learners), (vec![identity.member_id], vec![]));
    // The cluster that the member has left cannot open it any more.
    assert!(matches!(open(&disk), Err(OpenError::DoesNotVote { .. })));
    let opened = open_with(&disk, ReplicatedOptions { cluster_id: 9, ..identity }).unwrap();
    assert_eq!(opened.report.damages, []);
    assert_eq!(&opened.book, world.model.book_at(last));
    assert_eq!(opened.log.applier().applied(), EntryIndex(last));
}

#[test]
fn power_cut_leaves_a_member_in_one_cluster_or_the_other() {
    for (cut, fate) in (0..).flat_map(|cut| [(cut, 0), (cut, 1)]) {
        let (disk, world, _) = world();
        let identity = options(Durability::Fsync);
        disk.cut_power_at(disk.operations() + cut);
        let done = world.log.stand_alone(9);
        let disk = disk.after_cut(&mut Random(fate));
        let what = format!("cut at {cut} fate {fate}");
        let SavedMember { cluster_id, .. } = storage::saved_member(&disk).unwrap().unwrap();
        assert!(done.is_err() || cluster_id == 9, "{what}");
        let opened = open_with(&disk, ReplicatedOptions { cluster_id, ..identity }).unwrap();
        assert_eq!(opened.log.last_index().0, world.model.last(), "{what}");
        let applied = opened.log.applier().applied().0;
        assert!(cluster_id != 9 || applied == world.model.last(), "{what}: {applied}");
        if done.is_ok() {
            return;
        }
    }
}
