//! Which records are still referred to.
//!
//! One bit per position and file, and a count for the few records with several references: a hundredth
//! of a file's octets at most, whatever the records say. A file that was written anew has few records
//! in a wide range and keeps only the words of bits that hold any.

use std::collections::{BTreeMap, HashMap};

use crate::format::{Flags, Lsn};
use crate::limits::EMPTY_WORDS_MAX;
use crate::segment_reader::Record;

/// The records of one file.
#[derive(Debug)]
pub(crate) struct FileLiveness {
    /// The first position behind its range; none while it grows.
    end: Option<Lsn>,
    first: Lsn,
    bits: Bits,
    /// References left of records that began with several. In a file that was written anew also of
    /// those that have ended since: they are still there as they were.
    several: HashMap<Lsn, u16>,
    /// All records in the file.
    pub(crate) all: u64,
    /// Those that are referred to.
    pub(crate) live: u64,
    /// What ended by then is not in the file any more.
    clean: Lsn,
    /// How often records had been dropped somewhere when it was written anew; none if it was not.
    pub(crate) looked_at: Option<u64>,
}

/// Bits by number.
#[derive(Debug)]
enum Bits {
    /// One word behind the other.
    Dense(Vec<u64>),
    /// The words that are not zero.
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
    /// Of a file that is written anew, or read back after it was.
    pub(crate) fn new(first: Lsn, end: Option<Lsn>, clean: Lsn) -> Self {
        let bits = match clean {
            Lsn(0) => Bits::Dense(Vec::new()),
            _ => Bits::Sparse(BTreeMap::new()),
        };
        let looked_at = (clean != Lsn(0)).then_some(0);
        Self { end, first, bits, several: HashMap::new(), all: 0, live: 0, clean, looked_at }
    }

    fn is_live(&self, lsn: Lsn) -> bool {
        self.bits.get(lsn.0 - self.first.0)
    }

    /// A record that began with so many references, of which so many are left.
    pub(crate) fn add(&mut self, lsn: Lsn, references: u16, left: u16) {
        self.all += 1;
        if left == 0 {
            return;
        }
        self.bits.set(lsn.0 - self.first.0);
        self.live += 1;
        if references > 1 {
            self.several.insert(lsn, left);
        }
    }

    fn release(&mut self, lsn: Lsn) {
        if !self.is_live(lsn) {
            return;
        }
        if let Some(left) = self.several.get_mut(&lsn) {
            *left -= 1;
            if *left > 0 {
                return;
            }
            if self.clean == Lsn(0) {
                self.several.remove(&lsn);
            }
        }
        self.bits.clear(lsn.0 - self.first.0);
        self.live -= 1;
    }

    /// Whether less than so many percent of its records are needed, as far as can be told without
    /// reading it. `dropped` is how often records have been dropped somewhere: what was needed when
    /// the file was written anew, because of records elsewhere, may not be any more.
    pub(crate) fn is_sparse(&self, dropped: u64, live_percent: u64) -> bool {
        if self.live * 100 >= self.all * live_percent && self.all > 0 {
            return false;
        }
        self.looked_at.is_none_or(|looked_at| looked_at < dropped)
    }
}

/// The records of all files, by the first position of each file.
#[derive(Default, Debug)]
pub(crate) struct Liveness {
    files: BTreeMap<Lsn, FileLiveness>,
}

impl Liveness {
    /// A file whose range begins at `first`.
    pub(crate) fn open_file(&mut self, first: Lsn, end: Option<Lsn>, clean: Lsn) {
        self.insert_file(first, FileLiveness::new(first, end, clean));
    }

    pub(crate) fn insert_file(&mut self, first: Lsn, file: FileLiveness) {
        self.files.insert(first, file);
    }

    /// The file's range ends before `end`.
    pub(crate) fn seal_file(&mut self, first: Lsn, end: Lsn) {
        if let Some(file) = self.files.get_mut(&first) {
            file.end = Some(end);
        }
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

    /// A record has been written.
    pub(crate) fn add(&mut self, lsn: Lsn, references: u16) {
        if let Some(file) = self.of_mut(lsn) {
            file.add(lsn, references, references);
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

    /// References that are left of a record.
    pub(crate) fn references(&self, lsn: Lsn) -> u16 {
        match self.of(lsn) {
            Some(file) if file.is_live(lsn) => file.several.get(&lsn).copied().unwrap_or(1),
            _ => 0,
        }
    }

    /// Whether a record must be kept when the files from `from` on are written anew up to before `to`.
    ///
    /// What tells of an end must stay for as long as what has ended is still in a file.
    pub(crate) fn is_needed(&self, record: &Needs, from: Lsn, to: Lsn) -> bool {
        let Needs { lsn, target, flags, has_references } = *record;
        if has_references && self.is_live(lsn) {
            return true;
        }
        if flags.has(Flags::RELEASES) {
            // A record with several references stays as it was written while one of them is left.
            let is_rewritten = from <= target && target < to;
            let may_be_there = !is_rewritten
                && self
                    .of(target)
                    .is_some_and(|file| file.clean < lsn || file.several.contains_key(&target));
            if may_be_there || self.is_live(target) {
                return true;
            }
        }
        if flags.has(Flags::ANNOTATES) && self.is_live(target) {
            return true;
        }
        flags.has(Flags::ENDS_MANY)
            && self
                .files
                .range(..=lsn)
                .any(|(first, file)| *first < from && file.clean < lsn || !file.several.is_empty())
    }
}

/// What decides whether a record must be kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    pub(crate) lsn: Lsn,
    pub(crate) target: Lsn,
    pub(crate) flags: Flags,
    pub(crate) has_references: bool,
}

impl Needs {
    pub(crate) fn of(record: &Record<'_>) -> Self {
        let Record { lsn, target, flags, references, .. } = *record;
        Self { lsn, target, flags, has_references: references > 0 }
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
