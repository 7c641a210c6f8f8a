//! The pages of a vhost: tasks on their way to the thread that does them, and messages as files.

mod job;
mod no_pages;
mod queue;
mod stored;
mod tasks;

pub use job::{JobProgress, PageJob, PagedVhost};
pub use no_pages::NoPages;
pub(crate) use queue::PageQueue;
pub use stored::{PageError, StoredPages};

use broker::page::Pages;

/// The pages of a vhost while its log is read, or the entries of a leader are applied.
pub trait ReplayPages: Pages {
    /// The reason why a page could not be written or read.
    type Error;

    /// Waits until every page is written.
    ///
    /// # Errors
    /// The first error, if any.
    fn finish(self) -> Result<(), Self::Error>;
}
