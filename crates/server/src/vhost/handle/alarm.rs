//! Memory and disk alarms in a vhost: during an alarm, work without a client's command waits, such as
//! dead-lettering.

use broker::time::Now;

use super::{State, VhostHandle};

impl VhostHandle {
    /// True while such work waits because an alarm is on.
    pub(crate) fn has_alarm(&self) -> bool {
        self.pressure.has_alarm()
    }

    /// Bounds the bytes that queues, exchanges and bindings may take, from the next command on. Does not
    /// wait for the lock.
    pub(crate) fn set_topology_bytes_max(&self, bytes_max: Option<u64>) {
        self.pressure.set_topology_bytes_max(bytes_max);
    }

    /// Brings the core up to date with the alarm.
    pub(super) fn check_alarm(&self, state: &mut State, now: Now) {
        state.local.set_alarm(now, self.has_alarm());
    }

    /// Has the timer bring the core up to date after a change of the alarm: at once, or when the lock is free and this node
    /// is known to lead on.
    pub(in crate::vhost) fn alarm_changed(&self) {
        self.wake_up.arm(&self.threads.timer, self.clock.of_node(self.clock.time()));
    }
}
