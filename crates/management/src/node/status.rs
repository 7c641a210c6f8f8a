//! The node itself.

use crate::{Listener, NodeSnapshot, ProcessSnapshot};

/// What the node knows of itself.
pub trait Status {
    /// What is the case now.
    fn snapshot(&self) -> NodeSnapshot;

    /// Whether the prefetch of a whole channel is honoured.
    fn permits_global_qos(&self) -> bool;

    /// What the operating system knows of it now.
    fn process(&self) -> ProcessSnapshot;

    /// The certificates that its listeners show.
    fn certificates(&self) -> Vec<ServerCertificate>;
}

/// A certificate of the node, with those that it is signed by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerCertificate {
    /// Who shows it.
    pub listener: Listener,
    /// The file that it is read from.
    pub file: String,
    /// Seconds until the first of them expires, below 0 if one has; none if the file cannot be read any
    /// more.
    pub expires_in_s: Option<i64>,
}
