//! A log in memory that knows what a crash leaves.

use storage::{
    EntryContent, EntryError, EntryFault, EntryIndex, HardState, LogEntry, LogError, Term, Written,
    verify_entry,
};

use super::EntryLog;

/// A fault of a log: what it reports as durable is not. Simulations prove with it that their checks see.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Omission {
    /// None: a log as it should be.
    #[default]
    None,
    /// Appended entries become durable with the next call.
    SyncOfEntries,
    /// The hard state becomes durable with the next call.
    SyncOfHardState,
}

/// Content of the log.
#[derive(Clone, Debug, Default)]
struct Content {
    hard_state: HardState,
    /// The entry before the first, and its term.
    base: (u64, u64),
    entries: Vec<LogEntry>,
}

/// A log in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryLog {
    log_id: u64,
    now: Content,
    /// The part that a crash leaves.
    durable: Content,
    committed: u64,
    /// True once the member has no part in its group any more.
    is_disqualified: bool,
    omission: Omission,
}

impl MemoryLog {
    /// The empty log of a group that begins with these voters.
    #[must_use]
    pub fn new(log_id: u64, voters: Vec<u64>) -> Self {
        let hard_state = HardState { voters, ..HardState::default() };
        let now = Content { hard_state, ..Content::default() };
        Self { log_id, durable: now.clone(), now, ..Self::default() }
    }

    /// The log that begins behind entry `base` of `term`, as a shipment leaves it.
    #[must_use]
    pub fn installed(log_id: u64, hard_state: HardState, base: EntryIndex, term: Term) -> Self {
        let now = Content { hard_state, base: (base.0, term.0), entries: Vec::new() };
        Self { log_id, durable: now.clone(), now, committed: base.0, ..Self::default() }
    }

    /// Sets what the log forgets to do.
    pub fn set_omission(&mut self, omission: Omission) {
        self.omission = omission;
    }

    /// True if the member has no part in its group any more.
    #[must_use]
    pub fn is_disqualified(&self) -> bool {
        self.is_disqualified
    }

    /// The log after a crash.
    #[must_use]
    pub fn crashed(self) -> Self {
        let committed = self.durable.hard_state.commit.0.max(self.durable.base.0);
        Self { now: self.durable.clone(), committed, ..self }
    }

    /// Drops the entries up to `index`, which are committed, as a compaction does.
    ///
    /// # Panics
    /// If an entry is not committed in the hard state.
    pub fn compact(&mut self, index: EntryIndex) {
        assert!(index <= self.durable.hard_state.commit, "only what is committed for certain");
        for content in [&mut self.now, &mut self.durable] {
            let dropped = index.0.saturating_sub(content.base.0);
            let dropped = usize::try_from(dropped).expect("in memory").min(content.entries.len());
            if let Some(last) = content.entries.drain(..dropped).next_back() {
                content.base = (last.index.0, last.term.0);
            }
        }
    }

    /// All entries that are there.
    #[must_use]
    pub fn all(&self) -> &[LogEntry] {
        &self.now.entries
    }

    /// Entries that a crash leaves.
    #[must_use]
    pub fn durable(&self) -> &[LogEntry] {
        &self.durable.entries
    }

    fn last(&self) -> u64 {
        self.now.base.0 + self.now.entries.len() as u64
    }

    /// Place of an entry among those that are there.
    fn place(&self, index: u64) -> Result<usize, EntryError> {
        let first = EntryIndex(self.now.base.0 + 1);
        let place = index.checked_sub(first.0).ok_or(EntryError::Compacted { first })?;
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        let last = EntryIndex(self.last());
        (place < self.now.entries.len()).then_some(place).ok_or(EntryError::Unavailable { last })
    }

    fn make_durable(&mut self, entries: bool, hard_state: bool) {
        if entries {
            self.durable.entries = self.now.entries.clone();
            self.durable.base = self.now.base;
        }
        if hard_state {
            self.durable.hard_state = self.now.hard_state.clone();
        }
    }
}

/// Octets of an entry's content.
fn content_bytes(entry: &LogEntry) -> usize {
    match &entry.content {
        EntryContent::Records(records) => records.bytes.len(),
        EntryContent::Empty => 0,
        EntryContent::Membership(change) => change.len(),
    }
}

impl EntryLog for MemoryLog {
    fn hard_state(&self) -> &HardState {
        &self.now.hard_state
    }

    fn save_hard_state(&mut self, state: &HardState) -> Result<(), LogError> {
        assert!(state.term >= self.now.hard_state.term, "a term never falls");
        self.make_durable(false, true);
        self.now.hard_state = state.clone();
        self.make_durable(false, self.omission != Omission::SyncOfHardState);
        Ok(())
    }

    fn disqualify(&mut self, _: &str) -> Result<(), LogError> {
        self.is_disqualified = true;
        Ok(())
    }

    fn first_index(&self) -> EntryIndex {
        EntryIndex(self.now.base.0 + 1)
    }

    fn last_index(&self) -> EntryIndex {
        EntryIndex(self.last())
    }

    fn term_of(&self, index: EntryIndex) -> Result<Term, EntryError> {
        if index.0 == self.now.base.0 {
            return Ok(Term(self.now.base.1));
        }
        let place = self.place(index.0)?;
        Ok(self.now.entries.get(place).map_or(Term(0), |entry| entry.term))
    }

    fn entries(
        &self,
        from: EntryIndex,
        to: EntryIndex,
        bytes_max: usize,
    ) -> Result<Vec<LogEntry>, EntryError> {
        let start = self.place(from.0)?;
        let end = self.place(to.0.saturating_sub(1))?;
        let mut bytes = 0_usize;
        let range = self.now.entries.get(start..=end).unwrap_or_default();
        let within = range.iter().enumerate().take_while(|(at, entry)| {
            bytes += content_bytes(entry);
            *at == 0 || bytes <= bytes_max
        });
        Ok(within.map(|(_, entry)| entry.clone()).collect())
    }

    fn append(&mut self, entries: &[LogEntry]) -> Result<Written, LogError> {
        self.make_durable(true, false);
        for entry in entries {
            assert_eq!(entry.index.0, self.last() + 1, "entries follow each other");
            assert!(entry.term <= self.now.hard_state.term, "the term is saved before its entries");
            self.now.entries.push(entry.clone());
        }
        self.make_durable(self.omission != Omission::SyncOfEntries, false);
        Ok(Written::default())
    }

    fn truncate_after(&mut self, index: EntryIndex) -> Result<(), LogError> {
        assert!(index.0 >= self.committed, "a committed entry is never cut off");
        let kept = usize::try_from(index.0 - self.now.base.0).expect("in memory");
        self.now.entries.truncate(kept);
        self.make_durable(self.omission != Omission::SyncOfEntries, false);
        Ok(())
    }

    fn commit(&mut self, index: EntryIndex) {
        assert!(index.0 <= self.last(), "what is committed is there");
        self.committed = self.committed.max(index.0);
    }

    fn set_needed_from(&mut self, _: EntryIndex) {}

    fn verify(&self, entry: &LogEntry) -> Result<(), EntryFault> {
        verify_entry(self.log_id, entry)
    }
}
