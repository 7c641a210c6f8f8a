//! A member's log beside a naive model: all entries in a list, and the book after each of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use storage::{
    Durability, EntryContent, EntryError, EntryFacts, EntryIndex, Founding, HardState, LogEntry,
    LogError, LogOptions, LoneLog, Lsn, OpenError, OpenReport, Record, References, ReplicatedLog,
    ReplicatedOptions, Term, WriteBatch, WriteQueue,
};

use crate::book::Book;
use crate::history::{Shape, change};
use simdisk::{Disk, Random};

pub(super) const LOG: u64 = 77;

pub(super) const SHAPE: Shape =
    Shape { batches: 0, changes: 8, queues: 4, body_max: 500, batch_bytes_max: usize::MAX };

pub(super) fn options(durability: Durability) -> ReplicatedOptions {
    ReplicatedOptions {
        log: LogOptions {
            log_id: LOG,
            durability,
            segment_bytes_min: 8192,
            segment_bytes_max: 16384,
            ..LogOptions::default()
        },
        cluster_id: 5,
        member_id: 1 << 16 | 1,
        founding: Some(Founding {
            voters: vec![1 << 16 | 1, 2 << 16 | 1],
            learners: vec![],
            lone_log: LoneLog::Adopt,
        }),
        tail_bytes_max: 6000,
        retention_bytes: u64::MAX,
    }
}

/// A log that was opened, with the book of the records that it handed out.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) log: ReplicatedLog<Disk>,
    pub(super) report: OpenReport,
    pub(super) book: Book,
}

/// Opens the log on a disk. Panics if records do not ascend.
pub(super) fn open_with(disk: &Disk, options: ReplicatedOptions) -> Result<Opened, OpenError> {
    let mut book = Book::default();
    let mut last = Lsn(0);
    let mut each = |record: Record<'_>, references: &mut References<'_>| {
        assert!(record.lsn > last, "record {} is behind {last}", record.lsn);
        last = record.lsn;
        book.read(record, references);
    };
    let (log, report) = ReplicatedLog::open(disk.clone(), options, &mut each, &mut |_| {})?;
    Ok(Opened { log, report, book })
}

pub(super) fn open(disk: &Disk) -> Result<Opened, OpenError> {
    open_with(disk, options(Durability::Fsync))
}

/// An entry of the model: what is written, what the leader knows, and the book behind it.
#[derive(Clone, Debug)]
pub(super) struct ModelEntry {
    pub(super) entry: LogEntry,
    pub(super) facts: EntryFacts,
    pub(super) book: Book,
    /// Last position up to here.
    pub(super) last: Lsn,
}

/// The naive log.
#[derive(Clone, Default, Debug)]
pub(super) struct Model {
    pub(super) entries: BTreeMap<u64, Arc<ModelEntry>>,
    /// Book and last position before the first entry.
    pub(super) base: (u64, Book, Lsn),
    pub(super) commit: u64,
    pub(super) term: u64,
}

impl Model {
    pub(super) fn last(&self) -> u64 {
        self.entries.keys().next_back().copied().unwrap_or(self.base.0)
    }

    pub(super) fn book_at(&self, index: u64) -> &Book {
        if index == self.base.0 { &self.base.1 } else { &self.entries[&index].book }
    }

    pub(super) fn position_at(&self, index: u64) -> Lsn {
        if index == self.base.0 { self.base.2 } else { self.entries[&index].last }
    }

    pub(super) fn cut_behind(&mut self, index: u64) {
        self.entries.split_off(&(index + 1));
    }

    /// The next entries of a leader in this term, which are not in the model yet.
    pub(super) fn proposal(&self, random: &mut Random, count: u64) -> Vec<ModelEntry> {
        let mut made = Vec::new();
        let mut book = self.book_at(self.last()).clone();
        let mut last = self.position_at(self.last());
        for _ in 0..count {
            let index = EntryIndex(self.last() + 1 + made.len() as u64);
            let (term, axis_us) = (Term(self.term), random.below(1 << 40));
            let empty = |content| LogEntry { index, term, axis_us, content };
            let (entry, facts) = match random.below(12) {
                0 => (empty(EntryContent::Empty), EntryFacts::default()),
                1 => {
                    let len = usize::try_from(random.below(300)).unwrap();
                    let content = EntryContent::Membership(vec![index.0 as u8; len].into());
                    (empty(content), EntryFacts::default())
                }
                _ => {
                    let Some(sealed) = self.records(&mut book, &mut last, random, &empty) else {
                        continue;
                    };
                    sealed
                }
            };
            made.push(ModelEntry { entry, facts, book: book.clone(), last });
        }
        made
    }

    /// An entry of changes to `book`; `None` if all were elided.
    fn records(
        &self,
        book: &mut Book,
        last: &mut Lsn,
        random: &mut Random,
        empty: &dyn Fn(EntryContent) -> LogEntry,
    ) -> Option<(LogEntry, EntryFacts)> {
        let mut queue = WriteQueue::with_batch_bytes_max(usize::MAX);
        let mut changed = book.clone();
        // Some positions are never written.
        let mut lsn = Lsn(last.0 + random.below(3));
        for _ in 0..1 + random.below(SHAPE.changes) {
            lsn.0 += 1;
            change(&mut changed, lsn, &mut queue, random, SHAPE);
        }
        let mut batch = WriteBatch::default();
        assert!(!queue.take_batch(&mut batch), "one batch");
        let LogEntry { index, term, axis_us, .. } = empty(EntryContent::Empty);
        let sealed = batch.seal_as_entry(LOG, index, term, axis_us)?;
        *book = changed;
        *last = lsn;
        Some(sealed)
    }

    pub(super) fn add(&mut self, entries: &[ModelEntry]) {
        for entry in entries {
            self.entries.insert(entry.entry.index.0, Arc::new(entry.clone()));
        }
    }
}

pub(super) fn plain(entries: &[ModelEntry]) -> Vec<LogEntry> {
    entries.iter().map(|entry| entry.entry.clone()).collect()
}

/// A member: its log, the model, and a book that lives as committed entries are applied.
#[derive(Debug)]
pub(super) struct World {
    pub(super) log: ReplicatedLog<Disk>,
    pub(super) model: Model,
    pub(super) living: Book,
    /// Changes that a crash during the last step may have made: a cut, and entries behind it.
    pub(super) attempted: Vec<(u64, Vec<ModelEntry>)>,
    /// Term and vote that are saved, or may be.
    pub(super) votes: Vec<(u64, u64)>,
    /// Largest entry that was said to be needed from.
    pub(super) needed_from: u64,
    pub(super) compacted: usize,
    pub(super) cuts: usize,
    pub(super) steps: u64,
}

impl World {
    pub(super) fn new(disk: &Disk) -> Result<Self, OpenError> {
        let Opened { log, report, book } = open(disk)?;
        assert_eq!(report.damages, []);
        assert_eq!(book, Book::default());
        Ok(Self {
            log,
            model: Model::default(),
            living: book,
            attempted: vec![],
            votes: vec![(0, 0)],
            needed_from: 0,
            compacted: 0,
            cuts: 0,
            steps: 0,
        })
    }

    /// Saves a newer term, as a leader or a voter does.
    pub(super) fn new_term(&mut self, random: &mut Random) -> Result<(), LogError> {
        let state = HardState {
            term: Term(self.model.term + 1 + random.below(2)),
            vote: random.below(3),
            commit: EntryIndex(self.model.commit),
            voters: vec![1 << 16 | 1, 2 << 16 | 1],
            learners: vec![],
            clock: None,
        };
        self.votes.push((state.term.0, state.vote));
        self.log.save_hard_state(&state)?;
        self.votes.drain(..self.votes.len() - 1);
        self.model.term = state.term.0;
        Ok(())
    }

    pub(super) fn append(&mut self, random: &mut Random) -> Result<(), LogError> {
        let count = 1 + random.below(4);
        let made = self.model.proposal(random, count);
        for end in 1..=made.len() {
            self.attempted.push((self.model.last(), made[..end].to_vec()));
        }
        for entry in &made {
            assert_eq!(self.log.verify(&entry.entry), Ok(()));
        }
        let written = self.log.append(&plain(&made))?;
        self.model.add(&made);
        assert_eq!(written.durable, self.model.position_at(self.model.last()));
        self.attempted.clear();
        Ok(())
    }

    pub(super) fn truncate(&mut self, random: &mut Random) -> Result<(), LogError> {
        let left = self.model.last() - self.model.commit;
        let index = self.model.last() - random.below(left + 1);
        self.attempted.push((index, vec![]));
        self.log.truncate_after(EntryIndex(index))?;
        self.cuts += usize::from(index < self.model.last());
        self.model.cut_behind(index);
        self.attempted.clear();
        // What contradicted the suffix has a newer term.
        self.new_term(random)
    }

    pub(super) fn commit(&mut self, random: &mut Random) {
        self.model.commit += random.below(self.model.last() - self.model.commit + 1);
        self.log.commit(EntryIndex(self.model.commit));
    }

    /// Applies some committed entries, as a follower or as the leader.
    pub(super) fn apply(&mut self, random: &mut Random) {
        let applier = self.log.applier();
        let from = applier.applied().0;
        let to = from + random.below(self.model.commit - from + 1);
        for index in from + 1..=to {
            let ModelEntry { entry, facts, book, .. } = &*self.model.entries[&index];
            if random.below(2) == 0 {
                let living = &mut self.living;
                applier.apply(entry, &mut |record, refs| living.read(record, refs)).unwrap();
                assert!(living == book, "entry {index} gives another book");
            } else {
                applier.applied_by_leader(entry.index, facts);
                self.living = book.clone();
            }
        }
        assert_eq!(applier.applied(), EntryIndex(to));
        // Positions that the last entry covers beyond its records count as well or not.
        assert!(applier.applied_position() <= self.model.position_at(to));
    }

    pub(super) fn compact(&mut self, random: &mut Random) -> std::io::Result<()> {
        let applied = self.log.applier().applied().0;
        self.needed_from = self.needed_from.max(applied.saturating_sub(random.below(6)));
        self.log.set_needed_from(EntryIndex(self.needed_from));
        if let Some(compaction) = self.log.compaction() {
            // More is applied before the compaction looks at the records.
            self.commit(random);
            self.apply(random);
            self.compacted += compaction.run()?.files;
        }
        Ok(())
    }

    /// One step of a history. Fails when the disk does.
    pub(super) fn step(&mut self, random: &mut Random) -> Result<(), String> {
        self.steps += 1;
        let said = |error: LogError| error.to_string();
        match random.below(20) {
            0..=8 => self.append(random).map_err(said),
            9 => self.truncate(random).map_err(said),
            10..=12 => {
                self.commit(random);
                Ok(())
            }
            13..=15 => {
                self.apply(random);
                Ok(())
            }
            16 => self.compact(random).map_err(|error| error.to_string()),
            17 => self.new_term(random).map_err(said),
            18 => {
                if let Some(preparation) = self.log.prepare_next_segment() {
                    self.log.install_next_segment(preparation.run().ok());
                }
                Ok(())
            }
            _ if random.below(4) == 0 => self.log.seal().map_err(said).map(drop),
            _ => {
                let from = self.log.first_index().0 + random.below(1 + self.model.last());
                let to = from + random.below(20);
                self.check_entries(from, to, usize::try_from(random.below(8000)).unwrap());
                Ok(())
            }
        }
    }

    /// Panics unless the log gives these entries of the model.
    pub(super) fn check_entries(&self, from: u64, to: u64, bytes_max: usize) {
        let read = self.log.entries(EntryIndex(from), EntryIndex(to), bytes_max);
        let (first, last) = (self.log.first_index().0, self.model.last());
        match read {
            Ok(read) => {
                assert!(from >= to || !read.is_empty(), "{from} to {to}");
                for (index, entry) in (from..).zip(&read) {
                    assert!(*entry == self.model.entries[&index].entry, "entry {index}");
                }
                let bytes: usize = read.iter().map(|entry| entry.content.octets().len()).sum();
                assert!(bytes <= bytes_max || read.len() == 1, "{bytes} bytes");
            }
            Err(EntryError::Unavailable { last: said }) => {
                assert!(to > last + 1 && said.0 == last, "{from} to {to} of {last}");
            }
            Err(EntryError::Compacted { first: said }) => {
                assert!(from < first && said.0 == first, "{from} of {first}");
            }
            Err(error) if error.to_string().contains("no power") => {}
            Err(error) => panic!("entries {from} to {to}: {error}"),
        }
    }

    /// Panics unless the log has all entries of the model, from its first on.
    pub(super) fn check_all(&self) {
        let (first, last) = (self.log.first_index().0, self.model.last());
        assert_eq!(self.log.last_index().0, last);
        assert_eq!(self.log.last_position(), self.model.position_at(last));
        for index in first..=last {
            let term = self.log.term_of(EntryIndex(index)).unwrap();
            assert_eq!(term, self.model.entries[&index].entry.term, "entry {index}");
        }
        self.check_entries(first, last + 1, usize::MAX);
        if first > self.model.base.0 + 1 {
            let term = self.log.term_of(EntryIndex(first - 1)).unwrap();
            assert_eq!(term, self.model.entries[&(first - 1)].entry.term, "before the first");
        }
    }

    /// Takes over a log that was opened again. Panics unless it is what the last life may have left.
    pub(super) fn reopened(&mut self, opened: Opened, what: &str) {
        let Opened { log, report, book } = opened;
        assert!(report.damages.is_empty(), "{what}: {:?}", report.damages);
        let last = log.last_index().0;
        let first = log.first_index().0;
        let read = log.entries(EntryIndex(first), EntryIndex(last + 1), usize::MAX).unwrap();
        let mut possible = vec![self.model.clone()];
        for (cut, entries) in &self.attempted {
            let mut attempted = self.model.clone();
            attempted.cut_behind(*cut);
            attempted.add(entries);
            possible.push(attempted);
        }
        let is_same = |model: &&Model| {
            model.last() == last
                && (first..).zip(&read).all(|(index, entry)| *entry == model.entries[&index].entry)
        };
        let Some(model) = possible.iter().rev().find(is_same) else {
            let possible: Vec<u64> = possible.iter().map(Model::last).collect();
            panic!("{what}: last entry {last} is not one of {possible:?}, or an entry differs");
        };
        let mut model = model.clone();
        let applied = log.applier().applied().0;
        assert!(applied <= model.commit, "{what}: {applied} is read as committed");
        assert!(applied >= log.first_index().0 - 1, "{what}: {applied}");
        assert!(book == *model.book_at(applied), "{what}: another book at entry {applied}");
        assert_eq!(log.applier().applied_position(), model.position_at(applied), "{what}");
        assert_eq!(log.committed().0, applied, "{what}");
        let state = log.hard_state();
        let vote = (state.term.0, state.vote);
        assert!(self.votes.contains(&vote), "{what}: {vote:?}, not one of {:?}", self.votes);
        assert_eq!(state.commit.0, applied, "{what}");
        assert!(log.first_index().0 <= self.needed_from.max(1), "{what}: needed entries are gone");
        self.votes = vec![vote];
        model.term = vote.0.max(self.model.term);
        model.commit = self.model.commit;
        self.model = model;
        self.attempted.clear();
        self.living = book;
        self.log = log;
        if self.model.term > vote.0 {
            self.model.term = vote.0;
        }
        // The leader tells again what is committed.
        self.log.commit(EntryIndex(self.model.commit));
        self.check_all();
    }
}
