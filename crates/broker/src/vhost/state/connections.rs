//! The connections of a vhost with their channels, and the addresses of direct replies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use slotmap::SlotMap;

use crate::access::Access;
use crate::channel::Channel;
use crate::channel_key::ChannelKey;
use crate::collections::Lookup;
use crate::ids::{ChannelNumber, ConnectionId, Lsn, QueueId};
use crate::message::Name;

/// A client connection in the vhost.
#[derive(Debug)]
pub struct Connection {
    /// The user of the connection and the user's permissions.
    pub access: Arc<Access>,
    /// The name of the connection in listings; empty until it is set.
    pub name: Name,
    /// True if the client understands `basic.cancel` from the broker (capability `consumer_cancel_notify`).
    pub cancel_notify: bool,
    /// Boxed: a `BTreeMap` leaf reserves eleven slots.
    pub(crate) channels: BTreeMap<ChannelNumber, Box<Channel>>,
    pub(crate) exclusive_queues: BTreeSet<QueueId>,
    pub(crate) backlog: Backlog,
    /// Position of the newest record written by a command of this connection.
    pub(crate) logged: Lsn,
    /// True if the broker has closed the connection; further commands are ignored.
    pub(crate) closing: bool,
}

impl Connection {
    /// Creates a connection without channels.
    pub(crate) fn new(access: Arc<Access>, cancel_notify: bool) -> Self {
        Self {
            access,
            name: Name::default(),
            cancel_notify,
            channels: BTreeMap::new(),
            exclusive_queues: BTreeSet::new(),
            backlog: Backlog::default(),
            logged: Lsn(0),
            closing: false,
        }
    }

    /// Channels by number, closing ones included.
    pub fn channels(&self) -> impl Iterator<Item = (ChannelNumber, &Channel)> {
        self.channels.iter().map(|(number, channel)| (*number, &**channel))
    }

    /// Channels that the broker has not closed, by number.
    pub fn open_channels(&self) -> impl Iterator<Item = (ChannelNumber, &Channel)> {
        self.channels().filter(|(_, channel)| channel.is_open())
    }

    /// The channel with this number.
    #[inline]
    pub(crate) fn channel(&self, number: ChannelNumber) -> Option<&Channel> {
        self.channels.get(&number).map(|channel| &**channel)
    }

    /// Mutable access to the channel with this number.
    #[inline]
    pub(crate) fn channel_mut(&mut self, number: ChannelNumber) -> Option<&mut Channel> {
        self.channels.get_mut(&number).map(|channel| &mut **channel)
    }
}

/// Bytes that wait for a connection's socket, as far as the core knows.
#[derive(Default, Debug)]
pub(crate) struct Backlog {
    pub(crate) bytes: u64,
    /// True if deliveries wait for the backlog to shrink.
    pub(crate) stalled: bool,
    /// The channel whose consumers were served first when the backlog last shrank.
    pub(crate) served_first: ChannelNumber,
    /// True if the shell was asked for the current backlog and has not answered.
    pub(crate) asked: bool,
}

/// All connections of a vhost.
#[derive(Debug)]
pub(crate) struct Connections {
    connections: SlotMap<ConnectionId, Connection>,
    /// Channels that consume direct replies, by their address.
    reply_addresses: Lookup<Name, ChannelKey>,
}

impl Connections {
    /// Creates an empty set; `seed` makes the hashes of reply addresses unpredictable.
    pub(crate) fn new(seed: u64) -> Self {
        Self { connections: SlotMap::with_key(), reply_addresses: Lookup::new(seed) }
    }

    #[inline]
    pub(crate) fn insert(&mut self, connection: Connection) -> ConnectionId {
        self.connections.insert(connection)
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: ConnectionId) -> Option<Connection> {
        self.connections.remove(id)
    }

    /// The connection with this id; none if it is closed.
    #[inline]
    pub(crate) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.connections.get(id)
    }

    /// Mutable access to the connection with this id; none if it is closed.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(id)
    }

    /// All connections, in a stable order.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.connections.iter()
    }

    /// Ids of all connections, in a stable order.
    #[inline]
    pub(crate) fn ids(&self) -> Vec<ConnectionId> {
        self.connections.keys().collect()
    }

    /// The channel with this key; none if it is closed.
    #[inline]
    pub(crate) fn channel(&self, key: ChannelKey) -> Option<&Channel> {
        self.connections.get(key.connection)?.channel(key.channel)
    }

    /// Mutable access to the channel with this key; none if it is closed.
    #[inline]
    pub(crate) fn channel_mut(&mut self, key: ChannelKey) -> Option<&mut Channel> {
        self.connections.get_mut(key.connection)?.channel_mut(key.channel)
    }

    /// A channel that was found in this call.
    ///
    /// # Panics
    /// If it is closed: nothing between the two look-ups closes channels.
    #[inline]
    pub(crate) fn known_channel_mut(&mut self, key: ChannelKey) -> &mut Channel {
        self.channel_mut(key).expect("the channel was found in this call")
    }

    /// The channel with this key and the backlog of its connection; none if it is closed.
    #[inline]
    pub(crate) fn delivery_ends(
        &mut self,
        key: ChannelKey,
    ) -> Option<(&mut Backlog, &mut Channel)> {
        let Connection { backlog, channels, .. } = self.connections.get_mut(key.connection)?;
        Some((backlog, &mut **channels.get_mut(&key.channel)?))
    }

    /// A channel that was found in this call, with the backlog of its connection.
    ///
    /// # Panics
    /// If it is closed: nothing between the two look-ups closes channels.
    #[inline]
    pub(crate) fn known_delivery_ends(&mut self, key: ChannelKey) -> (&mut Backlog, &mut Channel) {
        self.delivery_ends(key).expect("the channel was found in this call")
    }

    /// All channels of all connections, in a stable order.
    #[inline]
    pub(crate) fn channels(&self) -> impl Iterator<Item = (ChannelKey, &Channel)> {
        self.connections.iter().flat_map(|(connection, known)| {
            let key = move |channel| ChannelKey { connection, channel };
            known.channels().map(move |(number, channel)| (key(number), channel))
        })
    }

    /// True if the client of this connection understands `basic.cancel` from the broker.
    #[inline]
    pub(crate) fn understands_cancel(&self, id: ConnectionId) -> bool {
        self.connections.get(id).is_some_and(|connection| connection.cancel_notify)
    }

    // ---- direct reply-to ----

    /// The channel that consumes direct replies under this address.
    #[inline]
    pub(crate) fn replies_at(&self, address: &str) -> Option<ChannelKey> {
        self.reply_addresses.get(address).copied()
    }

    /// Registers the channel that receives direct replies to `address`.
    #[inline]
    pub(crate) fn add_reply_address(&mut self, address: Name, key: ChannelKey) {
        self.reply_addresses.insert(address, key);
    }

    #[inline]
    pub(crate) fn remove_reply_address(&mut self, address: &str) {
        self.reply_addresses.remove(address);
    }
}
