//! The vhosts of the node, each behind one lock, and what its effects do to the world.
//!
//! The lock is entered once per batch: commands are applied, effects are turned into bytes in the
//! outboxes of their connections while the lock keeps them in order, and writers are woken after it
//! is given back. Nothing in here waits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use broker::access::Access;
use broker::refusal::Refusal;
use broker::time::Time;
use broker::{ConnectionId, Effect, Event, Outgoing, Request, Vhost, VhostOptions};
use parking_lot::{Mutex, MutexGuard, RwLock};
use session::transmit;
use slotmap::SecondaryMap;
use smallvec::SmallVec;

use crate::clock::Clock;
use crate::limits::TICKS_PER_TURN;
use crate::timer::{Timer, TimerId};
use crate::wire::Wire;

/// A connection as its vhost's effects reach it.
#[derive(Debug)]
struct Link {
    wire: Arc<Wire>,
    frame_max: u32,
    /// Something was put into its outbox in this batch.
    is_touched: bool,
}

#[derive(Debug)]
struct State {
    vhost: Vhost,
    links: SecondaryMap<ConnectionId, Link>,
    /// What connections are closed with since the broker stops.
    stopped: Option<Refusal>,
}

/// A vhost behind its lock.
#[derive(Debug)]
pub(crate) struct VhostCell {
    name: Arc<str>,
    state: Mutex<State>,
    /// When the timer will look at this vhost, in microseconds; `u64::MAX` for never.
    armed_us: AtomicU64,
    timer: Arc<Timer>,
    timer_id: TimerId,
    clock: Clock,
}

/// What is to be done once the effects are in the outboxes.
#[derive(Default)]
struct After {
    /// Connections with something new in their outboxes.
    touched: SmallVec<[ConnectionId; 4]>,
    events: Vec<Event>,
    /// Connections of which the core wants to know how much is unsent.
    asked: Vec<ConnectionId>,
}

impl After {
    fn touch(&mut self, connection: ConnectionId, link: &mut Link) {
        if !std::mem::replace(&mut link.is_touched, true) {
            self.touched.push(connection);
        }
    }
}

impl VhostCell {
    /// Opens a connection in this vhost, only to close it when the broker stops.
    pub(crate) fn open(
        &self,
        access: Arc<Access>,
        cancel_notify: bool,
        wire: &Arc<Wire>,
        frame_max: u32,
    ) -> ConnectionId {
        let mut state = self.state.lock();
        let id = state.vhost.open_connection(access, cancel_notify);
        let link = Link { wire: Arc::clone(wire), frame_max, is_touched: false };
        state.links.insert(id, link);
        if let Some(refusal) = state.stopped.clone() {
            state.vhost.force_close(self.clock.now(), id, refusal);
            self.finish(state);
        }
        id
    }

    /// Applies commands of one connection, in order.
    pub(crate) fn apply<'a>(
        &self,
        connection: ConnectionId,
        requests: impl Iterator<Item = Request<'a>>,
    ) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        if let Some(link) = state.links.get(connection) {
            let unsent = link.wire.unsent();
            state.vhost.set_backlog(now, connection, unsent);
        }
        for request in requests {
            state.vhost.apply(now, connection, request);
        }
        self.finish(state);
    }

    /// The connection is gone.
    pub(crate) fn close(&self, connection: ConnectionId) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        state.vhost.close_connection(now, connection);
        state.links.remove(connection);
        self.finish(state);
    }

    /// The writer of a connection that the core holds back tells how little is unsent.
    pub(crate) fn report_backlog(&self, connection: ConnectionId, unsent: u64) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        state.vhost.set_backlog(now, connection, unsent);
        self.finish(state);
    }

    /// Does what is due.
    pub(crate) fn tick(&self) {
        self.armed_us.store(u64::MAX, Ordering::Release);
        for _ in 0..TICKS_PER_TURN {
            let now = self.clock.now();
            let mut state = self.state.lock();
            state.vhost.tick(now);
            let more = state.vhost.next_wake().is_some_and(|wake| wake <= now.time);
            self.finish(state);
            if !more {
                return;
            }
        }
    }

    /// Changes the vhost from within the node.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut Vhost, broker::time::Now) -> T) -> T {
        let now = self.clock.now();
        let mut state = self.state.lock();
        let result = change(&mut state.vhost, now);
        self.finish(state);
        result
    }

    /// Closes every connection because the broker stops, and those that are opened later.
    pub(crate) fn stop(&self, refusal: &Refusal) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        let State { vhost, stopped, .. } = &mut *state;
        *stopped = Some(refusal.clone());
        vhost.cancel_consumers(now);
        let connections: Vec<ConnectionId> = vhost.connections().map(|(id, _)| id).collect();
        for connection in connections {
            vhost.force_close(now, connection, refusal.clone());
        }
        self.finish(state);
    }

    /// Ends a batch: what was to be durable is, publishers are told, effects reach their outboxes,
    /// the timer knows what comes next.
    fn finish(&self, mut state: MutexGuard<'_, State>) {
        let mut after = After::default();
        let State { vhost, links, .. } = &mut *state;
        // Messages and definitions live in memory: the log is as durable as it gets at once.
        vhost.durable(vhost.last_lsn());
        vhost.flush();
        loop {
            deliver(vhost, links, &mut after);
            if after.asked.is_empty() {
                break;
            }
            let now = self.clock.now();
            for connection in after.asked.drain(..) {
                let unsent = links.get(connection).map_or(0, |link| link.wire.unsent());
                vhost.set_backlog(now, connection, unsent);
            }
        }
        let next_wake = vhost.next_wake();
        let mut wires: SmallVec<[Arc<Wire>; 4]> = SmallVec::new();
        for connection in after.touched {
            if let Some(link) = links.get_mut(connection) {
                link.is_touched = false;
                wires.push(Arc::clone(&link.wire));
            }
        }
        drop(state);
        for wire in &wires {
            wire.wake_writer();
        }
        for event in &after.events {
            crate::logging::event(&self.name, event);
        }
        if let Some(next_wake) = next_wake {
            self.arm(next_wake);
        }
    }

    fn arm(&self, at: Time) {
        let before = self.armed_us.fetch_min(at.as_micros(), Ordering::AcqRel);
        if at.as_micros() < before {
            self.timer.arm(self.timer_id, Time::from_micros(before), at);
        }
    }
}

/// Turns effects into bytes in the outboxes they are for.
fn deliver(vhost: &mut Vhost, links: &mut SecondaryMap<ConnectionId, Link>, after: &mut After) {
    let mut effects = vhost.drain_effects().peekable();
    while let Some(effect) = effects.next() {
        match effect {
            Effect::Send { connection, channel, outgoing } => {
                let Some(link) = links.get_mut(connection) else { continue };
                let mut closing = matches!(outgoing, Outgoing::ConnectionClose { .. });
                link.wire.append(|outbox| {
                    transmit(&outgoing, channel.0, link.frame_max, outbox);
                    // One lock of the outbox for all that goes to the same connection in a row.
                    while let Some(Effect::Send { connection: next, .. }) = effects.peek()
                        && *next == connection
                    {
                        let Some(Effect::Send { channel, outgoing, .. }) = effects.next() else {
                            break;
                        };
                        closing |= matches!(outgoing, Outgoing::ConnectionClose { .. });
                        transmit(&outgoing, channel.0, link.frame_max, outbox);
                    }
                });
                if closing {
                    link.wire.set_closing();
                }
                after.touch(connection, link);
            }
            Effect::Stalled(connection) => {
                let Some(link) = links.get_mut(connection) else { continue };
                link.wire.set_stalled();
                after.touch(connection, link);
            }
            Effect::AskBacklog(connection) => after.asked.push(connection),
            Effect::Log { .. } => {}
            Effect::Event(event) => after.events.push(event),
        }
    }
}

/// The vhosts by name.
#[derive(Debug)]
pub(crate) struct Vhosts {
    cells: RwLock<BTreeMap<String, Arc<VhostCell>>>,
    options: VhostOptions,
    timer: Arc<Timer>,
    clock: Clock,
}

impl Vhosts {
    pub(crate) fn new(options: VhostOptions, timer: Arc<Timer>, clock: Clock) -> Self {
        Self { cells: RwLock::default(), options, timer, clock }
    }

    /// The vhost of that name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<VhostCell>> {
        self.cells.read().get(name).cloned()
    }

    /// All vhosts, by name.
    pub(crate) fn all(&self) -> Vec<Arc<VhostCell>> {
        self.cells.read().values().cloned().collect()
    }

    /// The vhost of that name, made if there is none.
    ///
    /// # Errors
    /// When the system has no randomness to seed it with.
    pub(crate) fn create(&self, name: &str) -> Result<Arc<VhostCell>, getrandom::Error> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)?;
        let mut cells = self.cells.write();
        if let Some(cell) = cells.get(name) {
            return Ok(Arc::clone(cell));
        }
        let cell = self.timer.register(|timer_id| {
            Arc::new(VhostCell {
                name: name.into(),
                state: Mutex::new(State {
                    vhost: Vhost::new(name, seed, self.options),
                    links: SecondaryMap::new(),
                    stopped: None,
                }),
                armed_us: AtomicU64::new(u64::MAX),
                timer: Arc::clone(&self.timer),
                timer_id,
                clock: self.clock,
            })
        });
        cells.insert(name.to_owned(), Arc::clone(&cell));
        Ok(cell)
    }
}
