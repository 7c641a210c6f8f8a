//! What was the case until now: samples of everything, from which rates are made.
//!
//! The server takes samples at an interval; what they say of a moment is copied out here and formatted
//! elsewhere. How much is kept is bounded by [`HISTORY_BYTES_MAX`]: the more things there are that
//! change, the shorter is their history.

mod sample;
mod series;

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use broker::{ChannelNumber, ExchangeId, QueueNumber};

use crate::limits::{HISTORY_BYTES_MAX, HISTORY_SAMPLES_MAX, HISTORY_SAMPLES_MIN};
use crate::snapshot::fields::{self, About, Field, VHOST, VhostNumbers};

pub use sample::{Taken, Taking, VhostTaken};
use series::{Series, Tier, sample_bytes};
pub(crate) use series::{Span, Window};

const SECOND_MS: u64 = 1000;

/// What is kept of queues, exchanges, connections and channels.
const BASIC: [Tier; 2] = [
    Tier { step_ms: 0, kept_ms: 600 * SECOND_MS },
    Tier { step_ms: 60 * SECOND_MS, kept_ms: 3600 * SECOND_MS },
];

/// What is kept of the node and of vhosts.
const GLOBAL: [Tier; 4] = [
    Tier { step_ms: 0, kept_ms: 600 * SECOND_MS },
    Tier { step_ms: 60 * SECOND_MS, kept_ms: 3600 * SECOND_MS },
    Tier { step_ms: 600 * SECOND_MS, kept_ms: 28_800 * SECOND_MS },
    Tier { step_ms: 1800 * SECOND_MS, kept_ms: 86_400 * SECOND_MS },
];

/// Seconds for which samples are kept, as the overview tells: of the node and vhosts, and of the rest.
pub(crate) const RETENTION_S: ([u64; 4], [u64; 2]) = ([600, 3600, 28_800, 86_400], [600, 3600]);

/// Which spans of time a request wants to see.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Spans {
    pub(crate) lengths: Option<Span>,
    pub(crate) messages: Option<Span>,
    pub(crate) data: Option<Span>,
    pub(crate) node: Option<Span>,
}

impl Spans {
    fn about(&self, about: About) -> Option<Span> {
        match about {
            About::Lengths => self.lengths,
            About::Messages => self.messages,
            About::Data => self.data,
            About::Node => self.node,
        }
    }
}

/// How the numbers of one thing change.
#[derive(Clone, Debug)]
pub(crate) struct Trend<const N: usize> {
    /// Change in a second.
    pub(crate) rates: [f64; N],
    /// Since when nothing has changed, in milliseconds of the epoch.
    pub(crate) idle_since_ms: Option<u64>,
    /// What the request wants to see of them.
    windows: Vec<(About, Window<N>)>,
}

impl<const N: usize> Default for Trend<N> {
    fn default() -> Self {
        Self { rates: [0.0; N], idle_since_ms: None, windows: Vec::new() }
    }
}

impl<const N: usize> Trend<N> {
    /// The window of numbers that are about this.
    pub(crate) fn window(&self, about: About) -> Option<&Window<N>> {
        self.windows.iter().find(|(of, _)| *of == about).map(|(_, window)| window)
    }

    /// Adds how another thing changes, which was asked for the same spans.
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

/// Samples of everything, for everybody.
#[derive(Default, Debug)]
pub struct SharedHistory(RwLock<History>);

impl SharedHistory {
    /// Looks at them; to be short, and nothing is formatted meanwhile.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&History) -> T) -> T {
        // Whoever failed while he changed it has left it whole.
        look(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds samples of everything there is, taken at `at_ms`, in milliseconds of the epoch.
    pub fn add(&self, at_ms: u64, taken: Taken) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).add(at_ms, taken);
    }

    /// Forgets all samples, but not what was counted in vhosts that are gone.
    pub(crate) fn clear(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// The samples of a vhost.
#[derive(Debug)]
struct OfVhost {
    totals: Series<{ VHOST.len() }>,
    queues: BTreeMap<QueueNumber, Series<{ fields::QUEUE.len() }>>,
    exchanges: BTreeMap<ExchangeId, Series<{ fields::EXCHANGE.len() }>>,
    channels: BTreeMap<(u64, ChannelNumber), Series<{ fields::CHANNEL.len() }>>,
}

/// Samples of everything.
#[derive(Debug)]
pub(crate) struct History {
    /// When the last was taken, in milliseconds of the epoch.
    last_ms: Option<u64>,
    node: Series<{ fields::NODE.len() }>,
    vhosts: BTreeMap<String, OfVhost>,
    /// By number of the client.
    connections: BTreeMap<u64, Series<{ fields::CONNECTION.len() }>>,
    /// What vhosts had counted that are gone.
    gone: VhostNumbers,
}

impl Default for History {
    fn default() -> Self {
        Self {
            last_ms: None,
            node: Series::new(&GLOBAL, None),
            vhosts: BTreeMap::new(),
            connections: BTreeMap::new(),
            gone: [0; VHOST.len()],
        }
    }
}

impl History {
    /// Adds samples of everything there is. What is not among them is gone.
    fn add(&mut self, at_ms: u64, taken: Taken) {
        let kept_max = taken.kept_max();
        let before_ms = self.last_ms.replace(at_ms);
        let mut old = std::mem::take(&mut self.vhosts);
        for taken in taken.vhosts {
            let mut of = old.remove(&taken.name).unwrap_or_else(|| OfVhost {
                totals: Series::new(&GLOBAL, before_ms),
                queues: BTreeMap::new(),
                exchanges: BTreeMap::new(),
                channels: BTreeMap::new(),
            });
            of.totals.push(&GLOBAL, (at_ms, taken.totals), HISTORY_SAMPLES_MAX);
            let add = (at_ms, before_ms, kept_max);
            of.queues = replaced(of.queues, taken.queues, add);
            of.exchanges = replaced(of.exchanges, taken.exchanges, add);
            of.channels = replaced(of.channels, taken.channels, add);
            self.vhosts.insert(taken.name, of);
        }
        for of in old.into_values() {
            if let Some(last) = of.totals.last() {
                add_counts(&mut self.gone, &last);
            }
        }
        let connections = std::mem::take(&mut self.connections);
        let add = (at_ms, before_ms, kept_max);
        self.connections = replaced(connections, taken.connections, add);
        self.node.push(&GLOBAL, (at_ms, taken.node), HISTORY_SAMPLES_MAX);
    }

    /// Forgets all samples, but not what was counted in vhosts that are gone.
    fn clear(&mut self) {
        let lost = std::mem::take(self);
        self.gone = lost.gone;
    }

    /// What was counted in vhosts that are none of `live`.
    pub(crate) fn gone(&self, live: &[String]) -> VhostNumbers {
        let mut gone = self.gone;
        for (name, of) in &self.vhosts {
            if let Some(last) = of.totals.last()
                && !live.contains(name)
            {
                add_counts(&mut gone, &last);
            }
        }
        gone
    }

    /// Bytes that the samples take, about.
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

    pub(crate) fn of_node(&self, spans: &Spans) -> Trend<{ fields::NODE.len() }> {
        self.trend(Some(&self.node), &GLOBAL, &fields::NODE, spans)
    }

    pub(crate) fn of_vhost(&self, name: &str, spans: &Spans) -> Trend<{ VHOST.len() }> {
        let series = self.vhosts.get(name).map(|of| &of.totals);
        self.trend(series, &GLOBAL, &VHOST, spans)
    }

    pub(crate) fn of_queue(
        &self,
        vhost: &str,
        queue: QueueNumber,
        spans: &Spans,
    ) -> Trend<{ fields::QUEUE.len() }> {
        let series = self.vhosts.get(vhost).and_then(|of| of.queues.get(&queue));
        self.trend(series, &BASIC, &fields::QUEUE, spans)
    }

    pub(crate) fn of_exchange(
        &self,
        vhost: &str,
        exchange: ExchangeId,
        spans: &Spans,
    ) -> Trend<{ fields::EXCHANGE.len() }> {
        let series = self.vhosts.get(vhost).and_then(|of| of.exchanges.get(&exchange));
        self.trend(series, &BASIC, &fields::EXCHANGE, spans)
    }

    pub(crate) fn of_channel(
        &self,
        vhost: &str,
        (client, channel): (u64, ChannelNumber),
        spans: &Spans,
    ) -> Trend<{ fields::CHANNEL.len() }> {
        let series = self.vhosts.get(vhost).and_then(|of| of.channels.get(&(client, channel)));
        self.trend(series, &BASIC, &fields::CHANNEL, spans)
    }

    pub(crate) fn of_connection(
        &self,
        client: u64,
        spans: &Spans,
    ) -> Trend<{ fields::CONNECTION.len() }> {
        self.trend(self.connections.get(&client), &BASIC, &fields::CONNECTION, spans)
    }

    fn trend<const N: usize>(
        &self,
        series: Option<&Series<N>>,
        tiers: &[Tier],
        fields: &[Field; N],
        spans: &Spans,
    ) -> Trend<N> {
        // Of what is too new for a sample there was nothing.
        let nothing = Series::new(tiers, None);
        let series = series.unwrap_or(&nothing);
        let wanted = [About::Lengths, About::Messages, About::Data, About::Node].into_iter();
        let wanted = wanted.filter(|about| fields.iter().any(|field| field.about == *about));
        let windows = wanted.filter_map(|about| {
            Some((about, series.window(tiers, self.now_ms(), spans.about(about)?)))
        });
        Trend {
            rates: series.rates(),
            idle_since_ms: series.idle_since_ms(),
            windows: windows.collect(),
        }
    }
}

/// The series of what was sampled now; those of everything else are dropped.
fn replaced<K: Ord + Copy, const N: usize>(
    mut old: BTreeMap<K, Series<N>>,
    taken: Vec<(K, [u64; N])>,
    (at_ms, before_ms, kept_max): (u64, Option<u64>, usize),
) -> BTreeMap<K, Series<N>> {
    let with_series = taken.into_iter().map(|(key, values)| {
        let known = old.remove(&key);
        let mut series = known.unwrap_or_else(|| Series::new(&BASIC, before_ms));
        series.push(&BASIC, (at_ms, values), kept_max);
        (key, series)
    });
    with_series.collect()
}

/// Adds what was counted, but not what was the case.
fn add_counts(sums: &mut VhostNumbers, last: &VhostNumbers) {
    for (field, (sum, value)) in VHOST.iter().zip(sums.iter_mut().zip(last)) {
        if field.about != About::Lengths {
            *sum += value;
        }
    }
}

impl Taken {
    /// How many samples each thing may keep.
    fn kept_max(&self) -> usize {
        let of_vhost = |vhost: &VhostTaken| {
            all_bytes(&vhost.queues) + all_bytes(&vhost.exchanges) + all_bytes(&vhost.channels)
        };
        let bytes = self.vhosts.iter().map(of_vhost).sum::<usize>() + all_bytes(&self.connections);
        (HISTORY_BYTES_MAX / bytes.max(1)).clamp(HISTORY_SAMPLES_MIN, HISTORY_SAMPLES_MAX)
    }
}

/// Bytes that one sample of each of these takes, in every tier.
fn all_bytes<K, const N: usize>(taken: &[(K, [u64; N])]) -> usize {
    taken.iter().map(|(_, numbers)| sample_bytes(numbers) * BASIC.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vhost(name: &str, published: u64, queues: &[(u64, u64)]) -> VhostTaken {
        let mut totals = [0; VHOST.len()];
        totals[0] = 5;
        totals[3] = published;
        let numbers = |value| {
            let mut numbers = [0; fields::QUEUE.len()];
            numbers[3] = value;
            numbers
        };
        let queues = queues.iter().map(|(number, value)| (QueueNumber(*number), numbers(*value)));
        VhostTaken {
            name: name.to_owned(),
            totals,
            queues: queues.collect(),
            exchanges: Vec::new(),
            channels: Vec::new(),
        }
    }

    fn taken(vhosts: Vec<VhostTaken>) -> Taken {
        Taken { node: [0; fields::NODE.len()], vhosts, connections: Vec::new() }
    }

    #[test]
    fn a_queue_that_goes_takes_its_samples_with_it() {
        let mut history = History::default();
        let rate = |history: &History, queue| {
            history.of_queue("/", QueueNumber(queue), &Spans::default()).rates[3]
        };
        history.add(5000, taken(vec![vhost("/", 0, &[(1, 100)])]));
        assert_eq!(rate(&history, 1), 0.0, "what was there before is not new");
        history.add(10_000, taken(vec![vhost("/", 0, &[(1, 110), (2, 20)])]));
        assert_eq!((rate(&history, 1), rate(&history, 2), rate(&history, 3)), (2.0, 4.0, 0.0));
        history.add(15_000, taken(vec![vhost("/", 0, &[(2, 20)])]));
        assert_eq!(history.vhosts["/"].queues.len(), 1);
        history.clear();
        assert_eq!((rate(&history, 2), history.vhosts.len()), (0.0, 0));
    }

    #[test]
    fn counts_of_vhosts_that_are_gone_are_kept_and_what_waited_there_is_not() {
        let mut history = History::default();
        history.add(5000, taken(vec![vhost("/", 1, &[]), vhost("a", 20, &[])]));
        let gone = |history: &History, live: &[&str]| {
            let live: Vec<String> = live.iter().map(|name| (*name).to_owned()).collect();
            let gone = history.gone(&live);
            (gone[0], gone[3])
        };
        assert_eq!(gone(&history, &["/", "a"]), (0, 0));
        assert_eq!(gone(&history, &["/"]), (0, 20));
        history.add(10_000, taken(vec![vhost("/", 1, &[])]));
        assert_eq!(gone(&history, &["/"]), (0, 20));
        history.clear();
        assert_eq!(gone(&history, &["/"]), (0, 20));
    }

    #[test]
    fn trends_add_up_moment_by_moment() {
        let mut history = History::default();
        for at_s in [5, 10] {
            history
                .add(at_s * 1000, taken(vec![vhost("/", at_s, &[]), vhost("a", 10 * at_s, &[])]));
        }
        let span = Some(Span { age_ms: 5000, step_ms: 5000 });
        let spans = Spans { messages: span, ..Spans::default() };
        let mut sum = Trend::default();
        for name in ["/", "a", "none"] {
            sum.add(&history.of_vhost(name, &spans));
        }
        assert_eq!(sum.rates[3], 11.0);
        let published: Vec<_> =
            sum.window(About::Messages).unwrap().iter().map(|(at, n)| (*at, n[3])).collect();
        assert_eq!(published, [(10_000, 110), (5000, 55)]);
        assert!(sum.window(About::Lengths).is_none());
    }

    #[test]
    fn the_more_there_is_the_less_is_kept_of_each() {
        let with = |queues: u64| {
            let queues: Vec<_> = (0..queues).map(|number| (number, 0)).collect();
            taken(vec![vhost("/", 0, &queues)]).kept_max()
        };
        assert_eq!((with(0), with(1000)), (HISTORY_SAMPLES_MAX, HISTORY_SAMPLES_MAX));
        let (some, more) = (with(10_000), with(20_000));
        assert!(HISTORY_SAMPLES_MAX > some && some > more && more > HISTORY_SAMPLES_MIN);
        assert_eq!(with(1_000_000), HISTORY_SAMPLES_MIN);
    }
}
