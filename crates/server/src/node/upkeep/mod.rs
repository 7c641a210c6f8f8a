//! Work beside that of clients: backups, samples, the history of dead letters, and watches.

pub(crate) mod backup;
pub(crate) mod clock_watch;
pub(crate) mod death_writer;
pub(crate) mod sampler;
pub(crate) mod watchdog;
