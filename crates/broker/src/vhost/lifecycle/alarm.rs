//! Alarms: while memory or disk is short, the vhost makes no dead letters, as no publisher is read.
//!
//! What dies in a queue with a dead-letter exchange leaves its queue and waits here, undelivered, until the
//! alarm is over; in the log it is still where it was. What dies without one goes at once, for that makes
//! room. When much waits, such queues expire, evict and deliver nothing more: what waits here is in memory.

// COMPAT: alarms and dead letters: they wait until the alarm is over, so that one message cannot fill a disk.

use std::collections::BTreeSet;

use super::death::Dying;
use crate::ids::{Lsn, QueueId};
use crate::limits::DEATHS_WAITING_BYTES_MAX;
use crate::queue::Queue;
use crate::time::Now;
use crate::timers::Wake;
use crate::vhost::Vhost;

/// What waits for the end of an alarm.
#[derive(Default, Debug)]
pub(in crate::vhost) struct Alarm {
    is_on: bool,
    /// Messages that died, in the order in which they did.
    waiting: Vec<Dying>,
    waiting_bytes: u64,
    /// Queues in which something is due that has to wait.
    stalled: BTreeSet<QueueId>,
}

impl Alarm {
    /// The messages that died.
    pub(in crate::vhost) fn waiting(&self) -> &[Dying] {
        &self.waiting
    }

    /// Whether the queue goes on when there is room.
    pub(in crate::vhost) fn has_stalled(&self, queue: QueueId) -> bool {
        self.stalled.contains(&queue)
    }
}

impl Vhost {
    /// An alarm of memory or disk is on, or none is any more. With one, nothing is written that clients did
    /// not ask for: dead letters, redriven messages and what the firehose tells wait or are not made.
    pub fn set_alarm(&mut self, now: Now, is_on: bool) {
        self.advance(now);
        if self.alarm.is_on == is_on {
            return;
        }
        self.alarm.is_on = is_on;
        if is_on {
            self.stop_retries();
        } else {
            let waiting = std::mem::take(&mut self.alarm.waiting);
            self.alarm.waiting_bytes = 0;
            self.counters.deaths_waiting = 0;
            self.dying.extend(waiting);
            self.go_on_with_stalled();
            // In turns, however many they are.
            self.arm_deaths();
        }
        self.finish_deaths();
    }

    /// Whether an alarm is on.
    pub fn has_alarm(&self) -> bool {
        self.alarm.is_on
    }

    /// Whether a death in this queue has to wait.
    pub(in crate::vhost) fn must_wait(&self, queue: QueueId) -> bool {
        let dead_letters = |queue: &Queue| queue.settings.dead_letter.is_some();
        self.alarm.is_on && self.queue_of(queue).is_some_and(dead_letters)
    }

    /// A message that died waits for the end of the alarm.
    pub(in crate::vhost) fn wait_for_room(&mut self, dying: Dying) {
        self.alarm.waiting_bytes += dying.message().delivery_bytes();
        self.counters.deaths_waiting += 1;
        self.alarm.waiting.push(dying);
    }

    /// Whether nothing more may die in this queue, because enough waits already. It goes on when there is
    /// room.
    pub(in crate::vhost) fn stalls(&mut self, queue: QueueId) -> bool {
        let stalls = self.alarm.waiting_bytes >= DEATHS_WAITING_BYTES_MAX && self.must_wait(queue);
        if stalls {
            self.alarm.stalled.insert(queue);
        }
        stalls
    }

    /// Whether the queue is not removed though nobody uses it: what died in it would go with it.
    pub(in crate::vhost) fn outlives_its_lease(&mut self, queue: QueueId) -> bool {
        let has_dying = self.queue_of(queue).is_some_and(|queue| queue.dead_letters.dying() > 0);
        let outlives = self.alarm.is_on && has_dying;
        if outlives {
            self.alarm.stalled.insert(queue);
        }
        outlives
    }

    /// What is due in queues that had to wait is done, or waits again.
    fn go_on_with_stalled(&mut self) {
        for queue in std::mem::take(&mut self.alarm.stalled) {
            self.enforce_limits(queue);
            self.dispatch(queue);
            self.rearm_queue(queue);
        }
    }

    /// Whoever empties a queue removes what died in it and waits, too: with a purge and a deletion, room is
    /// to be made. How many messages that were, and the records that brought them.
    pub(in crate::vhost) fn take_waiting_deaths(&mut self, queue: QueueId) -> (u64, Vec<Lsn>) {
        if self.alarm.waiting.is_empty()
            || self.queue_of(queue).is_none_or(|q| q.dead_letters.dying() == 0)
        {
            return (0, Vec::new());
        }
        let all = std::mem::take(&mut self.alarm.waiting).into_iter();
        let (of_queue, others) =
            all.partition(|dying| dying.entry().is_some_and(|(q, _)| q == queue));
        self.alarm.waiting = others;
        let of_queue: Vec<Dying> = of_queue;
        let bytes: u64 = of_queue.iter().map(|dying| dying.message().delivery_bytes()).sum();
        self.alarm.waiting_bytes -= bytes;
        let count = of_queue.len() as u64;
        self.counters.deaths_waiting -= count;
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.dead_letters.end_deaths(count);
        }
        let entries = of_queue.iter().filter_map(Dying::entry);
        let lsns = entries.filter(|(_, entry)| entry.is_durable()).map(|(_, entry)| entry.lsn);
        (count, lsns.collect())
    }

    /// There may be room for what stalled.
    pub(in crate::vhost) fn waiting_deaths_taken(&mut self) {
        if self.alarm.waiting_bytes < DEATHS_WAITING_BYTES_MAX {
            self.go_on_with_stalled();
        }
    }

    /// Dead letters that had nowhere to go are offered again when the alarm is over.
    fn stop_retries(&mut self) {
        for id in &self.pending_sources {
            if let Some(queue) = self.queues.get_mut(*id)
                && queue.dead_letters.pending.stop_retry()
            {
                self.retry_pending = true;
            }
        }
    }

    /// Makes sure that the timer goes on with what died.
    pub(in crate::vhost) fn arm_deaths(&mut self) {
        if !self.dying.is_empty() {
            let Self { timers, deaths_armed, now, .. } = self;
            timers.arm(deaths_armed, now.time, Wake::Deaths);
        }
    }
}
