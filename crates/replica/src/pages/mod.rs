//! The pages of a vhost: tasks on their way to the thread that does them, and messages as files.

mod job;
mod queue;
mod stored;
mod tasks;

pub use job::{JobProgress, PageJob, PagedVhost};
pub(crate) use queue::PageQueue;
pub use stored::{PageError, StoredPages};
