//! Connections, channels and consumers.

use crate::requests::change::ChangeFuture;
use crate::snapshot::client::{ChannelSnapshot, ConnectionSnapshot, ConsumerSnapshot};

/// The clients of the node.
pub trait Clients {
    /// The connections to a vhost; none without such a vhost.
    fn connections(&self, vhost: &str) -> Option<Vec<ConnectionSnapshot>>;

    /// The connection of that name with its channels; none without such a connection.
    fn connection(&self, name: &str) -> Option<(ConnectionSnapshot, Vec<ChannelSnapshot>)>;

    /// The channels in a vhost; none without such a vhost.
    fn channels(&self, vhost: &str) -> Option<Vec<ChannelSnapshot>>;

    /// The consumers in a vhost; none without such a vhost.
    fn consumers(&self, vhost: &str) -> Option<Vec<ConsumerSnapshot>>;

    /// Closes the connection of that name and sends `reason` to its client. The log names the user `by`.
    /// False without such a connection.
    fn close_connection(&self, name: &str, by: &str, reason: &str) -> ChangeFuture<'_, bool>;

    /// Closes every connection of a user.
    fn close_connections_of(&self, user: &str, by: &str, reason: &str) -> ChangeFuture<'_, ()>;
}
