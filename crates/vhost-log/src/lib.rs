//! The records of a vhost on their way to its log: `broker` does not know the log, and `storage` not the records.

mod limits;
mod log_queue;

pub use log_queue::{LogQueue, QueuedRecord};
