//! `rabbitmq_global_*`: counters since the start, including deleted queues and closed channels.

use broker::dead_letter::DeathReason;
use broker::statistics::{
    DeathsByStrategy, MESSAGE_SIZE_BOUNDS, MessageSizes, Strategy, VhostCounters,
};
use broker::{Deliveries, QueueType};
use server::snapshot::scrape::VhostScrape;

use crate::metrics::text::{Kind, Namespace, Text, Value, labels};

/// The only protocol of messages.
const PROTOCOL: &str = "amqp091";

/// RabbitMQ's name for the queues that direct replies seem to come from.
const VOLATILE: &str = "rabbit_volatile_queue";

/// A counter summed over the vhosts.
struct PublishFamily {
    name: &'static str,
    help: &'static str,
    value: fn(&VhostCounters) -> u64,
}

const fn published(
    name: &'static str,
    help: &'static str,
    value: fn(&VhostCounters) -> u64,
) -> PublishFamily {
    PublishFamily { name, help, value }
}

const PUBLISHED: [PublishFamily; 16] = [
    published("global_messages_received_total", "Messages published", |v| v.published),
    published(
        "global_messages_received_confirm_total",
        "Messages published on channels that confirm",
        |v| v.published_for_confirm,
    ),
    published(
        "global_messages_routed_total",
        "Queues that publishes were routed to, in all",
        |v| v.routed,
    ),
    published("global_messages_confirmed_total", "Publishes confirmed", |v| v.confirmed),
    published(
        "global_messages_unroutable_dropped_total",
        "Publishes that no queue got and that were dropped",
        |v| v.dropped_unroutable,
    ),
    published(
        "global_messages_unroutable_returned_total",
        "Publishes that no queue got and that came back",
        |v| v.returned_unroutable,
    ),
    published(
        "global_messages_direct_replies_dropped_total",
        "Direct replies whose requester was gone or did not read",
        |v| v.direct_replies_dropped,
    ),
    published(
        "global_messages_death_headers_cut_total",
        "Dead letters whose headers do not tell all of their history",
        |v| v.death_headers_cut,
    ),
    published(
        "global_messages_firehose_untold_total",
        "What the firehose did not tell because an alarm was on",
        |v| v.firehose_untold,
    ),
    published(
        "global_messages_scheduled_total",
        "Messages that began to wait for their delivery time",
        |v| v.schedules.scheduled,
    ),
    published(
        "global_messages_scheduled_released_total",
        "Scheduled messages whose delivery time came",
        |v| v.schedules.released,
    ),
    published(
        "global_messages_scheduled_cancelled_total",
        "Scheduled messages that were cancelled",
        |v| v.schedules.cancelled,
    ),
    published(
        "global_messages_scheduled_rescheduled_total",
        "Scheduled messages that got another delivery time",
        |v| v.schedules.rescheduled,
    ),
    published(
        "global_messages_scheduled_replaced_total",
        "Scheduled messages that a publish with the same schedule id replaced",
        |v| v.schedules.replaced,
    ),
    published(
        "global_messages_scheduled_kept_total",
        "Publishes that were dropped because their schedule id was in use",
        |v| v.schedules.kept,
    ),
    published(
        "global_messages_scheduled_ignored_total",
        "Publishes whose delivery time was ignored because of the type of its header",
        |v| v.schedules.ignored,
    ),
];

/// A counter of deliveries, by type of queue.
struct DeliveryFamily {
    name: &'static str,
    help: &'static str,
    value: fn(&Deliveries) -> u64,
    /// True if the counter includes direct replies.
    has_direct_replies: bool,
}

const fn delivered(
    name: &'static str,
    help: &'static str,
    value: fn(&Deliveries) -> u64,
    has_direct_replies: bool,
) -> DeliveryFamily {
    DeliveryFamily { name, help, value, has_direct_replies }
}

const DELIVERED: [DeliveryFamily; 8] = [
    delivered(
        "global_messages_delivered_total",
        "Messages delivered, to consumers and to gets",
        Deliveries::all,
        true,
    ),
    delivered(
        "global_messages_delivered_consume_manual_ack_total",
        "Messages delivered to consumers that acknowledge",
        Deliveries::delivered,
        false,
    ),
    delivered(
        "global_messages_delivered_consume_auto_ack_total",
        "Messages delivered to consumers that need not acknowledge",
        Deliveries::delivered_no_ack,
        true,
    ),
    delivered(
        "global_messages_delivered_get_manual_ack_total",
        "Answers to gets that are to be acknowledged",
        Deliveries::got,
        false,
    ),
    delivered(
        "global_messages_delivered_get_auto_ack_total",
        "Answers to gets that need no acknowledgement",
        Deliveries::got_no_ack,
        false,
    ),
    delivered(
        "global_messages_get_empty_total",
        "Gets that found nothing",
        |d| d.got_nothing,
        false,
    ),
    delivered(
        "global_messages_redelivered_total",
        "Deliveries of messages that had been delivered before",
        |d| d.redelivered,
        false,
    ),
    delivered(
        "global_messages_acknowledged_total",
        "Messages acknowledged",
        |d| d.acknowledged,
        false,
    ),
];

/// Writes all of them.
pub(super) fn write(text: &mut Text, vhosts: &[VhostScrape]) {
    let sum = |value: fn(&VhostCounters) -> u64| vhosts.iter().map(|v| value(&v.counters)).sum();
    let protocol = labels(&[("protocol", PROTOCOL)]);
    for PublishFamily { name, help, value } in PUBLISHED {
        let value: u64 = sum(value);
        text.family(Namespace::Plain, name, Kind::Counter, help).put(&protocol, value);
    }
    let channels = || vhosts.iter().flat_map(|vhost| &vhost.channels);
    let publishers = channels().filter(|channel| channel.counters.published > 0).count() as u64;
    let consumers: u64 = channels().map(|channel| channel.consumers).sum();
    for (name, help, value) in [
        ("global_publishers", "Channels on which something was published", publishers),
        ("global_consumers", "Consumers", consumers),
        (
            "global_messages_dying",
            "Messages that died and wait for the end of an alarm",
            sum(|v| v.deaths_waiting),
        ),
    ] {
        text.family(Namespace::Plain, name, Kind::Gauge, help).put(&protocol, value);
    }
    write_delivered(text, vhosts, sum(|v| v.direct_replies));
    dead_lettered(text, vhosts);
    sizes(text, vhosts, &protocol);
}

fn write_delivered(text: &mut Text, vhosts: &[VhostScrape], direct_replies: u64) {
    let mut by_type = [Deliveries::default(); QueueType::ALL.len()];
    for vhost in vhosts {
        by_type.iter_mut().zip(&vhost.deliveries).for_each(|(sum, part)| sum.add(part));
    }
    for DeliveryFamily { name, help, value, has_direct_replies } in DELIVERED {
        let mut samples = text.family(Namespace::Plain, name, Kind::Counter, help);
        for (kind, of_type) in QueueType::ALL.iter().zip(&by_type) {
            let labels = labels(&[("protocol", PROTOCOL), ("queue_type", kind.module())]);
            samples.put(&labels, value(of_type));
        }
        let labels = labels(&[("protocol", PROTOCOL), ("queue_type", VOLATILE)]);
        samples.put(&labels, if has_direct_replies { direct_replies } else { 0 });
    }
}

fn dead_lettered(text: &mut Text, vhosts: &[VhostScrape]) {
    let sum = |kind, strategy, reason| -> u64 {
        let of = |deaths: &DeathsByStrategy| deaths.get(kind, strategy, reason);
        vhosts.iter().map(|vhost| of(&vhost.counters.deaths)).sum()
    };
    let labels = |kind: QueueType, strategy: Strategy| {
        labels(&[("queue_type", kind.module()), ("dead_letter_strategy", strategy.as_str())])
    };
    for reason in DeathReason::ALL {
        let name = format!("global_messages_dead_lettered_{reason}_total");
        let help = format!("Messages that died with reason {reason}");
        let mut samples = text.family(Namespace::Plain, &name, Kind::Counter, &help);
        for kind in QueueType::ALL {
            for strategy in Strategy::ALL {
                samples.put(&labels(kind, strategy), sum(kind, strategy, reason));
            }
        }
    }
    let name = "global_messages_dead_lettered_confirmed_total";
    let help = "Dead letters that at-least-once has moved to another queue";
    let mut samples = text.family(Namespace::Plain, name, Kind::Counter, help);
    for kind in QueueType::ALL {
        let strategy = Strategy::AtLeastOnce;
        let moved: u64 = vhosts.iter().map(|vhost| vhost.counters.deaths.confirmed(kind)).sum();
        samples.put(&labels(kind, strategy), moved);
    }
}

fn sizes(text: &mut Text, vhosts: &[VhostScrape], protocol: &str) {
    let sizes = || vhosts.iter().map(|vhost| &vhost.counters.message_sizes);
    let bounds = MESSAGE_SIZE_BOUNDS.iter().map(|bound| Some(Value::Whole(*bound)));
    let mut up_to = 0;
    let buckets = bounds.chain([None]).enumerate().map(|(at, bound)| {
        up_to += sizes().filter_map(|sizes| sizes.buckets().get(at)).sum::<u64>();
        (bound, up_to)
    });
    let help = "How large the bodies of publishes were";
    let mut samples = text.family(Namespace::Plain, "message_size_bytes", Kind::Histogram, help);
    let sum = sizes().map(MessageSizes::sum_bytes).sum::<u64>();
    samples.histogram(protocol, buckets, sum.into());
}
