//! Findings about queues.

use broker::dead_letter::DeathReason;
use broker::{DropCause, Overflow, Severity, words};
use server::snapshot::queue::QueueView;

use super::{Finding, FindingKind, Resource, ResourceKind, VhostFacts, rate_in_words, subject};
use crate::limits::{LATE_DEADLINE_US, SHORT_CAPACITY_PPM, SLOW_UNACKED_MIN, SLOW_UNACKED_S};

/// The change of a queue's numbers, per second.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct QueueRates {
    /// Messages in the queue.
    pub(crate) messages: f64,
    /// Deliveries to consumers and `basic.get`.
    pub(crate) delivered: f64,
    pub(crate) acknowledged: f64,
    /// Messages that consumers have not acknowledged.
    pub(crate) unacked: f64,
    /// Publishes and dead letters that the full queue refused.
    pub(crate) refused: f64,
    /// Messages dropped or dead-lettered because of the length limit.
    pub(crate) over_limit: f64,
    /// Messages that died, although the queue has a dead-letter exchange, without a dead letter.
    pub(crate) lost: f64,
    /// Messages that died in the queue, which has no dead-letter exchange.
    pub(crate) dropped: f64,
}

/// A queue in the eyes of one question.
#[derive(Clone, Copy)]
struct Seen<'a> {
    vhost: &'a VhostFacts,
    queue: &'a QueueView,
    rates: &'a QueueRates,
}

impl Seen<'_> {
    fn resource(self, rate: Option<f64>, detail: String) -> Resource {
        Resource {
            kind: ResourceKind::Queue,
            vhost: Some(self.vhost.name.clone()),
            name: self.queue.name.to_string(),
            rate,
            detail,
        }
    }

    fn with_rate(self, rate: f64) -> Resource {
        self.resource(Some(rate), rate_in_words(rate))
    }

    fn with_messages(self, rate: f64) -> Resource {
        self.resource(Some(rate), words::count(self.queue.levels.total().messages, "message"))
    }

    fn has_no_route(self) -> bool {
        // The names are sorted.
        self.vhost.without_route.binary_search_by(|name| (**name).cmp(&self.queue.name)).is_ok()
    }

    fn grows(self) -> bool {
        self.rates.messages > 0.0
    }
}

/// All findings about queues.
pub(super) fn find(vhosts: &[VhostFacts]) -> impl Iterator<Item = Finding> {
    let all: Vec<Seen<'_>> = vhosts
        .iter()
        .flat_map(|vhost| {
            vhost.queues.iter().map(move |(queue, rates)| Seen { vhost, queue, rates })
        })
        .collect();
    let found = dead_letters(&all).into_iter().chain(full(&all));
    let found = found.chain(consumers(&all)).chain([slow(&all), dropped(&all), late(&all)]);
    let found: Vec<Option<Finding>> = found.collect();
    found.into_iter().flatten()
}

/// Finds queues whose dead letters are lost, have no route, or wait.
fn dead_letters(all: &[Seen<'_>]) -> [Option<Finding>; 3] {
    let losing = |one: &Seen<'_>| one.rates.lost > 0.0;
    let lost = all.iter().filter(|one| losing(one)).map(|one| one.with_rate(one.rates.lost));
    let lost = Finding::of(
        FindingKind::DeadLettersLost,
        Severity::Error,
        lost.collect(),
        |count, rate| {
            let queues = subject(count, "queue", ["loses", "lose"]);
            format!("{queues} dead letters ({}).", rate_in_words(rate))
        },
    );
    let no_route =
        all.iter().filter(|one| one.has_no_route() && !one.queue.rules.keeps_dead_letters);
    let no_route = no_route.filter(|one| !losing(one)).map(|one| one.resource(None, String::new()));
    let no_route = Finding::of(
        FindingKind::DeadLettersWithoutRoute,
        Severity::Warning,
        no_route.collect(),
        |count, _| {
            let queues = subject(count, "queue", ["has", "have"]);
            format!(
                "{queues} a dead-letter exchange that leads to no queue: dead letters would be lost."
            )
        },
    );
    let waiting = all.iter().filter(|one| {
        one.queue.levels.pending.messages > 0
            && (one.has_no_route() || !one.queue.rules.has_dead_letter_exchange)
    });
    let waiting = waiting.map(|one| {
        one.resource(None, words::count(one.queue.levels.pending.messages, "dead letter"))
    });
    let waiting = Finding::of(
        FindingKind::DeadLettersWait,
        Severity::Warning,
        waiting.collect(),
        |count, _| {
            let queues = subject(count, "queue", ["keeps", "keep"]);
            format!("{queues} dead letters that reach no queue.")
        },
    );
    [lost, no_route, waiting]
}

/// Finds queues at their length limit.
fn full(all: &[Seen<'_>]) -> [Option<Finding>; 3] {
    let drops = |one: &Seen<'_>| one.queue.rules.overflow == Overflow::DropHead;
    let refuses = |one: &Seen<'_>| !drops(one) && (one.queue.is_full() || one.rates.refused > 0.0);
    let refusing = all.iter().filter(|one| refuses(one));
    let refusing = refusing.map(|one| one.with_rate(one.rates.refused));
    let refusing = Finding::of(
        FindingKind::QueueRefuses,
        Severity::Warning,
        refusing.collect(),
        |count, rate| {
            let queues = subject(count, "queue", ["is full and refuses", "are full and refuse"]);
            format!("{queues} publishes ({}).", rate_in_words(rate))
        },
    );
    let dropping = |is_wanted: fn(f64) -> bool| -> Vec<Resource> {
        let full = all.iter().filter(|one| drops(one) && one.queue.is_full());
        let wanted = full.filter(|one| is_wanted(one.rates.over_limit));
        wanted.map(|one| one.with_rate(one.rates.over_limit)).collect()
    };
    let kind = FindingKind::QueueDrops;
    let busy = Finding::of(kind, Severity::Warning, dropping(|rate| rate > 0.0), |count, rate| {
        let queues = subject(count, "queue", ["is full and drops its", "are full and drop their"]);
        format!("{queues} oldest messages ({}).", rate_in_words(rate))
    });
    let idle = Finding::of(kind, Severity::Info, dropping(|rate| rate <= 0.0), |count, _| {
        let queues = subject(count, "queue", ["is full: the", "are full: each"]);
        format!("{queues} next message removes the oldest.")
    });
    [refusing, busy, idle]
}

/// Finds queues that grow without consumers, and queues whose consumers take no more.
fn consumers(all: &[Seen<'_>]) -> [Option<Finding>; 3] {
    let growing = all.iter().filter(|one| {
        let queue = one.queue;
        queue.levels.consumers == 0
            && !queue.rules.has_ttl
            && one.rates.delivered <= 0.0
            && one.grows()
    });
    let growing = growing.map(|one| one.with_messages(one.rates.messages));
    let growing = Finding::of(
        FindingKind::QueueGrows,
        Severity::Warning,
        growing.collect(),
        |count, rate| {
            let queues = subject(count, "queue", ["grows and has", "grow and have"]);
            format!("{queues} no consumer ({}).", rate_in_words(rate))
        },
    );
    let at_limit = |is_wanted: fn(&Seen<'_>) -> bool| -> Vec<Resource> {
        let limited = all.iter().filter(|one| {
            let queue = &one.queue.levels;
            queue.consumers > 0
                && queue.ready.messages > 0
                && queue.consumer_capacity_ppm < SHORT_CAPACITY_PPM
        });
        let wanted = limited.filter(|one| is_wanted(one));
        wanted
            .map(|one| {
                one.resource(None, words::count(one.queue.levels.ready.messages, "ready message"))
            })
            .collect()
    };
    let kind = FindingKind::ConsumersAtLimit;
    let subject = |count| subject(count, "queue", ["waits", "wait"]);
    let stuck = at_limit(|one| one.grows() || one.rates.acknowledged <= 0.0);
    let stuck = Finding::of(kind, Severity::Warning, stuck, |count, _| {
        let queues = subject(count);
        format!(
            "{queues} for consumers at their prefetch limit, which acknowledge nothing or less than \
             arrives."
        )
    });
    let busy = at_limit(|one| !one.grows() && one.rates.acknowledged > 0.0);
    let busy = Finding::of(kind, Severity::Info, busy, |count, _| {
        format!("{} for consumers at their prefetch limit, which acknowledge.", subject(count))
    });
    [growing, stuck, busy]
}

/// Finds queues whose consumers take messages faster than they acknowledge them.
fn slow(all: &[Seen<'_>]) -> Option<Finding> {
    let is_slow = |one: &&Seen<'_>| {
        let unacked = one.queue.levels.unacked.messages;
        let soon = one.rates.acknowledged * f64::from(SLOW_UNACKED_S);
        one.rates.unacked > 0.0 && unacked >= SLOW_UNACKED_MIN && (unacked as f64) > soon
    };
    let slow = all.iter().filter(is_slow).map(|one| {
        let unacked = words::number(one.queue.levels.unacked.messages);
        one.resource(Some(one.rates.unacked), format!("{unacked} unacknowledged"))
    });
    let kind = FindingKind::ConsumersSlow;
    Finding::of(kind, Severity::Warning, slow.collect(), |count, rate| {
        let queues = subject(count, "queue", ["has", "have"]);
        let rate = rate_in_words(rate);
        format!("{queues} consumers that take more than they acknowledge ({rate} more).")
    })
}

/// The messages that died in a queue for want of a dead-letter exchange, by reason.
pub(crate) fn dropped_by_reason(queue: &QueueView) -> Vec<(DeathReason, u64)> {
    let dropped = queue.counters.deaths().dropped;
    let counts = dropped
        .iter()
        .map(|(reason, by_cause)| (reason, by_cause.get(DropCause::NoDeadLetterExchange)));
    counts.filter(|(_, count)| *count > 0).collect()
}

/// Finds queues without a dead-letter exchange in which messages have died.
fn dropped(all: &[Seen<'_>]) -> Option<Finding> {
    let mut total = 0;
    let dropped = all.iter().filter(|one| !one.queue.rules.has_dead_letter_exchange);
    let dropped = dropped.filter_map(|one| {
        let by_reason = dropped_by_reason(one.queue);
        total += by_reason.iter().map(|(_, count)| count).sum::<u64>();
        let words = by_reason.iter().map(|(reason, count)| in_words(*reason, *count));
        let detail = words.collect::<Vec<String>>().join(", ");
        (!detail.is_empty()).then(|| one.resource(Some(one.rates.dropped), detail))
    });
    let dropped = dropped.collect();
    Finding::of(FindingKind::MessagesDropped, Severity::Info, dropped, |count, _| {
        let queues = words::count(count, "queue");
        let has = if count == 1 { "has" } else { "have" };
        let messages = words::count(total, "message");
        format!("{queues} without a dead-letter exchange {has} dropped {messages}.")
    })
}

/// A number of deaths with their reason, in RabbitMQ's word: `91 expired`.
pub(crate) fn in_words(reason: DeathReason, count: u64) -> String {
    format!("{} {}", words::number(count), reason.as_str())
}

/// Finds queues with messages that should have expired.
fn late(all: &[Seen<'_>]) -> Option<Finding> {
    let late = all.iter().filter(|one| one.queue.levels.overdue_us >= LATE_DEADLINE_US);
    let longest_us = late.clone().map(|one| one.queue.levels.overdue_us).max().unwrap_or_default();
    let late = late.map(|one| {
        one.resource(None, format!("{} late", words::duration(one.queue.levels.overdue_us / 1000)))
    });
    Finding::of(FindingKind::DeadlinesLate, Severity::Warning, late.collect(), |count, _| {
        let queues = subject(count, "queue", ["has", "have"]);
        let longest = words::duration(longest_us / 1000);
        format!("{queues} messages that should have expired up to {longest} ago.")
    })
}
