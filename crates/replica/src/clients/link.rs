//! The connections of clients.

use amqp::method::MethodId;
use broker::refusal::Refusal;
use broker::{ChannelNumber, ConnectionId, Lsn, Outgoing};
use session::{HeldOutbox, Outbox, Released, transmit};
use slotmap::SecondaryMap;

/// The end of a client's connection: an outbox, from which the bytes leave for the socket.
pub trait ClientEnd {
    /// The longest frame that the client takes, in bytes.
    fn frame_max(&self) -> u32;

    /// Appends to the outbox.
    fn append<T>(&mut self, append: impl FnOnce(&mut Outbox) -> T) -> T;

    /// Notes that the server's `connection.close` was appended.
    fn set_closing(&mut self);

    /// True once the server's `connection.close` was appended.
    fn is_closing(&self) -> bool;

    /// Requests a report when fewer bytes are unsent.
    fn set_stalled(&mut self);

    /// Bytes that have not left.
    fn unsent(&self) -> u64;
}

/// A client connection.
#[derive(Debug)]
pub struct Link<C> {
    /// The end of the connection.
    pub end: C,
    /// True if this batch has appended to the outbox.
    pub(crate) is_touched: bool,
    /// Bytes that wait for a majority of nodes; none while nothing has waited yet.
    held: Option<Box<HeldOutbox>>,
}

impl<C: ClientEnd> Link<C> {
    /// A connection of which nothing is held.
    pub fn new(end: C) -> Self {
        Self { end, is_touched: false, held: None }
    }

    /// True if the server's `connection.close` is on its way to the client.
    fn is_closing(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.is_closing()) || self.end.is_closing()
    }

    /// Appends a method to what is held, or else to the outbox.
    pub(crate) fn append(&mut self, channel: ChannelNumber, outgoing: &Outgoing) {
        let frame_max = self.end.frame_max();
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
                self.end.append(transmit);
                // After the bytes, because the reader may end the connection as soon as it is notified.
                if closes {
                    self.end.set_closing();
                }
            }
        }
    }

    /// The held bytes, if the next method must wait behind them.
    pub(crate) fn holding(&mut self) -> Option<&mut HeldOutbox> {
        self.held.as_deref_mut().filter(|held| held.is_holding())
    }

    /// True if held bytes leave no room for more.
    pub(crate) fn holds_too_much(&self) -> bool {
        self.held.as_ref().is_some_and(|held| !held.has_room())
    }

    /// The backlog to report to the core, if `unsent` bytes wait for the socket.
    pub fn backlog(&self, unsent: u64) -> u64 {
        self.held.as_ref().map_or(unsent, |held| held.backlog(unsent))
    }

    /// Moves what a majority has into the outbox.
    fn release(&mut self, durable: Lsn) -> Released {
        let Some(held) = &mut self.held else { return Released::default() };
        let released = self.end.append(|free| held.release(durable, free));
        if released.is_closing {
            self.end.set_closing();
        }
        released
    }
}

/// An answer that is sent once the log is durable up to a position.
#[derive(Debug)]
pub(crate) struct DeferredReply {
    /// The position.
    pub(crate) lsn: Lsn,
    /// The connection.
    pub(crate) connection: ConnectionId,
    /// The channel; 0 for the connection itself.
    pub(crate) channel: ChannelNumber,
    /// The answer.
    pub(crate) outgoing: Outgoing,
}

/// The connections of all clients of a vhost.
#[derive(Debug)]
pub struct Links<C> {
    clients: SecondaryMap<ConnectionId, Link<C>>,
    /// Clients with held bytes, each once.
    holding: Vec<ConnectionId>,
}

impl<C> Default for Links<C> {
    fn default() -> Self {
        Self { clients: SecondaryMap::new(), holding: Vec::new() }
    }
}

impl<C: ClientEnd> Links<C> {
    /// Adds a client.
    pub fn insert(&mut self, connection: ConnectionId, end: C) {
        self.clients.insert(connection, Link::new(end));
    }

    /// Removes a client and returns its end.
    pub fn remove(&mut self, connection: ConnectionId) -> Option<C> {
        self.clients.remove(connection).map(|link| link.end)
    }

    /// A client.
    pub fn get(&self, connection: ConnectionId) -> Option<&Link<C>> {
        self.clients.get(connection)
    }

    /// A client.
    pub fn get_mut(&mut self, connection: ConnectionId) -> Option<&mut Link<C>> {
        self.clients.get_mut(connection)
    }

    /// All clients.
    pub fn iter(&self) -> impl Iterator<Item = (ConnectionId, &Link<C>)> {
        self.clients.iter()
    }

    /// The number of clients.
    pub fn len(&self) -> usize {
        self.clients.len()
    }

    /// True without clients.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// Holds what follows for a client until a majority of nodes has this batch.
    pub(crate) fn hold(&mut self, connection: ConnectionId) {
        let Some(link) = self.clients.get_mut(connection) else { return };
        if link.holding().is_none() {
            self.holding.push(connection);
        }
        link.held.get_or_insert_default().hold();
    }

    /// Sends an answer that has waited for the log. Nothing follows `connection.close`, so that there is none on a connection
    /// that has been closed meanwhile. The client that has something new in its outbox, if one has.
    pub(crate) fn answer(&mut self, reply: &DeferredReply) -> Option<&mut Link<C>> {
        let link = self.clients.get_mut(reply.connection).filter(|link| !link.is_closing())?;
        link.append(reply.channel, &reply.outgoing);
        Some(link)
    }

    /// Drops what is held: no majority will have it under this leader, or the vhost is deleted. A client whose
    /// `connection.close` was held is closed because of `refusal` instead: the core has closed it already. Returns these.
    pub(crate) fn drop_held(&mut self, refusal: &Refusal) -> Vec<ConnectionId> {
        let mut closed = Vec::new();
        for connection in std::mem::take(&mut self.holding) {
            let Some(link) = self.clients.get_mut(connection) else { continue };
            if link.held.take().is_some_and(|held| held.is_closing()) {
                let (refusal, method) = (refusal.clone(), MethodId::NONE);
                link.append(ChannelNumber(0), &Outgoing::ConnectionClose { refusal, method });
                closed.push(connection);
            }
        }
        closed
    }

    /// Ends a batch, after which `last` is the last position of the log, and frees what is durable. `freed` is called for
    /// every client with free bytes, with true if the core must be told of its backlog.
    pub fn release(
        &mut self,
        last: Lsn,
        durable: Lsn,
        freed: &mut dyn FnMut(ConnectionId, &mut Link<C>, bool),
    ) {
        let Self { clients, holding } = self;
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

    /// The backlog of a client, to be reported to the core; 0 for other connections.
    pub(crate) fn backlog(&self, connection: ConnectionId) -> u64 {
        self.clients.get(connection).map_or(0, |link| link.backlog(link.end.unsent()))
    }
}

#[cfg(test)]
mod tests {
    use amqp::reply_code::ReplyCode;
    use slotmap::SlotMap;

    use super::*;
    use crate::clients::test_client::Client;

    /// Two clients that a delivery waits for, until the log is durable up to position 3. The first one is being closed.
    fn closed_and_open() -> (Links<Client>, ConnectionId, ConnectionId) {
        let (mut ids, mut links) = (SlotMap::with_key(), Links::default());
        let [closed, open]: [ConnectionId; 2] = [ids.insert(()), ids.insert(())];
        for connection in [closed, open] {
            links.insert(connection, Client::default());
            links.hold(connection);
        }
        links.release(Lsn(3), Lsn(1), &mut |_, _, _| {});
        let close = Outgoing::ConnectionClose { refusal: stops(), method: MethodId::NONE };
        links.get_mut(closed).unwrap().append(ChannelNumber(0), &close);
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
        assert!(links.get(closed).unwrap().end.is_closing());
        let unsent = links.backlog(closed);
        assert!(links.answer(&answer_to(closed)).is_none());
        assert_eq!(links.backlog(closed), unsent);
    }

    #[test]
    fn client_whose_close_was_held_is_closed_when_that_is_dropped() {
        let (mut links, closed, open) = closed_and_open();
        assert_eq!(links.drop_held(&stops()), [closed]);
        let state = |connection| {
            let end = &links.get(connection).unwrap().end;
            (end.is_closing(), end.unsent() > 0)
        };
        assert_eq!((state(closed), state(open)), ((true, true), (false, false)));
    }
}
