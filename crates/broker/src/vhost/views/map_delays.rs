//! Finds the delays of a dead-letter map: delayed exchanges, delayed retry, and messages before their delivery time.

use super::dead_letter_map::{DeadLetterMapBuilder, copied};
use super::map_delay::{Delay, DelayedFrom};
use crate::exchange::Certainty;
use crate::ids::QueueId;
use crate::limits::MAP_STEPS_PER_SLICE;
use crate::message::Name;
use crate::queue::{DelayedMessages, Queue};
use crate::setting::DelayedRetryType;
use crate::vhost::Vhost;

impl DeadLetterMapBuilder {
    /// Adds delayed exchanges of the vhost, each once, and leaves out others; stops early to keep the slice short.
    /// Returns the number of exchanges done.
    pub fn delayed_exchanges(&mut self, vhost: &Vhost, exchanges: &[Name]) -> usize {
        let enough = self.steps.saturating_sub(MAP_STEPS_PER_SLICE);
        let mut done = 0;
        for name in exchanges {
            done += 1;
            self.delayed_exchange(vhost, name);
            if self.steps <= enough && self.steps > 0 {
                break;
            }
        }
        done
    }

    fn delayed_exchange(&mut self, vhost: &Vhost, name: &Name) {
        let Some(id) = vhost.exchange_id(name) else { return };
        let Some(exchange) = vhost.exchange_of(id) else { return };
        let Some(count) = exchange.delayed_count() else { return };
        let reach = vhost.reach(id, None, &mut self.steps);
        self.is_whole &= !reach.is_cut;
        let is_certain = reach.queues.values().all(|certainty| *certainty == Certainty::Certain);
        self.delays.push(Delay {
            from: DelayedFrom::Exchange(name.clone()),
            to: reach.queues.into_keys().collect(),
            is_certain: is_certain && !reach.depends_on_key && !reach.is_anywhere && !reach.is_cut,
            is_anywhere: reach.is_anywhere,
            messages: DelayedMessages { count, next_at: exchange.next_delayed_at() },
        });
    }

    /// Adds the delays in a queue.
    pub(super) fn delays_in(&mut self, id: QueueId, queue: &Queue) {
        let retry = queue.settings.delayed_retry.as_ref();
        let has_retry = retry.is_some_and(|retry| retry.kind != DelayedRetryType::Disabled);
        let (returned, scheduled) = (queue.delayed_returned(), queue.scheduled());
        if has_retry || returned.count > 0 {
            self.delays.push(Delay::in_queue(DelayedFrom::Retry(id), id, returned));
        }
        if scheduled.count > 0 {
            self.delays.push(Delay::in_queue(DelayedFrom::Schedule(id), id, scheduled));
        }
        if has_retry || returned.count > 0 || scheduled.count > 0 {
            self.queues.entry(id).or_insert_with(|| copied(queue));
        }
    }
}
