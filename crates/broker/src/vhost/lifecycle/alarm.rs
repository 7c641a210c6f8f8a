//! Alarms: while memory or disk is short, the vhost makes no dead letters, as no publisher is read.
//!
//! A message that dies in a queue with a dead-letter exchange leaves its queue and waits, undelivered, until the
//! alarm is over; in the log it is still in its queue. A message that dies without one is dropped at once, for that
//! makes room. Deaths wait in memory: when many wait, such queues expire, evict and deliver nothing more.

// COMPAT: alarms and dead letters: they wait until the alarm is over, so that one message cannot fill a disk.

use crate::ids::{Lsn, QueueId};
use crate::queue::dead_letters::PendingDeadLetters;
use crate::time::Now;
use crate::vhost::Vhost;
use crate::vhost::state::pending_death::PendingDeath;

/// Deaths that were taken out of a queue before they were moved.
#[derive(Default, Debug)]
pub(in crate::vhost) struct TakenDeaths {
    /// The number of deaths that the queue counted.
    pub(in crate::vhost) count: u64,
    /// The records of the messages.
    pub(in crate::vhost) lsns: Vec<Lsn>,
}

impl Vhost {
    /// Turns the alarm of memory or disk on or off. During an alarm, only records that clients ask for are
    /// written: dead letters and redriven messages wait, and firehose copies are not made.
    pub fn set_alarm(&mut self, now: Now, is_on: bool) {
        self.advance(now);
        if !self.alarm.set(is_on) {
            return;
        }
        if is_on {
            self.stop_retries();
        } else {
            self.counters.deaths_waiting = 0;
            self.dead_lettering.extend(self.alarm.take_all());
            self.resume_stalled();
            // In slices, however many they are.
            self.dead_lettering.arm(&mut self.timers, self.now.time);
        }
        self.finish_deaths();
    }

    /// True if an alarm is on.
    pub fn has_alarm(&self) -> bool {
        self.alarm.is_on()
    }

    /// True if a death in this queue has to wait.
    pub(in crate::vhost) fn must_wait(&self, queue: QueueId) -> bool {
        self.alarm.is_on() && self.topology.known_queue(queue).settings.dead_letter.is_some()
    }

    /// Keeps a death until the end of the alarm.
    pub(in crate::vhost) fn wait_for_alarm(&mut self, death: PendingDeath) {
        self.counters.deaths_waiting += 1;
        self.alarm.push(death);
    }

    /// True if nothing more may die in this queue, because enough deaths wait already. The queue is listed to
    /// continue when there is room.
    pub(in crate::vhost) fn stalls(&mut self, queue: QueueId) -> bool {
        let stalls = self.alarm.is_full() && self.must_wait(queue);
        if stalls {
            self.alarm.stall(queue);
        }
        stalls
    }

    /// True if the queue is kept although its lease is over: what died in it would go with it.
    pub(in crate::vhost) fn is_kept_by_alarm(&mut self, queue: QueueId) -> bool {
        let outlives =
            self.alarm.is_on() && self.topology.known_queue(queue).dead_letters.dying() > 0;
        if outlives {
            self.alarm.stall(queue);
        }
        outlives
    }

    /// Goes on with queues that had to wait; they may wait again, or be gone.
    fn resume_stalled(&mut self) {
        for queue in self.alarm.take_stalled() {
            if self.topology.queue(queue).is_some() {
                self.enforce_limits(queue);
                self.dispatch(queue);
                self.rearm_queue(queue);
            }
        }
    }

    /// Takes the waiting deaths of a queue that is purged.
    pub(in crate::vhost) fn take_waiting_deaths(&mut self, queue: QueueId) -> TakenDeaths {
        let has_died = |death: &PendingDeath| death.entry().is_some();
        self.take_waiting(queue, has_died)
    }

    /// Takes all deaths of a queue that is deleted, including those of refused messages, so that no death
    /// outlives its queue.
    pub(in crate::vhost) fn take_all_deaths(&mut self, queue: QueueId) -> TakenDeaths {
        let mut taken = self.take_waiting(queue, |_| true);
        // Messages that died because other deaths were moved just now.
        let again = self.dead_lettering.take_of(queue);
        self.count_taken(queue, &Vec::from(again), &mut taken);
        taken
    }

    fn take_waiting(
        &mut self,
        queue: QueueId,
        wants: impl Fn(&PendingDeath) -> bool,
    ) -> TakenDeaths {
        let deaths = self.alarm.take_of(queue, wants);
        self.counters.deaths_waiting -= deaths.len() as u64;
        let mut taken = TakenDeaths::default();
        self.count_taken(queue, &deaths, &mut taken);
        taken
    }

    /// Counts deaths that will not be moved any more.
    fn count_taken(&mut self, queue: QueueId, deaths: &[PendingDeath], taken: &mut TakenDeaths) {
        let entries = deaths.iter().filter_map(PendingDeath::entry);
        let count = entries.clone().count() as u64;
        self.topology.known_queue_mut(queue).dead_letters.end_deaths(count);
        taken.count += count;
        let durable = entries.filter(|(_, entry)| entry.is_durable());
        taken.lsns.extend(durable.map(|(_, entry)| entry.lsn));
    }

    /// Continues with queues that had to wait, if taking deaths has made room.
    pub(in crate::vhost) fn waiting_deaths_taken(&mut self) {
        if !self.alarm.is_full() {
            self.resume_stalled();
        }
    }

    /// Stops offering dead letters without a target; they are offered again after the alarm.
    fn stop_retries(&mut self) {
        for id in self.dead_lettering.sources() {
            let pending = self.topology.known_queue_mut(id).dead_letters.pending_mut();
            if pending.is_some_and(PendingDeadLetters::stop_retry) {
                self.dead_lettering.request_retry();
            }
        }
    }
}
