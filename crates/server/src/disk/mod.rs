//! Persistent state of the node: the data directory, logs and page files of the vhosts, recovery.
//!
//! This module does not know the handle of a vhost: the two threads see only [`log_writer::LogSource`] and
//! [`pager::PageSource`].

pub(crate) mod access;
pub(crate) mod backup_copy;
pub(crate) mod backup_target;
pub(crate) mod check;
pub(crate) mod content;
pub(crate) mod data_dir;
pub(crate) mod death_files;
mod death_line;
pub(crate) mod free_space;
pub(crate) mod json_files;
#[cfg(test)]
mod log_tests;
pub(crate) mod log_writer;
pub(crate) mod node_disk;
pub(crate) mod page_files;
pub(crate) mod page_progress;
pub(crate) mod pager;
pub(crate) mod persister;
pub(crate) mod private_files;
pub(crate) mod progress;
pub(crate) mod recovery;
pub(crate) mod recovery_pages;
pub(crate) mod replay_thread;
pub(crate) mod reserve;
pub(crate) mod reset;
pub(crate) mod stand_alone;
pub(crate) mod vhost_files;
pub(crate) mod write_times;
