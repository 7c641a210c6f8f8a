//! The connections of a vhost: sockets of clients, and channels of the node itself.

use std::sync::Arc;

use broker::page::PageTask;
use broker::time::Now;
use broker::{ConnectionId, Effect, Outgoing, Vhost};
use replica::{ClientEnd, Surroundings};
use session::Outbox;
use slotmap::SecondaryMap;
use tokio::sync::mpsc::UnboundedSender;

use crate::clock::VhostClock;
use crate::disk::page_progress::PageProgress;
use crate::snapshot::client::ClientDescription;
use crate::sockets::counters::Socket;

/// The end of a client's connection.
#[derive(Debug)]
pub(in crate::vhost) struct Client {
    pub(in crate::vhost) socket: Socket,
    pub(in crate::vhost) description: Arc<ClientDescription>,
    /// Copied from `description`, because every sent message needs it.
    frame_max: u32,
}

impl Client {
    pub(in crate::vhost) fn new(socket: Socket, description: Arc<ClientDescription>) -> Self {
        let frame_max = description.frame_max;
        Self { socket, description, frame_max }
    }
}

impl ClientEnd for Client {
    fn frame_max(&self) -> u32 {
        self.frame_max
    }

    fn append<T>(&mut self, append: impl FnOnce(&mut Outbox) -> T) -> T {
        self.socket.writer.append(append)
    }

    fn set_closing(&mut self) {
        self.socket.writer.set_closing();
    }

    fn is_closing(&self) -> bool {
        self.socket.writer.is_closing()
    }

    fn set_stalled(&mut self) {
        self.socket.writer.set_stalled();
    }

    fn unsent(&self) -> u64 {
        self.socket.writer.unsent()
    }
}

/// The parts of a node that get what is for no client.
pub(super) struct NodeSide<'a> {
    pub(super) internal: &'a SecondaryMap<ConnectionId, UnboundedSender<Outgoing>>,
    pub(in crate::vhost) progress: &'a PageProgress,
    pub(in crate::vhost) clock: &'a VhostClock,
}

impl Surroundings for NodeSide<'_> {
    type Effects<'v> = std::vec::Drain<'v, Effect>;

    fn effects<'v>(&self, vhost: &'v mut Vhost) -> Self::Effects<'v> {
        vhost.drain_effects()
    }

    fn send_internal(&mut self, connection: ConnectionId, outgoing: Outgoing) {
        if let Some(receiver) = self.internal.get(connection) {
            // A missing receiver means that the connection is closed or about to be.
            let _ = receiver.send(outgoing);
        }
    }

    fn page_task(&mut self, task: &PageTask) {
        self.progress.begun(task);
    }

    fn now(&self) -> Now {
        self.clock.now()
    }
}
