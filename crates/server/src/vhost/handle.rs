//! A vhost behind its lock, as connections, threads and HTTP requests use it.

use std::sync::Arc;
use std::time::Duration;

use broker::access::Access;
use broker::refusal::Refusal;
use broker::time::Now;
use broker::{ConnectionId, Lsn, Outgoing, Vhost};
use management::{ClientDescription, ClientOf, Traffic};
use parking_lot::Mutex;
use replica::close_all;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::brain::{Brain, NotLeading};
use super::definition::VhostDefinition;
use super::hold_watch::HoldWatch;
use super::links::{Client, Outputs};
use super::lock::TimedLock;
use super::pressure::MemoryPressure;
use super::replica::Replica;
use super::timer::{Timer, WakeUp};
use crate::clock::VhostClock;
use crate::connection::counters::Socket;
use crate::disk::death_files::DeathFiles;
use crate::disk::page_files::PageFiles;
use crate::disk::pager::Pager;
use crate::disk::persister::Persister;
use crate::disk::progress::DiskProgress;
use crate::disk::vhost_files::VhostId;

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
    pub(super) brain: Brain,
    pub(super) outputs: Outputs,
    /// The refusal for connections that are opened after the broker has begun to stop.
    pub(super) shutdown: Option<Refusal>,
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
    pub(super) replica: Option<Replica>,
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
        let vhost = state.brain.serving_mut();
        let id = vhost.open_connection(access, cancel_notify);
        vhost.set_connection_name(id, &description.name);
        state.outputs.clients.links.insert(id, Client::new(socket, description));
        if let Some(refusal) = state.shutdown.clone() {
            state.brain.serving_mut().force_close(self.clock.now(), id, refusal);
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
        let vhost = self.leading(&mut state)?;
        let id = vhost.open_connection(access, false);
        vhost.set_connection_name(id, name);
        state.outputs.internal.insert(id, sender);
        if let Some(refusal) = state.shutdown.clone() {
            state.brain.serving_mut().force_close(self.clock.now(), id, refusal);
            self.finish(state);
        }
        Ok((id, receiver))
    }

    /// Removes a connection. Returns the log position that covers everything the connection did.
    pub(crate) fn close(&self, connection: ConnectionId) -> Lsn {
        let mut state = self.state.lock();
        let now = self.clock.now();
        state.brain.serving_mut().close_connection(now, connection);
        state.outputs.remove(connection);
        let last = state.brain.vhost().last_lsn();
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
        measure(state.brain.vhost_mut(), self.clock.now())
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
        self.state.lock().shutdown.is_some()
    }

    /// The refusal of a change because another node leads the vhost, or it is down.
    pub(crate) fn not_leading(&self) -> NotLeading {
        let leader = self.replica.as_ref().and_then(|replica| replica.leader());
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
        state.brain.leading_mut().ok_or_else(|| self.not_leading())
    }

    /// Reads the vhost and the descriptions of its clients. `read` must be short, because clients wait.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Vhost, ClientOf<'_>) -> T) -> T {
        let state = self.state.lock();
        let links = &state.outputs.clients.links;
        read(state.brain.vhost(), &|id| links.get(id).map(|link| Arc::clone(&link.end.description)))
    }

    /// Reads the vhost in one of many slices: a thread that waits for the lock gets it next.
    pub(crate) fn read_fair<T>(&self, read: impl FnOnce(&Vhost, Now) -> T) -> T {
        let state = self.state.lock();
        let now = self.clock.now();
        let result = read(state.brain.vhost(), now);
        state.unlock_fair();
        result
    }

    /// Traffic of all clients, including those that have disconnected.
    pub(crate) fn traffic(&self) -> Traffic {
        self.state.lock().outputs.traffic()
    }

    /// Closes every connection because the broker stops, and every later one.
    pub(crate) fn stop(&self, refusal: &Refusal) {
        let mut state = self.state.lock();
        let now = self.clock.now();
        let State { brain, shutdown, .. } = &mut *state;
        *shutdown = Some(refusal.clone());
        let Some(vhost) = brain.leading_mut() else { return };
        close_all(vhost, now, refusal);
        self.finish(state);
    }
}
