//! What happens by itself: messages and queues expire, delayed messages are ready again, deliveries
//! time out (spec 1, 2, 7.4, 8.3).
//!
//! Everything is done in slices, so that a million simultaneous deadlines never hold up a publisher.
//! Messages leave in the order of their deadlines.

use std::sync::Arc;

use amqp::method::MethodId;

use super::{At, Vhost};
use crate::command::Outcome;
use crate::dead_letter::DeathReason;
use crate::effect::{Event, Outgoing};
use crate::ids::QueueId;
use crate::limits::EXPIRY_SLICE;
use crate::policy::ExpiryOrder;
use crate::refusal::Refusal;
use crate::time::Now;
use crate::timers::Wake;

impl Vhost {
    /// Makes happen what is due at `now`, at most a slice of it; `next_wake` says whether more is.
    pub fn tick(&mut self, now: Now) {
        self.advance(now);
        let mut budget = EXPIRY_SLICE;
        while budget > 0
            && let Some(wake) = self.timers.pop_due(self.now.time)
        {
            budget = budget.saturating_sub(match wake {
                Wake::Queue(id) => self.wake_queue(id, budget),
                Wake::Channel(connection, channel) => {
                    self.time_out_deliveries(At { connection, channel })
                }
            });
        }
        self.finish_deaths();
    }

    /// Does what is due in a queue; how much that was.
    fn wake_queue(&mut self, id: QueueId, budget: usize) -> usize {
        let now = self.now.time;
        let Some(queue) = self.queues.get_mut(id) else {
            return 1;
        };
        queue.armed = None;
        if queue.lease_ends().is_some_and(|end| end <= now) {
            self.expire_queue(id);
            return 1;
        }
        self.offer_pending(id);
        let expired = self.expire_due(id, budget);
        let retried = self.end_delays(id, budget);
        self.dispatch(id);
        self.enforce_limits(id);
        self.rearm_queue(id);
        1 + expired + retried
    }

    /// Lets up to `budget` messages die whose deadline has passed; how many did.
    pub(super) fn expire_due(&mut self, id: QueueId, budget: usize) -> usize {
        let now = self.now.time;
        let mut expired = 0;
        while expired < budget
            && let Some(queue) = self.queues.get_mut(id)
            && let Some((deadline, entry)) = queue.pop_due(now)
        {
            self.counters.message_expiry.record(now.micros_since(deadline));
            self.die(id, entry, DeathReason::Expired);
            expired += 1;
        }
        self.head_moved(id);
        expired
    }

    /// Where only heads expire, a new head may expire before anything that was known.
    pub(super) fn head_moved(&mut self, id: QueueId) {
        let order = self.queues.get(id).map(|queue| queue.settings.expiry_order);
        if order == Some(ExpiryOrder::Head) {
            self.arm_queue(id);
        }
    }

    /// Lets delayed messages wait for a consumer again whose delay is over.
    fn end_delays(&mut self, id: QueueId, budget: usize) -> usize {
        let now = self.now.time;
        let Some(queue) = self.queues.get_mut(id) else {
            return 0;
        };
        for retried in 0..budget {
            let Some(entry) = queue.pop_retry(now) else {
                return retried;
            };
            queue.give_back(entry);
        }
        budget
    }

    fn expire_queue(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get(id) else {
            return;
        };
        if let Some(end) = queue.lease_ends() {
            self.counters.queue_expiry.record(self.now.time.micros_since(end));
        }
        let (queue, message_count) = (Arc::clone(&queue.name), queue.message_count());
        if message_count > 0 {
            self.event(Event::QueueExpired { queue, message_count });
        }
        self.remove_queue(id);
    }

    /// Makes sure that the queue is looked at when its next deadline comes.
    pub(super) fn arm_queue(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get_mut(id) else {
            return;
        };
        if let Some(at) = queue.next_wake() {
            self.timers.arm(&mut queue.armed, at, Wake::Queue(id));
        }
    }

    /// Like `arm_queue`, but lets queues with earlier deadlines than now go first: a queue with a
    /// million overdue messages takes turns with the others.
    fn rearm_queue(&mut self, id: QueueId) {
        let now = self.now.time;
        let Some(queue) = self.queues.get_mut(id) else {
            return;
        };
        if let Some(at) = queue.next_wake() {
            self.timers.arm(&mut queue.armed, at.max(now), Wake::Queue(id));
        }
    }

    /// Returns deliveries that were not settled in time. The consumer is cancelled if its client can
    /// be told; otherwise, and for `basic.get`, the channel closes.
    ///
    /// COMPAT: consumer timeout: the cancelled consumer is gone and gets nothing more.
    fn time_out_deliveries(&mut self, at: At) -> usize {
        let now = self.now.time;
        let Some(connection) = self.connections.get_mut(at.connection) else {
            return 1;
        };
        let cancel_notify = connection.cancel_notify;
        let Some(channel) = connection.channels.get_mut(&at.channel) else {
            return 1;
        };
        channel.armed = None;
        let late = channel.unacked.take_timed_out(now);
        let count = late.len();
        let must_close = late.iter().any(|u| u.consumer.is_none() || !cancel_notify);
        for unacked in &late {
            let Some(queue) = self.queues.get(unacked.queue) else {
                continue;
            };
            let consumer = unacked.consumer.and_then(|id| queue.consumers.get(id));
            let consumer_tag = consumer.map(|c| Arc::clone(&c.tag));
            let queue = Arc::clone(&queue.name);
            if let Some(consumer_tag) = consumer_tag.clone().filter(|_| !must_close) {
                self.remove_consumer(at, &consumer_tag);
                self.send(at, Outgoing::Cancel { consumer_tag });
            }
            if consumer_tag.is_some() || unacked.consumer.is_none() {
                self.event(Event::ConsumerTimedOut { queue, consumer_tag });
            }
        }
        self.settle_all(at, late, Outcome::Requeue { failed: false });
        if must_close && count > 0 {
            let refusal = Refusal::precondition_failed(format!(
                "delivery acknowledgement on channel {} timed out. Timeout value used: -1 ms. This \
                 timeout value can be configured, see consumers doc guide to learn more",
                at.channel
            ));
            self.fail_channel(at, refusal, MethodId::NONE);
            return count;
        }
        if let Some(channel) = self.connections.get_mut(at.connection)
            && let Some(channel) = channel.channels.get_mut(&at.channel)
            && let Some(next) = channel.unacked.next_timeout()
        {
            let wake = Wake::Channel(at.connection, at.channel);
            self.timers.arm(&mut channel.armed, next, wake);
        }
        count.max(1)
    }
}
