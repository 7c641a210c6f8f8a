//! The history of dead letters, read in slices.

use crate::time::Now;
use crate::vhost::Vhost;
use crate::vhost::state::recorded_death::{RecordedDeath, RecordedDeaths};

impl Vhost {
    /// Up to `count` deaths before the one with the number `before`, or the last ones, the latest first.
    pub fn recorded_deaths(&self, now: Now, before: Option<u64>, count: usize) -> RecordedDeaths {
        self.death_ledger.read(now.time.max(self.now.time), before, count)
    }

    /// Up to `count` deaths with numbers above `number`, the oldest first: those that are not yet written.
    pub fn recorded_deaths_after(&self, number: u64, count: usize) -> Vec<RecordedDeath> {
        self.death_ledger.read_after(number, count)
    }
}
