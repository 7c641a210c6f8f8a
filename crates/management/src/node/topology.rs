//! What is declared in vhosts.

use crate::{BindingDetails, BindingsOf, ConsumerDetails, ExchangeDetails, QueueDetails};

/// Exchanges, queues and bindings.
pub trait Topology {
    /// The queues of a vhost, if there is one of that name.
    fn queues(&self, vhost: &str) -> Option<Vec<QueueDetails>>;

    /// A queue with its consumers, if there is one of that name in a vhost of that name.
    fn queue(&self, vhost: &str, name: &str) -> Option<(QueueDetails, Vec<ConsumerDetails>)>;

    /// The exchanges of a vhost, if there is one of that name.
    fn exchanges(&self, vhost: &str) -> Option<Vec<ExchangeDetails>>;

    /// An exchange, if there is one of that name in a vhost of that name.
    fn exchange(&self, vhost: &str, name: &str) -> Option<ExchangeDetails>;

    /// Bindings, if there are a vhost of that name and in it what they belong to.
    fn bindings(&self, vhost: &str, which: BindingsOf<'_>) -> Option<Vec<BindingDetails>>;
}
