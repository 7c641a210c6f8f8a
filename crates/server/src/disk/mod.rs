//! Everything the node keeps on disk: the data directory, the writer of the logs, the pager, recovery.

pub(crate) mod check;
pub(crate) mod data_dir;
pub(crate) mod node_file;
pub(crate) mod page_files;
pub(crate) mod page_queue;
pub(crate) mod pager;
pub(crate) mod persister;
pub(crate) mod private_files;
pub(crate) mod recovery;
pub(crate) mod recovery_pages;
pub(crate) mod reserve;
pub(crate) mod reset;
