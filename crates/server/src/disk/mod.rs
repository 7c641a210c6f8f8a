//! Persistent state of the node: the data directory, logs and page files of the vhosts, recovery.
//!
//! This module does not know the handle of a vhost: the two threads see only [`log::log_writer::LogSource`] and
//! [`pages::pager::PageSource`].

pub(crate) mod access;
pub(crate) mod backup;
pub(crate) mod content;
pub(crate) mod data_dir;
pub(crate) mod deaths;
pub(crate) mod free_space;
pub(crate) mod json_files;
pub(crate) mod log;
pub(crate) mod node_disk;
pub(crate) mod page_progress;
pub(crate) mod pages;
pub(crate) mod private_files;
pub(crate) mod progress;
pub(crate) mod recovery;
pub(crate) mod reserve;
pub(crate) mod reset;
pub(crate) mod stand_alone;
pub(crate) mod vhost_files;
