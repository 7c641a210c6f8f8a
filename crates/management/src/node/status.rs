//! The node itself.

use crate::{NodeSnapshot, ProcessSnapshot};

/// What the node knows of itself.
pub trait Status {
    /// What is the case now.
    fn snapshot(&self) -> NodeSnapshot;

    /// Whether the prefetch of a whole channel is honoured.
    fn permits_global_qos(&self) -> bool;

    /// What the operating system knows of it now.
    fn process(&self) -> ProcessSnapshot;
}
