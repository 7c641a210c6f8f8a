//! Dead letters: the history and headers that a message gets when it dies, and the detection of cycles.
//!
//! Pure functions that make a dead letter from a message and a death. The vhost chooses the exchange and
//! moves the message from one queue to others in one step. As in RabbitMQ 4, the broker keeps the history
//! itself; death headers sent by a client are plain data until the first death replaces them.

use std::sync::Arc;

use crate::death_headers::{self, DEATH_HEADERS_FRAME_BYTES, Rendered};
pub use crate::death_history::{Death, DeathHistory, DeathReason, DeathSummary};
use crate::message::{Envelope, Message, Name, RoutingKey, SharedProperties};

/// The destination of a dead letter: the dead-letter exchange at the time of death, and the queue's
/// dead-letter routing key, if any.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadLetterTarget {
    /// Name of the dead-letter exchange.
    pub exchange: Name,
    /// Replaces all routing keys of the message, if set.
    pub routing_key: Option<RoutingKey>,
}

/// The circumstances in which a message dies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances<'a> {
    /// The queue in which the message dies.
    pub(crate) queue: &'a Name,
    /// The reason of the death.
    pub(crate) reason: DeathReason,
    /// Time of the death, in seconds since the Unix epoch.
    pub(crate) time_s: u64,
    /// The destination of the dead letter.
    pub(crate) target: &'a DeadLetterTarget,
    /// True if a client may have received the dead letter before a restart.
    pub(crate) maybe_seen: bool,
}

/// The last death and its result. Similar messages that die next share the result: a million messages that
/// expire together have one history and one set of properties.
#[derive(Debug)]
pub(crate) struct LastDeath {
    queue: Name,
    reason: DeathReason,
    time_s: u64,
    target: DeadLetterTarget,
    /// The parts of the message before its death.
    envelope: Arc<Envelope>,
    deaths: Option<Arc<DeathHistory>>,
    properties: Box<[u8]>,
    /// The parts of the dead letter.
    letter_envelope: Arc<Envelope>,
    letter_deaths: Arc<DeathHistory>,
    letter_properties: SharedProperties,
    /// True if the headers do not hold the whole history.
    is_cut: bool,
}

/// A dead letter and the completeness of its headers.
#[derive(Debug)]
pub(crate) struct DeadLetter {
    pub(crate) message: Message,
    /// True if the headers do not hold the whole history, which would not fit into a frame.
    pub(crate) is_cut: bool,
}

/// Makes the dead letter of `message`. `last` is the previous death, whose result is reused if possible.
pub(crate) fn die(
    message: &Message,
    circumstances: Circumstances<'_>,
    last: &mut Option<LastDeath>,
) -> DeadLetter {
    if let Some(last) = last
        && last.is_like(message, circumstances)
    {
        return last.letter(message, circumstances.maybe_seen);
    }
    let death = LastDeath::new(message, circumstances, last.take());
    last.insert(death).letter(message, circumstances.maybe_seen)
}

impl LastDeath {
    fn new(message: &Message, circumstances: Circumstances<'_>, before: Option<Self>) -> Self {
        let Circumstances { queue, reason, time_s, target, .. } = circumstances;
        let envelope = Arc::clone(message.envelope());
        // The envelope can be reused even if other things differ, such as the time to live.
        let known = before
            .filter(|before| before.target == *target && is_same(&before.envelope, &envelope));
        let letter_envelope = known.map_or_else(
            || {
                let exchange = Arc::clone(&target.exchange);
                Arc::new(match &target.routing_key {
                    Some(key) => Envelope::new(exchange, key.clone()),
                    None => Envelope { exchange, ..(*envelope).clone() },
                })
            },
            |known| known.letter_envelope,
        );
        let summary = DeathSummary {
            queue: Arc::clone(queue),
            reason,
            exchange: Arc::clone(&envelope.exchange),
        };
        let letter_deaths = Arc::new(record(message, summary, time_s));
        let Rendered { properties: letter_properties, is_cut } =
            death_headers::render(message.properties(), &letter_deaths, DEATH_HEADERS_FRAME_BYTES);
        Self {
            queue: Arc::clone(queue),
            reason,
            time_s,
            target: target.clone(),
            envelope,
            deaths: message.deaths().cloned(),
            properties: message.properties().into(),
            letter_envelope,
            letter_deaths,
            letter_properties: SharedProperties::new(&letter_properties),
            is_cut,
        }
    }

    /// True if `message` would become the same dead letter as the last one.
    fn is_like(&self, message: &Message, circumstances: Circumstances<'_>) -> bool {
        let Circumstances { queue, reason, time_s, target, .. } = circumstances;
        let has_same_past = match (&self.deaths, message.deaths()) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (Some(_), None) | (None, Some(_)) => false,
        };
        has_same_past
            && (self.reason, self.time_s) == (reason, time_s)
            && self.queue == *queue
            && self.target == *target
            && is_same(&self.envelope, message.envelope())
            && *self.properties == *message.properties()
    }

    fn letter(&self, message: &Message, maybe_seen: bool) -> DeadLetter {
        let (envelope, deaths) =
            (Arc::clone(&self.letter_envelope), Arc::clone(&self.letter_deaths));
        let properties = self.letter_properties.clone();
        let message = message.dead_letter(envelope, properties, deaths, maybe_seen);
        DeadLetter { message, is_cut: self.is_cut }
    }
}

fn is_same(one: &Arc<Envelope>, other: &Arc<Envelope>) -> bool {
    Arc::ptr_eq(one, other) || one == other
}

fn record(message: &Message, death: DeathSummary, time_s: u64) -> DeathHistory {
    let envelope = message.envelope();
    let fresh = || Death {
        queue: Arc::clone(&death.queue),
        reason: death.reason,
        count: 1,
        time_s,
        exchange: Arc::clone(&envelope.exchange),
        routing_keys: keys_of(envelope, message.deaths().and_then(|deaths| deaths.entries.first())),
        original_expiration_ms: message.meta().expiration_ms,
    };
    let Some(before) = message.deaths() else {
        return DeathHistory { first: death.clone(), entries: vec![fresh()], last: death };
    };
    let mut entries = before.entries.clone();
    let same = |d: &Death| d.queue == death.queue && d.reason == death.reason;
    match entries.iter().position(same) {
        Some(at) => {
            entries[..=at].rotate_right(1);
            entries[0].count = entries[0].count.saturating_add(1);
        }
        None => entries.insert(0, fresh()),
    }
    DeathHistory { first: before.first.clone(), last: death, entries }
}

/// The routing keys of a dying message, shared with its previous death if they are the same: a message with a
/// thousand keys stores them once, no matter how often it dies.
fn keys_of(envelope: &Envelope, before: Option<&Death>) -> Arc<[RoutingKey]> {
    let keys = || std::iter::once(&envelope.routing_key).chain(&envelope.cc);
    match before {
        Some(death) if death.routing_keys.iter().eq(keys()) => Arc::clone(&death.routing_keys),
        _ => keys().cloned().collect(),
    }
}

/// True if the dead letter may not enter `target` again: the message died there before, and every death since
/// then was automatic. `deaths` must include the current death. See `docs/concepts/dead-lettering.md`.
pub fn is_cycle(deaths: &DeathHistory, target: &str) -> bool {
    if deaths.last.reason == DeathReason::Rejected {
        return false;
    }
    for death in &deaths.entries {
        if death.reason == DeathReason::Rejected {
            return false;
        }
        if &*death.queue == target {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deaths(list: &[(&str, DeathReason)]) -> DeathHistory {
        let (queue, reason) = list[0];
        let summary = DeathSummary { queue: queue.into(), reason, exchange: "".into() };
        let entry = |(queue, reason): &(&str, DeathReason)| Death {
            queue: (*queue).into(),
            reason: *reason,
            count: 1,
            time_s: 0,
            exchange: "".into(),
            routing_keys: Arc::default(),
            original_expiration_ms: None,
        };
        DeathHistory {
            first: summary.clone(),
            last: summary,
            entries: list.iter().map(entry).collect(),
        }
    }

    #[test]
    fn cycle_is_a_wholly_automatic_way_back() {
        use DeathReason::{DeliveryLimit, Expired, Maxlen, Rejected};
        for (list, target, cycle) in [
            (&[("a", Expired)][..], "a", true),
            (&[("a", Rejected)], "a", false),
            (&[("a", Expired)], "b", false),
            (&[("b", Maxlen), ("a", Expired)], "a", true),
            (&[("b", Rejected), ("a", Expired)], "a", false),
            (&[("b", Expired), ("a", Rejected)], "a", false),
            (&[("b", Expired), ("c", Rejected), ("a", Expired)], "a", false),
            (&[("b", Expired), ("a", Expired), ("c", Rejected)], "a", true),
            (&[("a", DeliveryLimit)], "a", true),
        ] {
            assert_eq!(is_cycle(&deaths(list), target), cycle, "{list:?} into {target}");
        }
    }
}
