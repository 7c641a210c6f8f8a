//! A vhost behind its lock, as connections, threads and HTTP requests use it.

mod alarm;
mod batch;
mod batch_result;
pub(crate) mod browse;
pub(crate) mod changes;
mod deaths;
mod links;
mod log_and_pages;
mod waits;

use std::sync::Arc;
use std::time::Duration;

use broker::access::Access;
use broker::refusal::Refusal;
use broker::time::Now;
use broker::{ConnectionId, Lsn, Outgoing, QueueId, Vhost};
use parking_lot::Mutex;
use replica::LocalVhost;
use slotmap::SecondaryMap;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::definition::VhostDefinition;
use super::handle::links::Client;
use super::hold_watch::HoldWatch;
use super::lock::TimedLock;
use super::not_leading::NotLeading;
use super::place::Place;
use super::pressure::MemoryPressure;
use super::timer::{Timer, WakeUp};
use crate::clock::VhostClock;
use crate::disk::deaths::files::DeathFiles;
use crate::disk::log::persister::Persister;
use crate::disk::pages::page_files::PageFiles;
use crate::disk::pages::pager::Pager;
use crate::disk::progress::DiskProgress;
use crate::disk::recovery::pages::PageRecovery;
use crate::disk::vhost_files::VhostId;
use crate::snapshot::client::{ClientDescription, ClientOf, Traffic};
use crate::sockets::counters::Socket;

/// The threads that serve all vhosts.
#[derive(Clone, Debug)]
pub(crate) struct Threads {
    pub(crate) timer: Arc<Timer>,
    pub(crate) persister: Arc<Persister>,
    pub(crate) pager: Arc<Pager>,
    pub(crate) hold_watch: Arc<HoldWatch>,
}

/// The state behind the lock.
#[derive(Debug)]
pub(super) struct State {
    /// The vhost with its clients.
    pub(super) local: LocalVhost<Client, PageRecovery>,
    /// Internal connections of the node, with the receivers of their answers.
    pub(super) internal: SecondaryMap<ConnectionId, UnboundedSender<Outgoing>>,
    /// Traffic of clients that have disconnected.
    closed_traffic: Traffic,
}

impl State {
    /// A vhost without connections.
    pub(super) fn new(local: LocalVhost<Client, PageRecovery>) -> Self {
        Self { local, internal: SecondaryMap::new(), closed_traffic: Traffic::default() }
    }
}

/// A vhost behind its lock.
#[derive(Debug)]
pub(crate) struct VhostHandle {
    pub(super) id: VhostId,
    pub(super) name: Arc<str>,
    pub(super) definition: Arc<VhostDefinition>,
    pub(super) state: TimedLock<State>,
    pub(super) wake_up: WakeUp,
    pub(super) threads: Threads,
    pub(super) disk: DiskProgress,
    pub(super) page_files: Arc<PageFiles>,
    /// Problems of the log at the last start.
    pub(super) log_problems: u64,
    /// The reason why the vhost is down: its files could not be read, and no other node has it.
    pub(super) down: Option<String>,
    /// Files of the history of dead letters.
    pub(super) death_files: Mutex<DeathFiles>,
    /// Permits to read pages for requests that browse.
    pub(super) browse_permits: Semaphore,
    pub(super) pressure: MemoryPressure,
    pub(super) clock: VhostClock,
    /// The place of the vhost in a cluster; none without a cluster.
    pub(super) place: Option<Place>,
}

/// A client that opens a connection in a vhost.
#[derive(Debug)]
pub(crate) struct OpeningClient {
    pub(crate) description: Arc<ClientDescription>,
    pub(crate) socket: Socket,
    pub(crate) access: Arc<Access>,
    /// True if the client understands `basic.cancel` from the broker.
    pub(crate) cancel_notify: bool,
}

/// Refusal of a connection by a vhost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum OpenRefused {
    /// The vhost is deleted.
    Deleted,
    /// The vhost has reached its limit of connections.
    Full(u64),
    /// Another node leads the vhost.
    NotLeading(NotLeading),
}

impl VhostHandle {
    pub(crate) fn id(&self) -> VhostId {
        self.id
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The time on the axis of the vhost, and the wall clock.
    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }

    /// Time since when the vhost's lock is held; zero while it is free.
    pub(crate) fn held_for(&self) -> Duration {
        self.state.held_for()
    }

    /// Registers the connection of a client. If the broker is already stopping, closes it at once. `welcome`
    /// is called before the vhost can send anything.
    ///
    /// # Errors
    /// If the vhost is deleted or full.
    pub(crate) fn open(
        &self,
        client: OpeningClient,
        welcome: impl FnOnce(),
    ) -> Result<ConnectionId, OpenRefused> {
        let OpeningClient { description, socket, access, cancel_notify } = client;
        let mut state = self.state.lock();
        self.check_room_in(&state)?;
        welcome();
        let end = Client::new(socket, Arc::clone(&description));
        let name = &description.name;
        let now = self.clock.now();
        let id = state.local.open(now, name, access, cancel_notify, Some(end));
        if state.local.is_closing() {
            self.finish(state);
        }
        Ok(id)
    }

    /// Registers a connection of the node itself, on behalf of a user, and returns the receiver of its
    /// answers.
    pub(crate) fn open_internal(
        &self,
        name: &str,
        access: Arc<Access>,
    ) -> Result<(ConnectionId, UnboundedReceiver<Outgoing>), NotLeading> {
        // Unbounded, but each command has one answer, and the next is applied after it.
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut state = self.state.lock();
        self.leading(&mut state)?;
        let id = state.local.open(self.clock.now(), name, access, false, None);
        state.internal.insert(id, sender);
        if state.local.is_closing() {
            self.finish(state);
        }
        Ok((id, receiver))
    }

    /// Removes a connection. Returns the log position that covers everything the connection did.
    pub(crate) fn close(&self, connection: ConnectionId) -> Lsn {
        let mut state = self.state.lock();
        let now = self.clock.now();
        if let Some(client) = state.local.close(now, connection) {
            state.closed_traffic.add(&client.socket.traffic());
        }
        state.internal.remove(connection);
        let last = state.local.vhost().last_lsn();
        self.finish(state);
        last
    }

    /// Changes the vhost from within the node.
    ///
    /// # Errors
    /// If another node leads the vhost; nothing is changed then.
    pub(crate) fn write<T>(
        &self,
        change: impl FnOnce(&mut Vhost, Now) -> T,
    ) -> Result<T, NotLeading> {
        let mut state = self.state.lock();
        let now = self.clock.now();
        let vhost = self.leading(&mut state)?;
        vhost.set_topology_bytes_max(self.pressure.topology_bytes_max());
        let result = change(vhost, now);
        self.finish(state);
        Ok(result)
    }

    /// Takes measurements of the vhost, which change nothing else in it.
    pub(crate) fn measure<T>(&self, measure: impl FnOnce(&mut Vhost, Now) -> T) -> T {
        let mut state = self.state.lock();
        measure(state.local.vhost_mut(), self.clock.now())
    }

    /// True once another node leads the vhost that this handle has served.
    pub(crate) fn is_deposed(&self) -> bool {
        self.is_replicated() && self.disk.is_retired()
    }

    /// The reason why the vhost is down, if it is.
    pub(crate) fn down(&self) -> Option<&str> {
        self.down.as_deref()
    }

    /// True once the connections of the vhost are closed, because it is given up or the broker stops.
    pub(crate) fn is_closing(&self) -> bool {
        self.state.lock().local.is_closing()
    }

    /// The refusal of a change because another node leads the vhost, or it is down.
    pub(crate) fn not_leading(&self) -> NotLeading {
        let leader = self.place.as_ref().and_then(|place| place.leader());
        let (is_down, may_elect) = (self.down.is_some(), self.may_elect());
        NotLeading { vhost: Arc::clone(&self.name), leader, is_down, may_elect }
    }

    /// The vhost, to change it.
    ///
    /// # Errors
    /// If another node leads it.
    fn leading<'a>(&self, state: &'a mut State) -> Result<&'a mut Vhost, NotLeading> {
        if self.is_deposed() {
            return Err(self.not_leading());
        }
        state.local.leading_mut().ok_or_else(|| self.not_leading())
    }

    /// Reads the vhost and the descriptions of its clients. `read` must be short, because clients wait.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Vhost, ClientOf<'_>) -> T) -> T {
        let state = self.state.lock();
        let clients = state.local.clients();
        let client_of = |id| clients.get(id).map(|link| Arc::clone(&link.end.description));
        read(state.local.vhost(), &client_of)
    }

    /// The ids of all queues, to read them a slice at a time.
    pub(crate) fn queue_ids(&self) -> Vec<QueueId> {
        self.read(|vhost, _| vhost.queues().map(|(id, _)| id).collect())
    }

    /// Reads the vhost in one of many slices: a thread that waits for the lock gets it next.
    pub(crate) fn read_fair<T>(&self, read: impl FnOnce(&Vhost, Now) -> T) -> T {
        let state = self.state.lock();
        let now = self.clock.now();
        let result = read(state.local.vhost(), now);
        state.unlock_fair();
        result
    }

    /// Traffic of all clients, including those that have disconnected.
    pub(crate) fn traffic(&self) -> Traffic {
        let state = self.state.lock();
        let mut sum = state.closed_traffic;
        state.local.clients().iter().for_each(|(_, link)| sum.add(&link.end.socket.traffic()));
        sum
    }

    /// Closes every connection because the broker stops, and every later one.
    pub(crate) fn stop(&self, refusal: &Refusal) {
        let mut state = self.state.lock();
        if state.local.stop(self.clock.now(), refusal) {
            self.finish(state);
        }
    }
}
