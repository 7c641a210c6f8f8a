//! The replicated log: opened and read up to what is committed, then written entry by entry.

use super::applier::Applier;
use super::entry::{EntryContent, EntryFault, EntryIndex, LogEntry, Term, verify_entry};
use super::entry_map::EntryMark;
use super::entry_reader::EntryReader;
use super::entry_state::EntryReading;
use super::entry_writer::{EntryChain, GatheredWrite, entry_len};
use super::hard_state::{HardState, HardStateFile, Identity, Slot, commit_with};
use super::log_end::end_of;
use super::opening::read_or_found;
use super::options::{EntryError, ReplicatedOptions};
use super::quarantine;
use super::shipment::Shipment;
use super::tail::{Tail, entry_bytes};
use crate::compaction::{Compaction, compaction};
use crate::directory::{Directory, DirectoryFile};
use crate::format::Lsn;
use crate::log::{
    Durability, LogError, Preparation, Prepared, Segments, Written, io_failed, lock, open_segments,
};
use crate::manifest::FileEntry;
use crate::recovery::{OpenError, OpenReport, ReadProgress, RecordSink};
use crate::snapshot::LogSnapshot;

/// A replicated log in a directory.
#[derive(Debug)]
pub struct ReplicatedLog<D: Directory> {
    segments: Segments<D>,
    hard_state_file: HardStateFile<D>,
    hard_state: HardState,
    tail: Tail,
    /// Entries up to this one are durable.
    synced: EntryIndex,
    has_failed: bool,
}

impl<D: Directory> ReplicatedLog<D> {
    /// Opens the log in `directory`, and passes the records of every entry that is known to be committed to `each`,
    /// in order. Later entries stay in the log and are not passed. Calls `progress` after each file.
    ///
    /// Any damage in the report means that the member must be rebuilt: it neither votes nor leads.
    ///
    /// # Errors
    /// [`OpenError`]: the directory cannot be read or written, holds another log, or was written by a newer
    /// version. [`OpenError::DoesNotVote`]: the hard state is lost.
    pub fn open(
        directory: D,
        options: ReplicatedOptions,
        each: &mut dyn RecordSink,
        progress: &mut dyn FnMut(ReadProgress),
    ) -> Result<(Self, OpenReport), OpenError> {
        let ReplicatedOptions { log, tail_bytes_max, retention_bytes, .. } = options;
        let (manifest, file) = read_or_found(&directory, options)?;
        let mut hard_state = file.newest().state.clone();
        let commit = commit_with(hard_state.commit, &manifest);
        let reading = Some(EntryReading::new(commit));
        let (segments, report) = open_segments(directory, log, manifest, reading, each, progress)?;
        let mut shared = lock(&segments.shared);
        let entries = shared.entries_mut();
        entries.retention_bytes = retention_bytes;
        let (last, term) = entries.map.last_with_term();
        hard_state.commit = hard_state.commit.max(entries.applied);
        drop(shared);
        if term > hard_state.term {
            // A term is saved before its first entry is written: the newer copy of the hard state is lost.
            let problem = format!("entry {last} has term {term}, which is newer");
            return Err(OpenError::does_not_vote(problem));
        }
        let tail = Tail::new(tail_bytes_max);
        let log = Self {
            segments,
            hard_state_file: file,
            hard_state,
            tail,
            synced: last,
            has_failed: false,
        };
        Ok((log, report))
    }

    /// The hard state as it was saved. Its commit is at least the last entry that was passed on at the opening.
    #[must_use]
    pub fn hard_state(&self) -> &HardState {
        &self.hard_state
    }

    /// Saves the hard state, durably. An entry may be appended only once its term is saved.
    ///
    /// # Errors
    /// [`LogError`]; the log cannot be used any more.
    ///
    /// # Panics
    /// If the term falls, or there are more members than a slot has room for.
    pub fn save_hard_state(&mut self, state: &HardState) -> Result<(), LogError> {
        let HardState { term, vote, .. } = self.hard_state;
        assert!(state.term >= term, "the term falls from {term} to {}", state.term);
        assert!(
            state.term > term || vote == 0 || state.vote == vote,
            "member {vote} has the vote in term {term}, not {}",
            state.vote
        );
        self.guarded(|log| {
            // The log has every entry that the stored commit speaks of, unless it was damaged.
            let commit = state.commit.min(log.durable_index()).max(log.hard_state.commit);
            let state = HardState { commit, ..state.clone() };
            let saved = log.hard_state_file.save(state.clone());
            saved.map_err(io_failed("write the hard state"))?;
            log.hard_state = state;
            Ok(())
        })
    }

    /// Notes, durably, that the member has no part in its group any more, and why: the directory cannot be opened again, with
    /// [`OpenError::DoesNotVote`], so that the member votes in no later process either.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn disqualify(&mut self, why: &str) -> Result<(), LogError> {
        self.guarded(|log| {
            let marked = quarantine::mark(&*log.segments.directory, why);
            marked.map_err(io_failed("write the mark of a quarantine"))
        })
    }

    /// Makes the member the only one of its group, in a cluster with another id, durably. All entries of the log count
    /// as committed, those included that no majority ever had: the next opening passes them on. Nothing else can be done
    /// with this log any more.
    ///
    /// # Errors
    /// [`LogError`]: nothing is changed, or all of it.
    pub fn stand_alone(mut self, cluster_id: u64) -> Result<(), LogError> {
        self.guarded(|log| {
            let newest = log.hard_state_file.newest();
            let identity = Identity { cluster_id, ..newest.identity };
            let state = HardState {
                // No leader of the other members has had or will have this term in a group with this identity.
                term: Term(newest.state.term.0 + 1),
                vote: 0,
                commit: log.last_index(),
                voters: vec![identity.member_id],
                learners: Vec::new(),
                clock: newest.state.clock,
            };
            let saved = log.hard_state_file.save_as(identity, state);
            saved.map_err(io_failed("write the hard state"))
        })
    }

    /// First entry that can be read. One more than the last entry if there is none.
    #[must_use]
    pub fn first_index(&self) -> EntryIndex {
        let (before, _) = lock(&self.segments.shared).entries().map.before();
        EntryIndex(before.0 + 1)
    }

    /// Last entry; 0 if there never was one.
    #[must_use]
    pub fn last_index(&self) -> EntryIndex {
        lock(&self.segments.shared).entries().map.last()
    }

    /// Position of the last record of the last entry.
    #[must_use]
    pub fn last_position(&self) -> Lsn {
        self.segments.active.last
    }

    /// Term of an entry, or of the one before the first.
    ///
    /// # Errors
    /// [`EntryError::Compacted`] or [`EntryError::Unavailable`].
    pub fn term_of(&self, index: EntryIndex) -> Result<Term, EntryError> {
        let shared = lock(&self.segments.shared);
        let map = &shared.entries().map;
        map.term_of(index).ok_or_else(|| match index > map.last() {
            true => EntryError::Unavailable { last: map.last() },
            false => EntryError::Compacted { first: EntryIndex(map.before().0.0 + 1) },
        })
    }

    /// The entries from `from` on and before `to`, at least one and then as many as have `bytes_max` bytes. Newer ones come from
    /// memory, older ones from the disk.
    ///
    /// # Errors
    /// [`EntryError`].
    pub fn entries(
        &self,
        from: EntryIndex,
        to: EntryIndex,
        bytes_max: usize,
    ) -> Result<Vec<LogEntry>, EntryError> {
        let mut entries = Vec::new();
        let mut bytes = 0;
        let mut reader = EntryReader::new(&*self.segments.directory);
        for index in (from.0..to.0).map(EntryIndex) {
            let mark = self.mark_of(index)?;
            let entry = match self.tail.get(index) {
                Some(entry) => entry.clone(),
                None => match reader.read(index, mark) {
                    Ok(entry) => entry,
                    // A compaction may have removed the file meanwhile.
                    Err(error) => return Err(self.mark_of(index).err().unwrap_or(error)),
                },
            };
            bytes += entry_bytes(&entry);
            if bytes > bytes_max && !entries.is_empty() {
                break;
            }
            entries.push(entry);
        }
        Ok(entries)
    }

    /// Appends entries in one write and one sync. When this returns, they are durable.
    ///
    /// # Errors
    /// [`LogError`]. [`LogError::Full`]: nothing was written, and the same entries can be written when there is
    /// room. [`LogError::Entry`]: nothing was written, because an entry does not follow the last position.
    /// Otherwise the log cannot be used any more.
    ///
    /// # Panics
    /// If the first index does not follow the last entry, or a term is above that of the hard state.
    pub fn append(&mut self, entries: &[LogEntry]) -> Result<Written, LogError> {
        self.guarded(|log| log.try_append(entries))
    }

    /// Cuts off the entries behind `index`, durably.
    ///
    /// # Errors
    /// As [`ReplicatedLog::append`].
    ///
    /// # Panics
    /// If an entry behind `index` is committed.
    pub fn truncate_after(&mut self, index: EntryIndex) -> Result<(), LogError> {
        self.guarded(|log| log.try_truncate(index))
    }

    /// Notes that the entries up to `index` are committed: they may be applied, and are never cut off. A lower index
    /// than before has no effect.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn commit(&mut self, index: EntryIndex) {
        let mut shared = lock(&self.segments.shared);
        let entries = shared.entries_mut();
        let last = entries.map.last();
        assert!(index <= last, "entry {index} is committed, but {last} is the last");
        entries.commit = entries.commit.max(index);
    }

    /// Last entry that is known to be committed.
    #[must_use]
    pub fn committed(&self) -> EntryIndex {
        lock(&self.segments.shared).entries().commit
    }

    /// Notes the first entry that a member of the group still needs. Compactions keep entries from there on, up to
    /// the retention bound. Until it is noted, all are needed.
    pub fn set_needed_from(&mut self, index: EntryIndex) {
        lock(&self.segments.shared).entries_mut().needed_from = index;
    }

    /// A handle for the thread that applies committed entries.
    #[must_use]
    pub fn applier(&self) -> Applier<D> {
        Applier::new(&self.segments.shared)
    }

    /// Checks an entry that came over a link.
    ///
    /// # Errors
    /// [`EntryFault`]: the first fault.
    pub fn verify(&self, entry: &LogEntry) -> Result<(), EntryFault> {
        verify_entry(self.segments.options.log_id, entry)
    }

    /// Seals the active segment, so that a shipment may reach the last entry. Returns that entry.
    ///
    /// # Errors
    /// As [`ReplicatedLog::append`].
    pub fn seal(&mut self) -> Result<EntryIndex, LogError> {
        self.guarded(|log| {
            let active = &log.segments.active;
            if !active.is_empty() {
                let first = Lsn(active.last.0 + 1);
                log.segments.roll(first, 0)?;
            }
            Ok(log.last_index())
        })
    }

    /// The sealed files whose entries are all applied. `None` if they do not reach `at_least`, or not what
    /// compactions have considered: seal the log, wait until its end is applied, and ask again.
    #[must_use]
    pub fn sealed_up_to(&self, at_least: EntryIndex) -> Option<Shipment<D>> {
        let mut shared = lock(&self.segments.shared);
        let applied = shared.entries().applied;
        let manifest = &shared.manifest;
        // The last entry of a file is the one before the next.
        let ends = manifest.files.iter().position(|file| file.before.0 > applied);
        let files = ends.unwrap_or(manifest.files.len()).checked_sub(1)?;
        let next = manifest.files.get(files)?;
        let (index, term) = next.before;
        if index < at_least || index < manifest.group.clean || index == EntryIndex(0) {
            return None;
        }
        let mut manifest = manifest.clone();
        let position = Lsn(next.first.0 - 1);
        manifest.files.truncate(files);
        manifest.group.commit = index;
        manifest.group.base = (index, term, position);
        let snapshot = LogSnapshot::new(&self.segments, &mut shared, manifest, position, None);
        let sender = self.hard_state_file.newest().identity.member_id;
        Some(Shipment::new(snapshot, sender, shared.entries_mut()))
    }

    /// The sealed files up to the last entry that was applied, also if others follow in the same file: a new leader may
    /// be unable to commit these before another member has got the files. `None` if the entry stands in the active
    /// segment: seal the log, and ask again.
    ///
    /// # Errors
    /// [`EntryError`]: the end of that entry cannot be read.
    pub fn sealed_up_to_applied(&self) -> Result<Option<Shipment<D>>, EntryError> {
        let index = lock(&self.segments.shared).entries().applied;
        if index == self.last_index() || index == EntryIndex(0) {
            return Ok(self.sealed_up_to(index));
        }
        // If the rest was applied meanwhile, the snapshot has the active segment.
        let snapshot = self.snapshot()?;
        if !snapshot.manifest().files.iter().all(FileEntry::is_sealed) {
            return Ok(None);
        }
        let sender = self.hard_state_file.newest().identity.member_id;
        let mut shared = lock(&self.segments.shared);
        Ok(Some(Shipment::new(snapshot, sender, shared.entries_mut())))
    }

    /// The most worthwhile compaction now, if there is one. Only one may run at a time.
    #[must_use]
    pub fn compaction(&self) -> Option<Compaction<D>> {
        compaction(&self.segments)
    }

    /// The files of the log up to the last entry that was applied, for a backup.
    ///
    /// # Errors
    /// [`EntryError`]: the end of that entry cannot be read.
    pub fn snapshot(&self) -> Result<LogSnapshot<D>, EntryError> {
        let mut shared = lock(&self.segments.shared);
        let entries = shared.entries();
        let (index, map) = (entries.applied, entries.map.clone());
        let mut state = self.hard_state.clone();
        state.commit = index;
        let slot = Slot { state, ..self.hard_state_file.newest().clone() };
        let (manifest, position) = (shared.manifest.clone(), shared.written);
        let snapshot =
            LogSnapshot::new(&self.segments, &mut shared, manifest, position, Some(slot));
        drop(shared);
        if index == map.last() {
            return Ok(snapshot);
        }
        // The files stay while the snapshot exists.
        let end = end_of(&*self.segments.directory, snapshot.manifest(), &map, index)?;
        Ok(snapshot.ending_at(end))
    }

    /// As [`Log::prepare_next_segment`](crate::Log).
    #[must_use]
    pub fn prepare_next_segment(&mut self) -> Option<Preparation<D>> {
        self.segments.prepare_next_segment()
    }

    /// As [`Log::install_next_segment`](crate::Log).
    ///
    /// # Panics
    /// If no segment was asked for.
    pub fn install_next_segment(&mut self, prepared: Option<Prepared<D>>) {
        self.segments.install_next_segment(prepared);
    }

    /// Closes the log and records its end in the manifest.
    ///
    /// # Errors
    /// [`LogError`]; no entry is lost then.
    pub fn close(mut self) -> Result<(), LogError> {
        self.guarded(|log| {
            let end = Lsn(log.segments.active.last.0 + 1);
            log.segments.seal(end)
        })
    }

    /// Performs a step of writing. After a failure the content of the disk is unknown, and nothing more is written.
    fn guarded<T>(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        if self.has_failed {
            return Err(LogError::Failed);
        }
        let result = step(self);
        self.has_failed = result.as_ref().is_err_and(|error| !error.leaves_log_usable());
        result
    }

    /// Entries up to this one survive a power cut.
    fn durable_index(&self) -> EntryIndex {
        match self.segments.options.durability {
            Durability::Fsync => self.last_index(),
            Durability::Os => self.segments.active.before(),
        }
    }

    /// The mark of an entry that is in the log.
    fn mark_of(&self, index: EntryIndex) -> Result<EntryMark, EntryError> {
        self.term_of(index)?;
        let shared = lock(&self.segments.shared);
        let map = &shared.entries().map;
        let first = EntryIndex(map.before().0.0 + 1);
        map.mark_of(index).filter(|_| index >= first).ok_or(EntryError::Compacted { first })
    }

    fn try_append(&mut self, entries: &[LogEntry]) -> Result<Written, LogError> {
        let (mut last, mut term) = lock(&self.segments.shared).last_entry();
        let mut position = self.segments.active.last;
        let mut records = 0;
        for entry in entries {
            assert_eq!(entry.index.0, last.0 + 1, "entries follow each other without a gap");
            assert!(entry.term >= term, "the term falls from {term} to {}", entry.term);
            assert!(
                entry.term <= self.hard_state.term,
                "term {} is saved before its entries are appended",
                entry.term
            );
            (last, term) = (entry.index, entry.term);
            if let EntryContent::Records(of_entry) = &entry.content {
                if of_entry.first <= position {
                    let (index, lsn) = (entry.index, of_entry.first);
                    return Err(EntryFault::Order { index, lsn }.into());
                }
                position = of_entry.last;
                records += u64::from(of_entry.count);
            }
        }
        let len = entries.iter().map(entry_len).sum();
        if len == 0 {
            return Ok(Written { durable: position, ..Written::default() });
        }
        if !self.segments.active.has_room(len) {
            let first = Lsn(self.segments.active.last.0 + 1);
            self.segments.roll(first, len)?;
        }
        let marks = self.write_entries(entries)?;
        let mut shared = lock(&self.segments.shared);
        for (entry, mark) in entries.iter().zip(marks) {
            shared.entries_mut().map.push(entry.term, mark);
        }
        shared.written = position;
        drop(shared);
        for entry in entries {
            self.tail.push(entry.clone());
        }
        Ok(Written { durable: position, bytes: len, records })
    }

    /// Writes and syncs entries that fit into the active segment. Returns their places.
    fn write_entries(&mut self, entries: &[LogEntry]) -> Result<Vec<EntryMark>, LogError> {
        let Segments { active, options, .. } = &mut self.segments;
        let mut chain = EntryChain {
            file: active.id,
            offset: active.offset,
            previous_crc: active.previous_crc,
            last: active.last,
            synced: self.synced,
        };
        let mut marks = Vec::with_capacity(entries.len());
        let mut out = GatheredWrite::new(&*active.file, active.offset);
        for entry in entries {
            marks.push(EntryMark { index: entry.index, file: chain.file, offset: chain.offset });
            chain.write(&mut out, entry).map_err(io_failed("write a log file"))?;
        }
        out.finish().map_err(io_failed("write a log file"))?;
        // The offset moves only behind entries that are durable: a failed sync ends the log.
        if options.durability == Durability::Fsync {
            active.file.sync().map_err(io_failed("sync a log file"))?;
            self.synced = entries.last().map_or(self.synced, |entry| entry.index);
        }
        active.offset = chain.offset;
        active.previous_crc = chain.previous_crc;
        active.last = chain.last;
        Ok(marks)
    }

    fn try_truncate(&mut self, index: EntryIndex) -> Result<(), LogError> {
        let shared = lock(&self.segments.shared);
        let entries = shared.entries();
        let (last, commit) = (entries.map.last(), entries.commit);
        assert!(index >= commit, "entry {commit} is committed and is not cut off at {index}");
        assert!(index <= last, "the log is cut at entry {index}, but ends at {last}");
        if index == last {
            return Ok(());
        }
        let (manifest, map) = (shared.manifest.clone(), entries.map.clone());
        drop(shared);
        // Compactions rewrite only files in front of those that are cut.
        let end = end_of(&*self.segments.directory, &manifest, &map, index);
        let end = end.map_err(|error| LogError::Io {
            doing: format!("find the end of entry {index}"),
            error: std::io::Error::other(error),
        })?;
        self.segments.cut(end)?;
        let mut shared = lock(&self.segments.shared);
        shared.entries_mut().map.cut_behind(index);
        shared.written = self.segments.active.last;
        drop(shared);
        self.tail.cut_behind(index);
        self.synced = self.synced.min(index);
        Ok(())
    }
}
