//! The nodes, and what the server does on each, without its threads.

pub(crate) mod applying;
mod cancellation;
mod changing;
pub(crate) mod content;
mod effects;
pub(crate) mod group_content;
pub(crate) mod ids;
pub(crate) mod levels;
pub(crate) mod metadata;
pub(crate) mod network;
pub(crate) mod node;
mod pager;
pub(crate) mod pages;
pub(crate) mod placement;
pub(crate) mod process;
pub(crate) mod redrive_job;
mod redrives;
mod requests;
pub(crate) mod serving;
mod sim_log;
pub(crate) mod skipping;
pub(crate) mod transfer;
mod turns;
mod waiting;
