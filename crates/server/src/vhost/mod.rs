//! The vhosts of the node, each behind one lock, and what its effects do to the world.
//!
//! The lock is entered once per batch: commands are applied, effects are turned into bytes in the
//! outboxes of their connections while the lock keeps them in order, and writers are woken after it
//! is given back. Nothing in here waits.

mod alarm;
mod browse;
mod changes;
mod disk;
mod effects;
pub(crate) mod internal_channel;
mod lock;
#[cfg(test)]
mod tests;
pub(crate) mod timer;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use broker::access::Access;
use broker::refusal::Refusal;
use broker::time::Time;
use broker::{ChannelNumber, ConnectionId, Event, Lsn, Outgoing, Request, Vhost, VhostOptions};
use management::{ClientDescription, ClientOf, Traffic, VhostLimit, VhostSettings, maximum};
use parking_lot::RwLock;
use session::transmit;
use slotmap::SecondaryMap;
use smallvec::SmallVec;
use storage::WriteQueue;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{Notify, Semaphore};

use crate::clock::Clock;
use crate::config::{Config, Durability};
use crate::connection::clients::Socket;
use crate::connection::socket_writer::SocketWriter;
use crate::disk::node_file::{FIRST_VHOST_ID, VhostEntry};
use crate::disk::page_files::PageFiles;
use crate::disk::page_queue::{PageProgress, PageQueue};
use crate::disk::pager::Pager;
use crate::disk::persister::Persister;
use crate::disk::recovery::{self, RestoreError, Restored};
use crate::disk::reserve::Reserve;
use crate::limits::{
    CATCH_UP_PAUSE, CATCH_UP_STALL_MAX, LOCK_RETRY_MS, PAGE_LOOKS_MAX, PENDING_BYTES_MAX,
    TIMER_TURN,
};
use crate::vhost::timer::{Timer, TimerId};
pub(crate) use browse::BrowseProblem;
pub(crate) use changes::OpenRefused;
use effects::{deliver, tell};
use lock::{TimedLock, Turn};

/// A connection as its vhost's effects reach it.
#[derive(Debug)]
struct Link {
    socket: Socket,
    client: Arc<ClientDescription>,
    frame_max: u32,
    /// Something was put into its outbox in this batch.
    is_touched: bool,
}

/// The connections of the node itself, with who listens there.
type InternalLinks = SecondaryMap<ConnectionId, UnboundedSender<Outgoing>>;

#[derive(Debug)]
struct State {
    vhost: Vhost,
    links: SecondaryMap<ConnectionId, Link>,
    /// The connections of the node itself, with who listens there.
    own: InternalLinks,
    /// Answers that wait for the log.
    held: Vec<Held>,
    /// Records that wait for the disk.
    pending: WriteQueue,
    /// The writer knows that there are some.
    writer_knows: bool,
    /// What is to be done with pages.
    paging: PageQueue,
    /// What went over the sockets of clients that have gone.
    traffic_of_gone: Traffic,
    /// What connections are closed with since the broker stops.
    stopped: Option<Refusal>,
    /// The vhost is deleted.
    is_retired: bool,
    settings: Arc<VhostSettings>,
}

/// An answer that is given when the log is durable up to a position.
#[derive(Debug)]
struct Held {
    lsn: Lsn,
    connection: ConnectionId,
    channel: ChannelNumber,
    outgoing: Outgoing,
}

/// A vhost behind its lock.
#[derive(Debug)]
pub(crate) struct VhostHandle {
    name: Arc<str>,
    /// Names its directory.
    id: u64,
    state: TimedLock<State>,
    /// When the timer will look at this vhost, in microseconds; `u64::MAX` for never.
    armed_us: AtomicU64,
    timer: Arc<Timer>,
    timer_id: TimerId,
    persister: Arc<Persister>,
    pager: Arc<Pager>,
    page_files: Arc<PageFiles>,
    /// Octets that wait for the disk.
    pending_bytes: AtomicUsize,
    /// How much of that there is.
    paging: PageProgress,
    /// The vhost is deleted: nothing of it is written any more.
    is_retired: AtomicBool,
    /// Up to where the log is durable.
    durable_lsn: AtomicU64,
    /// That has changed.
    written: Notify,
    /// For whoever looks at what is in pages.
    page_looks: Semaphore,
    /// An alarm is on, for all vhosts.
    alarm: Arc<AtomicBool>,
    /// What its topology may take while memory is short; `u64::MAX` while it is not.
    topology_bytes_max: AtomicU64,
    clock: Clock,
    this: Weak<Self>,
}

/// What is to be done once the effects are in the outboxes.
#[derive(Default)]
struct After {
    /// Connections with something new in their outboxes.
    touched: SmallVec<[ConnectionId; 4]>,
    events: Vec<Event>,
    /// Connections of which the core wants to know how much is unsent.
    asked: Vec<ConnectionId>,
    applied: Applied,
}

/// What an answer waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// The log, up to this position.
    Log(Lsn),
    /// A page, for a `basic.get` of this connection.
    Page(ConnectionId),
}

/// What came of commands.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Applied {
    /// What the answer to the last of them waits for: nothing more may be applied before.
    pub(crate) wait: Option<Wait>,
    /// Something of them goes to the disk.
    pub(crate) is_written: bool,
}

impl After {
    fn touch(&mut self, connection: ConnectionId, link: &mut Link) {
        if !std::mem::replace(&mut link.is_touched, true) {
            self.touched.push(connection);
        }
    }
}

impl VhostHandle {
    /// Opens a connection in this vhost, only to close it when the broker stops. `welcome` is called
    /// before the vhost can say anything.
    pub(crate) fn open(
        &self,
        access: Arc<Access>,
        cancel_notify: bool,
        (socket, client): (Socket, &Arc<ClientDescription>),
        welcome: impl FnOnce(),
    ) -> Result<ConnectionId, OpenRefused> {
        let mut state = self.state.lock();
        state.check_room()?;
        welcome();
        let id = state.vhost.open_connection(access, cancel_notify);
        state.vhost.set_connection_name(id, &client.name);
        let link = Link {
            socket,
            client: Arc::clone(client),
            frame_max: client.frame_max,
            is_touched: false,
        };
        state.links.insert(id, link);
        if let Some(refusal) = state.stopped.clone() {
            state.vhost.force_close(self.clock.now(), id, refusal);
            self.finish(state);
        }
        Ok(id)
    }

    /// Opens a connection of the node's own, on behalf of a user, and what it will be told.
    pub(crate) fn open_internal(
        &self,
        name: &str,
        access: Arc<Access>,
    ) -> (ConnectionId, UnboundedReceiver<Outgoing>) {
        // One answer for each command, and none is applied before the last is answered.
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut state = self.state.lock();
        let id = state.vhost.open_connection(access, false);
        state.vhost.set_connection_name(id, name);
        state.own.insert(id, sender);
        if let Some(refusal) = state.stopped.clone() {
            state.vhost.force_close(self.clock.now(), id, refusal);
            self.finish(state);
        }
        (id, receiver)
    }

    /// Waits while somebody holds the lock for long: tasks that serve a connection await this before
    /// they enter.
    pub(crate) async fn long_hold_ended(&self) {
        self.state.long_hold_ended().await;
    }

    /// Applies commands of one connection, in order, and takes them out of `requests`. None, with
    /// nothing applied, if the lock is held for long.
    pub(crate) fn try_apply(
        &self,
        connection: ConnectionId,
        requests: &mut Vec<Request<'_>>,
    ) -> Option<Applied> {
        let state = self.state.try_lock()?;
        Some(self.apply_in(state, connection, requests.drain(..)))
    }

    /// Applies a command of a connection of the node's own.
    pub(crate) fn apply_internal(&self, connection: ConnectionId, request: Request<'_>) -> Applied {
        self.apply_in(self.state.lock(), connection, std::iter::once(request))
    }

    fn apply_in<'a>(
        &self,
        mut state: Turn<'_, State>,
        connection: ConnectionId,
        requests: impl Iterator<Item = Request<'a>>,
    ) -> Applied {
        let now = self.clock.now();
        self.check_alarm(&mut state, now);
        if let Some(link) = state.links.get(connection) {
            let unsent = link.socket.socket_writer.unsent();
            state.vhost.set_backlog(now, connection, unsent);
        }
        state.vhost.set_topology_bytes_max(self.topology_bytes_max());
        for request in requests {
            state.vhost.apply(now, connection, request);
        }
        self.finish(state)
    }

    /// The connection is gone. The position up to which the log tells of all that it did.
    pub(crate) fn close(&self, connection: ConnectionId) -> Lsn {
        let mut state = self.state.lock();
        let now = self.clock.now();
        state.vhost.close_connection(now, connection);
        if let Some(link) = state.links.remove(connection) {
            state.traffic_of_gone.add(&link.socket.traffic());
        }
        state.own.remove(connection);
        let last = state.vhost.last_lsn();
        self.finish(state);
        last
    }

    /// The writer of a connection that the core holds back tells how little is unsent.
    pub(crate) fn report_backlog(&self, connection: ConnectionId, unsent: u64) {
        let mut state = self.state.lock();
        let now = self.clock.now();
        state.vhost.set_backlog(now, connection, unsent);
        self.finish(state);
    }

    /// Does what is due, for the length of a turn at most.
    pub(crate) fn tick(&self) {
        self.armed_us.store(u64::MAX, Ordering::Release);
        let began = Instant::now();
        loop {
            if self.is_behind() {
                // What dies goes into the log, which has enough to do.
                self.arm(self.clock.time().plus_ms(1));
                return;
            }
            let Some(mut state) = self.state.try_lock() else {
                // The other vhosts do not wait for this one.
                self.arm(self.clock.time().plus_ms(LOCK_RETRY_MS));
                return;
            };
            let now = self.clock.now();
            self.check_alarm(&mut state, now);
            state.vhost.tick(now);
            let more = state.vhost.next_wake().is_some_and(|wake| wake <= now.time);
            // Whoever waits for the lock gets it now: this thread would have it again at once.
            self.finish_with(state, &[], Turn::end_fair);
            if !more || began.elapsed() >= TIMER_TURN {
                return;
            }
        }
    }

    /// Whether something is due.
    fn is_due(&self) -> bool {
        let now = self.clock.time();
        self.state.lock().vhost.next_wake().is_some_and(|wake| wake <= now)
    }

    /// Changes the vhost from within the node.
    pub(crate) fn write<T>(&self, change: impl FnOnce(&mut Vhost, broker::time::Now) -> T) -> T {
        let mut state = self.state.lock();
        let now = self.clock.now();
        state.vhost.set_topology_bytes_max(self.topology_bytes_max());
        let result = change(&mut state.vhost, now);
        self.finish(state);
        result
    }

    /// Looks at the vhost and at who its clients are; to be short, for clients wait.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Vhost, ClientOf<'_>) -> T) -> T {
        let state = self.state.lock();
        look(&state.vhost, &|id| state.links.get(id).map(|link| Arc::clone(&link.client)))
    }

    /// What went over the sockets of its clients, of those who have gone, too.
    pub(crate) fn traffic(&self) -> Traffic {
        let state = self.state.lock();
        let mut sum = state.traffic_of_gone;
        state.links.values().for_each(|link| sum.add(&link.socket.traffic()));
        sum
    }

    /// Closes every connection because the broker stops, and those that are opened later.
    pub(crate) fn stop(&self, refusal: &Refusal) {
        let mut state = self.state.lock();
        let now = self.clock.now();
        let State { vhost, stopped, .. } = &mut *state;
        *stopped = Some(refusal.clone());
        vhost.cancel_consumers(now);
        let connections: Vec<ConnectionId> = vhost.connections().map(|(id, _)| id).collect();
        for connection in connections {
            vhost.force_close(now, connection, refusal.clone());
        }
        self.finish(state);
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether so much waits for the disk that whoever adds to it has to.
    pub(crate) fn is_behind(&self) -> bool {
        let is_full = self.pending_bytes.load(Ordering::Relaxed) > PENDING_BYTES_MAX;
        (is_full || self.paging.is_behind()) && !self.is_retired.load(Ordering::Acquire)
    }

    /// Waits until less waits for the disk.
    pub(crate) async fn caught_up(&self) {
        loop {
            let written = self.written.notified();
            if !self.is_behind() {
                return;
            }
            written.await;
        }
    }

    /// Waits until the log is durable up to `lsn`.
    pub(crate) async fn durable_at(&self, lsn: Lsn) {
        loop {
            let written = self.written.notified();
            if self.durable_lsn.load(Ordering::Acquire) >= lsn.0 {
                return;
            }
            written.await;
        }
    }

    /// Waits for what an answer waits for.
    pub(crate) async fn wait_for(&self, wait: Wait) {
        match wait {
            Wait::Log(lsn) => self.durable_at(lsn).await,
            Wait::Page(connection) => loop {
                let written = self.written.notified();
                self.long_hold_ended().await;
                if !self.state.lock().vhost.awaits_get(connection) {
                    return;
                }
                written.await;
            },
        }
    }

    /// Does what is due, and waits for the pages that are read for that; what waits for room on the disk is
    /// left for later. Memory and disk are looked at all the while, so that an alarm comes in time.
    pub(crate) fn catch_up<T>(&self, look: &dyn Fn() -> T) {
        loop {
            // Once at least: the restart itself may have left something to do.
            look();
            self.tick();
            let mut behind_since = None;
            while self.is_due() {
                look();
                self.tick();
                if !self.is_behind() {
                    behind_since = None;
                    continue;
                }
                if behind_since.get_or_insert_with(Instant::now).elapsed() > CATCH_UP_STALL_MAX {
                    tracing::warn!(vhost = &*self.name, "what is due waits for room on the disk");
                    return;
                }
                std::thread::sleep(CATCH_UP_PAUSE);
            }
            if !self.paging.wait_for_read() {
                return;
            }
        }
    }

    /// Ends a batch: publishers are told, effects reach their outboxes and the log, the timer knows
    /// what comes next.
    fn finish(&self, state: Turn<'_, State>) -> Applied {
        self.finish_with(state, &[], drop)
    }

    /// The same, with answers that had to wait, and how the turn ends.
    fn finish_with<'a>(
        &self,
        mut state: Turn<'a, State>,
        answers: &[Held],
        end: fn(Turn<'a, State>),
    ) -> Applied {
        let mut after = After::default();
        let State { vhost, links, own, held, pending, writer_knows, paging, .. } = &mut *state;
        for Held { connection, channel, outgoing, .. } in answers {
            tell(own, *connection, || outgoing.clone());
            if let Some(link) = links.get_mut(*connection) {
                link.socket
                    .socket_writer
                    .append(|outbox| transmit(outgoing, channel.0, link.frame_max, outbox));
                after.touch(*connection, link);
            }
        }
        vhost.flush();
        loop {
            deliver(vhost, (links, own), (pending, paging, &self.paging), held, &mut after);
            if after.asked.is_empty() {
                break;
            }
            let now = self.clock.now();
            for connection in after.asked.drain(..) {
                let unsent =
                    links.get(connection).map_or(0, |link| link.socket.socket_writer.unsent());
                vhost.set_backlog(now, connection, unsent);
            }
        }
        let next_wake = vhost.next_wake();
        let wakes_writer = !pending.is_empty() && !std::mem::replace(writer_knows, true);
        let wakes_pager = paging.wakes_pager();
        self.pending_bytes.store(pending.bytes(), Ordering::Relaxed);
        let mut socket_writers: SmallVec<[Arc<SocketWriter>; 4]> = SmallVec::new();
        for connection in after.touched {
            if let Some(link) = links.get_mut(connection) {
                link.is_touched = false;
                socket_writers.push(Arc::clone(&link.socket.socket_writer));
            }
        }
        end(state);
        if wakes_writer && let Some(this) = self.this.upgrade() {
            self.persister.wake(this);
        }
        if wakes_pager && let Some(this) = self.this.upgrade() {
            self.pager.wake(this);
        }
        for socket_writer in &socket_writers {
            socket_writer.wake_writer();
        }
        for event in &after.events {
            crate::logging::queue_events::write(&self.name, event);
        }
        if let Some(next_wake) = next_wake {
            self.arm(next_wake);
        }
        after.applied
    }

    /// Lets the timer come at `at`. Work that is overdue is due now and no earlier: otherwise a vhost with
    /// a backlog would always be first.
    fn arm(&self, at: Time) {
        if at.as_micros() >= self.armed_us.load(Ordering::Acquire) {
            return;
        }
        let at = at.max(self.clock.time());
        let before = self.armed_us.fetch_min(at.as_micros(), Ordering::AcqRel);
        if at.as_micros() < before {
            self.timer.arm(self.timer_id, Time::from_micros(before), at);
        }
    }
}

/// The vhosts by name.
#[derive(Debug)]
pub(crate) struct Vhosts {
    handles: RwLock<BTreeMap<String, Arc<VhostHandle>>>,
    /// An alarm is on.
    alarm: Arc<AtomicBool>,
    options: VhostOptions,
    timer: Arc<Timer>,
    persister: Arc<Persister>,
    pager: Arc<Pager>,
    /// What the node is called.
    node: String,
    data_dir: PathBuf,
    durability: Durability,
    reserve: Arc<Reserve>,
    clock: Clock,
    /// No vhost has had this id or a larger one.
    next_id: AtomicU64,
}

impl Vhosts {
    /// No vhosts yet, on the node of that name.
    pub(crate) fn new(
        node: &str,
        config: &Config,
        options: VhostOptions,
        reserve: &Arc<Reserve>,
        (timer, persister, pager): (Arc<Timer>, Arc<Persister>, Arc<Pager>),
        clock: Clock,
    ) -> Self {
        Self {
            handles: RwLock::default(),
            alarm: Arc::default(),
            options,
            timer,
            persister,
            pager,
            node: node.to_owned(),
            data_dir: config.data_dir.clone(),
            durability: config.durability,
            reserve: Arc::clone(reserve),
            clock,
            next_id: AtomicU64::new(FIRST_VHOST_ID),
        }
    }

    /// What each of them is granted.
    pub(crate) fn options(&self) -> VhostOptions {
        self.options
    }

    /// The vhost of that name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<VhostHandle>> {
        self.handles.read().get(name).cloned()
    }

    /// All vhosts, by name.
    pub(crate) fn all(&self) -> Vec<Arc<VhostHandle>> {
        self.handles.read().values().cloned().collect()
    }

    /// What there is to write down of all vhosts: the next id, and each of them.
    pub(crate) fn entries(&self) -> (u64, Vec<VhostEntry>) {
        let entries = self.handles.read().values().map(|handle| handle.entry()).collect();
        (self.next_id.load(Ordering::Acquire), entries)
    }

    /// A new vhost, which nobody finds before it is inserted.
    ///
    /// # Errors
    /// When the system has no randomness to seed it with, or the disk refuses.
    pub(crate) fn make(
        &self,
        name: &str,
        settings: Arc<VhostSettings>,
    ) -> Result<Arc<VhostHandle>, VhostError> {
        // A directory that is there belonged to a vhost that was made when the broker ended.
        let id = loop {
            let id = self.next_id.fetch_add(1, Ordering::AcqRel);
            if !recovery::vhost_path(&self.data_dir, id).exists() {
                break id;
            }
        };
        self.begin(VhostEntry { name: name.to_owned(), id, settings }, true)
    }

    /// Lets a vhost be found.
    pub(crate) fn insert(&self, handle: &Arc<VhostHandle>) {
        self.handles.write().insert(handle.name.to_string(), Arc::clone(handle));
        // A change of the alarm before has not reached this one.
        handle.alarm_changed();
    }

    /// Lets a vhost not be found any more.
    pub(crate) fn remove(&self, name: &str) -> Option<Arc<VhostHandle>> {
        self.handles.write().remove(name)
    }

    /// Brings a vhost back from its log. What fell due meanwhile is to happen before anybody connects
    /// ([`VhostHandle::catch_up`]).
    ///
    /// # Errors
    /// When the system has no randomness to seed it with, or the disk refuses.
    pub(crate) fn open(&self, entry: VhostEntry) -> Result<Arc<VhostHandle>, VhostError> {
        let handle = self.begin(entry, false)?;
        self.insert(&handle);
        Ok(handle)
    }

    /// No vhost gets an id below this one.
    pub(crate) fn reserve_ids(&self, next_id: u64) {
        self.next_id.fetch_max(next_id, Ordering::AcqRel);
    }

    fn begin(&self, entry: VhostEntry, is_new: bool) -> Result<Arc<VhostHandle>, VhostError> {
        let VhostEntry { name, id, settings } = entry;
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)?;
        let options = VhostOptions {
            default_queue_type: settings.default_queue_type,
            queues_max: maximum(&settings.limits, VhostLimit::MaxQueues),
            ..self.options
        };
        let mut vhost = Vhost::new(&name, seed, options);
        vhost.set_node_name(&self.node);
        let path = recovery::vhost_path(&self.data_dir, id);
        let now = self.clock.now();
        let Restored { log, mut vhost, page_files } =
            recovery::restore(&path, id, is_new, vhost, (self.durability, &self.reserve), now)?;
        vhost.set_tracing(settings.tracing);
        vhost.set_alarm(self.clock.now(), self.alarm.load(Ordering::SeqCst));
        let durable_lsn = log.last().0;
        let handle = self.timer.register(|timer_id| {
            Arc::new_cyclic(|this| VhostHandle {
                name: name.as_str().into(),
                id,
                state: TimedLock::new(State {
                    vhost,
                    links: SecondaryMap::new(),
                    own: SecondaryMap::new(),
                    held: Vec::new(),
                    pending: WriteQueue::default(),
                    writer_knows: false,
                    paging: PageQueue::default(),
                    traffic_of_gone: Traffic::default(),
                    stopped: None,
                    is_retired: false,
                    settings,
                }),
                armed_us: AtomicU64::new(u64::MAX),
                timer: Arc::clone(&self.timer),
                timer_id,
                persister: Arc::clone(&self.persister),
                pager: Arc::clone(&self.pager),
                page_files,
                pending_bytes: AtomicUsize::new(0),
                paging: PageProgress::default(),
                is_retired: AtomicBool::new(false),
                durable_lsn: AtomicU64::new(durable_lsn),
                written: Notify::new(),
                page_looks: Semaphore::new(PAGE_LOOKS_MAX),
                alarm: Arc::clone(&self.alarm),
                topology_bytes_max: AtomicU64::new(u64::MAX),
                clock: self.clock,
                this: Weak::clone(this),
            })
        });
        self.persister.add(Arc::clone(&handle), log);
        Ok(handle)
    }
}

/// Why a vhost cannot be opened.
#[derive(thiserror::Error, Debug)]
pub(crate) enum VhostError {
    #[error("the system has no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
    #[error(transparent)]
    Restore(#[from] RestoreError),
}
