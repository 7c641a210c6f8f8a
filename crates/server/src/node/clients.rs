//! The clients that have opened a vhost, by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use broker::ConnectionId;
use parking_lot::Mutex;

use crate::limits::UNSENT_BYTES_MAX;
use crate::snapshot::client::{ClientDescription, ClientPid, ConnectionState};
use crate::sockets::counters::{ReadState, Socket};
use crate::vhost::VhostHandle;

/// A client that has opened a vhost.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) description: Arc<ClientDescription>,
    pub(crate) handle: Arc<VhostHandle>,
    pub(crate) id: ConnectionId,
    pub(crate) socket: Socket,
}

impl Client {
    /// State of the connection as RabbitMQ names it; `has_alarm` while publishers are blocked.
    pub(crate) fn state(&self, has_alarm: bool) -> ConnectionState {
        match self.socket.read_counters.state() {
            ReadState::Blocked => ConnectionState::Blocked,
            ReadState::Throttled => ConnectionState::Flow,
            ReadState::Reading if self.socket.writer.unsent() > UNSENT_BYTES_MAX => {
                ConnectionState::Flow
            }
            ReadState::Reading if has_alarm => ConnectionState::Blocking,
            ReadState::Reading => ConnectionState::Running,
        }
    }
}

/// Values by name. A value is removed only under the number that it was added with, because another one may
/// have taken its name meanwhile.
#[derive(Debug)]
struct ByName<T>(Mutex<BTreeMap<String, (u64, T)>>);

impl<T: Clone> ByName<T> {
    fn add(&self, name: &str, number: u64, value: T) {
        self.0.lock().insert(name.to_owned(), (number, value));
    }

    fn remove(&self, name: &str, number: u64) {
        let mut values = self.0.lock();
        if values.get(name).is_some_and(|(known, _)| *known == number) {
            values.remove(name);
        }
    }

    fn get(&self, name: &str) -> Option<T> {
        self.0.lock().get(name).map(|(_, value)| value.clone())
    }

    fn all(&self) -> Vec<T> {
        self.0.lock().values().map(|(_, value)| value.clone()).collect()
    }
}

/// A client that is counted among those that other nodes have adopted.
#[derive(Debug)]
pub(crate) struct Relayed<'a>(&'a AtomicU64);

impl Drop for Relayed<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The clients of the node.
#[derive(Debug)]
pub(crate) struct Clients {
    node: Arc<str>,
    /// Start of the node, in seconds since the Unix epoch.
    creation_s: u64,
    last: AtomicU64,
    /// Clients that other nodes have adopted.
    relayed: AtomicU64,
    open: ByName<Arc<Client>>,
}

impl Clients {
    /// Creates an empty registry for a node that started at `creation_s`, in seconds since the Unix epoch.
    pub(crate) fn new(node: &str, creation_s: u64) -> Self {
        let open = ByName(Mutex::default());
        let (last, relayed) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { node: node.into(), creation_s, last, relayed, open }
    }

    /// The pid of the next client.
    pub(crate) fn next_pid(&self) -> ClientPid {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        ClientPid::new(Arc::clone(&self.node), self.creation_s, number)
    }

    /// Counts a client that another node has adopted, until the result is dropped.
    pub(crate) fn relay(&self) -> Relayed<'_> {
        self.relayed.fetch_add(1, Ordering::Relaxed);
        Relayed(&self.relayed)
    }

    /// Clients of this node that other nodes have adopted.
    pub(crate) fn relayed(&self) -> u64 {
        self.relayed.load(Ordering::Relaxed)
    }

    /// Adds a client that has opened a vhost.
    pub(crate) fn add(&self, client: &Arc<Client>) {
        let ClientDescription { name, pid, .. } = &*client.description;
        self.open.add(name, pid.number(), Arc::clone(client));
    }

    /// Removes a client that has left its vhost.
    pub(crate) fn remove(&self, client: &Client) {
        let ClientDescription { name, pid, .. } = &*client.description;
        self.open.remove(name, pid.number());
    }

    /// The client on the connection with this name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Client>> {
        self.open.get(name)
    }

    /// All clients, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        self.open.all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_name_remove_spares_a_successor_of_the_same_name() {
        let values = ByName(Mutex::default());
        values.add("b", 1, "first");
        values.add("a", 2, "other");
        values.add("b", 3, "second");
        values.remove("b", 1);
        assert_eq!((values.get("b"), values.all()), (Some("second"), vec!["other", "second"]));
        values.remove("b", 3);
        values.remove("a", 2);
        assert_eq!((values.get("b"), values.all()), (None, vec![]));
    }

    #[test]
    fn next_pid_differs_for_each_client() {
        let clients = Clients::new("leveret@here", 7);
        let pids = [clients.next_pid(), clients.next_pid()].map(|pid| pid.to_string());
        assert_eq!(pids, ["<leveret@here.7.1.0>", "<leveret@here.7.2.0>"]);
    }
}
