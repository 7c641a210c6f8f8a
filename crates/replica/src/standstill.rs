//! The watch over the work of a leader: a batch that waits, while no entry is committed, must not wait for ever in silence.

use storage::EntryIndex;

use crate::limits::{STANDSTILL_ENDS_TICKS, STANDSTILL_TOLD_TICKS};

/// Counts the ticks for which a batch waits and nothing is committed.
///
/// It counts ticks that the process had, not time: a process that stood still itself accuses nobody.
#[derive(Debug, Default)]
pub(crate) struct Standstill {
    committed: EntryIndex,
    ticks: u32,
}

/// The news of a tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StandstillNews {
    None,
    /// The standstill has lasted long enough to be told.
    Begins,
    /// The standstill lasts too long: the node gives up the lead.
    TooLong,
}

impl Standstill {
    /// Notes a tick. `committed` is the newest committed entry, and `waits` whether a batch waits for one.
    pub(crate) fn tick(&mut self, committed: EntryIndex, waits: bool) -> StandstillNews {
        if !waits || committed != self.committed {
            (self.committed, self.ticks) = (committed, 0);
            return StandstillNews::None;
        }
        self.ticks = self.ticks.saturating_add(1);
        match self.ticks {
            STANDSTILL_TOLD_TICKS => StandstillNews::Begins,
            STANDSTILL_ENDS_TICKS => StandstillNews::TooLong,
            _ => StandstillNews::None,
        }
    }

    /// True from the tick on at which it was told.
    pub(crate) fn is_told(&self) -> bool {
        self.ticks >= STANDSTILL_TOLD_TICKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_stands_still_is_told_once_and_ended_once() {
        let mut standstill = Standstill::default();
        let mut told = Vec::new();
        for tick in 0..=2 * STANDSTILL_ENDS_TICKS {
            let news = standstill.tick(EntryIndex(7), true);
            if news != StandstillNews::None {
                told.push((tick, news));
            }
        }
        let [begins, ends] = [STANDSTILL_TOLD_TICKS, STANDSTILL_ENDS_TICKS];
        assert_eq!(told, [(begins, StandstillNews::Begins), (ends, StandstillNews::TooLong)]);
        assert!(standstill.is_told());
    }

    #[test]
    fn each_committed_entry_and_each_end_of_work_begins_anew() {
        let mut standstill = Standstill::default();
        for tick in 0..u64::from(4 * STANDSTILL_ENDS_TICKS) {
            let committed = EntryIndex(tick / u64::from(STANDSTILL_TOLD_TICKS - 1));
            assert_eq!(standstill.tick(committed, true), StandstillNews::None);
        }
        for _ in 0..4 * STANDSTILL_ENDS_TICKS {
            assert_eq!(standstill.tick(EntryIndex(9), false), StandstillNews::None);
        }
        assert!(!standstill.is_told());
    }
}
