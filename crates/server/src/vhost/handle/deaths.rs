//! The history of dead letters, on its way to the files.

use crate::limits::{DEATH_SLICES_WRITTEN_MAX, DEATHS_PER_LOCK};
use crate::vhost::VhostHandle;

impl VhostHandle {
    /// Writes new deaths, in slices, unless memory or disk is short.
    pub(crate) fn write_deaths(&self) {
        let mut files = self.death_files.lock();
        for _ in 0..DEATH_SLICES_WRITTEN_MAX {
            let written = files.last_number();
            let deaths = self.read_fair(|vhost, _| match vhost.has_alarm() {
                true => Vec::new(),
                false => vhost.recorded_deaths_after(written, DEATHS_PER_LOCK),
            });
            if !files.append(&deaths) {
                break;
            }
        }
    }

    /// Stops writing deaths, because the files of the vhost are removed.
    pub(crate) fn stop_writing_deaths(&self) {
        self.death_files.lock().close();
    }
}
