//! The messages that wait for their delivery time, as the leader has them: those of the committed log, with the same times; and
//! cancellations of many of them.

use broker::time::Now;
use broker::{ScheduleSelector, ScheduledFilter};

use crate::checks::waits::millisecond_of;
use crate::clients::handshake::everything;
use crate::clients::operations::cancel;
use crate::cluster::process::{Context, LATE_US_MAX, Later, Process};
use crate::cluster::requests::cancellation::Cancellation;

impl Process {
    /// Compares the messages that wait with those of the committed log, at the newest leader. A request that is not answered
    /// may have changed them.
    pub(crate) fn look_at_schedules(&mut self, now: Now, ctx: &mut Context<'_>) {
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

/// Cancellations of many messages.
impl Process {
    /// Begins to cancel the messages that a filter selects.
    pub(crate) fn begin_cancellation(
        &mut self,
        request: u64,
        filter: ScheduledFilter,
        ctx: &mut Context<'_>,
    ) {
        if self.serves().is_some() {
            self.cancellations.push(Cancellation::new(request, filter));
            self.cancel_soon(ctx);
        }
    }

    fn cancel_soon(&mut self, ctx: &mut Context<'_>) {
        ctx.later.push((50 + ctx.random.below(5_000), Later::Cancel));
    }

    /// Each cancellation does a step.
    pub(crate) fn cancel(&mut self, ctx: &mut Context<'_>) {
        let mut cancellations = std::mem::take(&mut self.cancellations);
        if self.serves().is_none() || cancellations.is_empty() {
            // The users get errors, and do not know what has happened.
            return;
        }
        if !self.content.is_frozen_vhost() {
            cancellations.retain_mut(|cancellation| !self.cancel_some(cancellation, ctx));
            self.touched(ctx);
        }
        self.cancellations = cancellations;
        if !self.cancellations.is_empty() {
            self.cancel_soon(ctx);
        }
    }

    /// Cancels the next messages. True once the user is answered.
    fn cancel_some(&mut self, cancellation: &mut Cancellation, ctx: &mut Context<'_>) -> bool {
        let now = self.now(ctx.reading);
        let Some(serving) = self.content.vhost() else { return true };
        if let Some(lsn) = cancellation.waits_for {
            let is_durable = lsn <= serving.committed();
            if is_durable {
                ctx.book.operated(cancellation.request, cancellation.is_found);
            }
            return is_durable;
        }
        let access = everything();
        let count = 1 + usize::try_from(ctx.random.below(3)).expect("a small bound");
        serving.write(now, |vhost| {
            let Cancellation { filter, behind, .. } = cancellation;
            let page = vhost.scheduled_messages(filter, &access, *behind, count);
            for message in page.messages {
                let request = cancel(message);
                let cancelled = vhost.operate_on_schedules(now, &request, &access);
                let (handles, _) = cancelled.expect("the queue is there");
                cancellation.is_found |= !handles.is_empty();
            }
            cancellation.behind = page.next;
            if page.next.is_none() {
                cancellation.waits_for = Some(vhost.last_lsn());
            }
        });
        false
    }
}
