//! Waits for a vhost: for its lock, its disk, and work that was due at the start.

use std::time::{Duration, Instant};

use broker::Lsn;
use replica::Wait;

use super::VhostHandle;
use crate::limits::{CATCH_UP_PAUSE, CATCH_UP_STALL_MAX, LOCK_RETRY_MS};
use crate::snapshot::condition::NodeCondition;
use crate::vhost::not_leading::NotLeading;
use crate::vhost::timer::TimerTarget as _;

impl VhostHandle {
    /// Waits while the lock is held for long, or the lead of the vhost is being handed over; tasks of connections await
    /// this before they take the lock.
    pub(crate) async fn long_hold_ended(&self) {
        if let Some(place) = &self.place {
            place.thawed().await;
        }
        self.state.long_hold_ended().await;
    }

    /// Lets others have a turn after much work. Those that wanted the lock meanwhile come back for it soon, and would not get
    /// it if the same client took it again at once.
    pub(crate) async fn let_others(&self) {
        if self.state.take_missed() {
            tokio::time::sleep(Duration::from_millis(LOCK_RETRY_MS)).await;
        } else {
            tokio::task::yield_now().await;
        }
    }

    /// True while so much waits for the disk that connections that add to it must wait.
    pub(crate) fn is_behind(&self) -> bool {
        self.disk.is_behind()
    }

    /// Waits until the disk is not behind.
    pub(crate) async fn caught_up(&self) {
        self.disk.caught_up().await;
    }

    /// Adds the troubles that this vhost has with the disk to the condition of the node.
    pub(crate) fn add_disk_troubles(&self, condition: &mut NodeCondition) {
        let (name, pages) = (self.name(), self.page_files.unwritten_count() as u64);
        if self.disk.is_out_of_room() {
            condition.vhosts_without_room.push(name.to_owned());
        }
        if pages > 0 {
            condition.unwritten_pages.push((name.to_owned(), pages));
        }
        if let Some(why) = self.down() {
            condition.vhosts_down.push((name.to_owned(), why.to_owned()));
        }
        if self.log_problems > 0 {
            condition.damaged_vhosts.push((name.to_owned(), self.log_problems));
        }
    }

    /// Waits until the log is durable up to `lsn`.
    ///
    /// # Errors
    /// If another node has become the leader of the vhost: the change may be lost.
    pub(crate) async fn durable_at(&self, lsn: Lsn) -> Result<(), NotLeading> {
        self.disk.durable_at(lsn).await;
        if self.is_deposed() { Err(self.not_leading()) } else { Ok(()) }
    }

    /// Waits for the event that an answer depends on.
    pub(crate) async fn wait_for(&self, wait: Wait) {
        match wait {
            Wait::Log(lsn) => self.disk.durable_at(lsn).await,
            Wait::Page(connection) => loop {
                let changed = self.disk.changed();
                self.long_hold_ended().await;
                if !self.state.lock().local.vhost().awaits_get(connection) {
                    return;
                }
                changed.await;
            },
        }
    }

    /// Does due work and waits for the pages that it reads; work that waits for disk space is left for later.
    /// `check_alarms` is called repeatedly, so that an alarm is raised in time.
    pub(crate) fn catch_up<T>(&self, check_alarms: &dyn Fn() -> T) {
        loop {
            // At least once, because the restart itself may have left work to do.
            check_alarms();
            self.tick();
            let mut behind_since = None;
            while self.is_due() {
                check_alarms();
                self.tick();
                if !self.disk.is_behind() {
                    behind_since = None;
                    continue;
                }
                if behind_since.get_or_insert_with(Instant::now).elapsed() > CATCH_UP_STALL_MAX {
                    tracing::warn!(vhost = &*self.name, "overdue work waits for room on the disk");
                    return;
                }
                std::thread::sleep(CATCH_UP_PAUSE);
            }
            if !self.disk.pages().wait_for_read() {
                return;
            }
        }
    }
}
