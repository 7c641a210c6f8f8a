//! Deaths that are still to be moved, and what dead-lettering remembers from one to the next.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::pending_death::PendingDeath;
use crate::channel::LastRoute;
use crate::dead_letter::LastDeath;
use crate::ids::{ExchangeId, QueueId};
use crate::limits::{CYCLES_REMEMBERED_MAX, DEATH_BYTES_PER_BATCH_MAX, EFFECTS_KEPT_MAX};
use crate::message::{Envelope, Name};
use crate::route::Route;
use crate::time::Time;
use crate::timers::{Timers, Wake};

/// The dead-lettering of a vhost.
#[derive(Default, Debug)]
pub(crate) struct DeadLettering {
    /// Deaths in the order in which they are moved; none between calls, except after a mass expiry.
    pending: VecDeque<PendingDeath>,
    /// The wake-up that the timers hold for the pending deaths.
    armed: Option<Time>,
    /// Bytes of dead letters made in this batch.
    batch_bytes: u64,
    /// The last death, whose dead letter the next one may share.
    pub(crate) last_death: Option<LastDeath>,
    /// The route of the last dead letter.
    last_route: Option<LastRoute>,
    /// Cycles of dead letters that were reported.
    reported_cycles: BTreeSet<Vec<Name>>,
    /// Queues with dead letters that have nowhere to go.
    sources: BTreeSet<QueueId>,
    /// Dead letters in `sources` are to be offered again, because a target may take them now.
    retry: bool,
    /// Queues in which messages expired in front of others, since consumers were last served.
    unblocked: Vec<QueueId>,
}

impl DeadLettering {
    // ---- pending deaths ----

    /// Adds a death behind the others.
    pub(crate) fn push(&mut self, death: PendingDeath) {
        self.pending.push_back(death);
    }

    /// Adds deaths behind the others.
    pub(crate) fn extend(&mut self, deaths: Vec<PendingDeath>) {
        self.pending.extend(deaths);
    }

    /// Takes the next death, unless the batch has made as many bytes of dead letters as it may.
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

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Pending deaths, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &PendingDeath> {
        self.pending.iter()
    }

    /// Moves the deaths behind the first `others` to the front, the last of them first.
    pub(crate) fn put_first(&mut self, others: usize) {
        for _ in others..self.pending.len() {
            if let Some(last) = self.pending.pop_back() {
                self.pending.push_front(last);
            }
        }
    }

    /// Frees the memory of a mass expiry that is over.
    pub(crate) fn shrink(&mut self) {
        if self.pending.is_empty() && self.pending.capacity() > EFFECTS_KEPT_MAX {
            self.pending = VecDeque::new();
        }
    }

    /// Counts the bytes of a dead letter.
    pub(crate) fn count_bytes(&mut self, bytes: u64) {
        self.batch_bytes += bytes;
    }

    /// The shell has the vhost's effects, or the timer gives it time: dead letters may be made again.
    pub(crate) fn begin_batch(&mut self) {
        self.batch_bytes = 0;
    }

    // ---- the timer ----

    /// True if the timer goes on with the pending deaths, so that nothing else may.
    pub(crate) fn is_armed(&self) -> bool {
        self.armed.is_some()
    }

    /// The armed wake-up; for checks.
    pub(crate) fn armed(&self) -> Option<Time> {
        self.armed
    }

    /// The timer has come.
    pub(crate) fn woken(&mut self) {
        self.armed = None;
    }

    /// Makes sure that the timer goes on with the pending deaths, if there are any.
    pub(crate) fn arm(&mut self, timers: &mut Timers, now: Time) {
        if !self.pending.is_empty() {
            timers.arm(&mut self.armed, now, Wake::Deaths);
        }
    }

    // ---- routes and cycles ----

    /// The route of the last dead letter, if this one has the same envelope in the same topology.
    pub(crate) fn remembered_route(
        &self,
        topology: u64,
        envelope: &Arc<Envelope>,
    ) -> Option<Route> {
        let last = self.last_route.as_ref()?;
        let is_same = last.topology == topology && Arc::ptr_eq(&last.envelope, envelope);
        is_same.then(|| last.route.clone())
    }

    /// Remembers a route, if others may share it.
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

    /// True if this cycle was not reported yet; it is from now on.
    pub(crate) fn is_new_cycle(&mut self, queues: &[Name]) -> bool {
        self.reported_cycles.len() < CYCLES_REMEMBERED_MAX
            && self.reported_cycles.insert(queues.to_vec())
    }

    // ---- dead letters without a target ----

    /// The queue has dead letters that have nowhere to go.
    pub(crate) fn add_source(&mut self, queue: QueueId) {
        self.sources.insert(queue);
    }

    /// The queue has no dead letters that have nowhere to go.
    pub(crate) fn remove_source(&mut self, queue: QueueId) {
        self.sources.remove(&queue);
    }

    /// True if the queue is known to have dead letters that have nowhere to go.
    pub(crate) fn has_source(&self, queue: QueueId) -> bool {
        self.sources.contains(&queue)
    }

    /// Queues with dead letters that have nowhere to go.
    pub(crate) fn sources(&self) -> Vec<QueueId> {
        self.sources.iter().copied().collect()
    }

    /// Dead letters that have nowhere to go are to be offered again.
    pub(crate) fn request_retry(&mut self) {
        self.retry = true;
    }

    /// True if dead letters that have nowhere to go are to be offered again.
    pub(crate) fn wants_retry(&self) -> bool {
        self.retry
    }

    /// Dead letters that have nowhere to go are being offered again.
    pub(crate) fn retry_begins(&mut self) {
        self.retry = false;
    }

    // ---- consumers behind expired messages ----

    /// Messages have expired in front of others, which consumers are to get at the end of the call.
    pub(crate) fn unblock(&mut self, queue: QueueId) {
        self.unblocked.push(queue);
    }

    /// True if a queue was unblocked.
    pub(crate) fn has_unblocked(&self) -> bool {
        !self.unblocked.is_empty()
    }

    /// Takes the queues that were unblocked.
    pub(crate) fn take_unblocked(&mut self) -> Vec<QueueId> {
        std::mem::take(&mut self.unblocked)
    }
}
