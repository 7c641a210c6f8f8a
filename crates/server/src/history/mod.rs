//! Samples of everything over time, and the rates computed from them.
//!
//! The server takes a sample at an interval and passes its time. Readers copy numbers out under the lock and
//! format them without it. Memory is bounded by [`HISTORY_BYTES_MAX`]: the more objects change, the shorter
//! their history. Idle objects do not shorten it.

#[cfg(test)]
mod model;
mod sample;
mod series;
mod times;

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use broker::{ExchangeId, QueueNumber};

use crate::limits::HISTORY_BYTES_MAX;
use crate::snapshot::fields::{self, Field, StatsKind, VHOST, VhostNumbers};

pub use sample::ChannelKey;
pub(crate) use sample::{Sample, Sampling, VhostSample};
use series::Series;
pub use series::Window;
pub use times::TimeRange;
use times::{Tick, Tier, Times};

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
pub const RETENTION_S: ([u64; 4], [u64; 2]) = ([600, 3600, 28_800, 86_400], [600, 3600]);

/// The ranges of time that a request asks for, by kind of statistics.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TimeRanges {
    /// Range for numbers of messages.
    pub lengths: Option<TimeRange>,
    /// Range for operations on messages.
    pub messages: Option<TimeRange>,
    /// Range for bytes over sockets.
    pub data: Option<TimeRange>,
    /// Range for resources of the node.
    pub node: Option<TimeRange>,
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
pub struct Trend<const N: usize> {
    /// Change per second.
    pub rates: [f64; N],
    /// Time since which no number has changed, in milliseconds of the epoch.
    pub idle_since_ms: Option<u64>,
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
    pub fn window(&self, kind: StatsKind) -> Option<&Window<N>> {
        self.windows.iter().find(|(of, _)| *of == kind).map(|(_, window)| window)
    }

    /// Adds the trend of another object for the same ranges. Both have samples of the same times, as far back
    /// as each existed; before, it had counted nothing.
    pub fn add(&mut self, other: &Self) {
        self.rates.iter_mut().zip(other.rates).for_each(|(rate, other)| *rate += other);
        if self.windows.is_empty() {
            self.windows.clone_from(&other.windows);
            return;
        }
        for ((_, sums), (_, others)) in self.windows.iter_mut().zip(&other.windows) {
            for ((_, sums), (_, others)) in sums.iter_mut().zip(others) {
                sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
            }
            sums.extend(others.iter().skip(sums.len()).copied());
        }
    }
}

/// The history of everything, shared between threads.
#[derive(Default, Debug)]
pub struct SharedHistory(RwLock<History>);

impl SharedHistory {
    /// Reads the history. `read` must be short and format nothing.
    pub fn read<T>(&self, read: impl FnOnce(&History) -> T) -> T {
        // A writer that panicked left the history whole.
        read(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a sample taken at `at_ms`, in milliseconds of the epoch.
    pub(crate) fn add(&self, at_ms: u64, sample: Sample) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).add(at_ms, sample);
    }

    /// Deletes all samples, but keeps the counts of deleted vhosts.
    pub fn clear(&self) {
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
pub struct History {
    /// Times of samples of the node and the vhosts.
    global: Times,
    /// Times of samples of queues, exchanges, channels and connections.
    basic: Times,
    /// Maximum bytes of samples of queues, exchanges, channels and connections that are not idle.
    bytes_max: usize,
    node: Option<Series<{ fields::NODE.len() }>>,
    vhosts: BTreeMap<String, VhostHistory>,
    /// Connections by number of the client.
    connections: BTreeMap<u64, Series<{ fields::CONNECTION.len() }>>,
    /// Counts of deleted vhosts.
    deleted: VhostNumbers,
}

impl Default for History {
    fn default() -> Self {
        Self {
            global: Times::new(&GLOBAL),
            basic: Times::new(&BASIC),
            bytes_max: HISTORY_BYTES_MAX,
            node: None,
            vhosts: BTreeMap::new(),
            connections: BTreeMap::new(),
            deleted: [0; VHOST.len()],
        }
    }
}

impl History {
    /// Adds a sample. Objects that it does not contain were deleted.
    fn add(&mut self, at_ms: u64, sample: Sample) {
        let (global, basic) = (self.global.add(at_ms), self.basic.add(at_ms));
        let mut old = std::mem::take(&mut self.vhosts);
        for vhost in sample.vhosts {
            let mut of = old.remove(&vhost.name).unwrap_or_else(|| VhostHistory {
                totals: Series::new(&global),
                queues: BTreeMap::new(),
                exchanges: BTreeMap::new(),
                channels: BTreeMap::new(),
            });
            of.totals.push(&global, vhost.totals);
            of.queues = replace(&basic, of.queues, vhost.queues);
            of.exchanges = replace(&basic, of.exchanges, vhost.exchanges);
            of.channels = replace(&basic, of.channels, vhost.channels);
            self.vhosts.insert(vhost.name, of);
        }
        for of in old.into_values() {
            if let Some(last) = of.totals.last() {
                add_counts(&mut self.deleted, &last);
            }
        }
        self.connections =
            replace(&basic, std::mem::take(&mut self.connections), sample.connections);
        self.node.get_or_insert_with(|| Series::new(&global)).push(&global, sample.node);
        while self.spare_bytes() > self.bytes_max && self.basic.shorten() {
            self.cut();
        }
    }

    /// Bytes that a shorter history would free.
    fn spare_bytes(&self) -> usize {
        let of_vhost = |of: &VhostHistory| {
            let queues: usize = of.queues.values().map(Series::spare_bytes).sum();
            let exchanges: usize = of.exchanges.values().map(Series::spare_bytes).sum();
            let channels: usize = of.channels.values().map(Series::spare_bytes).sum();
            queues + exchanges + channels
        };
        let connections: usize = self.connections.values().map(Series::spare_bytes).sum();
        self.vhosts.values().map(of_vhost).sum::<usize>() + connections
    }

    /// Drops samples older than the oldest times.
    fn cut(&mut self) {
        let oldest = self.basic.oldest();
        for of in self.vhosts.values_mut() {
            of.queues.values_mut().for_each(|series| series.cut(&oldest));
            of.exchanges.values_mut().for_each(|series| series.cut(&oldest));
            of.channels.values_mut().for_each(|series| series.cut(&oldest));
        }
        self.connections.values_mut().for_each(|series| series.cut(&oldest));
    }

    /// Deletes all samples, but keeps the counts of deleted vhosts.
    fn clear(&mut self) {
        let lost = std::mem::take(self);
        self.deleted = lost.deleted;
    }

    /// Counts of vhosts that are not among `live`.
    pub fn of_deleted_vhosts(&self, live: &[String]) -> VhostNumbers {
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
    pub fn bytes(&self) -> u64 {
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
        let node = self.node.iter().map(Series::bytes);
        vhosts.chain(connections).chain(node).sum::<usize>() as u64
    }

    /// The trend of the node.
    pub fn of_node(&self, ranges: &TimeRanges) -> Trend<{ fields::NODE.len() }> {
        trend(self.node.as_ref(), &self.global, &fields::NODE, ranges)
    }

    /// The trend of a vhost.
    pub fn of_vhost(&self, name: &str, ranges: &TimeRanges) -> Trend<{ VHOST.len() }> {
        let series = self.vhosts.get(name).map(|of| &of.totals);
        trend(series, &self.global, &VHOST, ranges)
    }

    /// The trend of a queue.
    pub fn of_queue(
        &self,
        vhost: &str,
        queue: QueueNumber,
        ranges: &TimeRanges,
    ) -> Trend<{ fields::QUEUE.len() }> {
        let series = self.vhosts.get(vhost).and_then(|of| of.queues.get(&queue));
        trend(series, &self.basic, &fields::QUEUE, ranges)
    }

    /// The trend of an exchange.
    pub fn of_exchange(
        &self,
        vhost: &str,
        exchange: ExchangeId,
        ranges: &TimeRanges,
    ) -> Trend<{ fields::EXCHANGE.len() }> {
        let series = self.vhosts.get(vhost).and_then(|of| of.exchanges.get(&exchange));
        trend(series, &self.basic, &fields::EXCHANGE, ranges)
    }

    /// The trend of a channel.
    pub fn of_channel(
        &self,
        vhost: &str,
        channel: ChannelKey,
        ranges: &TimeRanges,
    ) -> Trend<{ fields::CHANNEL.len() }> {
        let series = self.vhosts.get(vhost).and_then(|of| of.channels.get(&channel));
        trend(series, &self.basic, &fields::CHANNEL, ranges)
    }

    /// The trend of a connection.
    pub fn of_connection(
        &self,
        client: u64,
        ranges: &TimeRanges,
    ) -> Trend<{ fields::CONNECTION.len() }> {
        trend(self.connections.get(&client), &self.basic, &fields::CONNECTION, ranges)
    }
}

/// The trend of an object, which has no series before its first sample.
fn trend<const N: usize>(
    series: Option<&Series<N>>,
    times: &Times,
    fields: &[Field; N],
    ranges: &TimeRanges,
) -> Trend<N> {
    let kinds = [StatsKind::Lengths, StatsKind::Messages, StatsKind::Data, StatsKind::Node];
    let kinds = kinds.into_iter().filter(|kind| fields.iter().any(|field| field.kind == *kind));
    let window = |kind| {
        let moments = times.moments(ranges.of(kind)?);
        Some((kind, series.map(|series| series.window(&moments)).unwrap_or_default()))
    };
    let mut rates = series.map_or([0.0; N], Series::rates);
    for (rate, field) in rates.iter_mut().zip(fields) {
        // Less than before: counted anew, as by another leader.
        if field.is_counter() && *rate < 0.0 {
            *rate = 0.0;
        }
    }
    Trend {
        rates,
        idle_since_ms: series.and_then(Series::idle_since_ms),
        windows: kinds.filter_map(window).collect(),
    }
}

/// Adds numbers to the series of the same keys. Drops the series of other keys.
fn replace<K: Ord + Copy, const N: usize>(
    tick: &Tick,
    mut old: BTreeMap<K, Series<N>>,
    numbers: Vec<(K, [u64; N])>,
) -> BTreeMap<K, Series<N>> {
    let with_series = numbers.into_iter().map(|(key, values)| {
        let mut series = old.remove(&key).unwrap_or_else(|| Series::new(tick));
        series.push(tick, values);
        (key, series)
    });
    with_series.collect()
}

/// Adds counters, but not lengths of queues.
fn add_counts(sums: &mut VhostNumbers, last: &VhostNumbers) {
    for (field, (sum, value)) in VHOST.iter().zip(sums.iter_mut().zip(last)) {
        if field.kind != StatsKind::Lengths {
            *sum += value;
        }
    }
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
    fn counter_that_falls_has_no_rate() {
        let mut history = History::default();
        history.add(5000, sample(vec![vhost("/", 130, &[(1, 130)])]));
        history.add(10_000, sample(vec![vhost("/", 10, &[(1, 10)])]));
        let ranges = TimeRanges::default();
        assert_eq!(history.of_vhost("/", &ranges).rates[3], 0.0);
        assert_eq!(history.of_queue("/", QueueNumber(1), &ranges).rates[3], 0.0);
        // Numbers of messages may fall.
        let mut shorter = vhost("/", 20, &[]);
        shorter.totals[0] = 0;
        history.add(15_000, sample(vec![shorter]));
        let rates = history.of_vhost("/", &ranges).rates;
        assert_eq!((rates[0], rates[3]), (-1.0, 2.0));
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
    fn younger_vhost_adds_no_step_to_the_sum() {
        let mut history = History::default();
        for at_s in 1..=20 {
            let young = (at_s > 10).then(|| vhost("young", 7 * at_s, &[]));
            let all = std::iter::once(vhost("/", 10 * at_s, &[])).chain(young);
            history.add(at_s * 5000, sample(all.collect()));
        }
        let span = Some(TimeRange { age_ms: 600_000, step_ms: 5000 });
        let ranges = TimeRanges { messages: span, ..TimeRanges::default() };
        let mut sum = Trend::default();
        for name in ["young", "/"] {
            sum.add(&history.of_vhost(name, &ranges));
        }
        let window = sum.window(StatsKind::Messages).unwrap();
        assert_eq!(window.len(), 20);
        let of = |at: usize| window[at].1[3];
        assert_eq!((of(0), of(9), of(10), of(19)), (340, 187, 100, 10));
    }

    /// Ten minutes of a history: the first `busy` queues change all the time.
    fn ten_minutes(busy: u64, idle: u64, bytes_max: usize) -> History {
        let mut history = History { bytes_max, ..History::default() };
        for at_s in (0..1200).step_by(5) {
            let of = |number| if number < busy { at_s } else { 1 };
            let queues: Vec<_> = (0..busy + idle).map(|number| (number, of(number))).collect();
            history.add(at_s * 1000, sample(vec![vhost("/", at_s, &queues)]));
        }
        history
    }

    /// Samples of the first queue over ten minutes.
    fn window_of_the_first(history: &History) -> Vec<(u64, u64)> {
        let span = Some(TimeRange { age_ms: 600_000, step_ms: 5000 });
        let ranges = TimeRanges { messages: span, ..TimeRanges::default() };
        let trend = history.of_queue("/", QueueNumber(0), &ranges);
        let window = trend.window(StatsKind::Messages).unwrap();
        window.iter().map(|(at_ms, numbers)| (*at_ms, numbers[3])).collect()
    }

    #[test]
    fn idle_queues_do_not_shorten_the_history_of_busy_ones() {
        let ten_busy = ten_minutes(10, 0, usize::MAX);
        let enough = ten_busy.spare_bytes();
        for idle in [0, 500] {
            let history = ten_minutes(10, idle, enough);
            assert_eq!(window_of_the_first(&history), window_of_the_first(&ten_busy));
            assert_eq!(window_of_the_first(&history).len(), 121);
        }
    }

    #[test]
    fn shortened_history_has_no_step() {
        let history = ten_minutes(10, 0, ten_minutes(10, 0, usize::MAX).spare_bytes() / 4);
        assert!(history.spare_bytes() <= history.bytes_max);
        let window = window_of_the_first(&history);
        assert!((2..121).contains(&window.len()) && window[1].0 == 1_190_000, "{window:?}");
        assert!(window.iter().all(|(at_ms, published)| *at_ms == published * 1000), "{window:?}");
    }
}
