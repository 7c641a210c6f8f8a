//! Ownership of a queue: its user, the connection that alone may use it, and what ends it.

use crate::ids::{ConnectionId, Name};

/// The part of a queue's declaration that decides how long the queue lives and for whom.
#[derive(Clone, Debug)]
pub struct Ownership {
    /// True if the queue survives a restart.
    pub durable: bool,
    /// True if the queue is deleted with its last consumer.
    pub auto_delete: bool,
    /// The connection that alone may use the queue and with which the queue ends, if the queue is exclusive.
    pub exclusive_owner: Option<ConnectionId>,
    /// The user who declared the queue.
    pub declared_by: Name,
}
