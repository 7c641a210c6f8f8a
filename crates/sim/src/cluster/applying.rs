//! The application of committed entries, promotions, and care for the files of the log: what the server does on
//! threads beside the replicator.

use replica::Service;
use replication::{EntryLog as _, QuarantineReason};
use storage::{EntryIndex, LogEntry, Term};

use super::process::{Context, Job, Later, Process};
use crate::faults::sabotage::Sabotage;

impl Process {
    /// Prepares the next file of the log and compacts it, now and then.
    pub(super) fn care_for_files(&mut self, ctx: &mut Context<'_>) {
        let log = &mut self.replica.log_mut().log;
        if ctx.random.percent(70)
            && let Some(preparation) = log.prepare_next_segment()
        {
            log.install_next_segment(preparation.run().ok());
        }
        if ctx.random.percent(30) {
            self.compact(ctx);
        }
    }

    /// Compacts the log, if it is worthwhile.
    pub(crate) fn compact(&mut self, ctx: &mut Context<'_>) {
        let has_ending_pages = self.content.has_ending_pages();
        if self.is_writing || has_ending_pages || !self.replica.is_between_turns() {
            return;
        }
        if let Some(compaction) = self.replica.member().log().log.compaction() {
            let done = compaction.run();
            ctx.story.tell(ctx.now_us, format_args!("node {} compacts: {done:?}", ctx.number));
        }
    }

    pub(super) fn apply_soon(&mut self, ctx: &mut Context<'_>) {
        if !std::mem::replace(&mut self.is_applying, true) {
            ctx.later.push((ctx.random.below(300), Later::Apply));
        }
    }

    /// Does some jobs.
    pub(super) fn apply(&mut self, ctx: &mut Context<'_>) {
        self.is_applying = false;
        for _ in 0..1 + ctx.random.below(8) {
            let Some(job) = self.jobs.pop_front() else { return };
            match job {
                Job::Apply(entry) => {
                    if let Err(problem) = self.apply_entry(&entry, ctx) {
                        self.replica.quarantine(QuarantineReason::Diverged(problem));
                        self.jobs.clear();
                        self.advance_soon(ctx);
                    }
                }
                Job::Promote(term, shift_us) => self.promote(term, shift_us, ctx),
            }
        }
        if !self.jobs.is_empty() {
            self.apply_soon(ctx);
        }
    }

    /// Gives the contents up, and does the jobs that are left: the thread that applies entries ends after those that it has.
    pub(crate) fn end_service(&mut self, ctx: &mut Context<'_>) {
        self.content.depose(self.now(ctx.reading));
        for job in std::mem::take(&mut self.jobs) {
            match job {
                Job::Apply(entry) => {
                    let applied = self.apply_entry(&entry, ctx);
                    applied.expect("what is given up differs from nothing");
                }
                Job::Promote(term, shift_us) => self.promote(term, shift_us, ctx),
            }
        }
    }

    fn apply_entry(&mut self, entry: &LogEntry, ctx: &mut Context<'_>) -> Result<(), String> {
        if entry.index.0 <= self.applied_ahead {
            self.replica
                .applier()
                .apply(entry, &mut |_, _| ())
                .map_err(|fault| fault.to_string())?;
            return Ok(());
        }
        if let Some(state) = self.content.apply_entry(entry, self.replica.applier())? {
            ctx.book.ledger.compare(ctx.number, entry.index.0, state, "as a replica");
            ctx.book.look_at_ledger();
        }
        Ok(())
    }

    /// A sabotage: applies what is in the log, committed or not.
    pub(crate) fn apply_ahead(&mut self) {
        let member = self.replica.member();
        let (from, last) = (self.replica.applied().0 + 1, member.last_index().0);
        for index in from..=last {
            let log = member.log();
            let Ok(entries) = log.entries(EntryIndex(index), EntryIndex(index + 1), 1) else {
                return;
            };
            for entry in &entries {
                self.content.apply_ahead(entry);
            }
            self.applied_ahead = index;
        }
    }

    fn promote(&mut self, term: Term, shift_us: i64, ctx: &mut Context<'_>) {
        self.shift_us = shift_us;
        let now = self.now(ctx.reading);
        let last = self.replica.applier().applied_position();
        self.content.promote(now, last, ctx.has_alarm);
        if self.sabotage == Some(Sabotage::ScheduleForgotten)
            && let Some(serving) = self.content.vhost()
        {
            serving.forget_schedule(now);
        }
        let stalls = self.stalls;
        self.replica.promoted(term, || stalls);
        if self.replica.service() == Service::Leads(term) {
            self.is_watched = true;
            self.carry_out(ctx);
            self.advance_soon(ctx);
            self.take_redrives_over(ctx);
        }
        self.touched(ctx);
    }
}
