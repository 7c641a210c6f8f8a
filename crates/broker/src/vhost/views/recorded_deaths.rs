//! The history of dead letters, read in slices.

use crate::time::Now;
use crate::vhost::Vhost;
use crate::vhost::state::recorded_death::RecordedDeaths;

impl Vhost {
    /// Up to `count` deaths before the one with the number `before`, or the last ones, the latest first.
    pub fn recorded_deaths(&self, now: Now, before: Option<u64>, count: usize) -> RecordedDeaths {
        self.death_ledger.read(now.time.max(self.now.time), before, count)
    }
}
