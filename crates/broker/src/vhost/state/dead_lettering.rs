//! Deaths that still have to be moved, and the state that dead-lettering keeps between deaths.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::pending_death::PendingDeath;
use crate::channel::LastRoute;
use crate::dead_letter::{self, Circumstances, DeadLetter, LastDeath};
use crate::ids::{ExchangeId, QueueId};
use crate::limits::{CYCLES_REMEMBERED_MAX, DEATH_BYTES_PER_BATCH_MAX, EFFECTS_KEPT_MAX};
use crate::message::{Envelope, Message, Name};
use crate::route::Route;
use crate::time::Time;
use crate::timers::{Timers, Wake};

/// The dead-lettering state of a vhost.
#[derive(Default, Debug)]
pub(crate) struct DeadLettering {
    /// Deaths in the order of moving; empty between calls, except after a mass expiry.
    pending: VecDeque<PendingDeath>,
    /// The wake-up that the timers hold for the pending deaths.
    armed: Option<Time>,
    /// Bytes of dead letters produced in this batch.
    batch_bytes: u64,
    /// The last death, whose dead letter the next one may share.
    last_death: Option<LastDeath>,
    /// The route of the last dead letter.
    last_route: Option<LastRoute>,
    /// Cycles of dead letters that have been reported.
    reported_cycles: BTreeSet<Vec<Name>>,
    /// Queues with dead letters that cannot be delivered.
    sources: BTreeSet<QueueId>,
    /// Dead letters in `sources` are to be offered again, because a target may take them now.
    retry: bool,
    /// Queues in which messages expired in front of others since consumers were last served.
    unblocked: Vec<QueueId>,
}

impl DeadLettering {
    // ---- pending deaths ----

    /// Adds a death at the end.
    #[inline]
    pub(crate) fn push(&mut self, death: PendingDeath) {
        self.pending.push_back(death);
    }

    /// Adds deaths at the end.
    #[inline]
    pub(crate) fn extend(&mut self, deaths: Vec<PendingDeath>) {
        self.pending.extend(deaths);
    }

    /// Takes the next death, unless the batch has reached its limit on bytes of dead letters.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<PendingDeath> {
        if self.batch_bytes < DEATH_BYTES_PER_BATCH_MAX { self.pending.pop_front() } else { None }
    }

    /// Takes the deaths in `queue`, in order.
    pub(crate) fn take_of(&mut self, queue: QueueId) -> VecDeque<PendingDeath> {
        if self.pending.is_empty() {
            return VecDeque::new();
        }
        let all = std::mem::take(&mut self.pending).into_iter();
        let (of_queue, others) = all.partition(|death| death.queue == queue);
        self.pending = others;
        of_queue
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// All pending deaths, in order.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &PendingDeath> {
        self.pending.iter()
    }

    /// Moves the deaths after the first `others` to the front, in their order.
    pub(crate) fn put_first(&mut self, others: usize) {
        for _ in others..self.pending.len() {
            if let Some(last) = self.pending.pop_back() {
                self.pending.push_front(last);
            }
        }
    }

    /// Frees the memory of a mass expiry after its end.
    #[inline]
    pub(crate) fn shrink(&mut self) {
        if self.pending.is_empty() && self.pending.capacity() > EFFECTS_KEPT_MAX {
            self.pending = VecDeque::new();
        }
    }

    /// Makes the dead letter of a message, which may share its parts with the last one, and counts its bytes.
    #[inline]
    pub(crate) fn make_dead_letter(
        &mut self,
        message: &Message,
        circumstances: Circumstances<'_>,
    ) -> DeadLetter {
        let letter = dead_letter::die(message, circumstances, &mut self.last_death);
        self.batch_bytes += letter.message.log_bytes();
        letter
    }

    /// Resets the bytes of the batch, because the shell has taken the effects or the timer gives time.
    #[inline]
    pub(crate) fn begin_batch(&mut self) {
        self.batch_bytes = 0;
    }

    // ---- the timer ----

    /// True if the timer continues with the pending deaths, so that no other call may.
    #[inline]
    pub(crate) fn is_armed(&self) -> bool {
        self.armed.is_some()
    }

    /// The armed wake-up; for checks.
    #[inline]
    pub(crate) fn armed(&self) -> Option<Time> {
        self.armed
    }

    /// Notes that the timer has fired.
    #[inline]
    pub(crate) fn woken(&mut self) {
        self.armed = None;
    }

    /// Arms the timer for the pending deaths, if there are any.
    #[inline]
    pub(crate) fn arm(&mut self, timers: &mut Timers, now: Time) {
        if !self.pending.is_empty() {
            timers.arm(&mut self.armed, now, Wake::Deaths);
        }
    }

    // ---- routes and cycles ----

    /// The route of the last dead letter, if this one has the same envelope and the topology has not changed.
    #[inline]
    pub(crate) fn remembered_route(
        &self,
        topology: u64,
        envelope: &Arc<Envelope>,
    ) -> Option<Route> {
        let last = self.last_route.as_ref()?;
        let is_same = last.topology == topology && Arc::ptr_eq(&last.envelope, envelope);
        is_same.then(|| last.route.clone())
    }

    /// Remembers a route, if other dead letters may share it.
    #[inline]
    pub(crate) fn remember_route(
        &mut self,
        topology: u64,
        exchange: ExchangeId,
        envelope: &Arc<Envelope>,
        route: &Route,
    ) {
        self.last_route = route.can_be_remembered.then(|| {
            let (envelope, route) = (Arc::clone(envelope), route.clone());
            LastRoute { topology, exchange, envelope, route }
        });
    }

    /// True if this cycle has not been reported yet; marks the cycle as reported.
    #[inline]
    pub(crate) fn is_new_cycle(&mut self, queues: &[Name]) -> bool {
        self.reported_cycles.len() < CYCLES_REMEMBERED_MAX
            && self.reported_cycles.insert(queues.to_vec())
    }

    // ---- dead letters without a target ----

    /// Lists a queue with dead letters that cannot be delivered.
    #[inline]
    pub(crate) fn add_source(&mut self, queue: QueueId) {
        self.sources.insert(queue);
    }

    /// Removes a queue without such dead letters from the list.
    #[inline]
    pub(crate) fn remove_source(&mut self, queue: QueueId) {
        self.sources.remove(&queue);
    }

    /// True if the queue is listed with dead letters that cannot be delivered.
    #[inline]
    pub(crate) fn has_source(&self, queue: QueueId) -> bool {
        self.sources.contains(&queue)
    }

    /// Queues with dead letters that cannot be delivered.
    #[inline]
    pub(crate) fn sources(&self) -> Vec<QueueId> {
        self.sources.iter().copied().collect()
    }

    /// Requests that dead letters without a target are offered again.
    #[inline]
    pub(crate) fn request_retry(&mut self) {
        self.retry = true;
    }

    /// True if dead letters without a target should be offered again.
    #[inline]
    pub(crate) fn wants_retry(&self) -> bool {
        self.retry
    }

    /// Notes that dead letters without a target are being offered again.
    #[inline]
    pub(crate) fn retry_begins(&mut self) {
        self.retry = false;
    }

    // ---- consumers behind expired messages ----

    /// Lists a queue in which messages expired in front of others, which consumers get at the end of the
    /// call.
    #[inline]
    pub(crate) fn unblock(&mut self, queue: QueueId) {
        self.unblocked.push(queue);
    }

    /// True if queues are listed.
    #[inline]
    pub(crate) fn has_unblocked(&self) -> bool {
        !self.unblocked.is_empty()
    }

    /// Takes the listed queues.
    #[inline]
    pub(crate) fn take_unblocked(&mut self) -> Vec<QueueId> {
        std::mem::take(&mut self.unblocked)
    }
}
