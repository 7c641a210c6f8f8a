//! The identity of a channel.

use crate::ids::{ChannelNumber, ConnectionId};

/// A channel of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ChannelKey {
    pub(crate) connection: ConnectionId,
    pub(crate) channel: ChannelNumber,
}
