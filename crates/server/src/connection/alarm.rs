//! Clients that publish while an alarm is on.

use crate::connection::task::Connection;
use crate::node::alarms::alarm::Alarm;
use crate::sockets::counters::ReadState;

impl Connection {
    /// Blocks a client that publishes while an alarm is on: stops reading and sends `connection.blocked`.
    /// False if no alarm is on any more.
    pub(super) fn block_publisher(&mut self) -> bool {
        let Some(alarm) = *self.alarm.borrow() else { return false };
        if self.blocked.is_none() {
            self.set_blocked(Some(alarm));
            self.send_own(|session, out| session.blocked(alarm.reason(), out));
        }
        true
    }

    /// Unblocks the client if no alarm is on any more; true if it was blocked.
    pub(super) fn alarm_changed(&mut self) -> bool {
        let is_over = self.alarm.borrow_and_update().is_none() && self.blocked.is_some();
        if is_over {
            self.set_blocked(None);
            self.send_own(|session, out| session.unblocked(out));
        }
        is_over
    }

    pub(super) fn set_blocked(&mut self, alarm: Option<Alarm>) {
        self.blocked = alarm;
        self.read_counters.set_state(self.read_state());
    }

    /// State of the reading half while the disk keeps up.
    pub(super) fn read_state(&self) -> ReadState {
        if self.blocked.is_some() { ReadState::Blocked } else { ReadState::Reading }
    }
}
