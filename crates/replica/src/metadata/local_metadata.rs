//! The metadata on one node: everything behind their lock.
//!
//! The node that leads makes changes, one after the other: a change waits until a majority has all records before it, and is
//! made once a majority has its own. Until then its items may still be taken back, so that they are shown to nobody.

use std::collections::BTreeSet;

use storage::{
    EntryContent, FORMAT_VERSION_OLDEST, Flags, LogEntry, Lsn, NewRecord, WriteBatch, WriteQueue,
    Written,
};

use super::item::{ItemChange, MetadataRecord};
use super::items::Items;
use crate::vhost::HandOverTask;

/// The receiver of the records of an entry.
pub type RecordSink<'a> = &'a mut dyn FnMut(&storage::Record<'_>);

/// The part of a node in the group of the metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Follows,
    Leads,
    /// Another node is to lead: no changes are made meanwhile.
    HandsOver,
    /// The node led, or its items are damaged: the log is opened anew, or rebuilt.
    Deposed,
}

/// The reason why a change is not made, and never will be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeRefused {
    /// Another node makes the changes.
    Follows,
    /// No node makes changes now: this one hands the lead over, or has lost it.
    LeadEnds,
}

/// The state of a change that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeProgress {
    /// A majority does not have the records yet that the change waits for.
    Waits,
    /// A majority has the change, or it changes nothing.
    Made,
    /// The change is not made, and never will be.
    Refused(ChangeRefused),
    /// The node has lost the lead: the change may still be made.
    Deposed,
}

/// A change that was asked for.
#[derive(Debug)]
pub struct PendingChange {
    stage: Stage,
    /// The leads that the node had lost before.
    lost_leads: u64,
}

#[derive(Debug)]
enum Stage {
    /// The change waits for the records before it.
    Asked(Vec<ItemChange>),
    /// The records of the change end here.
    Proposed(Lsn),
}

impl PendingChange {
    /// True once the change has its records, if it changes something.
    #[must_use]
    pub fn is_proposed(&self) -> bool {
        matches!(self.stage, Stage::Proposed(_))
    }
}

/// The metadata on one node.
#[derive(Debug)]
pub struct LocalMetadata {
    role: Role,
    /// The items with everything that was applied or proposed.
    items: Items,
    queue: WriteQueue,
    /// True if the writer of the log knows of records that wait.
    writer_knows: bool,
    /// The last position that was given.
    last: Lsn,
    /// The last position that a majority has.
    durable: Lsn,
    /// Number of leads that this node has lost.
    lost_leads: u64,
    /// Bytes of a change from which on the rest goes into another entry.
    entry_bytes_max: usize,
}

impl LocalMetadata {
    /// The metadata of a node that follows, whose log has `items` up to `last`. A change of more than `entry_bytes_max` takes
    /// several entries.
    #[must_use]
    pub fn new(items: Items, last: Lsn, entry_bytes_max: usize) -> Self {
        Self {
            role: Role::Follows,
            items,
            queue: WriteQueue::default(),
            writer_knows: false,
            last,
            durable: last,
            lost_leads: 0,
            entry_bytes_max,
        }
    }

    /// Goes on with what the log of this node has, which was opened anew. Without items the log is damaged: nothing is shown
    /// until the replica is rebuilt, because items that are missing would look like removed ones.
    pub fn reopen(&mut self, items: Option<Items>, last: Lsn) {
        if matches!(self.role, Role::Leads | Role::HandsOver) {
            self.depose();
        }
        let (lost_leads, is_damaged) = (self.lost_leads, items.is_none());
        let items = items.unwrap_or_default();
        *self = Self { lost_leads, ..Self::new(items, last, self.entry_bytes_max) };
        if is_damaged {
            self.role = Role::Deposed;
        }
    }

    /// True if this node makes the changes.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        self.role == Role::Leads
    }

    /// The committed items; none while changes wait for a majority.
    #[must_use]
    pub fn committed(&self) -> Option<&Items> {
        (self.role != Role::Deposed && self.is_settled()).then_some(&self.items)
    }

    /// Position of the last record that was applied or proposed.
    #[must_use]
    pub fn last(&self) -> Lsn {
        self.last
    }

    fn is_settled(&self) -> bool {
        self.durable >= self.last
    }

    // ---- changes ----

    /// Asks for changes, which are made together; [`Self::advance`] tells what becomes of them.
    ///
    /// # Errors
    /// [`ChangeRefused`]: nothing is changed.
    pub fn ask(&self, changes: Vec<ItemChange>) -> Result<PendingChange, ChangeRefused> {
        self.may_change()?;
        Ok(PendingChange { stage: Stage::Asked(changes), lost_leads: self.lost_leads })
    }

    fn may_change(&self) -> Result<(), ChangeRefused> {
        match self.role {
            Role::Leads => Ok(()),
            Role::Follows => Err(ChangeRefused::Follows),
            Role::HandsOver | Role::Deposed => Err(ChangeRefused::LeadEnds),
        }
    }

    /// Does what can be done now for a change. Nothing is written for changes that change nothing.
    pub fn advance(&mut self, pending: &mut PendingChange) -> ChangeProgress {
        if pending.lost_leads != self.lost_leads {
            return ChangeProgress::Deposed;
        }
        // The items of a change that was given up may still be taken back.
        if let Stage::Asked(changes) = &mut pending.stage
            && self.is_settled()
        {
            // The lead may be handed over since the change was asked for.
            if let Err(refused) = self.may_change() {
                return ChangeProgress::Refused(refused);
            }
            self.propose(std::mem::take(changes));
            pending.stage = Stage::Proposed(self.last);
        }
        match pending.stage {
            Stage::Proposed(last) if self.durable >= last => ChangeProgress::Made,
            Stage::Proposed(_) | Stage::Asked(_) => ChangeProgress::Waits,
        }
    }

    /// Appends the records of those changes that change something, in one entry as far as it has room.
    fn propose(&mut self, changes: Vec<ItemChange>) {
        let mut entry_begins_at = None;
        for change in newest(changes) {
            if !self.items.is_news(&change) {
                continue;
            }
            let bytes = self.queue.bytes();
            let is_joined =
                entry_begins_at.is_some_and(|begin| bytes - begin < self.entry_bytes_max);
            if !is_joined {
                self.queue.end_batch();
                entry_begins_at = Some(bytes);
            }
            self.push_change(change, is_joined);
        }
    }

    /// Appends a change of an item, and makes it.
    fn push_change(&mut self, change: ItemChange, is_joined: bool) {
        let target = self.items.lsn(&change.key);
        let record = MetadataRecord::Change(change.clone());
        let lsn = self.push(&record, target, is_joined);
        self.items.change(lsn, change);
    }

    /// Appends a digest of all items, in an entry of its own.
    fn push_digest(&mut self) {
        let digest = MetadataRecord::Digest(self.items.digest());
        self.push(&digest, Lsn(0), false);
        self.queue.end_batch();
    }

    /// Appends the record of a change, in one entry with the record before if `is_joined`.
    fn push(&mut self, record: &MetadataRecord, target: Lsn, is_joined: bool) -> Lsn {
        let lsn = Lsn(self.last.0 + 1);
        let releases = target != Lsn(0);
        let new = NewRecord {
            lsn,
            target,
            kind: record.kind(),
            flags: if releases { Flags::RELEASES } else { Flags::NONE },
            references: record.references(),
            format_version: FORMAT_VERSION_OLDEST,
            is_joined,
        };
        self.queue.push(new, |out| record.encode(out));
        self.last = lsn;
        lsn
    }

    // ---- the log ----

    /// True if the writer of the log must be notified now that records wait; it counts as notified from then on.
    pub fn wakes_writer(&mut self) -> bool {
        !self.queue.is_empty() && !std::mem::replace(&mut self.writer_knows, true)
    }

    /// Takes the first batch of records that waits into `batch`, which must be empty. True if more wait.
    pub fn take_batch(&mut self, batch: &mut WriteBatch) -> bool {
        let has_more = self.queue.take_batch(batch);
        self.writer_knows = has_more;
        has_more
    }

    /// Takes the news that a majority has the last batch that was taken.
    pub fn batch_durable(&mut self, written: Written) {
        self.durable = self.durable.max(written.durable);
    }

    // ---- the group ----

    /// Applies a committed entry of another leader; `apply` passes its records on. Does nothing once the node is deposed: the
    /// entry is in the log that is opened anew.
    ///
    /// # Errors
    /// The reason why the items differ from those of the leader; the replica must be rebuilt, and shows nothing until then.
    ///
    /// # Panics
    /// If this node leads.
    pub fn apply_entry(
        &mut self,
        entry: &LogEntry,
        apply: impl FnOnce(RecordSink<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        match self.role {
            Role::Follows => {}
            Role::Deposed => return Ok(()),
            Role::Leads | Role::HandsOver => panic!("a leader gets entries of another leader"),
        }
        let (items, mut problem) = (&mut self.items, None);
        let applied = apply(&mut |record| {
            if problem.is_none() {
                let failed = items.apply(record).err();
                problem = failed.map(|why| format!("record {}: {why}", record.lsn));
            }
        });
        if let EntryContent::Records(records) = &entry.content {
            (self.last, self.durable) = (records.last, records.last);
        }
        let result = problem.map_or(applied, Err);
        if result.is_err() {
            self.role = Role::Deposed;
        }
        result
    }

    /// Makes this node the one that makes the changes: it has applied everything up to `last`. The lead begins with a digest,
    /// by which the others see whether they have the same items. Does nothing once the node is deposed.
    ///
    /// # Panics
    /// If this node leads.
    pub fn promote(&mut self, last: Lsn) {
        match self.role {
            Role::Follows => {}
            Role::Deposed => return,
            Role::Leads | Role::HandsOver => panic!("metadata are promoted that lead already"),
        }
        self.role = Role::Leads;
        (self.last, self.durable) = (last, last);
        self.push_digest();
    }

    /// Logs a digest of all items, unless changes wait for a majority, or this node does not lead.
    pub fn log_digest(&mut self) {
        if self.role == Role::Leads && self.is_settled() {
            self.push_digest();
        }
    }

    /// Does the part of the metadata in a planned change of the leader.
    pub fn hand_over(&mut self, task: HandOverTask) {
        match (task, self.role) {
            (HandOverTask::Halt, Role::Leads) => self.role = Role::HandsOver,
            (HandOverTask::Resume, Role::HandsOver) => self.role = Role::Leads,
            (HandOverTask::Halt | HandOverTask::KeepLeading | HandOverTask::Resume, _) => {}
        }
    }

    /// Ends the lead: changes that wait are not known to be made, and no record leaves any more.
    pub fn depose(&mut self) {
        self.role = Role::Deposed;
        self.queue.clear();
        self.lost_leads += 1;
    }
}

/// The changes that count: of several changes of an item, the last one. The records of the others would be dropped from their
/// batch, perhaps with the last one: then this node would have given a position that is in no log.
fn newest(changes: Vec<ItemChange>) -> Vec<ItemChange> {
    let mut keys = BTreeSet::new();
    let from_the_end = changes.into_iter().rev();
    let mut newest: Vec<ItemChange> =
        from_the_end.filter(|change| keys.insert(change.key.clone())).collect();
    newest.reverse();
    newest
}
