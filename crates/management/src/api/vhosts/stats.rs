//! Statistics over vhosts with their rates, for `/api/vhosts` and the overview.

use broker::ScheduleCounters;
use serde_json::{Map, Value, json};
use server::history::{TimeRanges, Trend};
use server::snapshot::fields::{StatsKind, VHOST, VhostNumbers};
use server::snapshot::vhost::VhostTotals;

use crate::api::rates;
use crate::http::extract::SharedNode;

/// Numbers of one vhost, or sums over several, with their trends.
#[derive(Debug)]
pub(crate) struct VhostStats {
    numbers: VhostNumbers,
    trend: Trend<{ VHOST.len() }>,
}

impl VhostStats {
    /// The statistics of one vhost.
    pub(crate) fn of_one(node: &SharedNode, totals: &VhostTotals, ranges: &TimeRanges) -> Self {
        let trend = node.history().read(|history| history.of_vhost(&totals.name, ranges));
        Self { numbers: totals.numbers, trend }
    }

    /// The sums over some vhosts.
    pub(crate) fn of_all(node: &SharedNode, totals: &[VhostTotals], ranges: &TimeRanges) -> Self {
        let mut numbers = [0; VHOST.len()];
        for one in totals {
            add(&mut numbers, &one.numbers);
        }
        let mut trend = Trend::default();
        node.history().read(|history| {
            totals.iter().for_each(|one| trend.add(&history.of_vhost(&one.name, ranges)));
        });
        Self { numbers, trend }
    }

    /// Adds the counts of deleted vhosts. `live` names all existing vhosts.
    pub(crate) fn with_deleted_vhosts(mut self, node: &SharedNode, live: &[String]) -> Self {
        add(&mut self.numbers, &node.history().read(|history| history.of_deleted_vhosts(live)));
        self
    }

    /// Puts the numbers of a kind into `object`.
    pub(crate) fn put(&self, object: &mut Map<String, Value>, about: StatsKind) {
        rates::put(object, &VHOST, about, &self.numbers, &self.trend);
    }

    /// The numbers of a kind as an object.
    pub(crate) fn object(&self, about: StatsKind) -> Value {
        let mut object = Map::new();
        self.put(&mut object, about);
        Value::Object(object)
    }
}

/// Counters of scheduled messages since the start, summed over some vhosts.
pub(crate) fn schedules(totals: &[VhostTotals]) -> Value {
    let sum = |count: fn(&ScheduleCounters) -> u64| -> u64 {
        totals.iter().map(|one| count(&one.counters.schedules)).sum()
    };
    json!({
        "scheduled": sum(|counters| counters.scheduled),
        "released": sum(|counters| counters.released),
        "cancelled": sum(|counters| counters.cancelled),
        "rescheduled": sum(|counters| counters.rescheduled),
        "replaced": sum(|counters| counters.replaced),
        "kept": sum(|counters| counters.kept),
        "ignored": sum(|counters| counters.ignored),
    })
}

fn add(sums: &mut VhostNumbers, numbers: &VhostNumbers) {
    sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
}
