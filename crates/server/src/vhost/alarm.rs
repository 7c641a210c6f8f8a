//! The alarm that is on, as the vhosts know it: what they make by themselves waits meanwhile.

use std::sync::atomic::Ordering;

use broker::time::Now;

use super::{State, Turn, VhostHandle, Vhosts};

impl VhostHandle {
    /// Tells the vhost in its turn whether an alarm is on.
    pub(super) fn check_alarm(&self, state: &mut Turn<'_, State>, now: Now) {
        let has_alarm = self.has_alarm();
        if state.vhost.has_alarm() != has_alarm {
            state.vhost.set_alarm(now, has_alarm);
        }
    }

    /// An alarm is on, or none is any more. If the lock is held for long, the timer tells the vhost.
    pub(super) fn alarm_changed(&self) {
        let Some(mut state) = self.state.try_lock() else {
            return self.arm(self.clock.time());
        };
        self.check_alarm(&mut state, self.clock.now());
        self.finish(state);
    }

    /// Whether it makes nothing by itself because an alarm is on.
    pub(crate) fn has_alarm(&self) -> bool {
        self.alarm.load(Ordering::SeqCst)
    }
}

impl Vhosts {
    /// An alarm is on, or none is any more: no vhost makes dead letters and the like meanwhile.
    pub(crate) fn set_alarm(&self, has_alarm: bool) {
        self.alarm.store(has_alarm, Ordering::SeqCst);
        self.all().iter().for_each(|handle| handle.alarm_changed());
    }
}
