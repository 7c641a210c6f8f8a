//! The memory of what a list is made from, until the list is sent.

use amqp::table::Table;
use server::snapshot::client::{ChannelSnapshot, ConnectionSnapshot, ConsumerSnapshot};
use server::snapshot::queue::QueueKey;
use server::snapshot::topology::{BindingSnapshot, ExchangeSnapshot};

/// An object of a list. Names are not counted: they are shared with the vhost.
pub(crate) trait Listed: Sized + Send + 'static {
    /// Bytes of its arguments.
    fn arguments_bytes(&self) -> usize {
        0
    }

    /// Bytes of the object.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.arguments_bytes()
    }
}

impl Listed for QueueKey {}

impl Listed for ConnectionSnapshot {}

impl Listed for ChannelSnapshot {}

impl Listed for ExchangeSnapshot {
    fn arguments_bytes(&self) -> usize {
        bytes_of(&self.arguments)
    }
}

impl Listed for BindingSnapshot {
    fn arguments_bytes(&self) -> usize {
        bytes_of(&self.arguments)
    }
}

impl Listed for ConsumerSnapshot {
    fn arguments_bytes(&self) -> usize {
        bytes_of(&self.arguments)
    }
}

fn bytes_of(arguments: &Table) -> usize {
    arguments.as_ref().as_bytes().len()
}
