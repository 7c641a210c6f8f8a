//! The committed log as all must have it: each entry, the state behind it, and the place of every message.

use std::collections::{BTreeMap, BTreeSet};

use broker::time::Time;
use broker::{EntryId, Envelopes, QueueNumber, Record, Replay, Vhost, VhostOptions};
use replica::NoPages;
use storage::{EntryContent, Flags, LogEntry};

use crate::checks::hash::{add, hash};
use crate::checks::message_id::id_of;
use crate::checks::metadata_log::MetadataLog;
use crate::checks::waits::Waits;
use crate::clients::topology::DEAD_LETTERS;
use crate::cluster::content::group_content::GroupContent;
use crate::cluster::requests::redrive_job::RedriveJob;
use crate::plan::FAST_PPM;

/// Entries by which the axis of later ones is judged.
const AXES_MAX: usize = 40;

/// The committed log.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// The metadata, of a run whose group has them; the rest is of vhosts.
    metadata: Option<MetadataLog>,
    reference: Replay,
    envelopes: Envelopes,
    /// Hash of each entry, and of the state behind it.
    entries: Vec<(u64, u64)>,
    names: BTreeMap<QueueNumber, String>,
    /// The place of each message.
    places: BTreeMap<(QueueNumber, u64), u64>,
    /// Number of places of each message.
    counts: BTreeMap<u64, usize>,
    /// The first and the newest number of each message in each queue that it entered.
    entered: BTreeMap<(u64, QueueNumber), (u64, u64)>,
    /// Messages up to these numbers are marked as delivered.
    delivered: BTreeMap<QueueNumber, u64>,
    /// Messages that a purge has kept, because they were on their way to a client.
    kept: BTreeSet<u64>,
    touched: BTreeSet<u64>,
    /// Messages that wait for their delivery time.
    pub(crate) waits: Waits,
    /// Messages that have left for good without a death.
    left: Vec<u64>,
    faults: Vec<String>,
    /// True time of each proposal, by index and term.
    pub(crate) proposed_at: BTreeMap<(u64, u64), u64>,
    axes: Vec<(u64, u64)>,
    axes_root: u64,
    pub(crate) dead_letters: u64,
    /// Messages that redrives have moved since the last look, with their queues.
    redriven: Vec<(u64, String)>,
    /// Messages that redrives may still move, of those that began since none was running.
    redrives_left: u64,
    pub(crate) redriven_count: u64,
}

fn hash_of(entry: &LogEntry) -> u64 {
    let head = [entry.index.0, entry.term.0, entry.axis_us].into_iter().fold(7, add);
    hash(entry.content.octets(), head)
}

/// A number that depends on the durable state of a vhost.
pub(crate) fn state_of(vhost: &Vhost) -> u64 {
    let queues = vhost.queue_digests().iter().fold(11, |sum, queue| {
        let numbers = [queue.queue.0, queue.declared.0, queue.messages, queue.seq_sum];
        numbers.into_iter().fold(sum, add)
    });
    vhost.redrives().fold(queues, |sum, (id, job)| hash(job, add(sum, id.0)))
}

impl Ledger {
    pub(crate) fn new(content: GroupContent) -> Self {
        let options = VhostOptions { delivers_after_commit: true, ..VhostOptions::default() };
        let mut reference = Replay::new(Vhost::new("/", [1; 32], options), Time::MAX);
        reference.follow(broker::Lsn(0)).expect("nothing is missing in nothing");
        Self {
            metadata: (content == GroupContent::Metadata).then(MetadataLog::new),
            reference,
            envelopes: Envelopes::default(),
            entries: Vec::new(),
            names: BTreeMap::new(),
            places: BTreeMap::new(),
            counts: BTreeMap::new(),
            entered: BTreeMap::new(),
            delivered: BTreeMap::new(),
            kept: BTreeSet::new(),
            touched: BTreeSet::new(),
            waits: Waits::default(),
            left: Vec::new(),
            faults: Vec::new(),
            proposed_at: BTreeMap::new(),
            axes: Vec::new(),
            axes_root: 0,
            dead_letters: 0,
            redriven: Vec::new(),
            redrives_left: 0,
            redriven_count: 0,
        }
    }

    /// Number of committed entries.
    pub(crate) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Messages that stand somewhere.
    pub(crate) fn standing(&self) -> usize {
        self.places.len()
    }

    /// The queue in which each message stands, for the report of those that stay.
    pub(crate) fn whereabouts(&self) -> Vec<(u64, &str)> {
        let name = |queue| self.names.get(queue).map_or("", String::as_str);
        self.places.iter().take(10).map(|((queue, _), id)| (*id, name(queue))).collect()
    }

    pub(crate) fn has_entered(&self, id: u64) -> bool {
        self.entered.range((id, QueueNumber(0))..=(id, QueueNumber(u64::MAX))).next().is_some()
    }

    pub(crate) fn has_entered_queue(&self, id: u64, queue: &str) -> bool {
        let mut entered = self.entered.range((id, QueueNumber(0))..=(id, QueueNumber(u64::MAX)));
        entered.any(|((_, number), _)| self.names.get(number).is_some_and(|name| name == queue))
    }

    /// True if the last committed purge of the queue of a message has kept the message.
    pub(crate) fn was_kept(&self, id: u64) -> bool {
        self.kept.contains(&id)
    }

    /// True if the mark of delivery of a message is committed: of the message as it is now, or as it was before a redrive
    /// brought it back to the queue.
    pub(crate) fn is_marked(&self, id: u64, queue: &str, before_redrive: bool) -> bool {
        let mut entered = self.entered.range((id, QueueNumber(0))..=(id, QueueNumber(u64::MAX)));
        entered.any(|((_, number), (first, newest))| {
            let is_queue = self.names.get(number).is_some_and(|name| name == queue);
            let seq = if before_redrive { first } else { newest };
            is_queue && self.delivered.get(number).is_some_and(|up_to| up_to >= seq)
        })
    }

    /// A node tells that an entry is committed; `root` is that of the axis of its term.
    pub(crate) fn committed(&mut self, node: usize, entry: &LogEntry, root: u64) {
        let (index, hashed) = (entry.index.0, hash_of(entry));
        let known = usize::try_from(index - 1).ok().and_then(|at| self.entries.get(at));
        match known {
            Some((other, _)) if *other == hashed => return,
            Some(_) => {
                let term = entry.term;
                let text = format!("node {node} commits another entry {index}, of term {term}");
                return self.faults.push(text);
            }
            None => {}
        }
        if index != self.len() + 1 {
            let text = format!("node {node} commits entry {index} behind {}", self.len());
            return self.faults.push(text);
        }
        self.check_axis(entry, root);
        let applied = match &mut self.metadata {
            Some(metadata) => metadata.apply(entry),
            None => self.apply(entry).map(|()| state_of(self.reference.vhost())),
        };
        let state = applied.unwrap_or_else(|problem| {
            self.faults.push(format!("entry {index} does not fit: {problem}"));
            0
        });
        self.entries.push((hashed, state));
    }

    /// Changes of the metadata that were made, and that were refused.
    pub(crate) fn changes(&self) -> (u64, u64) {
        let metadata = self.metadata.as_ref();
        metadata.map_or((0, 0), |it| (it.made_count, it.refused_count))
    }

    /// The metadata of the run.
    pub(crate) fn metadata(&mut self) -> &mut MetadataLog {
        self.metadata.as_mut().expect("a group of metadata")
    }

    /// Compares the state of a replica behind the entry `index`.
    pub(crate) fn compare(&mut self, node: usize, index: u64, found: u64, when: &str) {
        let expected = match index {
            0 => return,
            _ => usize::try_from(index - 1).ok().and_then(|at| self.entries.get(at)),
        };
        match expected {
            Some((_, expected)) if *expected == found => {}
            Some(_) => self.faults.push(format!("node {node} differs at entry {index}, {when}")),
            None => self.faults.push(format!("node {node} is at entry {index}, {when}: nobody is")),
        }
    }

    fn apply(&mut self, entry: &LogEntry) -> Result<(), String> {
        self.reference.set_now(Time::from_micros(entry.axis_us));
        for record in entry.records() {
            let record = record.map_err(|fault| fault.to_string())?;
            let decoded = Record::decode(record.kind, record.payload, &mut self.envelopes);
            let decoded = decoded.map_err(|error| error.to_string())?;
            let is_spent = record.flags.has(Flags::SPENT);
            self.follow(&decoded.record, is_spent);
            self.waits.follow(&decoded.record, entry.index.0, Time::from_micros(entry.axis_us));
            let lsn = broker::Lsn(record.lsn.0);
            let applied = self.reference.apply(lsn, decoded, is_spent, &mut NoPages, &mut |_| ());
            applied.map_err(|divergence| format!("record {lsn}: {divergence}"))?;
        }
        match &entry.content {
            EntryContent::Records(records) => {
                let ended = self.reference.end_entry(broker::Lsn(records.last.0));
                ended.map_err(|divergence| divergence.to_string())?;
            }
            EntryContent::Empty => self.reference.begin_term(),
            EntryContent::Membership(_) => {}
        }
        for id in std::mem::take(&mut self.touched) {
            let count = self.counts.get(&id).copied().unwrap_or(0);
            if count == 0 {
                self.left.push(id);
            }
            if count > 1 {
                let index = entry.index;
                self.faults.push(format!("message {id} is in {count} places at entry {index}"));
            }
        }
        Ok(())
    }

    fn enter(&mut self, queue: QueueNumber, seq: u64, id: u64) {
        self.places.insert((queue, seq), id);
        self.note_entry(queue, seq, id);
        *self.counts.entry(id).or_default() += 1;
        self.touched.insert(id);
    }

    fn note_entry(&mut self, queue: QueueNumber, seq: u64, id: u64) {
        self.entered.entry((id, queue)).or_insert((seq, seq)).1 = seq;
    }

    fn leave(&mut self, queue: QueueNumber, seq: u64) -> Option<u64> {
        let id = self.places.remove(&(queue, seq))?;
        self.kept.remove(&id);
        if let Some(count) = self.counts.get_mut(&id) {
            *count -= 1;
        }
        Some(id)
    }

    /// All messages of a queue leave it for good, but those that are `kept`.
    fn empty(&mut self, queue: QueueNumber, kept: &[EntryId]) {
        let of_queue = self.places.range((queue, 0)..=(queue, u64::MAX));
        let all: Vec<(u64, u64)> = of_queue.map(|((_, seq), id)| (*seq, *id)).collect();
        for (seq, id) in all {
            if kept.iter().any(|kept| kept.seq == seq) {
                self.kept.insert(id);
            } else if let Some(id) = self.leave(queue, seq) {
                self.left.push(id);
            }
        }
    }

    /// Follows a record. With `is_spent`, the messages that it brought have left within the entry.
    fn follow(&mut self, record: &Record, is_spent: bool) {
        match record {
            Record::Publish { message, entries } | Record::Schedule { message, entries, .. } => {
                let Some(id) = id_of(message) else { return };
                entries.iter().for_each(|(queue, entry)| self.enter(*queue, entry.seq, id));
            }
            Record::DeadLetter { queue, entry, message, entries } => {
                self.dead_letters += 1;
                self.leave(*queue, entry.seq);
                let Some(id) = id_of(message) else { return };
                self.follow_redrive(*queue, id, entries);
                if entries.is_empty() {
                    self.left.push(id);
                }
                if is_spent {
                    self.touched.insert(id);
                    entries.iter().for_each(|(queue, entry)| {
                        self.note_entry(*queue, entry.seq, id);
                    });
                    return;
                }
                entries.iter().for_each(|(queue, entry)| self.enter(*queue, entry.seq, id));
            }
            Record::Ready { queue, entry, to } => {
                if let Some(id) = self.leave(*queue, entry.seq) {
                    self.enter(*queue, to.seq, id);
                }
            }
            Record::Settle { queue, entry } => {
                if let Some(id) = self.leave(*queue, entry.seq) {
                    self.left.push(id);
                }
            }
            Record::Purge { queue, kept } => self.empty(*queue, kept),
            Record::DeleteQueue { queue } => self.empty(*queue, &[]),
            Record::Delivered { queue, up_to } => {
                let newest = self.delivered.entry(*queue).or_default();
                *newest = (*up_to).max(*newest);
            }
            Record::SetRedrive { id, job } => {
                let is_new = self.reference.vhost().redrives().all(|(known, _)| known != *id);
                if is_new {
                    self.redrives_left += u64::from(RedriveJob::read(job).limit);
                }
            }
            Record::ClearRedrive { id }
                if self.reference.vhost().redrives().all(|(known, _)| known == *id) =>
            {
                self.redrives_left = 0;
            }
            Record::DeclareQueue(declared) => {
                self.names.insert(declared.queue, declared.name.to_string());
            }
            _ => {}
        }
    }

    /// Follows a redrive: messages leave the queue of dead letters by settlements and redrives, as none dies there.
    fn follow_redrive(&mut self, from: QueueNumber, id: u64, entries: &[(QueueNumber, EntryId)]) {
        if self.names.get(&from).is_none_or(|name| name != DEAD_LETTERS) {
            return;
        }
        self.redriven_count += 1;
        match self.redrives_left.checked_sub(1) {
            Some(left) => self.redrives_left = left,
            None => self.faults.push(format!("message {id} is redriven beyond the limit")),
        }
        let to = entries.iter().filter_map(|(queue, _)| self.names.get(queue));
        self.redriven.extend(to.map(|name| (id, name.clone())));
    }

    /// Messages that redrives have moved since the last call, with the queue that each is in.
    pub(crate) fn take_redriven(&mut self) -> Vec<(u64, String)> {
        std::mem::take(&mut self.redriven)
    }

    /// True if the committed log has a redrive that has not ended.
    pub(crate) fn has_redrive(&self) -> bool {
        self.reference.vhost().redrives().next().is_some()
    }

    /// Never early: between two proposals, the axis moves no further than the time. It never goes back.
    fn check_axis(&mut self, entry: &LogEntry, root: u64) {
        let (index, term, axis_us) = (entry.index.0, entry.term.0, entry.axis_us);
        if root != self.axes_root {
            self.axes_root = root;
            self.axes.clear();
        }
        let Some(at_us) = self.proposed_at.get(&(index, term)).copied() else { return };
        let early = self.axes.iter().find(|(at, axis)| {
            let passed = at_us.saturating_sub(*at);
            axis_us > axis + passed + passed * FAST_PPM / 1_000_000 + 20
        });
        if let Some((at, axis)) = early {
            let (moved, passed) = (axis_us - axis, at_us.saturating_sub(*at));
            let text = format!("the axis is early at entry {index}: {moved} us in {passed} us");
            self.faults.push(text);
        }
        if self.axes.iter().any(|(_, axis)| *axis > axis_us) {
            self.faults.push(format!("the axis goes back at entry {index}"));
        }
        self.axes.push((at_us, axis_us));
        if self.axes.len() > AXES_MAX {
            self.axes.remove(AXES_MAX / 2);
        }
    }

    /// The faults since the last call. `is_done` tells whether a message may have left for good.
    pub(crate) fn take_faults(&mut self, is_done: &dyn Fn(u64) -> bool) -> Vec<String> {
        let left = std::mem::take(&mut self.left);
        let lost = left.into_iter().filter(|id| !is_done(*id));
        self.faults.extend(lost.map(|id| format!("message {id} has left, and nobody took it")));
        self.faults.extend(self.metadata.iter_mut().flat_map(MetadataLog::take_faults));
        std::mem::take(&mut self.faults)
    }
}

/// Content of an entry in a word, for stories.
pub(crate) fn word(entry: &LogEntry) -> &'static str {
    match &entry.content {
        EntryContent::Records(_) => "records",
        EntryContent::Empty => "empty",
        EntryContent::Membership(_) => "membership",
    }
}
