//! The turns of a replica: a batch of the vhost, frames, a write, and what follows.

use std::time::Duration;

use replication::{
    Committed, Frame, GroupPlacement, ProposeError, Proposed, TurnClock, TurnResult,
};
use storage::{LogError, Written};

use crate::limits::FULL_DISK_RETRY_INTERVAL;
use crate::log::GroupLog;
use crate::output::{Deposition, Event, Output};
use crate::replica::{Batch, Replica};
use crate::request::ShipmentNeed;
use crate::service::{Effects, Service, effects};
use crate::vhost::{BUSY_RETRY, Vhost};

/// The wish of a replica after it was advanced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Wait until something happens.
    Idle,
    /// To be advanced again after this time.
    After(Duration),
    /// To be opened anew.
    Reopen,
    /// To be rebuilt: it must not be used any more.
    Rebuild,
}

/// The turn that has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// There is none.
    None(Next),
    /// The disk has to be written before it ends.
    Write,
    /// The turn can end.
    End,
}

impl<L: GroupLog> Replica<L> {
    /// Takes a batch of the vhost, and begins a turn of the member. Its frames leave before the disk is written.
    ///
    /// `stalls` are those of the disk so far. `clock` reads the clocks of the node; it is called after the batch was taken,
    /// because members that follow cut the times of records at that of their entry.
    ///
    /// # Errors
    /// The log cannot be written any more.
    pub fn begin<'a>(
        &mut self,
        now_us: u64,
        stalls: u64,
        clock: impl FnOnce() -> TurnClock<'a>,
        placed: &impl GroupPlacement,
        vhost: &mut impl Vhost,
        frames: &mut Vec<Frame>,
    ) -> Result<Turn, LogError> {
        self.note_stalls(stalls);
        if self.service == Service::Deposed && self.is_between_turns() {
            return Ok(Turn::None(Next::Reopen));
        }
        let retry = self.report_durable(vhost);
        if let Some(since_us) = self.full_since_us {
            let passed = Duration::from_micros(now_us.saturating_sub(since_us));
            let wait = FULL_DISK_RETRY_INTERVAL.saturating_sub(passed);
            return Ok(if wait.is_zero() { Turn::Write } else { Turn::None(Next::After(wait)) });
        }
        // A turn comes all the same: a leader whose vhost is busy for long is alive, and must tell the others.
        let locked = self.step_transfer(vhost).or_else(|| self.take_batch(vhost));
        let clock = &clock();
        self.propose(clock);
        self.step_members(clock, placed)?;
        if !std::mem::take(&mut self.has_work) {
            return Ok(Turn::None(locked.or(retry).map_or(Next::Idle, Next::After)));
        }
        self.locked = locked;
        Ok(if self.member.begin(clock, frames) { Turn::Write } else { Turn::End })
    }

    /// Writes and syncs what the turn has. False if the disk has no room: the turn goes on with another write, after the time
    /// that [`Self::begin`] names. `stalls` is called behind the write, and returns the stalls of the disk so far.
    ///
    /// # Errors
    /// The log cannot be written any more.
    pub fn write(&mut self, now_us: u64, stalls: impl FnOnce() -> u64) -> Result<bool, LogError> {
        let written = self.member.write();
        self.note_stalls(stalls());
        match written {
            Ok(()) => {
                if self.full_since_us.take().is_some() {
                    self.outputs.push(Output::OutOfRoom(false));
                    self.member.recovered();
                    self.tell(Event::DiskHasRoom);
                }
                Ok(true)
            }
            Err(error) if error.is_full() => {
                if self.full_since_us.is_none() {
                    self.outputs.push(Output::OutOfRoom(true));
                    self.member.stalled();
                    self.tell(Event::DiskFull(error.to_string()));
                }
                if self.is_leading() {
                    self.outputs.push(Output::ServesNoMore);
                    self.set_leader(None);
                    self.outputs.push(Output::Depose(Deposition::DiskFull));
                    self.service = Service::Deposed;
                }
                self.full_since_us = Some(now_us);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Ends the turn of the member. Its frames leave before what follows, because other members wait for them.
    #[must_use]
    pub fn end(&mut self, frames: &mut Vec<Frame>) -> TurnResult {
        self.member.end(frames)
    }

    /// Follows from the end of a turn.
    pub fn follow(
        &mut self,
        now_us: u64,
        mut result: TurnResult,
        vhost: &mut impl Vhost,
        frames: &mut Vec<Frame>,
    ) -> Next {
        if self.service == Service::Deposed {
            return Next::Reopen;
        }
        self.offer(now_us, std::mem::take(&mut result.needs_snapshot), frames);
        let is_quarantined = result.quarantine.is_some();
        self.take_result(result);
        if is_quarantined {
            return Next::Rebuild;
        }
        let locked = self.locked.take();
        match (self.service, self.report_durable(vhost).or(locked)) {
            (Service::Deposed, _) => Next::Reopen,
            (_, Some(wait)) => Next::After(wait),
            (_, None) if self.has_work || self.can_take() => Next::After(Duration::ZERO),
            (_, None) => Next::Idle,
        }
    }

    fn take_result(&mut self, result: TurnResult) {
        let TurnResult { role, committed, durable, axis, quarantine, has_more, offer, .. } = result;
        if let Some(offer) = offer {
            self.outputs.push(Output::Wanted(ShipmentNeed::Behind, offer.from.node()));
        }
        self.has_work |= has_more;
        if let Some(axis) = axis {
            self.tell(Event::AxisContinued(axis.origin));
        }
        for Committed { entry, facts } in committed {
            self.entries_to_digest = self.entries_to_digest.saturating_sub(1);
            let effects = effects(self.service, entry.term, facts.is_some());
            if effects == Effects::There {
                self.applier.applied_by_leader(entry.index, &facts.unwrap_or_default());
            }
            self.outputs.push(Output::Committed(entry, effects));
        }
        if let Some(reason) = quarantine {
            self.tell(Event::Quarantined(reason.text().to_owned()));
        }
        if let Some(durable) = durable {
            self.set_durable(durable);
        }
        match role {
            Some(role) => self.take_role(role),
            // Frames that were on their way may have told of the same leader again, before the turn could tell of none.
            None if self.forgotten_leader.is_some() => {
                self.set_leader(self.member.leader().map(|leader| leader.node()));
            }
            None => {}
        }
        self.forgotten_leader = None;
        if self.entries_to_digest == 0 && self.is_leading() {
            self.entries_to_digest = self.options.entries_per_digest;
            self.outputs.push(Output::LogDigest);
        }
    }

    /// True if a batch can be taken.
    fn can_take(&self) -> bool {
        self.is_leading() && self.is_dirty && matches!(self.batch, Batch::None)
    }

    /// Takes the next batch. Returns the time after which to try again.
    fn take_batch(&mut self, vhost: &mut impl Vhost) -> Option<Duration> {
        if self.can_take() {
            let Some(has_more) = vhost.take_batch(&mut self.records) else {
                return Some(BUSY_RETRY);
            };
            self.is_dirty = false;
            if !self.records.is_empty() {
                self.batch = Batch::Taken { has_more };
            }
        }
        None
    }

    /// Proposes the batch that was taken.
    fn propose(&mut self, clock: &TurnClock<'_>) {
        let Batch::Taken { has_more } = self.batch else { return };
        // The member may lead no more since the last turn, by a frame or a tick: the end of this turn deposes the vhost.
        let Some(axis) = self.member.axis() else {
            self.has_work = true;
            return;
        };
        let bytes = self.records.bytes() as u64;
        let durable = self.records.last();
        match self.member.propose(&mut self.records, axis.at(clock.now.monotonic_us)) {
            Ok(proposed) => {
                let (Proposed::Entry(index) | Proposed::Nothing(index)) = proposed;
                if matches!(proposed, Proposed::Entry(_)) {
                    self.tell(Event::Proposed(index));
                }
                self.records.clear();
                self.durable = None;
                let written = Written { durable, bytes, records: 0 };
                self.batch = Batch::Proposed { index, written, has_more };
                self.has_work = true;
            }
            // The role will change, or entries be committed: then the batch is proposed, or given up.
            Err(
                ProposeError::NotLeading
                | ProposeError::Transferring
                | ProposeError::Behind { .. }
                | ProposeError::ChangePending
                | ProposeError::Refused(_),
            ) => {}
        }
    }

    /// Reports to the vhost what a majority has. Returns the time after which to try again.
    pub(crate) fn report_durable(&mut self, vhost: &mut impl Vhost) -> Option<Duration> {
        let Batch::Proposed { index, written, has_more } = self.batch else { return None };
        if !self.is_leading() || self.durable.is_none_or(|durable| durable < index) {
            return None;
        }
        if !vhost.batch_durable(written) {
            return Some(BUSY_RETRY);
        }
        self.batch = Batch::None;
        self.is_dirty |= has_more;
        None
    }
}
