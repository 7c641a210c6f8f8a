//! The connections of a vhost, as destinations of effects.

use std::sync::Arc;

use broker::{ConnectionId, Outgoing};
use management::{ClientDescription, Traffic};
use session::transmit;
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
}

impl Link {
    pub(super) fn new(socket: Socket, client: Arc<ClientDescription>) -> Self {
        let frame_max = client.frame_max;
        Self { socket, client, frame_max, is_touched: false }
    }

    /// Appends a method to the outbox.
    pub(super) fn append(&self, channel: broker::ChannelNumber, outgoing: &Outgoing) {
        let frame_max = self.frame_max;
        self.socket.writer.append(|outbox| transmit(outgoing, channel.0, frame_max, outbox));
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
}

impl Links {
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

    /// Bytes that wait for the socket of a client; 0 for other connections.
    pub(super) fn unsent(&self, connection: ConnectionId) -> u64 {
        self.clients.get(connection).map_or(0, |link| link.socket.writer.unsent())
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
