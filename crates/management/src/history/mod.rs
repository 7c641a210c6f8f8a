//! Samples of everything over time, and the rates computed from them.
//!
//! The server takes a sample at an interval and passes its time. Readers copy numbers out under the lock and
//! format them without it. Memory is bounded by [`HISTORY_BYTES_MAX`]: the more objects change, the shorter
//! their history.

mod sample;
mod series;

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use broker::{ExchangeId, QueueNumber};

use crate::limits::{HISTORY_BYTES_MAX, HISTORY_SAMPLES_MAX, HISTORY_SAMPLES_MIN};
use crate::snapshot::fields::{self, Field, StatsKind, VHOST, VhostNumbers};

pub(crate) use sample::ChannelKey;
pub use sample::{Sample, Sampling, VhostSample};
use series::{Series, Tier, sample_bytes};
pub(crate) use series::{TimeRange, Window};

const SECOND_MS: u64 = 1000;

/// Tiers of queues, exchanges, connections and channels.
const BASIC: [Tier; 2] = [
    Tier { step_ms: 0, retention_ms: 600 * SECOND_MS },
    Tier { step_ms: 60 * SECOND_MS, retention_ms: 3600 * SECOND_MS },
];

/// Tiers of the node and the vhosts.
const GLOBAL: [Tier; 4] = [
    Tier { step_ms: 0, retention_ms: 600 * SECOND_MS },
    Tier { step_ms: 60 * SECOND_MS, retention_ms: 3600 * SECOND_MS },
    Tier { step_ms: 600 * SECOND_MS, retention_ms: 28_800 * SECOND_MS },
    Tier { step_ms: 1800 * SECOND_MS, retention_ms: 86_400 * SECOND_MS },
];

/// Retention in seconds, as the overview shows it: of the node and vhosts, and of other objects.
pub(crate) const RETENTION_S: ([u64; 4], [u64; 2]) = ([600, 3600, 28_800, 86_400], [600, 3600]);

/// The ranges of time that a request asks for, by kind of statistics.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct TimeRanges {
    pub(crate) lengths: Option<TimeRange>,
    pub(crate) messages: Option<TimeRange>,
    pub(crate) data: Option<TimeRange>,
    pub(crate) node: Option<TimeRange>,
}

impl TimeRanges {
    fn of(&self, kind: StatsKind) -> Option<TimeRange> {
        match kind {
            StatsKind::Lengths => self.lengths,
            StatsKind::Messages => self.messages,
            StatsKind::Data => self.data,
            StatsKind::Node => self.node,
        }
    }
}

/// The change of an object's numbers over time.
#[derive(Clone, Debug)]
pub(crate) struct Trend<const N: usize> {
    /// Change per second.
    pub(crate) rates: [f64; N],
    /// Time since which no number has changed, in milliseconds of the epoch.
    pub(crate) idle_since_ms: Option<u64>,
    /// Windows over the ranges that the request asks for.
    windows: Vec<(StatsKind, Window<N>)>,
}

impl<const N: usize> Default for Trend<N> {
    fn default() -> Self {
        Self { rates: [0.0; N], idle_since_ms: None, windows: Vec::new() }
    }
}

impl<const N: usize> Trend<N> {
    /// The window over numbers of a kind.
    pub(crate) fn window(&self, kind: StatsKind) -> Option<&Window<N>> {
        self.windows.iter().find(|(of, _)| *of == kind).map(|(_, window)| window)
    }

    /// Adds the trend of another object for the same ranges.
    pub(crate) fn add(&mut self, other: &Self) {
        self.rates.iter_mut().zip(other.rates).for_each(|(rate, other)| *rate += other);
        if self.windows.is_empty() {
            self.windows.clone_from(&other.windows);
            return;
        }
        for ((_, sums), (_, others)) in self.windows.iter_mut().zip(&other.windows) {
            for ((_, sums), (_, others)) in sums.iter_mut().zip(others) {
                sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
            }
        }
    }
}

/// The history of everything, shared between threads.
#[derive(Default, Debug)]
pub struct SharedHistory(RwLock<History>);

impl SharedHistory {
    /// Reads the history. `read` must be short and format nothing.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&History) -> T) -> T {
        // A writer that panicked left the history whole.
        read(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a sample taken at `at_ms`, in milliseconds of the epoch.
    pub fn add(&self, at_ms: u64, sample: Sample) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).add(at_ms, sample);
    }

    /// Deletes all samples, but keeps the counts of deleted vhosts.
    pub(crate) fn clear(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// The series of a vhost.
#[derive(Debug)]
struct VhostHistory {
    totals: Series<{ VHOST.len() }>,
    queues: BTreeMap<QueueNumber, Series<{ fields::QUEUE.len() }>>,
    exchanges: BTreeMap<ExchangeId, Series<{ fields::EXCHANGE.len() }>>,
    channels: BTreeMap<ChannelKey, Series<{ fields::CHANNEL.len() }>>,
}

/// The series of everything.
#[derive(Debug)]
pub(crate) struct History {
    /// Time of the last sample, in milliseconds of the epoch.
    last_ms: Option<u64>,
    node: Series<{ fields::NODE.len() }>,
    vhosts: BTreeMap<String, VhostHistory>,
    /// Connections by number of the client.
    connections: BTreeMap<u64, Series<{ fields::CONNECTION.len() }>>,
    /// Counts of deleted vhosts.
    deleted: VhostNumbers,
}

impl Default for History {
    fn default() -> Self {
        Self {
            last_ms: None,
            node: Series::new(&GLOBAL, None),
            vhosts: BTreeMap::new(),
            connections: BTreeMap::new(),
            deleted: [0; VHOST.len()],
        }
    }
}

impl History {
    /// Adds a sample. Objects that it does not contain were deleted.
    fn add(&mut self, at_ms: u64, sample: Sample) {
        let push = Push {
            at_ms,
            before_ms: self.last_ms.replace(at_ms),
            samples_max: sample.samples_max(),
        };
        let mut old = std::mem::take(&mut self.vhosts);
        for vhost in sample.vhosts {
            let mut of = old.remove(&vhost.name).unwrap_or_else(|| VhostHistory {
                totals: Series::new(&GLOBAL, push.before_ms),
                queues: BTreeMap::new(),
                exchanges: BTreeMap::new(),
                channels: BTreeMap::new(),
            });
            of.totals.push(&GLOBAL, at_ms, vhost.totals, HISTORY_SAMPLES_MAX);
            of.queues = push.replace(of.queues, vhost.queues);
            of.exchanges = push.replace(of.exchanges, vhost.exchanges);
            of.channels = push.replace(of.channels, vhost.channels);
            self.vhosts.insert(vhost.name, of);
        }
        for of in old.into_values() {
            if let Some(last) = of.totals.last() {
                add_counts(&mut self.deleted, &last);
            }
        }
        let connections = std::mem::take(&mut self.connections);
        self.connections = push.replace(connections, sample.connections);
        self.node.push(&GLOBAL, at_ms, sample.node, HISTORY_SAMPLES_MAX);
    }

    /// Deletes all samples, but keeps the counts of deleted vhosts.
    fn clear(&mut self) {
        let lost = std::mem::take(self);
        self.deleted = lost.deleted;
    }

    /// Counts of vhosts that are not among `live`.
    pub(crate) fn of_deleted_vhosts(&self, live: &[String]) -> VhostNumbers {
        let mut deleted = self.deleted;
        for (name, of) in &self.vhosts {
            if let Some(last) = of.totals.last()
                && !live.contains(name)
            {
                add_counts(&mut deleted, &last);
            }
        }
        deleted
    }

    /// Approximate bytes of all series.
    pub(crate) fn bytes(&self) -> u64 {
        let vhosts = self.vhosts.values().map(|of| {
            let parts = [
                of.totals.bytes(),
                of.queues.values().map(Series::bytes).sum(),
                of.exchanges.values().map(Series::bytes).sum(),
                of.channels.values().map(Series::bytes).sum(),
            ];
            parts.iter().sum::<usize>()
        });
        let connections = self.connections.values().map(Series::bytes);
        (vhosts.chain(connections).sum::<usize>() + self.node.bytes()) as u64
    }

    fn now_ms(&self) -> u64 {
        self.last_ms.unwrap_or_default()
    }

    pub(crate) fn of_node(&self, ranges: &TimeRanges) -> Trend<{ fields::NODE.len() }> {
        self.trend(Some(&self.node), &GLOBAL, &fields::NODE, ranges)
    }

    pub(crate) fn of_vhost(&self, name: &str, ranges: &TimeRanges) -> Trend<{ VHOST.len() }> {
        let series = self.vhosts.get(name).map(|of| &of.totals);
        self.trend(series, &GLOBAL, &VHOST, ranges)
    }

    pub(crate) fn of_queue(
        &self,
        vhost: &str,
        queue: QueueNumber,
        ranges: &TimeRanges,
    ) -> Trend<{ fields::QUEUE.len() }> {
        let series = self.vhosts.get(vhost).and_then(|of| of.queues.get(&queue));
        self.trend(series, &BASIC, &fields::QUEUE, ranges)
    }

    pub(crate) fn of_exchange(
        &self,
        vhost: &str,
        exchange: ExchangeId,
        ranges: &TimeRanges,
    ) -> Trend<{ fields::EXCHANGE.len() }> {
        let series = self.vhosts.get(vhost).and_then(|of| of.exchanges.get(&exchange));
        self.trend(series, &BASIC, &fields::EXCHANGE, ranges)
    }

    pub(crate) fn of_channel(
        &self,
        vhost: &str,
        channel: ChannelKey,
        ranges: &TimeRanges,
    ) -> Trend<{ fields::CHANNEL.len() }> {
        let series = self.vhosts.get(vhost).and_then(|of| of.channels.get(&channel));
        self.trend(series, &BASIC, &fields::CHANNEL, ranges)
    }

    pub(crate) fn of_connection(
        &self,
        client: u64,
        ranges: &TimeRanges,
    ) -> Trend<{ fields::CONNECTION.len() }> {
        self.trend(self.connections.get(&client), &BASIC, &fields::CONNECTION, ranges)
    }

    fn trend<const N: usize>(
        &self,
        series: Option<&Series<N>>,
        tiers: &[Tier],
        fields: &[Field; N],
        ranges: &TimeRanges,
    ) -> Trend<N> {
        // An object without a sample had counted nothing.
        let nothing = Series::new(tiers, None);
        let series = series.unwrap_or(&nothing);
        let wanted =
            [StatsKind::Lengths, StatsKind::Messages, StatsKind::Data, StatsKind::Node].into_iter();
        let wanted = wanted.filter(|kind| fields.iter().any(|field| field.kind == *kind));
        let windows = wanted
            .filter_map(|kind| Some((kind, series.window(tiers, self.now_ms(), ranges.of(kind)?))));
        Trend {
            rates: series.rates(),
            idle_since_ms: series.idle_since_ms(),
            windows: windows.collect(),
        }
    }
}

/// A sample that is being added to the series.
#[derive(Clone, Copy)]
struct Push {
    at_ms: u64,
    /// Time of the sample before.
    before_ms: Option<u64>,
    /// Maximum number of samples in each tier of a series.
    samples_max: usize,
}

impl Push {
    /// Adds numbers to the series of the same keys. Drops the series of other keys.
    fn replace<K: Ord + Copy, const N: usize>(
        self,
        mut old: BTreeMap<K, Series<N>>,
        numbers: Vec<(K, [u64; N])>,
    ) -> BTreeMap<K, Series<N>> {
        let with_series = numbers.into_iter().map(|(key, values)| {
            let known = old.remove(&key);
            let mut series = known.unwrap_or_else(|| Series::new(&BASIC, self.before_ms));
            series.push(&BASIC, self.at_ms, values, self.samples_max);
            (key, series)
        });
        with_series.collect()
    }
}

/// Adds counters, but not lengths of queues.
fn add_counts(sums: &mut VhostNumbers, last: &VhostNumbers) {
    for (field, (sum, value)) in VHOST.iter().zip(sums.iter_mut().zip(last)) {
        if field.kind != StatsKind::Lengths {
            *sum += value;
        }
    }
}

impl Sample {
    /// The maximum number of samples per object, for the memory bound.
    fn samples_max(&self) -> usize {
        let of_vhost = |vhost: &VhostSample| {
            all_bytes(&vhost.queues) + all_bytes(&vhost.exchanges) + all_bytes(&vhost.channels)
        };
        let bytes = self.vhosts.iter().map(of_vhost).sum::<usize>() + all_bytes(&self.connections);
        (HISTORY_BYTES_MAX / bytes.max(1)).clamp(HISTORY_SAMPLES_MIN, HISTORY_SAMPLES_MAX)
    }
}

/// Bytes that one sample of each object takes in all tiers.
fn all_bytes<K, const N: usize>(numbers: &[(K, [u64; N])]) -> usize {
    numbers.iter().map(|(_, one)| sample_bytes(one) * BASIC.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vhost(name: &str, published: u64, queues: &[(u64, u64)]) -> VhostSample {
        let mut totals = [0; VHOST.len()];
        totals[0] = 5;
        totals[3] = published;
        let numbers = |value| {
            let mut numbers = [0; fields::QUEUE.len()];
            numbers[3] = value;
            numbers
        };
        let queues = queues.iter().map(|(number, value)| (QueueNumber(*number), numbers(*value)));
        VhostSample {
            name: name.to_owned(),
            totals,
            queues: queues.collect(),
            exchanges: Vec::new(),
            channels: Vec::new(),
        }
    }

    fn sample(vhosts: Vec<VhostSample>) -> Sample {
        Sample { node: [0; fields::NODE.len()], vhosts, connections: Vec::new() }
    }

    #[test]
    fn deleted_queue_loses_its_series() {
        let mut history = History::default();
        let rate = |history: &History, queue| {
            history.of_queue("/", QueueNumber(queue), &TimeRanges::default()).rates[3]
        };
        history.add(5000, sample(vec![vhost("/", 0, &[(1, 100)])]));
        assert_eq!(rate(&history, 1), 0.0, "what was there before is not new");
        history.add(10_000, sample(vec![vhost("/", 0, &[(1, 110), (2, 20)])]));
        assert_eq!((rate(&history, 1), rate(&history, 2), rate(&history, 3)), (2.0, 4.0, 0.0));
        history.add(15_000, sample(vec![vhost("/", 0, &[(2, 20)])]));
        assert_eq!(history.vhosts["/"].queues.len(), 1);
        history.clear();
        assert_eq!((rate(&history, 2), history.vhosts.len()), (0.0, 0));
    }

    #[test]
    fn vhost_counters_survive_vhost_deletion() {
        let mut history = History::default();
        history.add(5000, sample(vec![vhost("/", 1, &[]), vhost("a", 20, &[])]));
        let gone = |history: &History, live: &[&str]| {
            let live: Vec<String> = live.iter().map(|name| (*name).to_owned()).collect();
            let gone = history.of_deleted_vhosts(&live);
            (gone[0], gone[3])
        };
        assert_eq!(gone(&history, &["/", "a"]), (0, 0));
        assert_eq!(gone(&history, &["/"]), (0, 20));
        history.add(10_000, sample(vec![vhost("/", 1, &[])]));
        assert_eq!(gone(&history, &["/"]), (0, 20));
        history.clear();
        assert_eq!(gone(&history, &["/"]), (0, 20));
    }

    #[test]
    fn trends_are_summed_by_time() {
        let mut history = History::default();
        for at_s in [5, 10] {
            history
                .add(at_s * 1000, sample(vec![vhost("/", at_s, &[]), vhost("a", 10 * at_s, &[])]));
        }
        let span = Some(TimeRange { age_ms: 5000, step_ms: 5000 });
        let ranges = TimeRanges { messages: span, ..TimeRanges::default() };
        let mut sum = Trend::default();
        for name in ["/", "a", "none"] {
            sum.add(&history.of_vhost(name, &ranges));
        }
        assert_eq!(sum.rates[3], 11.0);
        let published: Vec<_> =
            sum.window(StatsKind::Messages).unwrap().iter().map(|(at, n)| (*at, n[3])).collect();
        assert_eq!(published, [(10_000, 110), (5000, 55)]);
        assert!(sum.window(StatsKind::Lengths).is_none());
    }

    #[test]
    fn sample_limit_falls_with_the_number_of_objects() {
        let with = |queues: u64| {
            let queues: Vec<_> = (0..queues).map(|number| (number, 0)).collect();
            sample(vec![vhost("/", 0, &queues)]).samples_max()
        };
        assert_eq!((with(0), with(1000)), (HISTORY_SAMPLES_MAX, HISTORY_SAMPLES_MAX));
        let (some, more) = (with(10_000), with(20_000));
        assert!(HISTORY_SAMPLES_MAX > some && some > more && more > HISTORY_SAMPLES_MIN);
        assert_eq!(with(1_000_000), HISTORY_SAMPLES_MIN);
    }
}
