//! Publishes of a channel that are not confirmed yet.

use std::collections::BTreeMap;

/// The publishes of a channel that are not confirmed, by their number on the channel.
#[derive(Default, Debug)]
pub(super) struct Confirms {
    sent: u64,
    open: BTreeMap<u64, u64>,
}

impl Confirms {
    /// Counts a publish, which the run knows by `id`.
    pub(super) fn sends(&mut self, id: u64) {
        self.sent += 1;
        self.open.insert(self.sent, id);
    }

    /// The publishes that an answer with this number is about.
    pub(super) fn take(&mut self, number: u64, multiple: bool) -> Vec<u64> {
        let first = if multiple { 0 } else { number };
        let numbers: Vec<u64> =
            self.open.range(first..=number).map(|(number, _)| *number).collect();
        numbers.into_iter().filter_map(|number| self.open.remove(&number)).collect()
    }
}
