//! The log of the member of a replica.

use replication::EntryLog;
use storage::{Directory, ReplicatedLog};

/// A log of entries whose files can be shipped to other nodes.
pub trait GroupLog: EntryLog {
    /// The directory of the files.
    type Directory: Directory;

    /// The log itself.
    fn replicated(&self) -> &ReplicatedLog<Self::Directory>;

    /// The log itself, for work on its files.
    fn replicated_mut(&mut self) -> &mut ReplicatedLog<Self::Directory>;
}

impl<D: Directory> GroupLog for ReplicatedLog<D> {
    type Directory = D;

    fn replicated(&self) -> &Self {
        self
    }

    fn replicated_mut(&mut self) -> &mut Self {
        self
    }
}
