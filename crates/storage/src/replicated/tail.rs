//! The newest entries of a log in memory.

use std::collections::VecDeque;

use super::entry::{EntryIndex, LogEntry};

/// The newest entries, up to so many bytes.
#[derive(Debug)]
pub(super) struct Tail {
    entries: VecDeque<LogEntry>,
    bytes: usize,
    bytes_max: usize,
}

/// Memory that an entry takes, in bytes.
pub(super) fn entry_bytes(entry: &LogEntry) -> usize {
    size_of::<LogEntry>() + entry.content.octets().len()
}

impl Tail {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { entries: VecDeque::new(), bytes: 0, bytes_max }
    }

    /// Adds the next entry, and forgets the oldest ones beyond the limit.
    pub(super) fn push(&mut self, entry: LogEntry) {
        self.bytes += entry_bytes(&entry);
        self.entries.push_back(entry);
        while self.bytes > self.bytes_max
            && let Some(oldest) = self.entries.pop_front()
        {
            self.bytes -= entry_bytes(&oldest);
        }
    }

    /// Removes the entries behind `index`.
    pub(super) fn cut_behind(&mut self, index: EntryIndex) {
        while let Some(last) = self.entries.pop_back_if(|entry| entry.index > index) {
            self.bytes -= entry_bytes(&last);
        }
    }

    /// The entry with this index, if it is in memory.
    pub(super) fn get(&self, index: EntryIndex) -> Option<&LogEntry> {
        let first = self.entries.front()?.index;
        let place = usize::try_from(index.0.checked_sub(first.0)?).ok()?;
        self.entries.get(place)
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::{EntryContent, Term};
    use super::*;

    #[test]
    fn tail_keeps_the_newest_entries() {
        let entry = |index| {
            let content = EntryContent::Membership(vec![0; 1000].into());
            LogEntry { index: EntryIndex(index), term: Term(1), axis_us: 0, content }
        };
        let mut tail = Tail::new(5 * entry_bytes(&entry(1)));
        for index in 1..=9 {
            tail.push(entry(index));
        }
        let known = |tail: &Tail| -> Vec<u64> {
            (0..12).filter(|index| tail.get(EntryIndex(*index)).is_some()).collect()
        };
        assert_eq!(known(&tail), [5, 6, 7, 8, 9]);
        tail.cut_behind(EntryIndex(6));
        assert_eq!(known(&tail), [5, 6]);
        tail.cut_behind(EntryIndex(0));
        assert_eq!((known(&tail), tail.bytes), (vec![], 0));
    }
}
