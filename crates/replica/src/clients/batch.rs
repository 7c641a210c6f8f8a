//! The news of a batch, and the surroundings of a vhost.

use broker::page::PageTask;
use broker::time::{Now, Time};
use broker::{ConnectionId, Effect, Event, Lsn, Outgoing, Vhost};
use smallvec::SmallVec;

use super::link::Link;

/// The event that the answer to a command waits for.
#[derive(Clone, Copy, Debug)]
pub enum Wait {
    /// The log is durable up to this position.
    Log(Lsn),
    /// A page was read, for a `basic.get` of this connection.
    Page(ConnectionId),
}

/// The news of a batch, for the driver.
#[derive(Default, Debug)]
pub struct Batch {
    /// Connections with something new in their outboxes, each once.
    pub touched: SmallVec<[ConnectionId; 4]>,
    /// Events for operators.
    pub events: Vec<Event>,
    /// Connections for which the core wants the number of unsent bytes.
    pub(super) asked: Vec<ConnectionId>,
    /// The event that the answer to the last command waits for. Until then, no command of the connection may be applied.
    pub wait: Option<Wait>,
    /// True if the batch has produced work for the disk.
    pub is_written: bool,
    /// The time at which the vhost has work that is due, if it has any.
    pub next_wake: Option<Time>,
    /// Bytes of records that wait for the writer of the log.
    pub pending_bytes: usize,
    /// True if the writer of the log must be woken: records wait, and it does not know.
    pub wakes_writer: bool,
    /// True if the pager must be woken: page tasks wait, and it does not know.
    pub wakes_pager: bool,
}

impl Batch {
    pub(super) fn touch<C>(&mut self, connection: ConnectionId, link: &mut Link<C>) {
        if !std::mem::replace(&mut link.is_touched, true) {
            self.touched.push(connection);
        }
    }
}

/// The surroundings of a vhost, for effects that concern no client.
pub trait Surroundings {
    /// The effects of a vhost.
    type Effects<'v>: Iterator<Item = Effect>;

    /// Takes the effects that the vhost has produced.
    fn effects<'v>(&self, vhost: &'v mut Vhost) -> Self::Effects<'v>;

    /// Sends to a connection that is no client's: one of the node itself, or one that is gone.
    fn send_internal(&mut self, connection: ConnectionId, outgoing: Outgoing);

    /// Notes a new task for the pages of the vhost.
    fn page_task(&mut self, task: &PageTask);

    /// The moment on the axis of the vhost.
    fn now(&self) -> Now;
}
