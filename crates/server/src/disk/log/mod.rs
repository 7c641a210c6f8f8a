//! The logs of the vhosts, and the thread that writes them.

pub(crate) mod log_writer;
pub(crate) mod persister;
#[cfg(test)]
mod tests;
mod write_times;
