//! Tests of the metadata on one node, driven by hand.

use serde_json::json;
use storage::{EntryContent, EntryIndex, LogEntry, Lsn, Term, WriteBatch, Written};

use super::*;
use crate::vhost::HandOverTask;

const ENTRY_BYTES_MAX: usize = 100;

fn put(name: &str, value: i32) -> ItemChange {
    ItemChange { key: ItemKey::User(name.to_owned()), value: Some(json!(value)) }
}

fn written(position: u64) -> Written {
    Written { durable: Lsn(position), bytes: 0, records: 0 }
}

/// Takes the batches that wait, and returns their last positions.
fn batches(metadata: &mut LocalMetadata) -> Vec<u64> {
    let (mut taken, mut batch) = (Vec::new(), WriteBatch::default());
    loop {
        let has_more = metadata.take_batch(&mut batch);
        if !batch.is_empty() {
            taken.push(batch.last().0);
        }
        batch.clear();
        if !has_more {
            return taken;
        }
    }
}

/// Metadata that lead, and whose digest a majority has.
fn leading() -> LocalMetadata {
    let mut metadata = LocalMetadata::new(Items::default(), Lsn(0), ENTRY_BYTES_MAX);
    metadata.promote(Lsn(0));
    assert_eq!(batches(&mut metadata), [1]);
    metadata.batch_durable(written(1));
    metadata
}

fn count(metadata: &LocalMetadata) -> Option<usize> {
    metadata.committed().map(|items| items.values().len())
}

#[test]
fn change_is_made_and_shown_once_a_majority_has_it() {
    let mut metadata = leading();
    let mut change = metadata.ask(vec![put("anna", 1), put("bob", 1)]).unwrap();
    assert_eq!(metadata.advance(&mut change), ChangeProgress::Waits);
    assert!(metadata.wakes_writer() && !metadata.wakes_writer());
    assert_eq!((batches(&mut metadata), count(&metadata)), (vec![3], None));
    assert_eq!(metadata.advance(&mut change), ChangeProgress::Waits);
    metadata.batch_durable(written(3));
    assert_eq!(metadata.advance(&mut change), ChangeProgress::Made);
    assert_eq!(count(&metadata), Some(2));
    // Nothing is new.
    let mut change = metadata.ask(vec![put("bob", 1)]).unwrap();
    assert_eq!(metadata.advance(&mut change), ChangeProgress::Made);
    assert!(!metadata.wakes_writer() && metadata.last() == Lsn(3));
}

#[test]
fn last_change_of_an_item_counts_and_every_position_is_in_the_log() {
    let mut metadata = leading();
    let remove = |name: &str| ItemChange { key: ItemKey::User(name.to_owned()), value: None };
    let mut change = metadata.ask(vec![put("anna", 1), remove("anna")]).unwrap();
    assert_eq!(metadata.advance(&mut change), ChangeProgress::Made);
    assert_eq!((metadata.last(), count(&metadata)), (Lsn(1), Some(0)), "nothing is changed");
    let changes = vec![put("anna", 1), put("bob", 1), put("anna", 2)];
    let mut change = metadata.ask(changes).unwrap();
    assert_eq!(metadata.advance(&mut change), ChangeProgress::Waits);
    assert_eq!(batches(&mut metadata), [3]);
    metadata.batch_durable(written(3));
    let values = metadata.committed().expect("a majority has all").values();
    let value = |name: &str| values[&ItemKey::User(name.to_owned())].as_i64();
    assert_eq!((value("anna"), value("bob")), (Some(2), Some(1)));
}

#[test]
fn change_waits_for_the_records_before_it() {
    let mut metadata = LocalMetadata::new(Items::default(), Lsn(0), ENTRY_BYTES_MAX);
    metadata.promote(Lsn(0));
    let mut change = metadata.ask(vec![put("anna", 1)]).unwrap();
    assert_eq!(metadata.advance(&mut change), ChangeProgress::Waits);
    assert!(!change.is_proposed() && batches(&mut metadata) == [1], "the digest comes first");
    metadata.batch_durable(written(1));
    assert_eq!(metadata.advance(&mut change), ChangeProgress::Waits);
    assert!(change.is_proposed() && batches(&mut metadata) == [2]);
    // A digest would count what may still be taken back.
    metadata.log_digest();
    assert!(batches(&mut metadata).is_empty());
}

#[test]
fn change_is_refused_unless_the_node_leads_and_goes_on_to_lead() {
    let mut metadata = LocalMetadata::new(Items::default(), Lsn(0), ENTRY_BYTES_MAX);
    assert_eq!(metadata.ask(Vec::new()).err(), Some(ChangeRefused::Follows));
    metadata.promote(Lsn(0));
    let mut waits = metadata.ask(vec![put("anna", 1)]).unwrap();
    assert_eq!(metadata.advance(&mut waits), ChangeProgress::Waits);
    metadata.hand_over(HandOverTask::Halt);
    assert_eq!(metadata.ask(Vec::new()).err(), Some(ChangeRefused::LeadEnds));
    assert_eq!(batches(&mut metadata), [1]);
    metadata.batch_durable(written(1));
    let refused = ChangeProgress::Refused(ChangeRefused::LeadEnds);
    assert_eq!(metadata.advance(&mut waits), refused, "the other node may lead at any moment");
    assert!(batches(&mut metadata).is_empty());
    metadata.hand_over(HandOverTask::KeepLeading);
    assert!(!metadata.is_leading());
    metadata.hand_over(HandOverTask::Resume);
    assert!(metadata.is_leading() && metadata.ask(Vec::new()).is_ok());
}

#[test]
fn change_of_a_lost_lead_is_not_known_to_be_made() {
    let mut metadata = leading();
    let mut change = metadata.ask(vec![put("anna", 1)]).unwrap();
    assert_eq!(metadata.advance(&mut change), ChangeProgress::Waits);
    metadata.depose();
    assert_eq!((batches(&mut metadata), count(&metadata)), (vec![], None));
    assert_eq!(metadata.ask(Vec::new()).err(), Some(ChangeRefused::LeadEnds));
    metadata.reopen(Some(Items::default()), Lsn(1));
    assert_eq!(count(&metadata), Some(0), "the items are those of the log");
    metadata.promote(Lsn(1));
    assert_eq!(batches(&mut metadata), [2]);
    metadata.batch_durable(written(2));
    assert_eq!(metadata.advance(&mut change), ChangeProgress::Deposed, "of another lead");
    let mut change = metadata.ask(vec![put("anna", 1)]).unwrap();
    assert_eq!(metadata.advance(&mut change), ChangeProgress::Waits);
    // Nobody has deposed it.
    metadata.reopen(Some(Items::default()), Lsn(2));
    assert_eq!(metadata.advance(&mut change), ChangeProgress::Deposed);
}

#[test]
fn large_change_takes_several_entries() {
    let mut metadata = leading();
    let names: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    let changes = names.iter().map(|name| put(name, 1)).collect();
    let mut change = metadata.ask(changes).unwrap();
    assert_eq!(metadata.advance(&mut change), ChangeProgress::Waits);
    let taken = batches(&mut metadata);
    assert!(taken.len() > 1 && taken.last() == Some(&11), "{taken:?}");
    metadata.batch_durable(written(taken[0]));
    assert_eq!(metadata.advance(&mut change), ChangeProgress::Waits, "a part of it");
    assert_eq!(count(&metadata), None);
    metadata.batch_durable(written(11));
    assert_eq!(metadata.advance(&mut change), ChangeProgress::Made);
}

/// The thread that applies entries ends after the jobs that it has.
#[test]
fn entries_and_promotions_that_come_late_are_left_to_the_log() {
    let mut metadata = LocalMetadata::new(Items::default(), Lsn(4), ENTRY_BYTES_MAX);
    metadata.depose();
    let (index, term) = (EntryIndex(3), Term(1));
    let entry = LogEntry { index, term, axis_us: 0, content: EntryContent::Empty };
    let mut is_applied = false;
    let applied = metadata.apply_entry(&entry, |_| {
        is_applied = true;
        Ok(())
    });
    assert!(applied == Ok(()) && !is_applied);
    metadata.promote(Lsn(4));
    assert!(!metadata.is_leading() && batches(&mut metadata).is_empty());
}

/// Items that a damaged log lacks would be removed where they have taken effect.
#[test]
fn items_of_a_damaged_log_are_not_shown() {
    let mut metadata = LocalMetadata::new(Items::default(), Lsn(0), ENTRY_BYTES_MAX);
    metadata.reopen(None, Lsn(4));
    assert_eq!((count(&metadata), metadata.ask(Vec::new()).is_err()), (None, true));
    metadata.reopen(Some(Items::default()), Lsn(4));
    assert_eq!(count(&metadata), Some(0));
    let (index, term) = (EntryIndex(3), Term(1));
    let entry = LogEntry { index, term, axis_us: 0, content: EntryContent::Empty };
    let applied = metadata.apply_entry(&entry, |_| Err("it is damaged".to_owned()));
    assert_eq!((applied.is_err(), count(&metadata)), (true, None));
}
