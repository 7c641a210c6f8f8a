//! The view of a vhost for the persister and the pager. Neither waits for a lock that is held for long: they
//! keep their results for the vhost and return later.

use broker::Lsn;
use broker::page::{PageLocation, PageRead, PageTask};
use storage::{WriteBatch, Written};

use super::handle::{State, VhostHandle};
use super::lock::TimedGuard;
use crate::disk::log_writer::LogSource;
use crate::disk::page_files::PageFiles;
use crate::disk::pager::PageSource;
use crate::disk::progress::DiskProgress;
use crate::disk::vhost_files::VhostId;

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
        let has_more = state.outputs.clients.log.take_batch(batch);
        if !has_more {
            // The records that ended with pages are known to the log once the last batch is written.
            state.outputs.pages.batch_taken();
        }
        Some(has_more)
    }

    fn batch_durable(&self, written: Written) -> bool {
        let Some(mut state) = self.state.try_lock() else { return false };
        let State { brain, outputs, .. } = &mut *state;
        let vhost = brain.serving_mut();
        self.disk.pages().ended(outputs.pages.batch_written());
        let durable = Lsn(written.durable.0);
        vhost.durable(durable);
        let replies = outputs.clients.take_durable(durable);
        self.disk.set_durable(durable);
        self.finish_with(state, replies, TimedGuard::unlock_fair);
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
        Some(self.state.try_lock()?.outputs.pages.take())
    }

    fn page_read(&self, at: PageLocation, read: PageRead) -> Result<(), PageRead> {
        let Some(mut state) = self.state.try_lock() else { return Err(read) };
        let now = self.clock.now();
        state.brain.serving_mut().page_read(now, at, read);
        self.finish(state);
        // After the messages are in the queue, because those who wait for pages look there.
        self.disk.pages().read();
        self.disk.notify();
        Ok(())
    }

    fn page_ended(&self, lsns: &[Lsn]) -> bool {
        let Some(mut state) = self.state.try_lock() else { return false };
        lsns.iter().for_each(|lsn| state.outputs.clients.log.release(*lsn));
        state.outputs.pages.page_ended();
        self.finish(state);
        true
    }
}
