//! The clients that have opened a vhost, by name: what they are, and what goes over their sockets.
//!
//! Nothing in here is touched per message. The two halves of a connection count their reads, their
//! writes and the bytes of each; sums are made when somebody asks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use broker::ConnectionId;
use management::{ClientDescription, ClientPid, ConnectionState, Traffic};
use parking_lot::Mutex;

use crate::connection::socket_writer::SocketWriter;
use crate::limits::UNSENT_BYTES_MAX;
use crate::vhost::VhostHandle;

/// Whether the reader of a connection reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// It does.
    Reading,
    /// It has published since an alarm is on.
    Blocked,
    /// It waits for the disk.
    HeldBack,
}

/// What the reading half of a connection tells of itself. Nobody else changes it, so that plain loads
/// and stores do.
#[derive(Default, Debug)]
pub(crate) struct ReadCounters {
    bytes: AtomicU64,
    reads: AtomicU64,
    standing: AtomicU8,
}

impl ReadCounters {
    /// A read has brought so many bytes.
    pub(crate) fn count(&self, bytes: usize) {
        self.bytes.store(self.bytes() + bytes as u64, Ordering::Relaxed);
        self.reads.store(self.reads() + 1, Ordering::Relaxed);
    }

    pub(crate) fn set_standing(&self, standing: Standing) {
        self.standing.store(standing as u8, Ordering::Relaxed);
    }

    fn standing(&self) -> Standing {
        let standing = self.standing.load(Ordering::Relaxed);
        let all = [Standing::Reading, Standing::Blocked, Standing::HeldBack];
        all.into_iter().find(|one| *one as u8 == standing).unwrap_or(Standing::Reading)
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }
}

/// What others see of the two halves of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Socket {
    pub(crate) socket_writer: Arc<SocketWriter>,
    pub(crate) read_counters: Arc<ReadCounters>,
}

impl Socket {
    /// What went over it.
    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            received_bytes: self.read_counters.bytes(),
            reads: self.read_counters.reads(),
            sent_bytes: self.socket_writer.written(),
            writes: self.socket_writer.writes(),
            unsent_bytes: self.socket_writer.unsent(),
        }
    }
}

/// A client in its vhost.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) description: Arc<ClientDescription>,
    pub(crate) handle: Arc<VhostHandle>,
    pub(crate) id: ConnectionId,
    pub(crate) socket: Socket,
}

impl Client {
    /// Whether it is read; `has_alarm` while publishers are blocked.
    pub(crate) fn state(&self, has_alarm: bool) -> ConnectionState {
        match self.socket.read_counters.standing() {
            Standing::Blocked => ConnectionState::Blocked,
            Standing::HeldBack => ConnectionState::Flow,
            Standing::Reading if self.socket.socket_writer.unsent() > UNSENT_BYTES_MAX => {
                ConnectionState::Flow
            }
            Standing::Reading if has_alarm => ConnectionState::Blocking,
            Standing::Reading => ConnectionState::Running,
        }
    }
}

/// Things by name, each of which may only be removed by who put it there: another may have come under its
/// name since.
#[derive(Debug)]
struct ByName<T>(Mutex<BTreeMap<String, (u64, T)>>);

impl<T: Clone> ByName<T> {
    fn add(&self, name: &str, number: u64, thing: T) {
        self.0.lock().insert(name.to_owned(), (number, thing));
    }

    fn remove(&self, name: &str, number: u64) {
        let mut things = self.0.lock();
        if things.get(name).is_some_and(|(known, _)| *known == number) {
            things.remove(name);
        }
    }

    fn get(&self, name: &str) -> Option<T> {
        self.0.lock().get(name).map(|(_, thing)| thing.clone())
    }

    fn all(&self) -> Vec<T> {
        self.0.lock().values().map(|(_, thing)| thing.clone()).collect()
    }
}

/// The clients of the node.
#[derive(Debug)]
pub(crate) struct Clients {
    node: Arc<str>,
    /// Seconds of the epoch at which the node started.
    creation_s: u64,
    last: AtomicU64,
    open: ByName<Arc<Client>>,
}

impl Clients {
    /// None yet, on a node that started then.
    pub(crate) fn new(node: &str, creation_s: u64) -> Self {
        let open = ByName(Mutex::default());
        Self { node: node.into(), creation_s, last: AtomicU64::new(0), open }
    }

    /// Names the next client.
    pub(crate) fn next_pid(&self) -> ClientPid {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        ClientPid::new(Arc::clone(&self.node), self.creation_s, number)
    }

    /// A client has opened a vhost.
    pub(crate) fn add(&self, client: &Arc<Client>) {
        let ClientDescription { name, pid, .. } = &*client.description;
        self.open.add(name, pid.number(), Arc::clone(client));
    }

    /// A client has left its vhost.
    pub(crate) fn remove(&self, client: &Client) {
        let ClientDescription { name, pid, .. } = &*client.description;
        self.open.remove(name, pid.number());
    }

    /// The client on the connection of that name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Client>> {
        self.open.get(name)
    }

    /// All, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        self.open.all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_under_the_name_of_another_stays_when_that_one_goes() {
        let things = ByName(Mutex::default());
        things.add("b", 1, "first");
        things.add("a", 2, "other");
        things.add("b", 3, "second");
        things.remove("b", 1);
        assert_eq!((things.get("b"), things.all()), (Some("second"), vec!["other", "second"]));
        things.remove("b", 3);
        things.remove("a", 2);
        assert_eq!((things.get("b"), things.all()), (None, vec![]));
    }

    #[test]
    fn no_two_clients_have_the_same_pid() {
        let clients = Clients::new("leveret@here", 7);
        let pids = [clients.next_pid(), clients.next_pid()].map(|pid| pid.to_string());
        assert_eq!(pids, ["<leveret@here.7.1.0>", "<leveret@here.7.2.0>"]);
    }

    #[test]
    fn a_reader_tells_what_it_reads_and_whether() {
        let read_counters = ReadCounters::default();
        assert_eq!(read_counters.standing(), Standing::Reading);
        read_counters.count(10);
        read_counters.count(5);
        read_counters.set_standing(Standing::HeldBack);
        let told = (read_counters.bytes(), read_counters.reads(), read_counters.standing());
        assert_eq!(told, (15, 2, Standing::HeldBack));
    }
}
