//! The messages that wait for their delivery time, as the leader has them: those of the committed log, with the same times.

use broker::ScheduleSelector;
use broker::time::Now;

use super::process::{Context, LATE_US_MAX, Process};
use crate::checks::waits::millisecond_of;
use crate::clients::handshake::everything;

impl Process {
    /// Compares the messages that wait with those of the committed log, at the newest leader. A request that is not answered
    /// may have changed them.
    pub(super) fn look_at_schedules(&mut self, now: Now, ctx: &mut Context<'_>) {
        if self.serves() != Some(ctx.book.newest_term) {
            return;
        }
        let (access, mut faults, mut is_overdue) = (everything(), Vec::new(), false);
        let Some(vhost) = self.content.vhost().and_then(|serving| serving.leading()) else {
            return;
        };
        for (target, handle, wait) in ctx.book.ledger.waits.all() {
            let selector = ScheduleSelector::Handle(handle);
            let found = vhost.find_scheduled(target, &selector, &access).ok();
            let known = found.and_then(|mut found| found.pop()).map(|found| found.ready_at);
            is_overdue |= known.is_some_and(|at| now.time.micros_since(at) > LATE_US_MAX / 2);
            let is_changing = || ctx.book.schedules.has_open_request(wait.id);
            let has_left = known.is_none() && wait.ready_at <= now.time;
            if known.map(millisecond_of) != Some(wait.ready_at) && !has_left && !is_changing() {
                faults.push(format!(
                    "node {} has message {} of {target} at {known:?}, and the log at {:?}",
                    ctx.number, wait.id, wait.ready_at
                ));
            }
        }
        let since_us = self.overdue_since_us.filter(|_| is_overdue).unwrap_or(ctx.now_us);
        self.overdue_since_us = is_overdue.then_some(since_us);
        if ctx.now_us - since_us > LATE_US_MAX / 2 {
            faults.push(format!("node {} does not deliver messages in time", ctx.number));
        }
        faults.into_iter().for_each(|fault| ctx.book.violation(fault));
    }
}
