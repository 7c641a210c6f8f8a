//! Liveness of records: which of them still have references.
//!
//! One bit per position and file, and a count for the few records with several references: at most a
//! hundredth of a file's bytes, for any records. A rewritten file has few records in a wide range and
//! keeps only the words with a bit set; it has a second bit for the records that were live when it was
//! written.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use crate::format::{Flags, Lsn};
use crate::limits::EMPTY_WORDS_MAX;
use crate::segment_reader::Record;

/// Liveness of the records of one file.
#[derive(Debug)]
pub(crate) struct FileLiveness {
    /// First position behind the range of the file; `None` while it grows.
    end: Option<Lsn>,
    first: Lsn,
    /// One for each record with references, by its distance from `first`.
    bits: Bits,
    /// One for each record that had references when the file was rewritten: these are in the file, whatever ends
    /// later. `None` if the file was not rewritten: then any record may be in it.
    rewritten: Option<Bits>,
    /// References left of records that began with several. In a rewritten file the entry of a record
    /// stays at 0 when all have ended, because the record is still in the file as it was written.
    reference_counts: HashMap<Lsn, u16>,
    /// Number of all records in the file.
    pub(crate) all: u64,
    /// Number of records with references left.
    pub(crate) live: u64,
    /// Position up to which ended references were considered when the file was rewritten; 0 if it was
    /// not. Records that had ended by then are not in it.
    compacted_at: Lsn,
    /// Number of compactions that had dropped records when this file was rewritten; `None` if it was
    /// not.
    pub(crate) drops_at_compaction: Option<u64>,
}

/// A set of bits by number.
#[derive(Debug)]
enum Bits {
    /// All words, in order.
    Dense(Vec<u64>),
    /// The words that are not zero, by their place.
    Sparse(BTreeMap<u64, u64>),
}

impl Bits {
    fn get(&self, at: u64) -> bool {
        let word = match self {
            Self::Dense(words) => usize::try_from(at / 64).ok().and_then(|word| words.get(word)),
            Self::Sparse(words) => words.get(&(at / 64)),
        };
        word.is_some_and(|word| word & 1 << (at % 64) != 0)
    }

    fn set(&mut self, at: u64) {
        let bit = 1 << (at % 64);
        match self {
            Self::Dense(words) => {
                let place = usize::try_from(at / 64).unwrap_or(usize::MAX);
                if place.saturating_sub(words.len()) > EMPTY_WORDS_MAX {
                    *self = Self::Sparse(not_zero(words));
                    return self.set(at);
                }
                if words.len() <= place {
                    words.resize(place + 1, 0);
                }
                if let Some(word) = words.get_mut(place) {
                    *word |= bit;
                }
            }
            Self::Sparse(words) => *words.entry(at / 64).or_default() |= bit,
        }
    }

    fn clear(&mut self, at: u64) {
        let bit = 1 << (at % 64);
        match self {
            Self::Dense(words) => {
                let place = usize::try_from(at / 64).unwrap_or(usize::MAX);
                if let Some(word) = words.get_mut(place) {
                    *word &= !bit;
                }
            }
            Self::Sparse(words) => {
                if let Some(word) = words.get_mut(&(at / 64)) {
                    *word &= !bit;
                    if *word == 0 {
                        words.remove(&(at / 64));
                    }
                }
            }
        }
    }
}

/// The words that are not zero, by their place.
fn not_zero(words: &[u64]) -> BTreeMap<u64, u64> {
    (0..).zip(words.iter().copied()).filter(|(_, word)| *word != 0).collect()
}

impl FileLiveness {
    /// Liveness of a file that is new, rewritten, or about to be read back.
    pub(crate) fn new(first: Lsn, end: Option<Lsn>, compacted_at: Lsn) -> Self {
        let is_rewritten = compacted_at != Lsn(0);
        let sparse = || Bits::Sparse(BTreeMap::new());
        let bits = if is_rewritten { sparse() } else { Bits::Dense(Vec::new()) };
        let drops_at_compaction = is_rewritten.then_some(0);
        Self {
            end,
            first,
            bits,
            rewritten: is_rewritten.then(sparse),
            reference_counts: HashMap::new(),
            all: 0,
            live: 0,
            compacted_at,
            drops_at_compaction,
        }
    }

    fn is_live(&self, lsn: Lsn) -> bool {
        self.bits.get(lsn.0 - self.first.0)
    }

    /// False if a record is not in the file, or has no references there.
    fn may_contain(&self, lsn: Lsn) -> bool {
        self.rewritten.as_ref().is_none_or(|records| records.get(lsn.0 - self.first.0))
    }

    /// Adds a record that began with `references` references, of which `left` are left.
    pub(crate) fn add(&mut self, lsn: Lsn, references: u16, left: u16) {
        self.all += 1;
        if let Some(rewritten) = &mut self.rewritten
            && references > 0
        {
            rewritten.set(lsn.0 - self.first.0);
        }
        if left == 0 {
            return;
        }
        self.bits.set(lsn.0 - self.first.0);
        self.live += 1;
        if references > 1 {
            self.reference_counts.insert(lsn, left);
        }
    }

    fn release(&mut self, lsn: Lsn) {
        if !self.is_live(lsn) {
            return;
        }
        if let Some(left) = self.reference_counts.get_mut(&lsn) {
            debug_assert!(*left > 0, "record {lsn} is live without references");
            *left -= 1;
            if *left > 0 {
                return;
            }
            if self.compacted_at == Lsn(0) {
                self.reference_counts.remove(&lsn);
            }
        }
        self.bits.clear(lsn.0 - self.first.0);
        debug_assert!(self.live > 0, "record {lsn} is live and not counted");
        self.live -= 1;
    }

    /// True if less than `live_percent` percent of the records have references left, and rewriting the
    /// file may drop some. A file that was rewritten can drop more records only when a compaction has
    /// dropped some since: `drops` is the number of such compactions.
    pub(crate) fn is_sparse(&self, drops: u64, live_percent: u64) -> bool {
        if self.live * 100 >= self.all * live_percent && self.all > 0 {
            return false;
        }
        self.drops_at_compaction.is_none_or(|before| before < drops)
    }
}

/// Liveness of the records of all files, by the first position of each file.
#[derive(Default, Debug)]
pub(crate) struct Liveness {
    files: BTreeMap<Lsn, FileLiveness>,
}

impl Liveness {
    /// Adds a file whose range begins at `first`.
    pub(crate) fn open_file(&mut self, first: Lsn, end: Option<Lsn>, compacted_at: Lsn) {
        self.insert_file(first, FileLiveness::new(first, end, compacted_at));
    }

    pub(crate) fn insert_file(&mut self, first: Lsn, file: FileLiveness) {
        self.files.insert(first, file);
    }

    /// Ends the range of a file before `end`. A file without a position is forgotten: the next one begins at the
    /// same.
    ///
    /// # Panics
    /// If there is no such file.
    pub(crate) fn seal_file(&mut self, first: Lsn, end: Lsn) {
        if first == end {
            self.files.remove(&first);
            return;
        }
        let file = self.files.get_mut(&first).expect("a file is added before it is sealed");
        file.end = Some(end);
    }

    pub(crate) fn remove_file(&mut self, first: Lsn) {
        self.files.remove(&first);
    }

    pub(crate) fn file(&self, first: Lsn) -> Option<&FileLiveness> {
        self.files.get(&first)
    }

    fn of(&self, lsn: Lsn) -> Option<&FileLiveness> {
        let (_, file) = self.files.range(..=lsn).next_back()?;
        file.end.is_none_or(|end| lsn < end).then_some(file)
    }

    fn of_mut(&mut self, lsn: Lsn) -> Option<&mut FileLiveness> {
        let (_, file) = self.files.range_mut(..=lsn).next_back()?;
        file.end.is_none_or(|end| lsn < end).then_some(file)
    }

    /// Adds a record that was written or read. False if its position is in the range of no file.
    pub(crate) fn add(&mut self, lsn: Lsn, references: u16) -> bool {
        match self.of_mut(lsn) {
            Some(file) => {
                file.add(lsn, references, references);
                true
            }
            None => false,
        }
    }

    /// One reference of a record has ended. Of a record that is gone or never was there is nothing to
    /// end.
    pub(crate) fn release(&mut self, lsn: Lsn) {
        if let Some(file) = self.of_mut(lsn) {
            file.release(lsn);
        }
    }

    fn is_live(&self, lsn: Lsn) -> bool {
        self.of(lsn).is_some_and(|file| file.is_live(lsn))
    }

    /// Number of references left of a record.
    pub(crate) fn references(&self, lsn: Lsn) -> u16 {
        match self.of(lsn) {
            Some(file) if file.is_live(lsn) => {
                file.reference_counts.get(&lsn).copied().unwrap_or(1)
            }
            _ => 0,
        }
    }

    /// True if a record must be kept when the files of a range are rewritten.
    ///
    /// A record that ends or changes what another has brought must stay as long as that record is in a file.
    pub(crate) fn is_needed(&self, record: &Record<'_>, rewritten: &RewrittenRecords) -> bool {
        let Record { lsn, target, flags, .. } = *record;
        if record.references > 0 && self.is_live(lsn) {
            return true;
        }
        let is_about_other = flags.has(Flags::RELEASES) || flags.has(Flags::ANNOTATES);
        let has_target = || match rewritten.range.contains(&target) {
            true => rewritten.contains(target),
            false => self.of(target).is_some_and(|file| file.may_contain(target)),
        };
        if is_about_other && has_target() {
            return true;
        }
        flags.has(Flags::ENDS_MANY)
            && (rewritten.has_shared
                || self.files.range(..=lsn).any(|(first, file)| {
                    *first < rewritten.range.start && file.compacted_at < lsn
                        || !file.reference_counts.is_empty()
                }))
    }
}

/// The records with references in the file that a compaction writes.
#[derive(Debug)]
pub(crate) struct RewrittenRecords {
    /// The range of the file.
    pub(crate) range: Range<Lsn>,
    /// Positions, ascending, and the number of references that each record began with.
    referred: Vec<(Lsn, u16)>,
    /// True if a record began with several references.
    has_shared: bool,
}

impl RewrittenRecords {
    /// No records, for a file of this range.
    pub(crate) fn new(range: Range<Lsn>) -> Self {
        Self { range, referred: Vec::new(), has_shared: false }
    }

    /// Adds the next record.
    pub(crate) fn add(&mut self, lsn: Lsn, references: u16) {
        self.referred.push((lsn, references));
        self.has_shared |= references > 1;
    }

    fn contains(&self, lsn: Lsn) -> bool {
        self.referred.binary_search_by_key(&lsn, |(lsn, _)| *lsn).is_ok()
    }

    /// All records, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Lsn, u16)> {
        self.referred.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn liveness_bits_of_distant_positions_use_little_memory() {
        let mut file = FileLiveness::new(Lsn(1), None, Lsn(0));
        for lsn in [1, 70, 1 << 60] {
            file.add(Lsn(lsn), 1, 1);
        }
        assert!(matches!(&file.bits, Bits::Sparse(words) if words.len() == 3));
        assert!([1, 70, 1 << 60].into_iter().all(|lsn| file.is_live(Lsn(lsn))));
        assert!(!file.is_live(Lsn(2)) && !file.is_live(Lsn(71)));
    }
}
