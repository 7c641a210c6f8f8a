//! A batch of work in a vhost: commands or a tick, and then everything that follows from them.

use std::sync::Arc;
use std::time::Instant;

use broker::time::Now;
use broker::{ConnectionId, Request, ScheduledPlace};
use replica::DeferredReply;
use smallvec::SmallVec;

use super::batch_result::BatchResult;
use super::handle::{State, VhostHandle};
use super::links::{NodeSide, Outputs};
use super::lock::TimedGuard;
use super::timer::TimerTarget;
use crate::connection::socket_writer::SocketWriter;
use crate::limits::{LOCK_RETRY_MS, TIMER_TURN, WORK_PER_LOCK};
use crate::logging::queue_events;

impl VhostHandle {
    /// Applies commands of one connection, in order, and takes them out of `requests`; those behind one with which the work
    /// becomes too much for one hold of the lock stay. None, with nothing applied, if the lock is held for long or another
    /// node is to lead.
    pub(crate) fn try_apply(
        &self,
        connection: ConnectionId,
        requests: &mut Vec<Request<'_>>,
    ) -> Option<BatchResult> {
        let state = self.state.try_lock()?;
        if self.is_frozen() {
            return None;
        }
        let mut all = requests.drain(..);
        let result = self.apply_in(state, connection, &mut all);
        // The memory of `requests` is used again; there is hardly ever a rest.
        let rest: Vec<_> = all.collect();
        requests.extend(rest);
        Some(result)
    }

    /// Applies a command of a connection of the node itself.
    pub(crate) fn apply_internal(
        &self,
        connection: ConnectionId,
        request: Request<'_>,
    ) -> BatchResult {
        self.apply_in(self.state.lock(), connection, &mut std::iter::once(request))
    }

    /// Applies a command of a connection of the node itself. Returns the places in which its message, if it is a
    /// publish, waits for its delivery time, and the time of the publish.
    pub(crate) fn apply_and_collect_places(
        &self,
        connection: ConnectionId,
        request: Request<'_>,
    ) -> (Vec<ScheduledPlace>, Now) {
        let mut state = self.state.lock();
        let now = self.clock.now();
        self.check_alarm(&mut state, now);
        let places = state.brain.serving_mut().apply_and_collect_places(now, connection, request);
        self.finish(state);
        (places, now)
    }

    fn apply_in<'a>(
        &self,
        mut state: TimedGuard<'_, State>,
        connection: ConnectionId,
        requests: &mut impl Iterator<Item = Request<'a>>,
    ) -> BatchResult {
        let now = self.clock.now();
        self.check_alarm(&mut state, now);
        if let Some(link) = state.outputs.clients.links.get(connection) {
            let unsent = link.backlog(link.end.socket.writer.unsent());
            state.brain.serving_mut().set_backlog(now, connection, unsent);
        }
        let vhost = state.brain.serving_mut();
        vhost.set_topology_bytes_max(self.pressure.topology_bytes_max());
        let work_max = vhost.work_done() + WORK_PER_LOCK;
        let mut is_much = false;
        for request in requests {
            vhost.apply(now, connection, request);
            is_much = vhost.work_done() > work_max;
            if is_much {
                break;
            }
        }
        BatchResult { is_much, ..self.finish(state) }
    }

    /// Reports the unsent bytes of a connection whose deliveries the core holds back.
    pub(crate) fn report_backlog(&self, connection: ConnectionId, unsent: u64) {
        let mut state = self.state.lock();
        let now = self.clock.now();
        let link = state.outputs.clients.links.get(connection);
        let backlog = link.map_or(unsent, |link| link.backlog(unsent));
        state.brain.serving_mut().set_backlog(now, connection, backlog);
        self.finish(state);
    }

    /// Ends a batch.
    pub(super) fn finish(&self, state: TimedGuard<'_, State>) -> BatchResult {
        self.finish_with(state, Vec::new(), drop)
    }

    /// Ends a batch: sends the deferred `replies`, applies all effects, releases the lock with `unlock`, and
    /// wakes writers, threads and the timer.
    pub(super) fn finish_with<'a>(
        &self,
        mut state: TimedGuard<'a, State>,
        replies: Vec<DeferredReply>,
        unlock: fn(TimedGuard<'a, State>),
    ) -> BatchResult {
        let State { brain, outputs, .. } = &mut *state;
        let Outputs { clients, internal, pages, .. } = outputs;
        let vhost = brain.serving_mut();
        let durable = self.is_replicated().then(|| self.disk.durable());
        let (progress, clock) = (self.disk.pages(), &self.clock);
        let mut node = NodeSide { internal, pages, progress, clock };
        let batch = clients.end_batch(vhost, replies, durable, &mut node);
        let next_wake = vhost.next_wake();
        let wakes_writer = clients.log.wakes_writer();
        let wakes_pager = pages.wakes_pager();
        self.disk.set_pending_bytes(clients.log.bytes());
        let touched = batch.touched.iter().filter_map(|connection| clients.links.get(*connection));
        let writers: SmallVec<[Arc<SocketWriter>; 4]> =
            touched.map(|link| Arc::clone(&link.end.socket.writer)).collect();
        // Threads are woken after the lock is released, because most of them take it next.
        unlock(state);
        if wakes_writer {
            match &self.replica {
                None => self.threads.persister.wake(self.id),
                Some(replica) => replica.replicator.wake(self.id),
            }
        }
        if wakes_pager {
            self.threads.pager.wake(self.id);
        }
        for writer in &writers {
            writer.wake_writer();
        }
        for event in &batch.events {
            queue_events::write(&self.name, event);
        }
        if let Some(next_wake) = next_wake {
            self.wake_up.arm(&self.threads.timer, self.clock.of_node(next_wake));
        }
        BatchResult::from(&batch)
    }

    /// True if work is due.
    pub(super) fn is_due(&self) -> bool {
        let now = self.clock.time();
        let mut state = self.state.lock();
        let wake = state.brain.leading_mut().and_then(|vhost| vhost.next_wake());
        wake.is_some_and(|wake| wake <= now)
    }
}

impl TimerTarget for VhostHandle {
    /// Does due work, for at most [`TIMER_TURN`].
    fn tick(&self) {
        // Before the vhost is examined, so that later work arms the timer again.
        self.wake_up.fired();
        let began = Instant::now();
        let retry = |after_ms| {
            let at = self.clock.time().plus_ms(after_ms);
            self.wake_up.arm(&self.threads.timer, self.clock.of_node(at));
        };
        loop {
            if self.disk.is_behind() {
                // Due work goes into the log, which is behind already.
                return retry(1);
            }
            let Some(mut state) = self.state.try_lock() else {
                // The other vhosts must not wait for this one.
                return retry(LOCK_RETRY_MS);
            };
            if self.is_frozen() {
                return retry(LOCK_RETRY_MS);
            }
            let now = self.clock.now();
            self.check_alarm(&mut state, now);
            // A replica has no work of its own: the leader's records tell it everything.
            let Some(vhost) = state.brain.leading_mut() else { return };
            vhost.tick(now);
            let more = vhost.next_wake().is_some_and(|wake| wake <= now.time);
            // A waiting thread gets the lock now; otherwise this thread would take it again at once.
            self.finish_with(state, Vec::new(), TimedGuard::unlock_fair);
            if !more || began.elapsed() >= TIMER_TURN {
                return;
            }
        }
    }
}
