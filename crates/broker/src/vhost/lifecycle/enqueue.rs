//! Enqueuing: a plan reserves the place of a message in each queue, a record goes to the log, and then each
//! queue in turn delivers the message at once, holds it, or dead-letters it.

use std::slice::Chunks;

use crate::dead_letter::DeathReason;
use crate::ids::{EntryId, Lsn, QueueId, QueueNumber};
use crate::limits::{ENTRIES_PER_RECORD_MAX, EVICTION_SLICE, EXPIRY_SLICE};
use crate::message::Message;
use crate::queue::{Entry, Queue};
use crate::record::{Entries, Record};
use crate::setting::Overflow;
use crate::vhost::Vhost;
use crate::vhost::state::enqueue_plan::{EnqueuePlan, Place};

impl Vhost {
    /// Enqueues a message in the queues of the plan. Returns the log position that a confirm waits for, if
    /// the message survives a restart in any of the queues.
    pub(in crate::vhost) fn enqueue(
        &mut self,
        message: Message,
        plan: &EnqueuePlan,
    ) -> Option<Lsn> {
        self.work_done += (plan.places.len() + plan.delayed.len()) as u64;
        let first = self.log.next();
        let mut chunks = plan.durable.chunks(ENTRIES_PER_RECORD_MAX);
        if let Some(entries) = chunks.next() {
            let entries = Entries::from_slice(entries);
            self.log(Record::Publish { message: message.clone(), entries });
        }
        self.continue_record(&message, chunks);
        if !plan.delayed.is_empty() {
            self.enqueue_delayed(&message, &plan.delayed, plan.durable.is_empty());
        }
        let last = (self.log.next() > first).then(|| self.log.last());
        self.enqueue_each(message, first, plan);
        last
    }

    /// Enqueues a message that leaves another place: a dead letter, a redriven message, or one that a delayed
    /// exchange has held. One record covers the message and the removal of `left` from the place with the number
    /// `from`.
    pub(in crate::vhost) fn enqueue_moved(
        &mut self,
        message: Message,
        plan: &EnqueuePlan,
        left: &Entry,
        from: QueueNumber,
    ) {
        if !left.is_durable() {
            self.enqueue(message, plan);
            return;
        }
        let (queue, entry) = (from, left.id);
        let first = self.log.next();
        let mut chunks = plan.durable.chunks(ENTRIES_PER_RECORD_MAX);
        let entries = Entries::from_slice(chunks.next().unwrap_or_default());
        self.log_about(
            left.lsn,
            Record::DeadLetter { queue, entry, message: message.clone(), entries },
        );
        self.continue_record(&message, chunks);
        if !plan.delayed.is_empty() {
            self.enqueue_delayed(&message, &plan.delayed, false);
        }
        self.enqueue_each(message, first, plan);
    }

    /// Logs the queues that do not fit into the first record of the message.
    fn continue_record(&mut self, message: &Message, chunks: Chunks<'_, (QueueNumber, EntryId)>) {
        for entries in chunks {
            let entries = Entries::from_slice(entries);
            self.log_joined(Record::Publish { message: message.clone(), entries });
        }
    }

    /// Enqueues the message in each queue; `first` is the first record about the message.
    fn enqueue_each(&mut self, message: Message, first: Lsn, plan: &EnqueuePlan) {
        let mut durable = 0;
        let mut lsn_of = |place: &Place| {
            if !place.is_durable {
                return Lsn(0);
            }
            durable += 1;
            Lsn(first.0 + ((durable - 1) / ENTRIES_PER_RECORD_MAX) as u64)
        };
        let Some((last, others)) = plan.places.split_last() else {
            return;
        };
        for place in others {
            let lsn = lsn_of(place);
            self.enqueue_one(place.queue, place.entry, message.clone(), lsn);
        }
        let lsn = lsn_of(last);
        self.enqueue_one(last.queue, last.entry, message, lsn);
    }

    /// Enqueues the message in one queue: it goes to a consumer that has room, or else waits, if the queue
    /// lets it.
    pub(super) fn enqueue_one(&mut self, id: QueueId, entry: EntryId, message: Message, lsn: Lsn) {
        let queue = self.topology.known_queue_mut(id);
        let expires_at_once = queue.expires_on_arrival(&message);
        let could_deliver = queue.has_none_ready();
        if !(could_deliver && !queue.consumers.is_empty() || expires_at_once) {
            self.hold(id, entry, message, lsn);
            return;
        }
        let entry = Entry::new(entry, message, lsn, self.now.time);
        let undelivered =
            if could_deliver { self.deliver_at_once(id, entry).err() } else { Some(entry) };
        let Some(entry) = undelivered else { return };
        if expires_at_once {
            self.counters.message_expiry.record(0);
            self.die(id, entry, DeathReason::Expired);
        } else {
            self.hold(id, entry.id, entry.message, lsn);
        }
    }

    /// Lets the message wait in the queue.
    fn hold(&mut self, id: QueueId, entry: EntryId, message: Message, lsn: Lsn) {
        let queue = self.topology.known_queue_mut(id);
        let has_deadline = queue.has_deadline(&message);
        queue.push(entry, message, lsn, self.now.time);
        self.page_out(id, entry.level);
        let queue = self.topology.known_queue(id);
        // A consumer with room may have found only expired messages until now.
        let is_overtaking = !queue.consumers.is_empty() && queue.is_next(entry);
        if has_deadline {
            self.arm_queue(id);
        }
        if is_overtaking {
            self.dispatch(id);
        }
        self.enforce_limits(id);
    }

    // ---- limits ----

    /// True if a full queue refuses a publish; counts the refusal.
    ///
    /// COMPAT: reject-publish: a hard limit on every queue type; RabbitMQ's quorum queues overshoot.
    #[inline]
    pub(in crate::vhost) fn refuses(&mut self, id: QueueId, message: &Message) -> bool {
        self.topology.known_queue(id).settings.rejects_publishes() && self.refuse(id, message)
    }

    /// Refuses a publish for which a queue has no room; false if there is room.
    #[inline(never)]
    fn refuse(&mut self, id: QueueId, message: &Message) -> bool {
        if !self.is_full_for(id, message) {
            return false;
        }
        let queue = self.topology.known_queue_mut(id);
        queue.counters.published += 1;
        queue.counters.refused += 1;
        self.counters.refused += 1;
        if queue.settings.overflow == Overflow::RejectPublishDlx {
            self.die_refused(id, message.clone());
        }
        true
    }

    /// True if `message` would exceed the limits of a queue, after expired messages have been removed.
    pub(in crate::vhost) fn is_full_for(&mut self, id: QueueId, message: &Message) -> bool {
        let is_full = |vhost: &Self| vhost.topology.known_queue(id).is_full_for(message);
        is_full(self) && (self.expire_due(id) == 0 || is_full(self))
    }

    /// Evicts messages above a queue's limits, if its overflow behaviour is to evict; returns their number. After
    /// [`EVICTION_SLICE`] of them, which are that many only when limits are lowered, or a large message takes the room of
    /// many, the timer continues. The queue may be gone.
    #[inline]
    pub(in crate::vhost) fn enforce_limits(&mut self, id: QueueId) -> usize {
        let must_evict = self.topology.queue(id).is_some_and(Queue::must_evict);
        if must_evict { self.evict(id) } else { 0 }
    }

    fn evict(&mut self, id: QueueId) -> usize {
        let expired = self.expire_due(id);
        if expired >= EXPIRY_SLICE && self.topology.known_queue(id).is_overdue(self.now.time) {
            // Expired messages make room first; the timer continues with them.
            self.arm_queue(id);
            return 0;
        }
        let mut evicted = 0;
        let had_scheduled = self.topology.known_queue(id).next_delivery_at().is_some();
        while !self.stalls(id) {
            let queue = self.topology.known_queue_mut(id);
            if !queue.is_over_limit() {
                break;
            }
            if evicted == EVICTION_SLICE {
                self.enforce_limits_soon(id);
                break;
            }
            let Some(entry) = queue.evict() else { break };
            evicted += 1;
            self.die(id, entry, DeathReason::Maxlen);
        }
        self.work_done += evicted as u64;
        if had_scheduled {
            self.scheduled_left(id);
        }
        self.head_moved(id);
        evicted
    }
}
