//! The run of a redrive job, slice by slice, at the requested rate.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use broker::redrive::{Redrive, RedriveLimit, Redriven};
use broker::time::Now;
use broker::{BrowseCursor, BrowsedMessage, Entry, EntryId, Lsn, MessageState};
use tokio::time::{Instant, sleep};

use super::fate::{Circumstances, Fate, Stop, Tries, fate, pause};
use super::job::{Job, Source, states};
use super::read_budget::ReadBudget;
use crate::clock::Clock;
use crate::limits::{
    ALARM_CHECK_INTERVAL, BROWSED_PER_LOCK, REDRIVE_OFFERS_MAX, REDRIVE_PROGRESS_INTERVAL,
    REDRIVE_UNWRITTEN_MAX,
};
use crate::requests::{RedriveCounts, RedriveRequest, RedriveState};
use crate::vhost::VhostHandle;
use crate::vhost::internal_channel::InternalChannel;

/// A running job.
pub(super) struct Run {
    job: Arc<Job>,
    handle: Arc<VhostHandle>,
    /// A channel with the current permissions of the user.
    channel: InternalChannel,
    source: Source,
    request: RedriveRequest,
    /// The log position of the last moved message.
    durable: Lsn,
    clock: Clock,
    /// True once the node stops.
    is_stopping: Arc<AtomicBool>,
    saved_at: Instant,
    /// The kept dead letters that the job has examined: a vain offer puts a dead letter behind the others.
    examined: HashSet<EntryId>,
}

impl Run {
    /// Creates the run of a job from its position on.
    pub(super) fn new(
        job: Arc<Job>,
        channel: InternalChannel,
        source: Source,
        request: RedriveRequest,
        (clock, is_stopping): (Clock, Arc<AtomicBool>),
    ) -> Self {
        Self {
            job,
            handle: Arc::clone(channel.vhost()),
            channel,
            source,
            request,
            durable: Lsn(0),
            clock,
            is_stopping,
            saved_at: Instant::now(),
            examined: HashSet::new(),
        }
    }

    /// Runs until nothing is left to do, or the node stops, or another one leads. What hinders this node now is tried again.
    pub(super) async fn run(mut self) {
        let mut tries = Tries::default();
        loop {
            let end = self.go_through().await;
            let moved = self.job.status.lock().counts.moved;
            let may_retry = self.job.keeper.is_shared() && tries.may_retry(moved);
            let circumstances = Circumstances::of(&self.job, self.is_stopping(), self.left() > 0);
            match fate(end.clone(), circumstances, may_retry) {
                Fate::Ends(state) => {
                    // First, because nobody looks again at a job that has ended.
                    let durable = self.handle.durable_at(self.durable).await;
                    if durable.is_err() || self.has_moved() {
                        return self.tell_moved();
                    }
                    self.count_rest(&end);
                    return self.end(state).await;
                }
                Fate::GoesOnElsewhere => return self.tell_moved(),
                Fate::GoesOnLater => {
                    // No more than it has moved.
                    self.job.reserve(0);
                    return self.save().await;
                }
                Fate::Retries(reason) => {
                    let id = self.job.status.lock().id;
                    tracing::warn!(id, reason, "a redrive is hindered, and tried again");
                    self.examined.clear();
                    pause(&self.job).await;
                }
            }
        }
    }

    fn has_moved(&self) -> bool {
        self.job.keeper.has_moved(self.is_stopping())
    }

    /// Ends the job.
    async fn end(&self, state: RedriveState) {
        let unacked_left = self.source.unacked(&self.handle);
        self.job.end(state, self.clock.now().wall_ms(), Some(unacked_left)).await;
        let job = self.job.status.lock();
        let not_examined = job.not_examined();
        let RedriveCounts { scanned, moved, skipped, unroutable, no_origin, gone } = job.counts;
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
            no_origin,
            gone,
            not_examined,
            unacked_left,
            "messages have been redriven"
        );
    }

    fn tell_moved(&self) {
        let id = self.job.status.lock().id;
        tracing::info!(id, "the next leader of the vhost goes on with a redrive");
    }

    /// Goes through all messages.
    async fn go_through(&mut self) -> Result<(), Stop> {
        let mut read_budget = ReadBudget::new(self.request.rate);
        let position = self.job.unfinished.lock().as_ref().map(|rest| rest.position);
        let position = position.ok_or(Stop::Enough)?;
        let states = states(self.request.is_of_kept).iter().copied();
        for state in states.skip_while(|state| *state != position.state()) {
            let start = Some(BrowseCursor::start(state));
            let mut next = Some(position).filter(|position| position.state() == state).or(start);
            let mut batches = 0;
            while let Some(from) = next.filter(|_| batches <= self.batches_max(state)) {
                batches += 1;
                self.must_go_on()?;
                self.job.arrive(from);
                if self.saved_at.elapsed() >= REDRIVE_PROGRESS_INTERVAL {
                    self.save().await;
                }
                let batch = self.handle.browse(self.source.id, from, read_budget.looks()).await?;
                next = batch.next;
                let chosen = self.choose(batch.messages, batch.now);
                self.move_all(chosen, &mut read_budget).await?;
            }
        }
        Ok(())
    }

    /// Batches to browse at the most: offers of kept dead letters could go on in front of the job for ever.
    fn batches_max(&self, state: MessageState) -> u64 {
        let batch = self.request.rate.map_or(BROWSED_PER_LOCK as u64, u64::from).max(1);
        let of_kept = REDRIVE_OFFERS_MAX.saturating_mul(self.source.messages / batch + 1);
        if state == MessageState::Dead { of_kept } else { u64::MAX }
    }

    /// Writes the progress of the job, and everything that it has moved so far before.
    async fn save(&mut self) {
        if let Err(problem) = self.try_save().await {
            tracing::warn!(problem, "the progress of a redrive is not on the disk");
        }
    }

    async fn try_save(&mut self) -> Result<(), String> {
        // First, because a job begins again at its position: messages whose move a kill undoes would stay behind it.
        self.handle.durable_at(self.durable).await.map_err(|moved| moved.to_string())?;
        self.saved_at = Instant::now();
        self.job.save().await
    }

    /// Writes beforehand how many messages a job with a limit may have moved, so that it does not exceed its limit
    /// after a kill. The job ends if the disk refuses.
    async fn reserve(&mut self, slice: usize) -> Result<(), Stop> {
        let ahead = self.request.rate.map_or(REDRIVE_UNWRITTEN_MAX, u64::from);
        let ahead = ahead.min(REDRIVE_UNWRITTEN_MAX);
        if let Some(moved_max) = self.limit().reserve(slice as u64, ahead) {
            self.job.reserve(moved_max);
            self.try_save().await.map_err(Stop::Failed)?;
        }
        Ok(())
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// The messages that the request selects.
    fn choose(&mut self, messages: Vec<BrowsedMessage>, now: Now) -> Vec<Entry> {
        let mut skipped = 0;
        let mut chosen = Vec::new();
        for browsed in messages.into_iter().filter(|browsed| self.source.had(browsed)) {
            if self.request.is_of_kept && !self.examined.insert(browsed.entry.id) {
                continue;
            }
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
                () = self.job.cancelled.notified() => return Err(Stop::Enough),
            }
            self.handle.caught_up().await;
            self.no_alarm().await?;
            self.must_go_on()?;
            let slice = self.left().min(read_budget.slice()).min(chosen.len());
            self.reserve(slice).await?;
            let moved = self.move_slice(&mut chosen, slice)?;
            read_budget.moved(moved);
        }
        Ok(())
    }

    /// Waits until no alarm is in effect, because a redriven message is written to the log.
    async fn no_alarm(&self) -> Result<(), Stop> {
        while self.handle.has_alarm() {
            tokio::select! {
                () = sleep(ALARM_CHECK_INTERVAL) => {}
                () = self.job.cancelled.notified() => return Err(Stop::Enough),
            }
        }
        Ok(())
    }

    /// Moves the first `slice` messages and removes them from `chosen`. Returns the number of moved messages.
    fn move_slice(&mut self, chosen: &mut Vec<Entry>, slice: usize) -> Result<u64, Stop> {
        let access = self.channel.access()?;
        let redrive = Redrive {
            queue: self.source.id,
            to: &self.request.to,
            access: &access,
            is_of_kept: self.request.is_of_kept,
        };
        let some = chosen.get(..slice).unwrap_or_default();
        let (outcomes, last) = self.handle.write(|vhost, now| {
            let outcomes = vhost.redrive(now, redrive, some);
            (outcomes, vhost.last_lsn())
        })?;
        let outcomes = outcomes?;
        self.durable = last;
        chosen.drain(..outcomes.len());
        let mut refused = None;
        let mut sum = RedriveCounts::default();
        for outcome in outcomes {
            match outcome {
                Redriven::Moved => sum.moved += 1,
                Redriven::Unroutable => sum.unroutable += 1,
                Redriven::NoOrigin => sum.no_origin += 1,
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
        self.job.status.lock().add(more);
    }

    /// Counts the messages that a job at its end has not browsed, so that the numbers add up. Behind the last
    /// message they have left the queue; behind the last named message they are not selected; the others are
    /// not examined.
    fn count_rest(&self, end: &Result<(), Stop>) {
        let mut job = self.job.status.lock();
        let rest = job.not_examined();
        let at_limit = self.request.limit.is_some_and(|limit| job.counts.moved >= limit);
        let is_running = job.state == RedriveState::Running;
        match end {
            Ok(()) => job.add(RedriveCounts { gone: rest, ..RedriveCounts::default() }),
            Err(Stop::Enough) if is_running && !at_limit => {
                job.add(RedriveCounts { skipped: rest, ..RedriveCounts::default() });
            }
            Err(_) => {}
        }
    }

    fn limit(&self) -> RedriveLimit {
        let moved = self.job.status.lock().counts.moved;
        RedriveLimit { limit: self.request.limit, moved, moved_max: self.job.reserved() }
    }

    /// The number of messages that may still be moved.
    fn left(&self) -> usize {
        let RedriveCounts { moved, unroutable, no_origin, gone, .. } =
            self.job.status.lock().counts;
        let left = self.limit().left();
        // Each named message is tried once.
        let named = self.request.selection.ids.as_ref().map_or(u64::MAX, |ids| ids.len() as u64);
        let left = left.min(named.saturating_sub(moved + unroutable + no_origin + gone));
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    /// Stops the job if nothing is left to do, the job was cancelled, or its user is gone.
    fn must_go_on(&mut self) -> Result<(), Stop> {
        self.channel.access()?;
        match self.left() > 0 && self.job.is_running() && !self.is_stopping() {
            true => Ok(()),
            false => Err(Stop::Enough),
        }
    }
}
