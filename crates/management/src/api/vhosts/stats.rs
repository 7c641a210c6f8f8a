//! What vhosts add up to, with how it changes: for `/api/vhosts` and for the overview.

use serde_json::{Map, Value};

use crate::api::rates;
use crate::history::{TimeRanges, Trend};
use crate::http::extract::Shared;
use crate::snapshot::fields::{StatsKind, VHOST, VhostNumbers};
use crate::snapshot::vhost::VhostTotals;

/// The numbers of one vhost or of several.
#[derive(Debug)]
pub(crate) struct VhostStats {
    numbers: VhostNumbers,
    trend: Trend<{ VHOST.len() }>,
}

impl VhostStats {
    /// Those of one vhost.
    pub(crate) fn of_one(node: &Shared, totals: &VhostTotals, ranges: &TimeRanges) -> Self {
        let trend = node.history().read(|history| history.of_vhost(&totals.name, ranges));
        Self { numbers: totals.numbers, trend }
    }

    /// The sum over some vhosts.
    pub(crate) fn of_all(node: &Shared, totals: &[VhostTotals], ranges: &TimeRanges) -> Self {
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

    /// The same with what was counted in vhosts that are gone; `live` are all there are.
    pub(crate) fn with_deleted_vhosts(mut self, node: &Shared, live: &[String]) -> Self {
        add(&mut self.numbers, &node.history().read(|history| history.of_deleted_vhosts(live)));
        self
    }

    /// Puts what is about `about` into `object`.
    pub(crate) fn put(&self, object: &mut Map<String, Value>, about: StatsKind) {
        rates::put(object, &VHOST, about, (&self.numbers, &self.trend));
    }

    /// What is about `about`, as an object of its own.
    pub(crate) fn object(&self, about: StatsKind) -> Value {
        let mut object = Map::new();
        self.put(&mut object, about);
        Value::Object(object)
    }
}

fn add(sums: &mut VhostNumbers, numbers: &VhostNumbers) {
    sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
}
