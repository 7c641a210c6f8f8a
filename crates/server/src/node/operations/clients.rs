//! Connections, channels and consumers.

use std::sync::Arc;

use amqp::reply_code::ReplyCode;
use broker::UnroutablePublish;
use broker::refusal::Refusal;

use crate::node::Node;
use crate::node::clients::Client;
use crate::snapshot::client::{
    ChannelSnapshot, ClientDescription, ConnectionSnapshot, ConsumerSnapshot,
};

impl Node {
    /// The connections to a vhost; none without such a vhost.
    pub fn connections(&self, vhost: &str) -> Option<Vec<ConnectionSnapshot>> {
        let handle = self.vhosts.get(vhost)?;
        let mut clients = self.clients.all();
        clients.retain(|client| Arc::ptr_eq(&client.handle, &handle));
        // One lock for the channel counts of all connections.
        let channels: Vec<Option<usize>> = handle.read(|v, _| {
            let count =
                |client: &Arc<Client>| Some(v.connection(client.id)?.open_channels().count());
            clients.iter().map(count).collect()
        });
        let connections = clients.iter().zip(channels);
        // A connection that has closed since is left out.
        Some(
            connections
                .filter_map(|(client, n)| Some(self.connection_details(client, n?)))
                .collect(),
        )
    }

    /// The connection of that name with its channels; none without such a connection.
    pub fn connection(&self, name: &str) -> Option<(ConnectionSnapshot, Vec<ChannelSnapshot>)> {
        let client = self.clients.get(name)?;
        let channels = client.handle.read(|v, _| {
            Some(ChannelSnapshot::of(&client.description, v.connection(client.id)?))
        })?;
        Some((self.connection_details(&client, channels.len()), channels))
    }

    /// The channels in a vhost; none without such a vhost.
    pub fn channels(&self, vhost: &str) -> Option<Vec<ChannelSnapshot>> {
        Some(self.vhosts.get(vhost)?.read(ChannelSnapshot::all))
    }

    /// The consumers in a vhost; none without such a vhost.
    pub fn consumers(&self, vhost: &str) -> Option<Vec<ConsumerSnapshot>> {
        Some(self.vhosts.get(vhost)?.read(ConsumerSnapshot::all))
    }

    /// The consumer of a queue that holds the most unacknowledged messages; none if none holds any.
    pub fn busiest_consumer(&self, vhost: &str, queue: &str) -> Option<ConsumerSnapshot> {
        self.vhosts.get(vhost)?.read(|v, client_of| {
            let queue = v.queue(queue)?;
            let busiest = queue.consumers().max_by_key(|one| one.unacked)?;
            (busiest.unacked > 0).then(|| ConsumerSnapshot::one(v, queue, busiest, client_of))
        })
    }

    /// The last publish to an exchange that reached no queue and was dropped, with its client if that is connected.
    pub fn last_unroutable(
        &self,
        vhost: &str,
        exchange: &str,
    ) -> Option<(UnroutablePublish, Option<Arc<ClientDescription>>)> {
        self.vhosts.get(vhost)?.read(|v, client_of| {
            let last = v.exchange(exchange)?.last_unroutable.clone()?;
            let client = client_of(last.connection);
            Some((last, client))
        })
    }

    /// Closes the connection of that name and sends `reason` to its client. The log names the user `by`.
    /// False without such a connection.
    pub async fn close_connection(&self, name: &str, by: &str, reason: &str) -> bool {
        let Some(client) = self.clients.get(name) else { return false };
        close(&client, by, reason).await;
        true
    }

    /// Closes every connection of a user.
    pub async fn close_connections_of(&self, user: &str, by: &str, reason: &str) {
        let mut clients = self.clients.all();
        clients.retain(|client| client.description.user == user);
        for client in clients {
            close(&client, by, reason).await;
        }
    }

    fn connection_details(&self, client: &Client, channels: usize) -> ConnectionSnapshot {
        ConnectionSnapshot {
            client: Arc::clone(&client.description),
            state: client.state(self.alarms.current.borrow().is_some()),
            traffic: client.socket.traffic(),
            channels,
        }
    }
}

/// Closes a connection; completes when the effects are on disk.
async fn close(client: &Client, by: &str, reason: &str) {
    let connection = client.description.name.as_str();
    tracing::info!(user = by, connection, reason, "connection closed on request");
    let refusal = Refusal::new(ReplyCode::ConnectionForced, reason);
    let closed = client.handle.write(|v, now| {
        v.force_close(now, client.id, refusal);
        v.last_lsn()
    });
    // A node that does not lead the vhost any more has closed all connections there.
    if let Ok(lsn) = closed {
        let _ = client.handle.durable_at(lsn).await;
    }
}
