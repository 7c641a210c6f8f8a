//! The key of a channel in the vhost.

use crate::ids::{ChannelNumber, ConnectionId};

/// A channel, identified by its connection and number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ChannelKey {
    pub(crate) connection: ConnectionId,
    pub(crate) channel: ChannelNumber,
}
