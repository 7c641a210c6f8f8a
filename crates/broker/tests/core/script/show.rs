//! Output of `show`, `policies`, `consumers` and `counters`: the state of a vhost as lines of text.

use std::fmt::Write as _;

use amqp::properties::Properties;
use broker::dead_letter::DeathReason;
use broker::statistics::Strategy;
use broker::time::{Now, Time};
use broker::{
    DeathOutcome, Definition, Deliveries, DropCause, Envelope, Policy, QueueType, RecordedDeath,
    Vhost,
};

/// The messages in a queue, and counts of those that have left it.
pub(crate) fn queue(vhost: &Vhost, name: &str) -> String {
    let Some(queue) = vhost.queue(name) else {
        return format!("{name} is gone");
    };
    let mut out = format!("{name}: ready={}", queue.ready_count());
    let mut add = |what: &str, count: u64| {
        if count > 0 {
            write!(out, " {what}={count}").unwrap();
        }
    };
    add("unacked", queue.unacked_count());
    add("delayed", queue.delayed_count());
    add("pending", queue.pending_count());
    let start_ms = 1_000_000_000;
    add("held-until-ms", queue.held_until().map_or(0, |at| at.as_micros() / 1000 - start_ms));
    add("bytes", queue.ready_bytes());
    if queue.persistent().messages < queue.message_count() {
        add("persistent", queue.persistent().messages);
    }
    add("refused", queue.counters.refused);
    for reason in DeathReason::ALL {
        add(&format!("dead-lettered({reason})"), queue.counters.deaths().dead_lettered.get(reason));
        for cause in DropCause::ALL {
            let dropped = queue.counters.deaths().dropped.get(reason).get(cause);
            add(&format!("dropped({reason},{})", cause.as_str()), dropped);
        }
    }
    for cause in DropCause::ALL {
        let copies = queue.counters.deaths().copies_dropped.get(cause);
        add(&format!("copies-dropped({})", cause.as_str()), copies);
    }
    add("redriven", queue.counters.deaths().redriven);
    add("purged", queue.counters.purged);
    out
}

/// Shows if a queue refuses publishes.
pub(crate) fn is_full(vhost: &Vhost, name: &str) -> String {
    match vhost.queue(name).map(broker::Queue::refuses_publishes) {
        None => format!("{name} is gone"),
        Some(true) => format!("{name} refuses publishes"),
        Some(false) => format!("{name} accepts publishes"),
    }
}

/// The consumer capacity of a queue.
pub(crate) fn capacity(vhost: &Vhost, name: &str, now: Time) -> String {
    match vhost.queue(name) {
        None => format!("{name} is gone"),
        Some(queue) => {
            format!("{name}: capacity {} %", (queue.consumer_capacity_ppm(now) + 5000) / 10_000)
        }
    }
}

/// The arrival time of the oldest message in a queue and its earliest deadline, in milliseconds.
pub(crate) fn ages(vhost: &mut Vhost, name: &str) -> String {
    let id = vhost.queues().find(|(_, queue)| *queue.name == *name).map(|(id, _)| id);
    let Some(id) = id else { return format!("{name} is gone") };
    vhost.forget_gone_deadlines(id);
    let queue = vhost.queue_of(id).unwrap();
    let millis = |time: Option<Time>| {
        time.map_or_else(|| "none".to_owned(), |time| (time.as_micros() / 1000).to_string())
    };
    let (oldest, first) = (millis(queue.oldest_arrival()), millis(queue.first_deadline()));
    format!("{name}: oldest={oldest} first-deadline={first} published={}", queue.counters.published)
}

/// The policies in force for a queue or an exchange, and what they say together.
pub(crate) fn policies(vhost: &Vhost, name: &str) -> String {
    let in_force = match (vhost.queue(name), vhost.exchange(name)) {
        (Some(queue), _) => queue.policies.clone(),
        (None, Some(_)) => vhost.policies().for_exchange(name),
        (None, None) => return format!("{name} is gone"),
    };
    let name_of = |policy: &Policy| policy.name.to_string();
    let none = || "none".to_owned();
    format!(
        "{name}: policy={} operator-policy={} {}",
        in_force.user.as_deref().map_or_else(none, name_of),
        in_force.operator.as_deref().map_or_else(none, name_of),
        definition(&in_force.definition())
    )
}

fn definition(definition: &Definition) -> String {
    let entries: Vec<String> =
        definition.iter().map(|(key, value)| format!("{}={value}", key.as_str())).collect();
    format!("{{{}}}", entries.join(" "))
}

/// The consumers of a queue, in the order in which they came.
pub(crate) fn consumers(vhost: &Vhost, name: &str) -> String {
    let Some(queue) = vhost.queue(name) else {
        return format!("{name} is gone");
    };
    let consumers: Vec<String> = queue
        .consumers()
        .map(|c| {
            let mut out = format!("{} unacked={} prefetch={}", c.tag, c.unacked, c.prefetch_count);
            if c.no_ack {
                out.push_str(" no-ack");
            }
            if c.exclusive {
                out.push_str(" exclusive");
            }
            if c.priority != 0 {
                write!(out, " priority={}", c.priority).unwrap();
            }
            out
        })
        .collect();
    format!("{name}: [{}]", consumers.join(", "))
}

/// The counters of the vhost that are not zero.
pub(crate) fn counters(vhost: &Vhost) -> String {
    let counters = vhost.counters();
    let mut out = "counters:".to_owned();
    let mut add = |what: &str, count: u64| {
        if count > 0 {
            write!(out, " {what}={count}").unwrap();
        }
    };
    add("published", counters.published);
    add("confirmed", counters.confirmed);
    add("returned", counters.returned_unroutable);
    add("unroutable", counters.dropped_unroutable);
    add("replies-dropped", counters.direct_replies_dropped);
    add("waiting-deaths", counters.deaths_waiting);
    add("untold", counters.firehose_untold);
    add("refused", counters.refused);
    for cause in DropCause::ALL {
        add(&format!("copies-dropped({})", cause.as_str()), counters.copies_dropped.get(cause));
    }
    add("connections-closed", counters.connections_closed);
    add("channels-closed", counters.channels_closed);
    add("queues-declared", counters.queues_declared);
    add("queues-created", counters.queues_created);
    add("queues-deleted", counters.queues_deleted);
    for reason in DeathReason::ALL {
        add(&format!("dead-lettered({reason})"), counters.dead_lettered.get(reason));
        for cause in DropCause::ALL {
            let dropped = counters.dropped.get(reason).get(cause);
            add(&format!("dropped({reason},{})", cause.as_str()), dropped);
        }
    }
    for (kind, gone) in QueueType::ALL.iter().zip(&counters.delivered_from_gone) {
        deliveries(gone, &mut |what, count| add(&format!("{}-gone-{what}", kind.as_str()), count));
        add(&format!("{}-confirmed", kind.as_str()), counters.deaths.confirmed(*kind));
        for strategy in Strategy::ALL {
            for reason in DeathReason::ALL {
                let what = format!("{}-{}({reason})", kind.as_str(), strategy.as_str());
                add(&what, counters.deaths.get(*kind, strategy, reason));
            }
        }
    }
    add("redriven", counters.redriven);
    add("expiries", counters.message_expiry.count());
    add("latest-expiry-us", counters.message_expiry.max_us());
    add("scheduled-deliveries", counters.scheduled_delivery.count());
    add("latest-scheduled-delivery-us", counters.scheduled_delivery.max_us());
    add("retries", counters.retry.count());
    add("latest-retry-us", counters.retry.max_us());
    add("lease-expiries", counters.queue_expiry.count());
    out
}

/// The counters of every open channel that are not zero.
pub(crate) fn channels(vhost: &Vhost) -> Vec<String> {
    let channels = vhost.connections().flat_map(|(_, connection)| connection.channels());
    let open = channels.filter(|(_, channel)| channel.is_open());
    open.map(|(number, channel)| {
        let counters = &channel.counters;
        let mut out = format!("channel {number}:");
        let mut add = |what: &str, count: u64| {
            if count > 0 {
                write!(out, " {what}={count}").unwrap();
            }
        };
        add("published", counters.published);
        add("confirmed", counters.confirmed);
        add("returned", counters.returned_unroutable);
        add("unroutable", counters.dropped_unroutable);
        add("refused", counters.refused);
        deliveries(&counters.deliveries, &mut add);
        add("unacked", channel.unacked_count() as u64);
        add("unconfirmed", channel.unconfirmed_count() as u64);
        if let Some((publishes, settled)) = channel.uncommitted_counts() {
            add("uncommitted", publishes as u64);
            add("settled-uncommitted", settled as u64);
        }
        out
    })
    .collect()
}

/// The counters of exchanges that have routed messages.
pub(crate) fn exchanges(vhost: &Vhost) -> Vec<String> {
    let used = vhost.exchanges().filter(|(_, exchange)| exchange.counters.published_in > 0);
    used.map(|(_, exchange)| {
        let (into, out) = (exchange.counters.published_in, exchange.counters.published_out);
        let mut shown = format!("exchange '{}': in={into} out={out}", exchange.name);
        for (what, count) in [
            ("returned", exchange.counters.returned_unroutable),
            ("unroutable", exchange.counters.dropped_unroutable),
            ("refused", exchange.counters.refused),
        ] {
            if count > 0 {
                write!(shown, " {what}={count}").unwrap();
            }
        }
        shown
    })
    .collect()
}

fn deliveries(counted: &Deliveries, add: &mut impl FnMut(&str, u64)) {
    add("delivered", counted.delivered());
    add("delivered-no-ack", counted.delivered_no_ack());
    add("got", counted.got());
    add("got-no-ack", counted.got_no_ack());
    add("got-nothing", counted.got_nothing);
    add("redelivered", counted.redelivered);
    add("acknowledged", counted.acknowledged);
}

/// The history of dead letters, the oldest death first.
pub(crate) fn deaths(vhost: &Vhost, now: Now) -> Vec<String> {
    let recorded = vhost.recorded_deaths(now, None, usize::MAX);
    let mut lines: Vec<String> = recorded.deaths.iter().rev().map(death).collect();
    if recorded.forgotten > 0 {
        lines.push(format!("forgotten: {}", recorded.forgotten));
    }
    lines
}

fn death(death: &RecordedDeath) -> String {
    let at = &*death.circumstances;
    let envelope = |envelope: &Envelope| {
        let exchange = if envelope.exchange.is_empty() { "-" } else { &envelope.exchange };
        let keys = envelope.routing_keys().map(ToString::to_string).collect::<Vec<_>>();
        format!("{exchange}/{}", keys.join(","))
    };
    let start_ms = 1_000_000;
    let mut out = format!("death {} at {}ms:", death.number, death.time_ms - start_ms);
    write!(out, " {} in {} from {}", at.reason, at.queue, envelope(&at.published)).unwrap();
    let letter = at.dead_letter.as_deref().map(envelope).unwrap_or_default();
    match &at.outcome {
        DeathOutcome::DeadLettered { queues, queues_total, copies_dropped } => {
            write!(out, ", as {letter} into {queues_total}: {}", queues.join(" ")).unwrap();
            if *copies_dropped > 0 {
                write!(out, ", copies dropped: {copies_dropped}").unwrap();
            }
        }
        DeathOutcome::Kept(cause) => write!(out, ", kept ({})", cause.as_str()).unwrap(),
        DeathOutcome::Dropped(cause) => write!(out, ", dropped ({})", cause.as_str()).unwrap(),
    }
    if let Some(by) = &at.settled_by {
        let consumer = by.consumer_tag.as_deref().unwrap_or("get");
        write!(out, ", by {} on {} with {consumer}", by.user, by.channel.0).unwrap();
    }
    for (kind, policy) in [("policy", &at.policy), ("operator policy", &at.operator_policy)] {
        if let Some(policy) = policy {
            write!(out, ", {kind} {policy}").unwrap();
        }
    }
    let properties = Properties::parse(death.properties()).unwrap();
    if let Some(id) = properties.message_id {
        write!(out, ", message id {}", String::from_utf8_lossy(id)).unwrap();
    }
    out
}
