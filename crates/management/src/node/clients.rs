//! Clients: connections, channels, consumers.

use super::Change;
use crate::{ChannelDetails, ConnectionDetails, ConsumerDetails};

/// The clients of the node.
pub trait Clients {
    /// The connections to a vhost, if there is one of that name.
    fn connections(&self, vhost: &str) -> Option<Vec<ConnectionDetails>>;

    /// The connection of that name, if there is one, with its channels.
    fn connection(&self, name: &str) -> Option<(ConnectionDetails, Vec<ChannelDetails>)>;

    /// The channels in a vhost, if there is one of that name.
    fn channels(&self, vhost: &str) -> Option<Vec<ChannelDetails>>;

    /// The consumers in a vhost, if there is one of that name.
    fn consumers(&self, vhost: &str) -> Option<Vec<ConsumerDetails>>;

    /// Closes the connection of that name and tells its client why; false if there is none. `by` wants
    /// it.
    fn close_connection(&self, name: &str, by: &str, reason: &str) -> Change<'_, bool>;

    /// Closes every connection of a user.
    fn close_connections_of(&self, user: &str, by: &str, reason: &str) -> Change<'_, ()>;
}
