//! A job at work: from slice to slice, as fast as it may.

use std::sync::Arc;

use broker::redrive::{Redrive, Redriven};
use broker::refusal::Refusal;
use broker::time::Now;
use broker::{BrowseCursor, BrowsedMessage, Entry, Lsn};
use management::{RedriveCounts, RedriveRequest, RedriveState};
use tokio::time::{Duration, Instant, sleep, sleep_until};

use super::{Shared, Source, WAITING};
use crate::clock::Clock;
use crate::limits::{ALARM_CHECK_INTERVAL, BROWSED_PER_LOCK, REDRIVEN_PER_LOCK};
use crate::vhost::internal_channel::InternalChannel;
use crate::vhost::{BrowseProblem, VhostHandle};

/// Why a job goes on no more.
enum Stop {
    /// As many have been moved as were to be, or somebody ended it.
    Enough,
    Failed(String),
}

impl From<BrowseProblem> for Stop {
    fn from(problem: BrowseProblem) -> Self {
        Self::Failed(match problem {
            BrowseProblem::NoQueue => "the queue is gone".to_owned(),
            BrowseProblem::Disk(problem) => problem,
        })
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Failed(refusal.explanation)
    }
}

/// A job at work.
pub(super) struct Run {
    pub(super) shared: Arc<Shared>,
    pub(super) handle: Arc<VhostHandle>,
    /// With what the user may do, whatever changes.
    pub(super) channel: InternalChannel,
    pub(super) source: Source,
    pub(super) request: RedriveRequest,
    /// Up to where the log tells of what was moved.
    pub(super) durable: Lsn,
    pub(super) clock: Clock,
}

impl Run {
    /// Works until there is nothing left to do.
    pub(super) async fn run(mut self) {
        let state = match self.go_through().await {
            Ok(()) | Err(Stop::Enough) => RedriveState::Finished,
            Err(Stop::Failed(reason)) => RedriveState::Failed(reason),
        };
        self.handle.durable_at(self.durable).await;
        self.shared.end(state);
        let mut job = self.shared.job.lock();
        job.ended_ms = Some(self.clock.now().wall_ms);
        let RedriveCounts { scanned, moved, skipped, unroutable, gone } = job.counts;
        let reason = if let RedriveState::Failed(reason) = &job.state { reason } else { "" };
        tracing::info!(
            id = job.id,
            vhost = job.vhost,
            queue = job.queue,
            state = job.state.as_str(),
            reason,
            scanned,
            moved,
            skipped,
            unroutable,
            gone,
            "messages have been redriven"
        );
    }

    /// Goes through all messages.
    async fn go_through(&mut self) -> Result<(), Stop> {
        let mut read_budget = ReadBudget::new(self.request.rate);
        for state in WAITING {
            let mut next = Some(BrowseCursor::start(state));
            while let Some(from) = next {
                self.must_go_on()?;
                let batch = self.handle.browse(self.source.id, from, read_budget.looks()).await?;
                next = batch.next;
                let chosen = self.choose(batch.messages, batch.now);
                self.move_all(chosen, &mut read_budget).await?;
            }
        }
        Ok(())
    }

    /// Those of some messages that are to be moved.
    fn choose(&self, messages: Vec<BrowsedMessage>, now: Now) -> Vec<Entry> {
        let mut skipped = 0;
        let mut chosen = Vec::new();
        for browsed in messages.into_iter().filter(|browsed| self.source.had(browsed)) {
            match self.request.selection.selects(self.source.number, &browsed, now) {
                true => chosen.push(browsed.entry),
                false => skipped += 1,
            }
        }
        self.count(RedriveCounts { skipped, ..RedriveCounts::default() });
        chosen
    }

    async fn move_all(
        &mut self,
        mut chosen: Vec<Entry>,
        read_budget: &mut ReadBudget,
    ) -> Result<(), Stop> {
        while !chosen.is_empty() {
            tokio::select! {
                () = read_budget.turn() => {}
                () = self.shared.cancelled.notified() => return Err(Stop::Enough),
            }
            self.handle.caught_up().await;
            self.no_alarm().await?;
            self.must_go_on()?;
            let slice = self.left().min(read_budget.slice()).min(chosen.len());
            let moved = self.move_slice(&mut chosen, slice)?;
            read_budget.moved(moved);
        }
        Ok(())
    }

    /// Waits until no alarm is on: what is redriven is written.
    async fn no_alarm(&self) -> Result<(), Stop> {
        while self.handle.has_alarm() {
            tokio::select! {
                () = sleep(ALARM_CHECK_INTERVAL) => {}
                () = self.shared.cancelled.notified() => return Err(Stop::Enough),
            }
        }
        Ok(())
    }

    /// Has the core move some, which are chosen no more. How many were moved.
    fn move_slice(&mut self, chosen: &mut Vec<Entry>, slice: usize) -> Result<u64, Stop> {
        let access = self.channel.access()?;
        let redrive = Redrive { queue: self.source.id, to: &self.request.to, access: &access };
        let some = chosen.get(..slice).unwrap_or_default();
        let (outcomes, last) = self.handle.write(|vhost, now| {
            let outcomes = vhost.redrive(now, redrive, some);
            (outcomes, vhost.last_lsn())
        });
        let outcomes = outcomes?;
        self.durable = last;
        chosen.drain(..outcomes.len());
        let mut refused = None;
        let mut sum = RedriveCounts::default();
        for outcome in outcomes {
            match outcome {
                Redriven::Moved => sum.moved += 1,
                Redriven::Unroutable => sum.unroutable += 1,
                Redriven::Gone => sum.gone += 1,
                Redriven::Refused(refusal) => refused = Some(refusal),
            }
        }
        self.count(sum);
        match refused {
            Some(refusal) => Err(refusal.into()),
            None => Ok(sum.moved),
        }
    }

    fn count(&self, more: RedriveCounts) {
        self.shared.job.lock().counts.add(more);
    }

    /// How many may still be moved.
    fn left(&self) -> usize {
        let RedriveCounts { moved, unroutable, gone, .. } = self.shared.job.lock().counts;
        let left = self.request.limit.map_or(u64::MAX, |limit| limit.saturating_sub(moved));
        // Each that is named has its turn once.
        let named = self.request.selection.ids.as_ref().map_or(u64::MAX, |ids| ids.len() as u64);
        let left = left.min(named.saturating_sub(moved + unroutable + gone));
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    /// Ends the job if nothing is left to do, somebody has ended it, or its user is gone.
    fn must_go_on(&mut self) -> Result<(), Stop> {
        self.channel.access()?;
        match self.left() > 0 && self.shared.is_running() {
            true => Ok(()),
            false => Err(Stop::Enough),
        }
    }
}

/// How fast messages are moved.
struct ReadBudget {
    /// In a second at most.
    rate: Option<u32>,
    /// When the next may be.
    next: Instant,
}

impl ReadBudget {
    fn new(rate: Option<u32>) -> Self {
        Self { rate, next: Instant::now() }
    }

    /// How many messages are looked at together: what is moved in a second.
    fn looks(&self) -> usize {
        self.per_second().map_or(BROWSED_PER_LOCK, |rate| rate.clamp(1, BROWSED_PER_LOCK))
    }

    /// How many are moved together: so many that there are ten slices in a second.
    fn slice(&self) -> usize {
        self.per_second().map_or(REDRIVEN_PER_LOCK, |rate| (rate / 10).clamp(1, REDRIVEN_PER_LOCK))
    }

    fn per_second(&self) -> Option<usize> {
        self.rate.map(|rate| usize::try_from(rate).unwrap_or(usize::MAX))
    }

    /// Waits until more may be moved, and lets others run.
    async fn turn(&self) {
        match self.rate {
            Some(_) => sleep_until(self.next).await,
            None => tokio::task::yield_now().await,
        }
    }

    /// So many were moved. Time in which nothing was to be moved is not caught up on.
    fn moved(&mut self, count: u64) {
        if let Some(rate) = self.rate {
            let micros = count.saturating_mul(1_000_000) / u64::from(rate.max(1));
            self.next = self.next.max(Instant::now()) + Duration::from_micros(micros);
        }
    }
}
