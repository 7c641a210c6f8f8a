//! A batch of work in a vhost: commands or a tick, and then everything that follows from them.

use std::sync::Arc;
use std::time::Instant;

use broker::time::Now;
use broker::{ConnectionId, Request, ScheduledPlace};
use replica::Ticked;
use smallvec::SmallVec;

use super::batch_result::BatchResult;
use super::links::NodeSide;
use super::{State, VhostHandle};
use crate::limits::{LOCK_RETRY_MS, TIMER_TURN, WORK_PER_LOCK};
use crate::logging::queue_events;
use crate::sockets::socket_writer::SocketWriter;
use crate::vhost::lock::TimedGuard;
use crate::vhost::timer::TimerTarget;

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
        if state.local.is_frozen() {
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
        let places = state.local.serving_mut().apply_and_collect_places(now, connection, request);
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
        let topology_bytes_max = self.pressure.topology_bytes_max();
        state.local.serving_mut().set_topology_bytes_max(topology_bytes_max);
        let is_much = state.local.apply(now, connection, requests, WORK_PER_LOCK);
        BatchResult { is_much, ..self.finish(state) }
    }

    /// Reports the unsent bytes of a connection whose deliveries the core holds back.
    pub(crate) fn report_backlog(&self, connection: ConnectionId, unsent: u64) {
        let mut state = self.state.lock();
        let now = self.clock.now();
        state.local.report_backlog(now, connection, unsent);
        self.finish(state);
    }

    /// Ends a batch.
    pub(in crate::vhost) fn finish(&self, state: TimedGuard<'_, State>) -> BatchResult {
        self.finish_with(state, drop)
    }

    /// Ends a batch: applies all effects, releases the lock with `unlock`, and wakes writers, threads and the timer.
    pub(super) fn finish_with<'a>(
        &self,
        mut state: TimedGuard<'a, State>,
        unlock: fn(TimedGuard<'a, State>),
    ) -> BatchResult {
        let State { local, internal, .. } = &mut *state;
        let mut node = NodeSide { internal, progress: self.disk.pages(), clock: &self.clock };
        let batch = local.end_batch(&mut node);
        self.disk.set_pending_bytes(batch.pending_bytes);
        self.disk.pages().set_ending(local.has_ending_pages());
        let clients = local.clients();
        let touched = batch.touched.iter().filter_map(|connection| clients.get(*connection));
        let writers: SmallVec<[Arc<SocketWriter>; 4]> =
            touched.map(|link| Arc::clone(&link.end.socket.writer)).collect();
        // Threads are woken after the lock is released, because most of them take it next.
        unlock(state);
        if batch.wakes_writer {
            match &self.place {
                None => self.threads.persister.wake(self.id),
                Some(place) => place.replicator.wake(self.id),
            }
        }
        if batch.wakes_pager {
            self.threads.pager.wake(self.id);
        }
        for writer in &writers {
            writer.wake_writer();
        }
        for event in &batch.events {
            queue_events::write(&self.name, event);
        }
        if let Some(next_wake) = batch.next_wake {
            self.wake_up.arm(&self.threads.timer, self.clock.of_node(next_wake));
        }
        BatchResult::from(&batch)
    }

    /// True if work is due.
    pub(super) fn is_due(&self) -> bool {
        let now = self.clock.time();
        let mut state = self.state.lock();
        let wake = state.local.leading_mut().and_then(|vhost| vhost.next_wake());
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
            match state.local.tick(self.clock.now(), self.has_alarm()) {
                Ticked::Follows => return,
                Ticked::Frozen => return retry(LOCK_RETRY_MS),
                Ticked::Done { has_more } => {
                    // A waiting thread gets the lock now; otherwise this thread would take it again at once.
                    self.finish_with(state, TimedGuard::unlock_fair);
                    if !has_more || began.elapsed() >= TIMER_TURN {
                        return;
                    }
                }
            }
        }
    }
}
