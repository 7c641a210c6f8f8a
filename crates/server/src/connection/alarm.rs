//! A client that publishes while an alarm is on.

use super::Connection;
use crate::connection::counters::ReadState;
use crate::node::alarms::Alarm;

impl Connection {
    /// A client that publishes while an alarm is on is not read any more, and told so. False if no
    /// alarm is on any more.
    pub(super) fn block_publisher(&mut self) -> bool {
        let Some(alarm) = *self.alarm.borrow() else { return false };
        if self.blocked.is_none() {
            self.set_blocked(Some(alarm));
            self.send_own(|session, out| session.blocked(alarm.reason(), out));
        }
        true
    }

    /// True if the client was blocked and is not any more.
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

    /// Whether it is read, as long as the disk keeps up.
    pub(super) fn read_state(&self) -> ReadState {
        if self.blocked.is_some() { ReadState::Blocked } else { ReadState::Reading }
    }
}
