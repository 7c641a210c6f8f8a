//! The turns of the replica of a process, as the server's replicator takes it through them, in simulated time.

use std::time::Duration;

use broker::time::Now;
use replica::{Effects, Event, Files, HandOverTask, Next, Output, RequestId, Turn, Vhost};
use replication::{AxisOrigin, EntryLog as _, Role, TurnClock};
use simdisk::{Disk, Random};
use storage::{EntryIndex, LogEntry, LogError, Term, WriteBatch, Written};

use crate::checks::ledger::word;
use crate::cluster::content::Content;
use crate::cluster::content::serving::BUSY_PERCENT;
use crate::cluster::placement::Seen;
use crate::cluster::process::{Context, Input, Job, Later, Process};
use crate::cluster::requests::transfer::Prepared;
use crate::faults::sabotage::Sabotage;
use crate::plan::MEMBERS_MIN;

/// Ticks that a process takes at once after it has slept.
const TICKS_AT_ONCE_MAX: u32 = 2;

/// Time after which a disk counts as one that does not answer, in microseconds.
const STALL_US: u64 = 3_000_000;

/// The content of a replica, behind a lock.
struct Locked<'a> {
    content: &'a mut Content,
    now: Now,
    random: &'a mut Random,
    sabotage: Option<Sabotage>,
    /// True once the content has changed.
    is_touched: bool,
}

impl Locked<'_> {
    fn is_busy(&mut self) -> bool {
        self.random.percent(BUSY_PERCENT)
    }
}

impl Vhost for Locked<'_> {
    fn take_batch(&mut self, batch: &mut WriteBatch) -> Option<bool> {
        if self.is_busy() || self.sabotage == Some(Sabotage::LockHeld) {
            return None;
        }
        let has_more = self.content.take_batch(batch);
        if self.sabotage == Some(Sabotage::BatchLost) && self.random.percent(2) {
            batch.clear();
        }
        Some(has_more)
    }

    fn batch_durable(&mut self, written: Written) -> bool {
        if self.is_busy() {
            return false;
        }
        let durable = match self.sabotage {
            Some(Sabotage::DurableWithheld) => return true,
            Some(Sabotage::EmptyBatchWithheld) if written.durable == storage::Lsn(0) => {
                return false;
            }
            Some(Sabotage::DurableAhead) => self.content.last(),
            _ => written.durable,
        };
        self.content.batch_durable(Written { durable, ..written }, self.now);
        self.is_touched = true;
        true
    }

    fn hand_over(&mut self, task: HandOverTask) -> bool {
        if self.is_busy() {
            return false;
        }
        if task != HandOverTask::Resume || self.sabotage != Some(Sabotage::ResumeWithheld) {
            self.content.hand_over(self.now, task);
        }
        self.is_touched = true;
        true
    }
}

impl Process {
    fn take_inbox(&mut self, is_drained: bool) {
        let mut ticks = 0;
        for input in std::mem::take(&mut self.inbox) {
            match input {
                Input::Frame(from, frame) => {
                    // A frame of another time is refused, as by the server.
                    let _ = self.replica.receive(from, &frame, self.unapplied_bytes());
                }
                Input::Tick if ticks < TICKS_AT_ONCE_MAX => {
                    ticks += 1;
                    self.ticks += 1;
                    self.replica.set_reluctant(is_drained);
                    self.replica.tick_to(self.ticks);
                }
                Input::Tick => {}
                Input::LinkChanged(node) => {
                    let of_node = self.members().into_iter().filter(|it| it.node() == node);
                    of_node.for_each(|member| self.replica.link_changed(member));
                }
                Input::PeerLost(node) => {
                    let of_node = self.members().into_iter().filter(|it| it.node() == node);
                    of_node.for_each(|member| self.replica.peer_lost(member));
                }
            }
        }
    }

    /// Octets of committed entries that wait for their application.
    fn unapplied_bytes(&self) -> usize {
        let bytes = |job: &Job| match job {
            Job::Apply(entry) => entry.bytes(),
            Job::Promote(..) => 0,
        };
        self.jobs.iter().map(bytes).sum()
    }

    /// Takes the replica through turns until there is nothing to do, or something to write.
    pub(crate) fn advance(&mut self, ctx: &mut Context<'_>) {
        while !self.is_writing && !self.is_over {
            self.take_inbox(ctx.is_drained);
            let turn = self.begin(ctx);
            self.carry_out(ctx);
            let next = match turn {
                Ok(Turn::None(next)) => next,
                Ok(Turn::Write) => {
                    self.is_writing = true;
                    let sync_us = 30 + ctx.random.below(ctx.sync_us);
                    if sync_us > STALL_US {
                        ctx.later.push((STALL_US, Later::Stalled(ctx.now_us)));
                    }
                    ctx.later.push((sync_us, Later::Written));
                    return;
                }
                Ok(Turn::End) => self.end_turn(ctx),
                Err(error) => return self.exit(&error, ctx),
            };
            if !self.goes_on(next, ctx) {
                return;
            }
        }
    }

    fn begin(&mut self, ctx: &mut Context<'_>) -> Result<Turn, LogError> {
        self.turn_us = ctx.now_us;
        if self.sabotage == Some(Sabotage::ConfirmAtOwnSync) {
            self.replica.set_durable(self.replica.member().last_index());
        }
        let me = self.replica.member().id();
        let placed = Seen { placement: ctx.placement, me, sabotage: self.sabotage };
        let now = self.now(ctx.reading);
        let Self { replica, content, bounds, stalls, clock_us, sabotage, .. } = self;
        let (random, sabotage) = (&mut *ctx.random, *sabotage);
        let mut vhost = Locked { content, now, random, sabotage, is_touched: false };
        let clock = || {
            *clock_us = ctx.now_us;
            TurnClock { now: ctx.reading, wall_after_us: ctx.reading.wall_us, bounds }
        };
        let turn = replica.begin(ctx.now_us, *stalls, clock, &placed, &mut vhost, ctx.frames);
        if vhost.is_touched {
            self.touched(ctx);
        }
        turn
    }

    /// True if the replica is to be advanced at once.
    fn goes_on(&mut self, next: Next, ctx: &mut Context<'_>) -> bool {
        match next {
            Next::Idle => false,
            Next::After(Duration::ZERO) => true,
            Next::After(wait) => {
                let wait_us = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
                ctx.later.push((wait_us, Later::Advance));
                false
            }
            Next::Reopen if self.sabotage == Some(Sabotage::StaleLeaderServes) => false,
            Next::Reopen => {
                self.is_over = true;
                ctx.later.push((0, Later::Reopen));
                false
            }
            Next::Rebuild if self.sabotage == Some(Sabotage::RebuildWithheld) => false,
            Next::Rebuild => {
                self.is_over = true;
                ctx.later.push((0, Later::Rebuild));
                false
            }
        }
    }

    /// The write of the turn ends.
    pub(super) fn written(&mut self, ctx: &mut Context<'_>) {
        if !std::mem::take(&mut self.is_writing) {
            return;
        }
        let stalls = self.stalls;
        let written = self.replica.write(ctx.now_us, || stalls);
        self.carry_out(ctx);
        let next = match written {
            Ok(true) => self.end_turn(ctx),
            Ok(false) => Next::After(replica::limits::FULL_DISK_RETRY_INTERVAL),
            Err(error) => return self.exit(&error, ctx),
        };
        if self.goes_on(next, ctx) || !self.inbox.is_empty() {
            self.advance(ctx);
        }
    }

    /// The write that began at this time has not ended: a leader closes its clients, who look for another one.
    pub(super) fn stalled(&mut self, turn_us: u64, ctx: &mut Context<'_>) {
        if !self.is_writing || self.turn_us != turn_us {
            return;
        }
        self.stalls += 1;
        if std::mem::take(&mut self.is_watched) {
            ctx.story.tell(ctx.now_us, format_args!("the disk of node {} stalls", ctx.number));
            self.content.depose(self.now(ctx.reading));
        }
    }

    pub(super) fn exit(&mut self, error: &LogError, ctx: &mut Context<'_>) {
        ctx.story.tell(ctx.now_us, format_args!("node {} ends: {error}", ctx.number));
        self.is_over = true;
        ctx.later.push((0, Later::Exit));
    }

    fn end_turn(&mut self, ctx: &mut Context<'_>) -> Next {
        let result = self.replica.end(ctx.frames);
        let now = self.now(ctx.reading);
        let Self { replica, content, sabotage, .. } = self;
        let (random, sabotage) = (&mut *ctx.random, *sabotage);
        let mut vhost = Locked { content, now, random, sabotage, is_touched: false };
        let next = replica.follow(ctx.now_us, result, &mut vhost, ctx.frames);
        if vhost.is_touched {
            self.touched(ctx);
        }
        self.carry_out(ctx);
        next
    }

    /// Does what the replica wants done.
    pub(super) fn carry_out(&mut self, ctx: &mut Context<'_>) {
        for output in self.replica.take_outputs() {
            match output {
                Output::Leader(leader) => self.leader = leader,
                Output::OutOfRoom(_) => {}
                Output::Committed(entry, effects) => self.committed(entry, effects, ctx),
                Output::Promote { .. } if self.sabotage == Some(Sabotage::PromotionWithheld) => {}
                Output::Promote { term, mut shift_us } => {
                    if self.sabotage == Some(Sabotage::AxisShiftIgnored) {
                        shift_us = 0;
                    }
                    self.jobs.push_back(Job::Promote(term, shift_us));
                    self.apply_soon(ctx);
                }
                Output::ServesNoMore => {
                    self.is_watched = false;
                    let number = ctx.number;
                    ctx.story.tell(ctx.now_us, format_args!("node {number} serves no more"));
                }
                Output::Depose(why) => {
                    let number = ctx.number;
                    ctx.story.tell(ctx.now_us, format_args!("node {number} is deposed: {why:?}"));
                    self.content.depose(self.now(ctx.reading));
                }
                Output::LogDigest => {
                    let now = self.now(ctx.reading);
                    self.content.log_digest(now);
                    self.touched(ctx);
                }
                Output::Wanted(..) if self.sabotage == Some(Sabotage::OfferIgnored) => {}
                Output::Wanted(..) => ctx.later.push((ctx.random.below(50_000), Later::Ask)),
                Output::Shipment(id, files) => {
                    let need = self.requests.take_files(id);
                    self.ship(need, files, ctx);
                }
                Output::Barrier(id, index) => self.answer_barrier(id, index, ctx),
                Output::Transferred(..) => panic!("{output:?} although nobody has asked"),
                Output::Event(event) => self.happened(&event, ctx),
            }
        }
        if self.entries >= 8 && !self.is_writing && self.replica.is_between_turns() {
            self.entries = 0;
            self.care_for_files(ctx);
        }
    }

    fn ship(
        &mut self,
        need: replica::ShipmentNeed,
        files: Result<Files<Disk>, String>,
        ctx: &mut Context<'_>,
    ) {
        match files {
            Ok(Files::New(files)) => self.prepared.push(Prepared { need, files }),
            Ok(Files::Known) => panic!("files are known although none were named"),
            Err(why) => {
                ctx.story.tell(ctx.now_us, format_args!("node {} has no files: {why}", ctx.number));
            }
        }
    }

    /// A barrier is committed, and behind all that was committed when it was asked for; or there is none.
    pub(super) fn answer_barrier(
        &mut self,
        id: RequestId,
        index: Option<EntryIndex>,
        ctx: &mut Context<'_>,
    ) {
        let asked_behind = self.requests.take_barrier(id);
        let Some(index) = index else { return };
        if index.0 <= asked_behind || index.0 > ctx.book.ledger.len() {
            let committed = ctx.book.ledger.len();
            ctx.book.violation(format!(
                "the barrier of node {} is entry {index}, asked for behind {asked_behind}, with {committed} committed",
                ctx.number
            ));
        }
        ctx.book.barriers += 1;
    }

    fn happened(&mut self, event: &Event, ctx: &mut Context<'_>) {
        match event {
            Event::Role(role) => {
                ctx.story.tell(ctx.now_us, format_args!("node {} is {role:?}", ctx.number));
                if let Role::Leader { term, .. } = role {
                    ctx.book.leads(term.0, ctx.number);
                }
            }
            Event::AxisContinued(origin) => self.axis_begins(*origin, ctx),
            Event::Proposed(index) => {
                let key = (index.0, self.replica.member().term().0);
                ctx.book.ledger.proposed_at.insert(key, ctx.now_us);
            }
            Event::MovedLeaves(member) => {
                let (voters, _) = self.replica.member().members();
                let left = voters.into_iter().filter(|voter| voter != member).count();
                if left < MEMBERS_MIN {
                    ctx.book.violation(format!("{left} voters are left when {member} leaves"));
                }
            }
            Event::Quarantined(why) => {
                ctx.story
                    .tell(ctx.now_us, format_args!("node {} is quarantined: {why}", ctx.number));
                if !ctx.is_damaged {
                    ctx.book.violation(format!("node {} is quarantined: {why}", ctx.number));
                }
            }
            Event::Serves(Term(term)) => {
                self.served = *term;
                ctx.book.serves(*term);
                ctx.story.tell(ctx.now_us, format_args!("node {} serves term {term}", ctx.number));
            }
            other => {
                ctx.story.tell(ctx.now_us, format_args!("node {}: {other:?}", ctx.number));
            }
        }
    }

    fn axis_begins(&mut self, origin: AxisOrigin, ctx: &mut Context<'_>) {
        let member = self.replica.member();
        let (term, last) = (member.term().0, member.last_index().0);
        ctx.book.ledger.proposed_at.insert((last, term), self.clock_us);
        let before = member.log().term_of(EntryIndex(last.saturating_sub(1)));
        let continues = match origin {
            AxisOrigin::Continued { term } => Some(term),
            AxisOrigin::Log => Some(before.map_or(0, |term| term.0)),
            // The wall clocks may have stepped while the nodes were down.
            AxisOrigin::Restored { .. } | AxisOrigin::WallClocks => None,
        };
        ctx.book.axis(term, continues);
        ctx.story
            .tell(ctx.now_us, format_args!("node {} begins term {term}: {origin:?}", ctx.number));
    }

    fn committed(&mut self, entry: LogEntry, effects: Effects, ctx: &mut Context<'_>) {
        self.entries += 1;
        let root = ctx.book.root_of(entry.term.0);
        if entry.index.0 > ctx.book.ledger.len() {
            let (index, term, what) = (entry.index, entry.term, word(&entry));
            ctx.story.tell(
                ctx.now_us,
                format_args!("node {} commits {index} of term {term}: {what}", ctx.number),
            );
        }
        ctx.book.ledger.committed(ctx.number, &entry, root);
        ctx.book.look_at_ledger();
        if effects == Effects::Due {
            self.jobs.push_back(Job::Apply(entry));
            self.apply_soon(ctx);
        }
    }
}
