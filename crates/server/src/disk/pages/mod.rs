//! The pages of long queues, and the thread that writes and reads them.

pub(crate) mod page_files;
pub(crate) mod pager;
