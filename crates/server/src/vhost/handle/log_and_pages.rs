//! The view of a vhost for the persister and the pager. Neither waits for a lock that is held for long: they
//! keep their results for the vhost and return later.

use broker::Lsn;
use broker::page::{PageLocation, PageRead, PageTask};
use storage::{WriteBatch, Written};

use super::VhostHandle;
use crate::disk::log::log_writer::LogSource;
use crate::disk::pages::page_files::PageFiles;
use crate::disk::pages::pager::PageSource;
use crate::disk::progress::DiskProgress;
use crate::disk::vhost_files::VhostId;
use crate::vhost::lock::TimedGuard;

impl LogSource for VhostHandle {
    fn id(&self) -> VhostId {
        self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn progress(&self) -> &DiskProgress {
        &self.disk
    }

    fn take_batch(&self, batch: &mut WriteBatch) -> Option<bool> {
        let mut state = self.state.try_lock()?;
        Some(state.local.take_batch(batch))
    }

    fn batch_durable(&self, written: Written) -> bool {
        let Some(mut state) = self.state.try_lock() else { return false };
        let durable = state.local.batch_durable(written);
        self.disk.set_durable(durable);
        self.finish_with(state, TimedGuard::unlock_fair);
        // After the replies are in the outboxes, because connections continue from here.
        self.disk.notify();
        true
    }
}

impl PageSource for VhostHandle {
    fn id(&self) -> VhostId {
        self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn progress(&self) -> &DiskProgress {
        &self.disk
    }

    fn page_files(&self) -> &PageFiles {
        &self.page_files
    }

    fn take_page_tasks(&self) -> Option<Vec<PageTask>> {
        Some(self.state.try_lock()?.local.take_page_tasks())
    }

    fn page_read(&self, at: PageLocation, read: PageRead) -> Result<(), PageRead> {
        let Some(mut state) = self.state.try_lock() else { return Err(read) };
        let now = self.clock.now();
        state.local.page_read(now, at, read);
        self.finish(state);
        // After the messages are in the queue, because those who wait for pages look there.
        self.disk.pages().read();
        self.disk.notify();
        Ok(())
    }

    fn page_ended(&self, lsns: &[Lsn]) -> bool {
        let Some(mut state) = self.state.try_lock() else { return false };
        state.local.page_ended(lsns);
        self.finish(state);
        true
    }
}
