//! Unsettled deliveries of a channel, by delivery tag.
//!
//! The channel holds the messages themselves; a queue only counts its deliveries. Tags ascend without gaps
//! and most are settled in order, so that settling mostly removes from the front. Deliveries settled in a
//! transaction belong to the transaction until it ends.

use std::collections::BTreeSet;

use crate::collections::SparseDeque;
use crate::deadlines::Deadlines;
use crate::ids::{ConsumerId, DeliveryTag, QueueId};
use crate::limits::TIMED_OUT_TAGS_MAX;
use crate::queue::Entry;
use crate::refusal::Refusal;
use crate::time::Time;

/// A delivery that is not settled.
#[derive(Debug)]
pub(crate) struct Unacked {
    /// The queue of the message, which may be deleted by now.
    pub(crate) queue: QueueId,
    /// The consumer; none for `basic.get`.
    pub(crate) consumer: Option<ConsumerId>,
    /// The entry as it was in the queue.
    pub(crate) entry: Entry,
    /// The acknowledgement timeout: the delivery returns to its queue at this time.
    pub(crate) timeout: Option<Time>,
}

/// The deliveries that a client settles with one command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tags {
    pub(crate) tag: DeliveryTag,
    /// True to settle all deliveries up to `tag`, or all deliveries if `tag` is 0.
    pub(crate) multiple: bool,
}

impl Tags {
    fn reach(self, tag: DeliveryTag) -> bool {
        self.tag.0 == 0 || tag <= self.tag
    }
}

/// The unsettled deliveries of one channel.
#[derive(Default, Debug)]
pub(crate) struct UnackedList {
    held: SparseDeque<DeliveryTag, Unacked>,
    /// The acknowledgement timeouts of the deliveries that have one.
    timeouts: Deadlines<DeliveryTag>,
    /// Deliveries returned to their queues by the broker, after a timeout for example; settling them is ignored.
    timed_out: BTreeSet<DeliveryTag>,
}

impl UnackedList {
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// True if the delivery is outstanding.
    pub(crate) fn contains(&self, tag: DeliveryTag) -> bool {
        self.held.contains_key(tag)
    }

    /// The outstanding delivery with this tag.
    pub(crate) fn get(&self, tag: DeliveryTag) -> Option<&Unacked> {
        let before = DeliveryTag(tag.0.checked_sub(1)?);
        let (found, unacked) = self.held.iter_after(before).next()?;
        (found == tag).then_some(unacked)
    }

    /// Adds the newest delivery.
    #[inline]
    pub(crate) fn push(&mut self, tag: DeliveryTag, unacked: Unacked) {
        if let Some(timeout) = unacked.timeout {
            self.timeouts.insert(timeout, tag);
        }
        self.held.push_back(tag, unacked);
    }

    /// Removes the deliveries that `tags` names and passes each to `each`, in order of tag.
    ///
    /// # Errors
    /// 406 `unknown delivery tag` if the tag itself is not outstanding.
    #[inline]
    pub(crate) fn take(
        &mut self,
        tags: Tags,
        mut each: impl FnMut(DeliveryTag, Unacked),
    ) -> Result<(), Refusal> {
        self.check(tags)?;
        if !tags.multiple {
            self.timed_out.remove(&tags.tag);
            if let Some(unacked) = self.held.remove(tags.tag) {
                self.left(&unacked);
                each(tags.tag, unacked);
            }
            return Ok(());
        }
        while self.timed_out.first().is_some_and(|tag| tags.reach(*tag)) {
            self.timed_out.pop_first();
        }
        while self.held.front().is_some_and(|(tag, _)| tags.reach(tag))
            && let Some((tag, unacked)) = self.held.pop_front()
        {
            self.left(&unacked);
            each(tag, unacked);
        }
        Ok(())
    }

    #[inline]
    fn check(&self, tags: Tags) -> Result<(), Refusal> {
        let known = match (tags.tag, tags.multiple) {
            (DeliveryTag(0), multiple) => multiple,
            (tag, _) => self.held.contains_key(tag) || self.timed_out.contains(&tag),
        };
        let refuse = || Refusal::precondition_failed(format!("unknown delivery tag {}", tags.tag));
        known.then_some(()).ok_or_else(refuse)
    }

    /// Makes deliveries outstanding again.
    pub(crate) fn put_back(&mut self, mut returned: Vec<(DeliveryTag, Unacked)>) {
        returned.sort_unstable_by_key(|(tag, _)| *tag);
        let mut others = std::mem::take(&mut self.held);
        for (tag, unacked) in returned {
            while others.front().is_some_and(|(other, _)| other < tag)
                && let Some((other, unacked)) = others.pop_front()
            {
                self.held.push_back(other, unacked);
            }
            self.push(tag, unacked);
        }
        while let Some((tag, unacked)) = others.pop_front() {
            self.held.push_back(tag, unacked);
        }
    }

    /// Removes all deliveries and returns them in order of tag.
    pub(crate) fn take_all(&mut self) -> Vec<Unacked> {
        self.timeouts.clear();
        self.timed_out.clear();
        let mut all = Vec::with_capacity(self.held.len());
        while let Some((_, unacked)) = self.held.pop_front() {
            all.push(unacked);
        }
        all
    }

    /// Removes up to `budget` deliveries that timed out by `now`, the longest overdue first; settling them
    /// later is ignored.
    pub(crate) fn take_timed_out(&mut self, now: Time, budget: usize) -> Vec<Unacked> {
        let mut late = Vec::new();
        while late.len() < budget
            && let Some((timeout, tag)) = self.timeouts.first()
            && timeout <= now
        {
            self.timeouts.pop();
            match self.held.remove(tag) {
                Some(unacked) => {
                    self.returned(tag);
                    late.push(unacked);
                }
                None => self.timeouts.popped_stale(),
            }
        }
        late
    }

    /// Removes the deliveries to consumers that the broker has cancelled, in order of tag; settling them later is ignored.
    pub(crate) fn take_of(&mut self, consumers: &BTreeSet<(QueueId, ConsumerId)>) -> Vec<Unacked> {
        if consumers.is_empty() {
            // Each timeout of many asks, mostly about no consumer.
            return Vec::new();
        }
        let is_of = |unacked: &Unacked| {
            unacked.consumer.is_some_and(|consumer| consumers.contains(&(unacked.queue, consumer)))
        };
        let tags: Vec<DeliveryTag> =
            self.held.iter().filter(|(_, unacked)| is_of(unacked)).map(|(tag, _)| tag).collect();
        let mut taken = Vec::with_capacity(tags.len());
        for tag in tags {
            if let Some(unacked) = self.held.remove(tag) {
                self.left(&unacked);
                self.returned(tag);
                taken.push(unacked);
            }
        }
        taken
    }

    /// Notes that settling a delivery is ignored from now on.
    fn returned(&mut self, tag: DeliveryTag) {
        self.timed_out.insert(tag);
        while self.timed_out.len() > TIMED_OUT_TAGS_MAX {
            self.timed_out.pop_first();
        }
    }

    /// The time of the next acknowledgement timeout.
    pub(crate) fn next_timeout(&mut self) -> Option<Time> {
        while let Some((timeout, tag)) = self.timeouts.first() {
            if self.held.contains_key(tag) {
                return Some(timeout);
            }
            self.timeouts.pop();
            self.timeouts.popped_stale();
        }
        None
    }

    /// The outstanding deliveries, in order of tag.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Unacked> {
        self.held.iter().map(|(_, unacked)| unacked)
    }

    /// The outstanding deliveries with tags greater than `tag`, in order of tag.
    pub(crate) fn iter_after(
        &self,
        tag: DeliveryTag,
    ) -> impl Iterator<Item = (DeliveryTag, &Unacked)> {
        self.held.iter_after(tag)
    }

    /// Forgets the timeout of a delivery that was settled in time.
    #[inline]
    fn left(&mut self, unacked: &Unacked) {
        if unacked.timeout.is_some() && self.timeouts.forget_one() {
            let held = &self.held;
            self.timeouts.retain(|tag| held.contains_key(tag));
        }
    }
}
