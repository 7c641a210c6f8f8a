//! The nodes, and what the server does on each, without its threads.

pub(crate) mod applying;
pub(crate) mod content;
pub(crate) mod ids;
pub(crate) mod levels;
pub(crate) mod network;
pub(crate) mod node;
pub(crate) mod placement;
pub(crate) mod process;
pub(crate) mod requests;
mod sim_log;
mod turns;
