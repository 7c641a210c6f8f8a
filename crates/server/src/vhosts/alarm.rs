//! The alarm that is on, as the vhosts know it: what they make by themselves waits meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{VhostCell, Vhosts};

impl VhostCell {
    /// An alarm is on, or none is any more: which, is read when nobody else can tell it.
    pub(super) fn take_alarm(&self, is_on: &AtomicBool) {
        let mut state = self.state.lock();
        let now = self.clock.now();
        state.vhost.set_alarm(now, is_on.load(Ordering::SeqCst));
        self.finish(state);
    }

    /// Whether it makes nothing by itself because an alarm is on.
    pub(crate) fn has_alarm(&self) -> bool {
        self.state.lock().vhost.has_alarm()
    }
}

impl Vhosts {
    /// An alarm is on, or none is any more: no vhost makes dead letters and the like meanwhile.
    pub(crate) fn set_alarm(&self, is_on: bool) {
        self.has_alarm.store(is_on, Ordering::SeqCst);
        self.all().iter().for_each(|cell| cell.take_alarm(&self.has_alarm));
    }
}
