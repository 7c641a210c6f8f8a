//! Deadlines: messages and queues expire, delayed messages become ready again, deliveries time out.
//!
//! Due work is done in slices, so that a million simultaneous deadlines never hold up a publisher.
//! Messages leave in the order of their deadlines.

use std::collections::BTreeSet;
use std::sync::Arc;

use amqp::method::MethodId;

use crate::channel::ConsumerAt;
use crate::channel_key::ChannelKey;
use crate::command::Outcome;
use crate::dead_letter::DeathReason;
use crate::effect::{Event, Outgoing};
use crate::ids::{ConsumerId, QueueId};
use crate::limits::{EXPIRY_SLICE, GONE_DEADLINES_SLICE};
use crate::refusal::Refusal;
use crate::setting::ExpiryOrder;
use crate::time::{Now, Time};
use crate::timers::Wake;
use crate::vhost::Vhost;
use crate::vhost::commands::settle::Touched;

impl Vhost {
    /// Does what is due at `now`, at most a slice of it; `next_wake` says if more is due.
    pub fn tick(&mut self, now: Now) {
        self.advance(now);
        self.dead_lettering.begin_batch();
        self.do_due(EXPIRY_SLICE);
        self.finish_deaths();
    }

    /// Does due work, about `budget` of it, the earliest first.
    pub(in crate::vhost) fn do_due(&mut self, mut budget: usize) {
        while budget > 0
            && let Some(wake) = self.timers.pop_due(self.now.time)
        {
            budget = budget.saturating_sub(match wake {
                Wake::Queue(id) => self.wake_queue(id, budget),
                Wake::Exchange(id) => self.release_held(id, budget),
                Wake::Channel(connection, channel) => {
                    self.time_out_deliveries(ChannelKey { connection, channel }, budget)
                }
                Wake::Deaths => self.resume_deaths(budget),
                Wake::DeadLetterHistory => self.forget_old_deaths(budget),
                Wake::Policies => self.resume_policies(budget),
            });
        }
    }

    /// Does due work of a queue, about `budget` of it; returns the amount done. The queue may be gone.
    pub(in crate::vhost) fn wake_queue(&mut self, id: QueueId, budget: usize) -> usize {
        let now = self.now.time;
        let Some(queue) = self.topology.queue_mut(id) else {
            return 1;
        };
        queue.expiry.armed = None;
        let lease_end = queue.lease_ends().filter(|end| *end <= now);
        let mut done = 1;
        if let Some(end) = lease_end {
            // Messages that expired before the queue did are dead-lettered, however late the timer is.
            done += self.expire_until(id, end.just_before(), budget);
            if done <= budget
                && !self.topology.known_queue(id).is_being_read()
                && !self.is_kept_by_alarm(id)
            {
                self.expire_queue(id);
                return done;
            }
        } else {
            done += self.offer_pending(id, budget);
            self.read_pages(id);
            done += self.expire_until(id, now, budget);
            done += self.end_delays(id, budget);
            done += self.deliver_scheduled(id, budget);
            self.dispatch(id);
            done += self.enforce_limits(id);
        }
        self.rearm_queue(id);
        done
    }

    /// Expires up to a slice of messages before other work on their queue; returns their number. Consumers
    /// get the messages behind them at the end of the call.
    pub(in crate::vhost) fn expire_due(&mut self, id: QueueId) -> usize {
        let expired = self.expire_until(id, self.now.time, EXPIRY_SLICE);
        if expired > 0 && !self.topology.known_queue(id).consumers.is_empty() {
            self.dead_lettering.unblock(id);
        }
        expired
    }

    /// Expires up to `budget` messages with deadlines up to `until`; returns their number.
    pub(in crate::vhost) fn expire_until(
        &mut self,
        id: QueueId,
        until: Time,
        budget: usize,
    ) -> usize {
        let now = self.now.time;
        let mut expired = 0;
        while expired < budget
            && !self.stalls(id)
            && let Some((due, entry)) = self.topology.known_queue_mut(id).pop_due(until)
        {
            self.counters.message_expiry.record(now.micros_since(due));
            self.die(id, entry, DeathReason::Expired);
            expired += 1;
        }
        self.head_moved(id);
        expired
    }

    /// Reads pages behind the head, if necessary. If only heads expire, the new head may expire before any
    /// known deadline, so the timer is armed again.
    pub(in crate::vhost) fn head_moved(&mut self, id: QueueId) {
        self.read_pages(id);
        if self.topology.known_queue(id).settings.expiry_order == ExpiryOrder::Head {
            self.arm_queue(id);
        }
    }

    /// Makes delayed messages ready whose delay is over.
    fn end_delays(&mut self, id: QueueId, budget: usize) -> usize {
        let queue = self.topology.known_queue_mut(id);
        for retried in 0..budget {
            let Some((ready_at, entry)) = queue.pop_retry(self.now.time) else {
                return retried;
            };
            self.counters.retry.record(self.now.time.micros_since(ready_at));
            queue.give_back(entry);
        }
        budget
    }

    fn expire_queue(&mut self, id: QueueId) {
        let queue = self.topology.known_queue(id);
        if let Some(end) = queue.lease_ends() {
            self.counters.queue_expiry.record(self.now.time.micros_since(end));
        }
        let (queue, message_count) = (Arc::clone(&queue.name), queue.message_count());
        if message_count > 0 {
            self.effects.event(Event::QueueExpired { queue, message_count });
        }
        self.remove_queue_and_notify(id);
    }

    /// Arms the timer for the next deadline of the queue.
    pub(in crate::vhost) fn arm_queue(&mut self, id: QueueId) {
        if let Some(at) = self.next_wake_of(id) {
            let queue = self.topology.known_queue_mut(id);
            self.timers.arm(&mut queue.expiry.armed, at, Wake::Queue(id));
        }
    }

    /// Arms the timer for now if more messages wait than the limits of the queue allow.
    pub(in crate::vhost) fn enforce_limits_soon(&mut self, id: QueueId) {
        let queue = self.topology.known_queue_mut(id);
        if queue.must_evict() {
            self.timers.arm(&mut queue.expiry.armed, self.now.time, Wake::Queue(id));
        }
    }

    /// Like `arm_queue`, but not for a time in the past, so that a queue with a million overdue messages
    /// takes turns with the others.
    pub(in crate::vhost) fn rearm_queue(&mut self, id: QueueId) {
        if let Some(at) = self.next_wake_of(id) {
            let queue = self.topology.known_queue_mut(id);
            self.timers.arm(&mut queue.expiry.armed, at.max(self.now.time), Wake::Queue(id));
        }
    }

    /// The next deadline of the queue; none while its due messages wait for the end of an alarm.
    fn next_wake_of(&mut self, id: QueueId) -> Option<Time> {
        let at = self.topology.known_queue(id).next_wake()?;
        let is_due = at <= self.now.time;
        if is_due && (self.stalls(id) || self.alarm.has_stalled(id)) { None } else { Some(at) }
    }

    /// Drops deadlines of removed messages from the front of a queue's list, so that the first deadline is
    /// exact, unless thousands of messages were removed at once. Call this before
    /// [`Queue::first_deadline`](crate::queue::Queue::first_deadline).
    pub fn forget_gone_deadlines(&mut self, queue: QueueId) {
        if let Some(queue) = self.topology.queue_mut(queue) {
            queue.forget_gone_deadlines(GONE_DEADLINES_SLICE);
        }
    }

    /// Makes sure that the timer looks at the channel when its next delivery times out, or in its turn if that is
    /// overdue.
    pub(in crate::vhost) fn arm_channel(&mut self, at: ChannelKey) {
        if let Some(channel) = self.connections.channel_mut(at)
            && let Some(timeout) = channel.unacked.next_timeout()
        {
            let wake = Wake::Channel(at.connection, at.channel);
            self.timers.arm(&mut channel.armed, timeout.max(self.now.time), wake);
        }
    }

    /// Returns up to `budget` deliveries that were not settled in time. Their consumers are cancelled
    /// if the client understands that; otherwise, and for `basic.get`, the channel closes.
    ///
    /// COMPAT: consumer timeout: the cancelled consumer is gone and gets no more messages.
    fn time_out_deliveries(&mut self, at: ChannelKey, budget: usize) -> usize {
        let now = self.now.time;
        let Some(connection) = self.connections.get_mut(at.connection) else {
            return 1;
        };
        let cancel_notify = connection.cancel_notify;
        let Some(channel) = connection.channels.get_mut(&at.channel) else {
            return 1;
        };
        channel.armed = None;
        let mut late = channel.unacked.take_timed_out(now, budget);
        if late.is_empty() {
            self.arm_channel(at);
            return 1;
        }
        let must_close = !cancel_notify || late.iter().any(|u| u.consumer.is_none());
        if must_close {
            late.extend(channel.unacked.take_timed_out(now, usize::MAX));
        }
        let count = late.len();
        let sources: BTreeSet<(QueueId, Option<ConsumerId>)> =
            late.iter().map(|unacked| (unacked.queue, unacked.consumer)).collect();
        let mut touched = Touched::new();
        let mut cancelled = BTreeSet::new();
        for (queue, consumer) in sources {
            let Some(gone) = self.time_out_source(at, queue, consumer, must_close) else {
                continue;
            };
            touched.push(gone.queue);
            if self.topology.has_single_active_consumer(gone.queue) {
                cancelled.insert((gone.queue, gone.consumer));
            }
        }
        let requeue = Outcome::Requeue { failed: false };
        if must_close {
            // All that the channel holds returns before anybody is served, and nothing goes to this channel again.
            self.settle_each(at, late, requeue, &mut touched);
            let refusal = Refusal::precondition_failed(format!(
                "delivery acknowledgement on channel {} timed out. Timeout value used: -1 ms. This \
                 timeout value can be configured, see consumers doc guide to learn more",
                at.channel
            ));
            self.fail_channel(at, refusal, MethodId::NONE);
            self.serve(touched);
        } else {
            if let Some(channel) = self.connections.channel_mut(at) {
                // The next active consumer gets all that the cancelled one holds, in its order.
                late.extend(channel.unacked.take_of(&cancelled));
            }
            let freed_global = self.settle_each(at, late, requeue, &mut touched);
            self.finish_settling(at, touched, freed_global);
            self.arm_channel(at);
        }
        count
    }

    /// Reports a consumer, or `basic.get` if there is none, whose deliveries timed out. A consumer is cancelled,
    /// unless its channel closes anyway, and returned. The queue may be gone.
    fn time_out_source(
        &mut self,
        at: ChannelKey,
        queue: QueueId,
        consumer: Option<ConsumerId>,
        channel_closes: bool,
    ) -> Option<ConsumerAt> {
        let queue = self.topology.queue(queue)?;
        let name = Arc::clone(&queue.name);
        let known = consumer.and_then(|id| queue.consumers.get(id));
        let consumer_tag = known.map(|consumer| Arc::clone(&consumer.tag));
        if consumer.is_some() && consumer_tag.is_none() {
            // The consumer was cancelled before.
            return None;
        }
        let mut gone = None;
        if let Some(consumer_tag) = consumer_tag.clone().filter(|_| !channel_closes) {
            gone = self.detach_consumer(at, &consumer_tag);
            self.effects.send(at, Outgoing::Cancel { consumer_tag });
        }
        self.effects.event(Event::ConsumerTimedOut { queue: name, consumer_tag });
        gone
    }
}
