//! Problems in queues that dead letters reach: TTLs that are too short, length limits, missing consumers.

use super::warning::{MapWarning, Severity, WarningKind, first_of, keeps};
use super::{DeadLetterMap, MapQueue};
use crate::setting::Overflow;
use crate::words;

/// Summary of the queues whose dead letters reach a queue.
#[derive(Clone, Copy, Default)]
struct Sources {
    count: u64,
    /// The first source queue by name, with the exchange in between.
    first: Option<(usize, usize)>,
    /// The source queue with the longest TTL.
    longest: Option<(u64, usize, usize)>,
    /// True if one of the queues has no TTL.
    has_endless: bool,
    /// True if one of the queues drops dead letters that it cannot deliver.
    has_losing: bool,
}

impl Sources {
    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.first = self.first.into_iter().chain(other.first).min();
        self.longest = self.longest.into_iter().chain(other.longest).max();
        self.has_endless |= other.has_endless;
        self.has_losing |= other.has_losing;
    }
}

/// Checks every queue that dead letters can reach.
pub(super) fn look(map: &DeadLetterMap, warnings: &mut Vec<MapWarning>) {
    let mut of_route = vec![Sources::default(); map.routes.len()];
    for edge in &map.edges {
        let (Some(queue), Some(route)) = (map.from(edge), map.route(edge)) else { continue };
        let ttl_ms = queue.settings.message_ttl_ms;
        let one = Sources {
            count: 1,
            first: Some((edge.from, route.exchange)),
            longest: ttl_ms.map(|ttl_ms| (ttl_ms, edge.from, route.exchange)),
            has_endless: ttl_ms.is_none(),
            has_losing: !keeps(queue),
        };
        of_route.get_mut(edge.route).into_iter().for_each(|sources| sources.add(&one));
    }
    let mut of_queue = vec![Sources::default(); map.queues.len()];
    for (route, sources) in map.routes.iter().zip(&of_route) {
        for to in &route.to {
            of_queue.get_mut(*to).into_iter().for_each(|all| all.add(sources));
        }
    }
    for (at, (queue, sources)) in map.queues.iter().zip(&of_queue).enumerate() {
        let Some((first, exchange)) = sources.first else { continue };
        let Some(source) = map.queues.get(first) else { continue };
        let from = format!("dead letters of {}", first_of(source, sources.count));
        let of = |found: Found| MapWarning {
            severity: found.severity,
            kind: found.kind,
            queue: found.from.map_or(first, |(queue, _)| queue),
            exchange: found.from.map_or(exchange, |(_, exchange)| exchange),
            to_queue: Some(at),
            queues: Vec::new(),
            text: found.text,
        };
        let found = [ttl(map, queue, sources, &from), limit(queue, sources, &from)];
        warnings.extend(found.into_iter().flatten().chain(no_consumer(queue, &from)).map(of));
    }
}

/// A problem found in a queue that dead letters reach.
struct Found {
    severity: Severity,
    kind: WarningKind,
    /// The queue that causes the problem, with the exchange in between, if different from the first source.
    from: Option<(usize, usize)>,
    text: String,
}

/// Reports a TTL that removes dead letters sooner than their source queues would.
fn ttl(map: &DeadLetterMap, queue: &MapQueue, sources: &Sources, from: &str) -> Option<Found> {
    let ttl_ms = queue.settings.message_ttl_ms?;
    if queue.settings.dead_letter.is_some() {
        return None;
    }
    let (name, ttl) = (&queue.name, words::duration(ttl_ms));
    let kind = WarningKind::ShorterTtl;
    if let Some((longer_ms, at, exchange)) = sources.longest.filter(|(ms, _, _)| *ms > ttl_ms) {
        let text = format!(
            "Messages in '{name}' are dropped after {ttl}, sooner than the {} of '{}', whose dead \
             letters arrive there.",
            words::duration(longer_ms),
            map.queues.get(at)?.name
        );
        return Some(Found { severity: Severity::Warning, kind, from: Some((at, exchange)), text });
    }
    let text = format!("Messages in '{name}' are dropped after {ttl}, also {from}.");
    sources.has_endless.then_some(Found { severity: Severity::Info, kind, from: None, text })
}

/// Reports a length limit that refuses dead letters or evicts other messages for them.
fn limit(queue: &MapQueue, sources: &Sources, from: &str) -> Option<Found> {
    let settings = &queue.settings;
    let messages = settings.max_length.map(|most| words::count(most, "message"));
    let bytes = settings.max_length_bytes.map(words::bytes);
    let most = messages.into_iter().chain(bytes).collect::<Vec<_>>().join(" or ");
    if most.is_empty() {
        return None;
    }
    let name = &queue.name;
    let has_way_on = settings.dead_letter.is_some();
    let text = match settings.overflow {
        Overflow::DropHead if !has_way_on => {
            format!("With more than {most} in '{name}', the oldest are dropped, also {from}.")
        }
        Overflow::RejectPublish | Overflow::RejectPublishDlx
            if !queue.kind.takes_dead_letters_over_limit()
                && (settings.overflow == Overflow::RejectPublish || !has_way_on) =>
        {
            let fate = if sources.has_losing { "are dropped" } else { "wait in their queue" };
            format!("'{name}' is full with {most} and then refuses {from}, which {fate}.")
        }
        Overflow::DropHead | Overflow::RejectPublish | Overflow::RejectPublishDlx => return None,
    };
    Some(Found { severity: Severity::Warning, kind: WarningKind::Limit, from: None, text })
}

/// Reports a queue of dead letters that has no consumer.
fn no_consumer(queue: &MapQueue, from: &str) -> Option<Found> {
    // A queue with a TTL removes its messages without a consumer.
    if queue.consumers > 0 || queue.settings.message_ttl_ms.is_some() {
        return None;
    }
    let name = &queue.name;
    let (severity, text) = match queue.messages {
        0 => (Severity::Info, format!("'{name}' receives {from} and has no consumer.")),
        n => {
            let verb = if n == 1 { "waits" } else { "wait" };
            let waiting = words::count(n, "message");
            let text =
                format!("{waiting} {verb} in '{name}', which receives {from} and has no consumer.");
            (Severity::Warning, text)
        }
    };
    Some(Found { severity, kind: WarningKind::NoConsumer, from: None, text })
}
