//! Connections, channels and consumers.

use std::sync::Arc;

use amqp::reply_code::ReplyCode;
use broker::refusal::Refusal;
use management::{Change, ChannelDetails, ConnectionDetails, ConsumerDetails};

use crate::connection::clients::Client;
use crate::node::Node;

impl management::Clients for Node {
    fn connections(&self, vhost: &str) -> Option<Vec<ConnectionDetails>> {
        let handle = self.vhosts.get(vhost)?;
        let mut clients = self.clients.all();
        clients.retain(|client| Arc::ptr_eq(&client.handle, &handle));
        // One lock for the channels of all.
        let channels: Vec<Option<usize>> = handle.read(|v, _| {
            let count =
                |client: &Arc<Client>| Some(v.connection(client.id)?.open_channels().count());
            clients.iter().map(count).collect()
        });
        let connections = clients.iter().zip(channels);
        // One that has gone since is not shown.
        Some(
            connections
                .filter_map(|(client, n)| Some(self.connection_details(client, n?)))
                .collect(),
        )
    }

    fn connection(&self, name: &str) -> Option<(ConnectionDetails, Vec<ChannelDetails>)> {
        let client = self.clients.get(name)?;
        let channels = client
            .handle
            .read(|v, _| Some(ChannelDetails::of(&client.description, v.connection(client.id)?)))?;
        Some((self.connection_details(&client, channels.len()), channels))
    }

    fn channels(&self, vhost: &str) -> Option<Vec<ChannelDetails>> {
        Some(self.vhosts.get(vhost)?.read(ChannelDetails::all))
    }

    fn consumers(&self, vhost: &str) -> Option<Vec<ConsumerDetails>> {
        Some(self.vhosts.get(vhost)?.read(ConsumerDetails::all))
    }

    fn close_connection(&self, name: &str, by: &str, reason: &str) -> Change<'_, bool> {
        let client = self.clients.get(name);
        let (by, reason) = (by.to_owned(), reason.to_owned());
        Box::pin(async move {
            let Some(client) = client else { return false };
            close(&client, &by, &reason).await;
            true
        })
    }

    fn close_connections_of(&self, user: &str, by: &str, reason: &str) -> Change<'_, ()> {
        let mut clients = self.clients.all();
        clients.retain(|client| client.description.user == user);
        let (by, reason) = (by.to_owned(), reason.to_owned());
        Box::pin(async move {
            for client in clients {
                close(&client, &by, &reason).await;
            }
        })
    }
}

impl Node {
    fn connection_details(&self, client: &Client, channels: usize) -> ConnectionDetails {
        ConnectionDetails {
            client: Arc::clone(&client.description),
            state: client.state(self.alarm.borrow().is_some()),
            traffic: client.socket.traffic(),
            channels,
        }
    }
}

/// Tells a client to go; over when what goes with it has gone on the disk, too.
async fn close(client: &Client, by: &str, reason: &str) {
    let connection = client.description.name.as_str();
    tracing::info!(user = by, connection, reason, "connection closed on request");
    let refusal = Refusal::new(ReplyCode::ConnectionForced, reason);
    let lsn = client.handle.write(|v, now| {
        v.force_close(now, client.id, refusal);
        v.last_lsn()
    });
    client.handle.durable_at(lsn).await;
}
