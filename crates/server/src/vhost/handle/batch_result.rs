//! The result of a batch of commands.

use replica::{Batch, Wait};

/// Result of a batch of commands.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct BatchResult {
    /// The event that the answer to the last command waits for. Until then, no command of the connection may
    /// be applied.
    pub(crate) wait: Option<Wait>,
    /// True if the batch has produced work for the disk.
    pub(crate) is_written: bool,
    /// True if the batch was much work, so that others have a turn before the next one of the connection.
    pub(crate) is_much: bool,
}

impl From<&Batch> for BatchResult {
    fn from(batch: &Batch) -> Self {
        Self { wait: batch.wait, is_written: batch.is_written, is_much: false }
    }
}
