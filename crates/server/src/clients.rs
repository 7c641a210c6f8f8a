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

use crate::limits::UNSENT_BYTES_MAX;
use crate::vhosts::VhostCell;
use crate::wire::Wire;

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
pub(crate) struct Intake {
    bytes: AtomicU64,
    reads: AtomicU64,
    standing: AtomicU8,
}

impl Intake {
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
    pub(crate) wire: Arc<Wire>,
    pub(crate) intake: Arc<Intake>,
}

impl Socket {
    /// What went over it.
    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            received_bytes: self.intake.bytes(),
            reads: self.intake.reads(),
            sent_bytes: self.wire.written(),
            writes: self.wire.writes(),
            unsent_bytes: self.wire.unsent(),
        }
    }
}

/// A client in its vhost.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) description: Arc<ClientDescription>,
    pub(crate) cell: Arc<VhostCell>,
    pub(crate) id: ConnectionId,
    pub(crate) socket: Socket,
}

impl Client {
    /// Whether it is read; `has_alarm` while publishers are blocked.
    pub(crate) fn state(&self, has_alarm: bool) -> ConnectionState {
        match self.socket.intake.standing() {
            Standing::Blocked => ConnectionState::Blocked,
            Standing::HeldBack => ConnectionState::Flow,
            Standing::Reading if self.socket.wire.unsent() > UNSENT_BYTES_MAX => {
                ConnectionState::Flow
            }
            Standing::Reading if has_alarm => ConnectionState::Blocking,
            Standing::Reading => ConnectionState::Running,
        }
    }
}

/// The clients of the node.
#[derive(Debug)]
pub(crate) struct Clients {
    node: Arc<str>,
    /// Seconds of the epoch at which the node started.
    creation_s: u64,
    last: AtomicU64,
    open: Mutex<BTreeMap<String, Arc<Client>>>,
}

impl Clients {
    /// None yet, on a node that started then.
    pub(crate) fn new(node: &str, creation_s: u64) -> Self {
        let open = Mutex::default();
        Self { node: node.into(), creation_s, last: AtomicU64::new(0), open }
    }

    /// Names the next client.
    pub(crate) fn next_pid(&self) -> ClientPid {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        ClientPid::new(Arc::clone(&self.node), self.creation_s, number)
    }

    /// A client has opened a vhost.
    pub(crate) fn add(&self, client: Arc<Client>) {
        self.open.lock().insert(client.description.name.clone(), client);
    }

    /// A client has left its vhost. One that came from the same place since stays.
    pub(crate) fn remove(&self, client: &Client) {
        let mut open = self.open.lock();
        let name = client.description.name.as_str();
        if open.get(name).is_some_and(|known| known.description.pid == client.description.pid) {
            open.remove(name);
        }
    }

    /// The client on the connection of that name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Client>> {
        self.open.lock().get(name).cloned()
    }

    /// All, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        self.open.lock().values().cloned().collect()
    }
}
