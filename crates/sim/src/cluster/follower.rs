//! The replica of a vhost: a replay that follows the committed entries.

use broker::page::{PageRead, PageSelection, PagedMessage, PagedMeta, Pages};
use broker::time::{Now, Time};
use broker::{Decoded, Envelopes, Lsn, PageId, Record, Replay, Vhost, VhostOptions};
use storage::{Applier, EntryContent, Flags, LogEntry, References};

use simdisk::Disk;

/// Records from one that a sabotaged replica leaves out to the next.
const SKIPPED_EVERY: u32 = 40;

/// Pages, of which a vhost without limits of memory has none.
#[derive(Debug)]
pub(crate) struct NoPages;

impl Pages for NoPages {
    fn write(&mut self, page: PageId, _: Vec<PagedMessage>) {
        panic!("page {page} is written although nothing limits the memory");
    }

    fn meta(&mut self, page: PageId) -> Vec<PagedMeta> {
        panic!("page {page} is read although nothing was written");
    }

    fn read(&mut self, page: PageId, _: PageSelection) -> PageRead {
        panic!("page {page} is read although nothing was written");
    }

    fn remove(&mut self, page: PageId) {
        panic!("page {page} is dropped although nothing was written");
    }
}

/// A replica.
#[derive(Debug)]
pub(crate) struct Follower {
    replay: Replay,
    envelopes: Envelopes,
    /// Records until the next that is left out; none if none is.
    skips_in: Option<u32>,
}

/// Passes on what a record has ended.
pub(crate) fn release<'a>(references: &'a mut References<'_>) -> impl FnMut(Lsn) + 'a {
    |lsn| references.release(storage::Lsn(lsn.0))
}

/// The options of the simulated vhost.
fn options() -> VhostOptions {
    VhostOptions { delivers_after_commit: true, ..VhostOptions::default() }
}

impl Follower {
    /// An empty replica; `seed` is that of its vhost.
    pub(crate) fn new(seed: u64, skips: bool) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let replay = Replay::new(Vhost::new("/", bytes, options()), Time::MAX);
        let skips_in = skips.then_some(SKIPPED_EVERY);
        Self { replay, envelopes: Envelopes::default(), skips_in }
    }

    pub(crate) fn vhost(&self) -> &Vhost {
        self.replay.vhost()
    }

    /// Applies a record.
    pub(crate) fn apply(
        &mut self,
        record: &storage::Record<'_>,
        ended: &mut dyn FnMut(Lsn),
    ) -> Result<(), String> {
        if let Some(left) = &mut self.skips_in {
            *left -= 1;
            if *left == 0 {
                *left = SKIPPED_EVERY;
                return Ok(());
            }
        }
        let decoded = self.decode(record)?;
        self.apply_decoded(record, decoded, ended)
    }

    /// Reads a record.
    pub(crate) fn decode(&mut self, record: &storage::Record<'_>) -> Result<Decoded, String> {
        Record::decode(record.kind, record.payload, &mut self.envelopes)
            .map_err(|error| error.to_string())
    }

    /// Applies a record that was read.
    pub(crate) fn apply_decoded(
        &mut self,
        record: &storage::Record<'_>,
        decoded: Decoded,
        ended: &mut dyn FnMut(Lsn),
    ) -> Result<(), String> {
        let is_spent = record.flags.has(Flags::SPENT);
        let lsn = Lsn(record.lsn.0);
        let applied = self.replay.apply(lsn, decoded, is_spent, &mut NoPages, ended);
        applied.map_err(|divergence| format!("record {}: {}", record.lsn, divergence.problem))
    }

    /// Ends the reading of the own log.
    pub(crate) fn follow(&mut self, last: storage::Lsn) -> Result<(), String> {
        self.replay.follow(Lsn(last.0)).map_err(|divergence| divergence.to_string())
    }

    /// Applies a committed entry.
    pub(crate) fn apply_entry(
        &mut self,
        entry: &LogEntry,
        applier: &Applier<Disk>,
    ) -> Result<Option<Lsn>, String> {
        self.replay.set_now(Time::from_micros(entry.axis_us));
        let mut problem = None;
        let applied = applier.apply(entry, &mut |record, references| {
            if problem.is_none() {
                let mut ended = release(references);
                problem = self.apply(&record, &mut ended).err();
            }
        });
        if let Some(problem) = problem {
            return Err(problem);
        }
        applied.map_err(|fault| fault.to_string())?;
        self.end_entry(entry)
    }

    /// Ends an entry, all records of which are applied.
    pub(crate) fn end_entry(&mut self, entry: &LogEntry) -> Result<Option<Lsn>, String> {
        if matches!(entry.content, EntryContent::Empty) {
            self.replay.begin_term();
        }
        let EntryContent::Records(records) = &entry.content else { return Ok(None) };
        let last = Lsn(records.last.0);
        self.replay.end_entry(last).map_err(|divergence| divergence.to_string())?;
        Ok(Some(last))
    }

    pub(crate) fn set_now(&mut self, entry: &LogEntry) {
        self.replay.set_now(Time::from_micros(entry.axis_us));
    }

    /// Makes a vhost of the replica.
    pub(crate) fn promote(mut self, now: Now, last: storage::Lsn, marks: bool) -> Vhost {
        if marks {
            self.replay.leader_changed(now.time);
        }
        self.replay.finish(now, Lsn(last.0), &mut NoPages)
    }
}
