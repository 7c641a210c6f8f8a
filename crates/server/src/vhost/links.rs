//! The connections of a vhost, as destinations of effects.

use std::sync::Arc;

use broker::{ConnectionId, Lsn, Outgoing};
use management::{ClientDescription, Traffic};
use session::{HeldOutbox, Released, transmit};
use slotmap::SecondaryMap;
use tokio::sync::mpsc::UnboundedSender;

use crate::connection::counters::Socket;

/// A client connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) socket: Socket,
    pub(super) client: Arc<ClientDescription>,
    /// Copied from `client`, because every sent message needs it.
    pub(super) frame_max: u32,
    /// True if this batch has appended to the outbox.
    pub(super) is_touched: bool,
    /// Bytes that wait for a majority of nodes; none while nothing has waited yet.
    held: Option<Box<HeldOutbox>>,
}

impl Link {
    pub(super) fn new(socket: Socket, client: Arc<ClientDescription>) -> Self {
        let frame_max = client.frame_max;
        Self { socket, client, frame_max, is_touched: false, held: None }
    }

    /// Appends a method to the outbox.
    pub(super) fn append(&mut self, channel: broker::ChannelNumber, outgoing: &Outgoing) {
        let frame_max = self.frame_max;
        match self.holding() {
            Some(held) => held.append(|outbox| transmit(outgoing, channel.0, frame_max, outbox)),
            None => {
                self.socket
                    .writer
                    .append(|outbox| transmit(outgoing, channel.0, frame_max, outbox));
            }
        }
    }

    /// The held bytes, if the next method must wait behind them.
    pub(super) fn holding(&mut self) -> Option<&mut HeldOutbox> {
        self.held.as_deref_mut().filter(|held| held.is_holding())
    }

    /// True if held bytes leave no room for more.
    pub(super) fn holds_too_much(&self) -> bool {
        self.held.as_ref().is_some_and(|held| !held.has_room())
    }

    /// The backlog to report to the core, if `unsent` bytes wait for the socket.
    pub(super) fn backlog(&self, unsent: u64) -> u64 {
        self.held.as_ref().map_or(unsent, |held| held.backlog(unsent))
    }

    /// Moves what a majority has into the outbox of the socket. True if the core must be told of the backlog.
    fn release(&mut self, durable: Lsn) -> Released {
        let Some(held) = &mut self.held else { return Released::default() };
        let released = self.socket.writer.append(|free| held.release(durable, free));
        if released.is_closing {
            self.socket.writer.set_closing();
        }
        released
    }
}

/// All connections of a vhost.
#[derive(Default, Debug)]
pub(super) struct Links {
    pub(super) clients: SecondaryMap<ConnectionId, Link>,
    /// Internal connections of the node, with the receivers of their answers.
    pub(super) internal: SecondaryMap<ConnectionId, UnboundedSender<Outgoing>>,
    /// Traffic of clients that have disconnected.
    closed_traffic: Traffic,
    /// Clients with held bytes, each once.
    holding: Vec<ConnectionId>,
}

impl Links {
    /// Holds what follows for a client until a majority of nodes has this batch.
    pub(super) fn hold(&mut self, connection: ConnectionId) {
        let Some(link) = self.clients.get_mut(connection) else { return };
        if link.holding().is_none() {
            self.holding.push(connection);
        }
        link.held.get_or_insert_default().hold();
    }

    /// Drops what is held: no majority will have it under this leader.
    pub(super) fn drop_held(&mut self) {
        for connection in std::mem::take(&mut self.holding) {
            if let Some(link) = self.clients.get_mut(connection) {
                link.held = None;
            }
        }
    }

    /// Ends a batch, after which `last` is the last position of the log, and frees what is durable. `freed` is called for
    /// every client with free bytes, with true if the core must be told of its backlog.
    pub(super) fn release(
        &mut self,
        last: Lsn,
        durable: Lsn,
        freed: &mut dyn FnMut(ConnectionId, &mut Link, bool),
    ) {
        let Self { clients, holding, .. } = self;
        holding.retain(|connection| {
            let Some(link) = clients.get_mut(*connection) else { return false };
            let Some(held) = &mut link.held else { return false };
            held.end_batch(last);
            let released = link.release(durable);
            if released.bytes > 0 {
                freed(*connection, link, released.has_room_again);
            }
            link.holding().is_some()
        });
    }

    /// Removes a connection and keeps only its traffic.
    pub(super) fn remove(&mut self, connection: ConnectionId) {
        if let Some(link) = self.clients.remove(connection) {
            self.closed_traffic.add(&link.socket.traffic());
        }
        self.internal.remove(connection);
    }

    /// Traffic of all clients, including those that have disconnected.
    pub(super) fn traffic(&self) -> Traffic {
        let mut sum = self.closed_traffic;
        self.clients.values().for_each(|link| sum.add(&link.socket.traffic()));
        sum
    }

    /// The backlog of a client, to be reported to the core; 0 for other connections.
    pub(super) fn unsent(&self, connection: ConnectionId) -> u64 {
        self.clients.get(connection).map_or(0, |link| link.backlog(link.socket.writer.unsent()))
    }

    /// Sends to a connection, if it is an internal one.
    pub(super) fn send_internal(
        &self,
        connection: ConnectionId,
        outgoing: impl FnOnce() -> Outgoing,
    ) {
        if let Some(receiver) = self.internal.get(connection) {
            // A missing receiver means that the connection is closed or about to be.
            let _ = receiver.send(outgoing());
        }
    }
}
