//! The delays of the dead-letter map: delayed exchanges, delayed retry, and messages before their delivery time.

use std::collections::{BTreeMap, BTreeSet};

use broker::{DelayPlace, DelayedRetry, DelayedRetryType, MapDelay, MapQueue, RetryDelays};
use serde_json::{Value, json};

use crate::api::dead_letters::mapped::Mapped;
use crate::api::dead_letters::selection::MapQuery;
use crate::limits::{MAP_DELAYS_MAX, NAMED_TOGETHER_MAX};

/// A delay of the answer, or a group of queues with the same delayed retry.
struct Entry<'a> {
    mapped: &'a Mapped,
    /// The first stands for the others in all but numbers.
    first: &'a MapDelay,
    others: Vec<&'a MapDelay>,
}

/// The delays that the query selects.
pub(super) struct Delays<'a> {
    shown: Vec<Entry<'a>>,
    /// Delays of the whole map.
    pub(super) total: usize,
    /// Delays that the filter selects.
    pub(super) filtered: usize,
    /// Entries that the filter selects: delays, and groups of delays.
    pub(super) entries: usize,
}

impl<'a> Delays<'a> {
    pub(super) fn of(vhosts: &'a [Mapped], query: &MapQuery) -> Self {
        let mut entries = Vec::new();
        for mapped in vhosts {
            let new = |first| Entry { mapped, first, others: Vec::new() };
            entries.extend(mapped.map.delays.iter().map(new));
        }
        let total = entries.len();
        // No warning is about a delay.
        entries.retain(|one| !query.has_warning && matches(one, query));
        let filtered = entries.len();
        if query.is_grouped {
            entries = group(entries);
        }
        // The sort is stable: delays with as many messages stay ordered by vhost, kind and name.
        entries.sort_by_key(|one| std::cmp::Reverse(one.messages()));
        let count = entries.len();
        entries.truncate(MAP_DELAYS_MAX);
        Self { shown: entries, total, filtered, entries: count }
    }

    /// The delays of the answer, those with the most messages first.
    pub(super) fn json(&self) -> Vec<Value> {
        self.shown.iter().map(Entry::json).collect()
    }

    /// The queues of a vhost that the answer shows for its delays.
    pub(super) fn queues_in(&self, mapped: &Mapped) -> impl Iterator<Item = usize> {
        let of_vhost = self.shown.iter().filter(move |one| std::ptr::eq(one.mapped, mapped));
        of_vhost.flat_map(|one| one.first.to.iter().copied().take(NAMED_TOGETHER_MAX))
    }
}

fn matches(entry: &Entry<'_>, query: &MapQuery) -> bool {
    let name = |name: &str| query.list.matches_name(name);
    let is_exchange = matches!(&entry.first.at, DelayPlace::Exchange(exchange) if name(exchange));
    is_exchange || entry.first.to.iter().any(|to| name(entry.mapped.name(*to)))
}

/// Joins delayed retries of the same rule. A queue that is part of a dead-letter route or behind a delayed exchange
/// keeps an entry of its own, because a picture has the queue.
fn group(entries: Vec<Entry<'_>>) -> Vec<Entry<'_>> {
    let mut groups: Vec<Entry<'_>> = Vec::new();
    let mut known = BTreeMap::new();
    let mut shown: Option<(*const Mapped, BTreeSet<usize>)> = None;
    for entry in entries {
        let mapped: *const Mapped = entry.mapped;
        let shown = match &mut shown {
            Some((of, shown)) if *of == mapped => shown,
            other => &mut other.insert((mapped, shown_elsewhere(entry.mapped))).1,
        };
        let queue = match &entry.first.at {
            DelayPlace::Retry(queue) if !shown.contains(queue) => {
                entry.mapped.map.queues.get(*queue)
            }
            DelayPlace::Retry(_) | DelayPlace::Exchange(_) | DelayPlace::Schedule(_) => None,
        };
        let Some(queue) = queue else {
            groups.push(entry);
            continue;
        };
        let key = (entry.mapped.vhost.as_str(), rule(queue).to_string());
        match known.get(&key).and_then(|at: &usize| groups.get_mut(*at)) {
            Some(group) => group.others.push(entry.first),
            None => {
                known.insert(key, groups.len());
                groups.push(entry);
            }
        }
    }
    groups
}

/// The queues at either end of a dead-letter route, behind a delayed exchange, or with messages before their delivery
/// time.
fn shown_elsewhere(mapped: &Mapped) -> BTreeSet<usize> {
    let map = &mapped.map;
    let delays = map.delays.iter().filter(|delay| !matches!(delay.at, DelayPlace::Retry(_)));
    let mut queues = mapped.targets();
    queues.extend(map.edges.iter().map(|edge| edge.from));
    queues.extend(delays.flat_map(|delay| delay.to.iter().copied()));
    queues
}

impl Entry<'_> {
    fn delays(&self) -> impl Iterator<Item = &MapDelay> {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }

    fn messages(&self) -> u64 {
        self.delays().map(|delay| delay.messages).sum()
    }

    fn json(&self) -> Value {
        let Self { mapped, first, others } = self;
        let queue = first.at.queue();
        let exchange = match &first.at {
            DelayPlace::Exchange(name) => Some(&**name),
            DelayPlace::Retry(_) | DelayPlace::Schedule(_) => None,
        };
        let names = self.delays().filter_map(|delay| delay.at.queue());
        let names: Vec<&str> =
            names.take(NAMED_TOGETHER_MAX).map(|queue| mapped.name(queue)).collect();
        let to = first.to.iter().take(NAMED_TOGETHER_MAX).map(|to| mapped.name(*to));
        let retry = match &first.at {
            DelayPlace::Retry(queue) => mapped.map.queues.get(*queue).map(rule),
            DelayPlace::Exchange(_) | DelayPlace::Schedule(_) => None,
        };
        json!({
            "vhost": mapped.vhost,
            "kind": first.at.as_str(),
            "from_queue": queue.map(|queue| mapped.name(queue)),
            "from_queues": names,
            "from_queues_total": queue.map_or(0, |_| 1 + others.len()),
            "exchange": exchange,
            "to_queues": to.collect::<Vec<&str>>(),
            "to_queues_total": first.to.len(),
            "certain": first.is_certain,
            "anywhere": first.is_anywhere,
            "messages": self.messages(),
            "next_time_ms": self.delays().filter_map(|delay| delay.next_at).min().map(|at| at.as_micros() / 1000),
            "retry": retry,
        })
    }
}

/// The delayed retry of a queue; null if only single messages wait there, because their consumers asked for this.
fn rule(queue: &MapQueue) -> Value {
    let retry = queue.settings.delayed_retry.as_deref();
    let retry = retry.filter(|retry| retry.kind != DelayedRetryType::Disabled);
    retry.map_or(Value::Null, described)
}

fn described(retry: &DelayedRetry) -> Value {
    let (min_ms, max_ms, multiplier, schedule) = match &retry.delays {
        RetryDelays::Linear { min_ms, max_ms } => (Some(min_ms), Some(max_ms), None, None),
        RetryDelays::Exponential { min_ms, max_ms, multiplier } => {
            (Some(min_ms), Some(max_ms), Some(multiplier.as_f64()), None)
        }
        RetryDelays::Schedule(schedule) => (None, None, None, Some(schedule.as_str())),
    };
    json!({
        "type": retry.kind.as_str(),
        "count": retry.count.as_str(),
        "min_ms": min_ms,
        "max_ms": max_ms,
        "multiplier": multiplier,
        "jitter": retry.jitter.map(broker::Ratio::as_f64),
        "schedule": schedule,
    })
}
