//! The entries of a log in a few numbers: the first and the last, runs of equal term, and some offsets.

use std::collections::VecDeque;

use super::entry::{EntryIndex, Term};
use crate::limits::ENTRY_MARK_BYTES;

/// Place of an entry on the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EntryMark {
    pub(crate) index: EntryIndex,
    /// Id of the file.
    pub(crate) file: u64,
    /// Offset of the header, in bytes.
    pub(crate) offset: u64,
}

/// The entries of a log.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct EntryMap {
    /// The entry before the first: what is up to there stands in files without entries, or ended.
    before: (EntryIndex, Term),
    last: EntryIndex,
    /// First index and term of each run of equal term.
    terms: VecDeque<(EntryIndex, Term)>,
    /// The first entry of each file, and one in each so many bytes.
    marks: VecDeque<EntryMark>,
}

impl EntryMap {
    /// The entry before the first, and its term.
    pub(crate) fn before(&self) -> (EntryIndex, Term) {
        self.before
    }

    pub(crate) fn last(&self) -> EntryIndex {
        self.last
    }

    /// The last entry and its term.
    pub(crate) fn last_with_term(&self) -> (EntryIndex, Term) {
        (self.last, self.terms.back().map_or(self.before.1, |(_, term)| *term))
    }

    /// Begins anew behind an entry: what was before it has no entries any more.
    pub(crate) fn begin_behind(&mut self, before: (EntryIndex, Term)) {
        *self = Self { before, last: before.0, ..Self::default() };
    }

    /// Adds the next entry.
    ///
    /// # Panics
    /// If the index does not follow the last.
    pub(crate) fn push(&mut self, term: Term, mark: EntryMark) {
        assert_eq!(mark.index.0, self.last.0 + 1, "entries follow each other without a gap");
        self.last = mark.index;
        if self.terms.back().is_none_or(|(_, last)| *last != term) {
            self.terms.push_back((mark.index, term));
        }
        let is_near = |last: &EntryMark| {
            last.file == mark.file && mark.offset < last.offset + ENTRY_MARK_BYTES
        };
        if !self.marks.back().is_some_and(is_near) {
            self.marks.push_back(mark);
        }
    }

    /// Removes the entries behind `index`.
    pub(crate) fn cut_behind(&mut self, index: EntryIndex) {
        self.last = self.last.min(index);
        while self.terms.pop_back_if(|(first, _)| *first > index).is_some() {}
        while self.marks.pop_back_if(|mark| mark.index > index).is_some() {}
    }

    /// Forgets the entries up to `before`, whose files were rewritten.
    pub(crate) fn forget_up_to(&mut self, before: (EntryIndex, Term)) {
        if before.0 <= self.before.0 {
            return;
        }
        if before.0 >= self.last {
            return self.begin_behind(before);
        }
        self.before = before;
        // The run and the mark of the first entry that is left stay.
        let first = EntryIndex(before.0.0 + 1);
        while self.terms.get(1).is_some_and(|(index, _)| *index <= first) {
            self.terms.pop_front();
        }
        while self.marks.get(1).is_some_and(|mark| mark.index <= first) {
            self.marks.pop_front();
        }
    }

    /// Term of an entry, or of the one before the first; `None` outside of these.
    pub(crate) fn term_of(&self, index: EntryIndex) -> Option<Term> {
        if index == self.before.0 {
            return Some(self.before.1);
        }
        if index < self.before.0 || index > self.last {
            return None;
        }
        let run = self.terms.partition_point(|(first, _)| *first <= index);
        self.terms.get(run.checked_sub(1)?).map(|(_, term)| *term)
    }

    /// The nearest mark at or before an entry that is in the map.
    pub(crate) fn mark_of(&self, index: EntryIndex) -> Option<EntryMark> {
        let at = self.marks.partition_point(|mark| mark.index <= index);
        self.marks.get(at.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(terms: &[u64]) -> EntryMap {
        let mut map = EntryMap::default();
        for (at, term) in (1..).zip(terms) {
            let offset = 4096 + at * ENTRY_MARK_BYTES / 2;
            map.push(Term(*term), EntryMark { index: EntryIndex(at), file: 1 + at / 4, offset });
        }
        map
    }

    fn terms(map: &EntryMap) -> Vec<Option<u64>> {
        (0..=10).map(|index| map.term_of(EntryIndex(index)).map(|term| term.0)).collect()
    }

    #[test]
    fn term_of_an_entry_is_that_of_its_run() {
        let mut map = map(&[1, 1, 3, 3, 3, 7, 7, 8]);
        let known = |numbers: &[u64]| -> Vec<_> { numbers.iter().copied().map(Some).collect() };
        assert_eq!(terms(&map)[..9], known(&[0, 1, 1, 3, 3, 3, 7, 7, 8])[..]);
        assert_eq!(terms(&map)[9..], [None, None]);
        map.cut_behind(EntryIndex(5));
        assert_eq!(terms(&map)[..6], known(&[0, 1, 1, 3, 3, 3])[..]);
        assert_eq!((terms(&map)[6], map.last_with_term()), (None, (EntryIndex(5), Term(3))));
        map.forget_up_to((EntryIndex(3), Term(3)));
        assert_eq!(terms(&map)[..7], [None, None, None, Some(3), Some(3), Some(3), None]);
        map.forget_up_to((EntryIndex(9), Term(8)));
        assert_eq!((map.last(), terms(&map)[9]), (EntryIndex(9), Some(8)));
    }

    #[test]
    fn mark_of_an_entry_is_near_it() {
        let mut map = map(&[1; 8]);
        let mark = |map: &EntryMap, index| map.mark_of(EntryIndex(index)).map(|mark| mark.index.0);
        let marks: Vec<_> = (0..9).map(|index| mark(&map, index)).collect();
        assert_eq!(marks, [0, 1, 1, 3, 4, 4, 6, 6, 8].map(|index| Some(index).filter(|i| *i > 0)));
        map.forget_up_to((EntryIndex(4), Term(1)));
        assert_eq!((mark(&map, 5), mark(&map, 6)), (Some(4), Some(6)));
        map.cut_behind(EntryIndex(5));
        assert_eq!(mark(&map, 5), Some(4));
    }
}
