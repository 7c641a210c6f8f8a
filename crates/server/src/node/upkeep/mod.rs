//! Work beside that of clients: backups, checks of files, samples, the history of dead letters, and watches.

pub(crate) mod backup;
pub(crate) mod clock_watch;
pub(crate) mod death_writer;
pub(crate) mod file_check;
pub(crate) mod file_checks;
pub(crate) mod sampler;
pub(crate) mod watchdog;

use std::sync::Arc;

use crate::config::FileCheckOptions;
use crate::node::upkeep::backup::Backups;
use crate::node::upkeep::clock_watch::ClockWatch;
use crate::node::upkeep::file_checks::FileChecks;

/// State of the upkeep of a node.
#[derive(Debug)]
pub(crate) struct Upkeep {
    pub(crate) backups: Arc<Backups>,
    pub(crate) file_checks: FileChecks,
    pub(crate) clock_watch: ClockWatch,
}

impl Upkeep {
    pub(crate) fn new(file_check: FileCheckOptions) -> Self {
        Self {
            backups: Arc::default(),
            file_checks: FileChecks::new(file_check),
            clock_watch: ClockWatch::default(),
        }
    }
}
