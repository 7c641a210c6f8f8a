//! The node itself.

use crate::{NodeSnapshot, ProcessSnapshot};

/// What the node knows of itself.
pub trait Status {
    /// What is the case now.
    fn snapshot(&self) -> NodeSnapshot;

    /// What the operating system knows of it now.
    fn process(&self) -> ProcessSnapshot;
}
