//! Expired, dead-lettered and dropped messages, and the lateness of expiry. RabbitMQ has no such metrics.

use broker::dead_letter::DeathReason;
use broker::statistics::{Lateness, VhostCounters};
use broker::{ByCause, ByReason, DeathCounters, DropCause, QueueCounters};
use server::snapshot::queue::QueueView;
use server::snapshot::scrape::VhostScrape;

use crate::metrics::family::Detail;
use crate::metrics::text::{Kind, Labels, Namespace, Samples, Text, Value, labels};

/// Numbers of messages that left a queue, or the queues of a vhost, other than by delivery.
#[derive(Debug)]
pub(super) struct DeathCounts {
    refused: u64,
    dead_lettered: ByReason<u64>,
    dropped: ByReason<ByCause>,
    copies_dropped: ByCause,
    redriven: u64,
    /// Purged messages; none for a vhost.
    purged: Option<u64>,
}

impl From<&VhostScrape> for DeathCounts {
    fn from(vhost: &VhostScrape) -> Self {
        let VhostCounters { refused, dead_lettered, dropped, copies_dropped, redriven, .. } =
            vhost.counters;
        Self { refused, dead_lettered, dropped, copies_dropped, redriven, purged: None }
    }
}

impl From<&QueueView> for DeathCounts {
    fn from(queue: &QueueView) -> Self {
        let QueueCounters { refused, purged, .. } = queue.counters;
        let DeathCounters { dead_lettered, dropped, copies_dropped, redriven, .. } =
            queue.counters.deaths();
        Self { refused, dead_lettered, dropped, copies_dropped, redriven, purged: Some(purged) }
    }
}

impl DeathCounts {
    /// Messages that died for `reason`, dead-lettered or dropped.
    fn died(&self, reason: DeathReason) -> u64 {
        self.dead_lettered.get(reason) + self.dropped.get(reason).total()
    }
}

/// Writes the families of `queue_death_metrics`. A vhost has a sample for every count, as it outlives its
/// queues; a queue only for counts above 0.
pub(super) fn write(
    text: &mut Text,
    namespace: Namespace,
    counts: &[DeathCounts],
    labels: &Labels,
    detail: Detail,
) {
    let tells_zeros = detail == Detail::Totals;
    let mut family =
        |name: &str, help: &str, put: &dyn Fn(&mut Samples<'_>, &str, &DeathCounts)| {
            let mut samples = text.family(namespace, name, Kind::Counter, help);
            for (count, labels) in counts.iter().zip(labels.iter()) {
                put(&mut samples, labels, count);
            }
        };
    family(
        "queue_messages_expired_total",
        "Messages that expired, dead-lettered or not",
        &|samples, labels, count| samples.put(labels, count.died(DeathReason::Expired)),
    );
    family("queue_messages_refused_total", "Messages that a full queue refused", {
        &|samples, labels, count| samples.put(labels, count.refused)
    });
    family("queue_messages_purged_total", "Messages purged", &|samples, labels, count| {
        if let Some(purged) = count.purged {
            samples.put(labels, purged);
        }
    });
    family(
        "queue_messages_dead_lettered_total",
        "Messages that died and became dead letters",
        &|samples, labels, count| {
            for reason in DeathReason::ALL {
                let labels = format!("{labels},reason=\"{reason}\"");
                samples.put(&labels, count.dead_lettered.get(reason));
            }
        },
    );
    let put_causes = |samples: &mut Samples<'_>, labels: &str, counts: ByCause| {
        for cause in DropCause::ALL {
            let count = counts.get(cause);
            if count > 0 || tells_zeros {
                samples.put(&format!("{labels},cause=\"{}\"", cause.as_str()), count);
            }
        }
    };
    family(
        "queue_messages_dropped_total",
        "Messages that died and left nothing",
        &|samples, labels, count| {
            for reason in DeathReason::ALL {
                let labels = format!("{labels},reason=\"{reason}\"");
                put_causes(samples, &labels, count.dropped.get(reason));
            }
        },
    );
    family(
        "queue_dead_letter_copies_dropped_total",
        "Dead letters that one of several targets did not take",
        &|samples, labels, count| put_causes(samples, labels, count.copies_dropped),
    );
    family(
        "queue_messages_redriven_total",
        "Messages that were redriven from a queue",
        &|samples, labels, count| {
            if count.redriven > 0 || tells_zeros {
                samples.put(labels, count.redriven);
            }
        },
    );
}

/// Writes the deaths by the reason that a consumer gave, by vhost on every endpoint: consumers choose the reasons, so
/// the vhost limits their number.
pub(super) fn given_reasons(text: &mut Text, namespace: Namespace, vhosts: &[VhostScrape]) {
    let mut samples = text.family(
        namespace,
        "queue_messages_died_by_given_reason_total",
        Kind::Counter,
        "Messages that died with a reason that their consumer gave",
    );
    for vhost in vhosts {
        for (reason, count) in vhost.given_reasons.iter() {
            samples.put(&labels(&[("vhost", &vhost.name), ("given_reason", reason)]), count);
        }
    }
}

/// A histogram of lateness by vhost: name, help, and value.
struct LatenessFamily {
    name: &'static str,
    help: &'static str,
    value: fn(&VhostCounters) -> &Lateness,
}

const LATENESS: [LatenessFamily; 4] = [
    LatenessFamily {
        name: "message_expiry_lateness_seconds",
        help: "How long after its deadline a message expired",
        value: |counters| &counters.message_expiry,
    },
    LatenessFamily {
        name: "queue_expiry_lateness_seconds",
        help: "How long after the end of its lease an unused queue expired",
        value: |counters| &counters.queue_expiry,
    },
    LatenessFamily {
        name: "scheduled_delivery_lateness_seconds",
        help: "How long after its delivery time a scheduled message was ready or routed",
        value: |counters| &counters.scheduled_delivery,
    },
    LatenessFamily {
        name: "retry_lateness_seconds",
        help: "How long after the end of its delay a returned message was ready again",
        value: |counters| &counters.retry,
    },
];

/// Writes the families of `expiry_lateness_metrics`.
pub(super) fn lateness(text: &mut Text, namespace: Namespace, vhosts: &[VhostScrape]) {
    for LatenessFamily { name, help, value } in LATENESS {
        let mut samples = text.family(namespace, name, Kind::Histogram, help);
        for vhost in vhosts {
            let lateness = value(&vhost.counters);
            let buckets = lateness.cumulative();
            let buckets = buckets.map(|(bound, up_to)| (bound.map(Value::Micros), up_to));
            let labels = labels(&[("vhost", &vhost.name)]);
            samples.histogram(&labels, buckets, Value::Micros(lateness.sum_us()));
        }
    }
}
