//! Why things are as they are.

use broker::Explanation;

/// What is in force for something, and why.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The type of the queue or exchange.
    pub kind: &'static str,
    /// Its settings.
    pub explanation: Explanation,
}

/// What is in force for queues and exchanges, and why.
pub trait Explain {
    /// For a queue, if there is one of that name in a vhost of that name.
    fn explain_queue(&self, vhost: &str, name: &str) -> Option<Explained>;

    /// For an exchange, if there is one of that name in a vhost of that name.
    fn explain_exchange(&self, vhost: &str, name: &str) -> Option<Explained>;
}
