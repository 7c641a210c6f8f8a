//! Expired, dead-lettered and dropped messages, and the lateness of expiry. RabbitMQ has no such metrics.

use broker::dead_letter::DeathReason;
use broker::statistics::{Lateness, VhostCounters};
use broker::{ByCause, ByReason, Deaths, DropCause, QueueCounters};

use crate::metrics::family::Detail;
use crate::metrics::text::{Kind, Labels, Namespace, Samples, Text, Value, labels};
use crate::snapshot::scrape::{QueueScrape, VhostScrape};

/// Numbers of messages that left a queue, or the queues of a vhost, other than by delivery.
#[derive(Debug)]
pub(super) struct Fate {
    refused: u64,
    dead_lettered: ByReason<u64>,
    dropped: ByReason<ByCause>,
    copies_dropped: ByCause,
    redriven: u64,
    /// Purged messages; none for a vhost.
    purged: Option<u64>,
}

impl From<&VhostScrape> for Fate {
    fn from(vhost: &VhostScrape) -> Self {
        let VhostCounters { refused, dead_lettered, dropped, copies_dropped, redriven, .. } =
            vhost.counters;
        Self { refused, dead_lettered, dropped, copies_dropped, redriven, purged: None }
    }
}

impl From<&QueueScrape> for Fate {
    fn from(queue: &QueueScrape) -> Self {
        let QueueCounters { refused, purged, .. } = queue.counters;
        let Deaths { dead_lettered, dropped, copies_dropped, redriven } = queue.counters.deaths();
        Self { refused, dead_lettered, dropped, copies_dropped, redriven, purged: Some(purged) }
    }
}

impl Fate {
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
    fates: &[Fate],
    labels: &Labels,
    detail: Detail,
) {
    let tells_zeros = detail == Detail::Totals;
    let mut family = |name: &str, help: &str, put: &dyn Fn(&mut Samples<'_>, &str, &Fate)| {
        let mut samples = text.family(namespace, name, Kind::Counter, help);
        for (fate, labels) in fates.iter().zip(labels.iter()) {
            put(&mut samples, labels, fate);
        }
    };
    family(
        "queue_messages_expired_total",
        "Messages that expired, whatever became of them",
        &|samples, labels, fate| samples.put(labels, fate.died(DeathReason::Expired)),
    );
    family("queue_messages_refused_total", "Messages that a full queue refused", {
        &|samples, labels, fate| samples.put(labels, fate.refused)
    });
    family("queue_messages_purged_total", "Messages purged", &|samples, labels, fate| {
        if let Some(purged) = fate.purged {
            samples.put(labels, purged);
        }
    });
    family(
        "queue_messages_dead_lettered_total",
        "Messages that died and became dead letters",
        &|samples, labels, fate| {
            for reason in DeathReason::ALL {
                let labels = format!("{labels},reason=\"{reason}\"");
                samples.put(&labels, fate.dead_lettered.get(reason));
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
        &|samples, labels, fate| {
            for reason in DeathReason::ALL {
                let labels = format!("{labels},reason=\"{reason}\"");
                put_causes(samples, &labels, fate.dropped.get(reason));
            }
        },
    );
    family(
        "queue_dead_letter_copies_dropped_total",
        "Dead letters that one of several targets did not take",
        &|samples, labels, fate| put_causes(samples, labels, fate.copies_dropped),
    );
    family(
        "queue_messages_redriven_total",
        "Messages that were redriven from a queue",
        &|samples, labels, fate| {
            if fate.redriven > 0 || tells_zeros {
                samples.put(labels, fate.redriven);
            }
        },
    );
}

/// A histogram of lateness by vhost: name, help, and value.
type Late = (&'static str, &'static str, fn(&VhostCounters) -> &Lateness);

const LATENESS: [Late; 2] = [
    (
        "message_expiry_lateness_seconds",
        "How long after its deadline a message expired",
        |counters| &counters.message_expiry,
    ),
    (
        "queue_expiry_lateness_seconds",
        "How long after the end of its lease an unused queue expired",
        |counters| &counters.queue_expiry,
    ),
];

/// Writes the families of `expiry_lateness_metrics`.
pub(super) fn lateness(text: &mut Text, namespace: Namespace, vhosts: &[VhostScrape]) {
    for (name, help, of) in LATENESS {
        let mut samples = text.family(namespace, name, Kind::Histogram, help);
        for vhost in vhosts {
            let lateness = of(&vhost.counters);
            let buckets = lateness.cumulative();
            let buckets = buckets.map(|(bound, up_to)| (bound.map(Value::Micros), up_to));
            let labels = labels(&[("vhost", &vhost.name)]);
            samples.histogram(&labels, buckets, Value::Micros(lateness.sum_us()));
        }
    }
}
