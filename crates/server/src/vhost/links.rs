//! The connections of a vhost, as destinations of effects.

use std::sync::Arc;

use amqp::method::MethodId;
use broker::refusal::Refusal;
use broker::{ChannelNumber, ConnectionId, Lsn, Outgoing};
use management::{ClientDescription, Traffic};
use session::{HeldOutbox, Outbox, Released, transmit};
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

    /// True if the server's `connection.close` is on its way to the client.
    fn is_closing(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.is_closing()) || self.socket.writer.is_closing()
    }

    /// Appends a method to what is held, or else to the outbox of the socket.
    pub(super) fn append(&mut self, channel: ChannelNumber, outgoing: &Outgoing) {
        let frame_max = self.frame_max;
        let closes = matches!(outgoing, Outgoing::ConnectionClose { .. });
        let transmit = |outbox: &mut Outbox| transmit(outgoing, channel.0, frame_max, outbox);
        match self.holding() {
            Some(held) => {
                held.append(transmit);
                if closes {
                    held.set_closing();
                }
            }
            None => {
                self.socket.writer.append(transmit);
                // After the bytes, because the reader may end the connection as soon as it is notified.
                if closes {
                    self.socket.writer.set_closing();
                }
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

/// An answer that is sent once the log is durable up to a position.
#[derive(Debug)]
pub(super) struct DeferredReply {
    pub(super) lsn: Lsn,
    pub(super) connection: ConnectionId,
    pub(super) channel: ChannelNumber,
    pub(super) outgoing: Outgoing,
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

    /// Sends an answer that has waited for the log. Nothing follows `connection.close`, so that there is none on a connection
    /// that has been closed meanwhile. The client that has something new in its outbox, if one has.
    pub(super) fn answer(&mut self, reply: &DeferredReply) -> Option<&mut Link> {
        let DeferredReply { connection, channel, outgoing, .. } = reply;
        self.send_internal(*connection, || outgoing.clone());
        let link = self.clients.get_mut(*connection).filter(|link| !link.is_closing())?;
        link.append(*channel, outgoing);
        Some(link)
    }

    /// Drops what is held: no majority will have it under this leader, or the vhost is deleted. A client whose
    /// `connection.close` was held is closed because of `refusal` instead: the core has closed it already.
    pub(super) fn drop_held(&mut self, refusal: &Refusal) {
        for connection in std::mem::take(&mut self.holding) {
            let Some(link) = self.clients.get_mut(connection) else { continue };
            if link.held.take().is_some_and(|held| held.is_closing()) {
                let (refusal, method) = (refusal.clone(), MethodId::NONE);
                link.append(ChannelNumber(0), &Outgoing::ConnectionClose { refusal, method });
                link.socket.writer.wake_writer();
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

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use amqp::reply_code::ReplyCode;
    use amqp::table::Table;
    use management::ClientPid;
    use slotmap::SlotMap;

    use super::*;

    fn client() -> Link {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 5672));
        let client = ClientDescription {
            pid: ClientPid::new("a@b".into(), 0, 1),
            name: String::new(),
            peer: address,
            local: address,
            entry_node: None,
            user: "guest".to_owned(),
            mechanism: "PLAIN",
            vhost: "/".to_owned(),
            properties: Table::default(),
            connection_name: None,
            channel_max: 1,
            frame_max: 4096,
            heartbeat_s: 0,
            tls: None,
            connected_at_ms: 0,
        };
        let socket = Socket { writer: Arc::default(), read_counters: Arc::default() };
        Link::new(socket, Arc::new(client))
    }

    /// Two clients that a delivery waits for, until the log is durable up to position 3. The first one is being closed.
    fn closed_and_open() -> (Links, ConnectionId, ConnectionId) {
        let (mut ids, mut links) = (SlotMap::with_key(), Links::default());
        let [closed, open]: [ConnectionId; 2] = [ids.insert(()), ids.insert(())];
        for connection in [closed, open] {
            links.clients.insert(connection, client());
            links.hold(connection);
        }
        links.release(Lsn(3), Lsn(1), &mut |_, _, _| {});
        let close = Outgoing::ConnectionClose { refusal: stops(), method: MethodId::NONE };
        links.clients[closed].append(ChannelNumber(0), &close);
        (links, closed, open)
    }

    fn stops() -> Refusal {
        Refusal::new(ReplyCode::ConnectionForced, "the broker stops")
    }

    #[test]
    fn answers_do_not_follow_the_close_of_their_connection() {
        let (mut links, closed, open) = closed_and_open();
        let answer_to = |connection| DeferredReply {
            lsn: Lsn(2),
            connection,
            channel: ChannelNumber(1),
            outgoing: Outgoing::ExchangeDeclareOk,
        };
        assert!(links.answer(&answer_to(closed)).is_none());
        assert!(links.answer(&answer_to(open)).is_some());
        links.release(Lsn(3), Lsn(3), &mut |_, _, _| {});
        assert!(links.clients[closed].socket.writer.is_closing());
        let unsent = links.unsent(closed);
        assert!(links.answer(&answer_to(closed)).is_none());
        assert_eq!(links.unsent(closed), unsent);
    }

    #[test]
    fn client_whose_close_was_held_is_closed_when_that_is_dropped() {
        let (mut links, closed, open) = closed_and_open();
        links.drop_held(&stops());
        let state = |connection| {
            let writer = &links.clients[connection].socket.writer;
            (writer.is_closing(), writer.unsent() > 0)
        };
        assert_eq!((state(closed), state(open)), ((true, true), (false, false)));
    }
}
