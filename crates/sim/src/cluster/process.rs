//! The process of a node: its replica, and the work that the server does on threads beside it.

use std::collections::VecDeque;

use broker::time::{Now, Time};
use bytes::Bytes;
use replica::{
    JobProgress, PageJob, Replica, ReplicaOptions, Service, ShipmentNeed, ShipmentRequest,
};
use replication::{ClockBounds, ClockReading, Frame, Member, MemberId, NodeId};
use simdisk::Random;
use storage::{EntryIndex, LogEntry, Term};

use crate::checks::book::Book;
use crate::cluster::content::Content;
use crate::cluster::content::pager::Paged;
use crate::cluster::placement::Placement;
use crate::cluster::requests::cancellation::Cancellation;
use crate::cluster::requests::redrive_job::RedriveRun;
use crate::cluster::requests::transfer::Prepared;
use crate::cluster::requests::unanswered::Requests;
use crate::cluster::sim_log::SimLog;
use crate::faults::sabotage::Sabotage;
use crate::story::Story;

/// Entries from one digest to the next.
const ENTRIES_PER_DIGEST: u32 = 50;

/// Octets of committed entries that may wait for their application; few, so that followers often have as many.
const UNAPPLIED_BYTES_MAX: usize = 2 * 1024;

/// Time for which a leader may find due work at each look, in microseconds.
pub(super) const LATE_US_MAX: u64 = 1_000_000;

/// Time after which due work is tried again while the lead is being handed over, in microseconds.
const FROZEN_RETRY_US: u64 = 5_000;

/// A job of the thread that applies entries.
#[derive(Debug)]
pub(super) enum Job {
    Apply(LogEntry),
    Promote(Term, i64),
}

/// Input of the member that came within a turn.
#[derive(Debug)]
pub(crate) enum Input {
    Frame(NodeId, Bytes),
    Tick,
    LinkChanged(NodeId),
    PeerLost(NodeId),
}

/// Work that a process does later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Later {
    /// The write of the turn ends.
    Written,
    /// The write of the turn that began at this time takes too long: the disk does not answer.
    Stalled(u64),
    /// Jobs are done.
    Apply,
    /// A turn.
    Advance,
    /// Work of the vhost is due.
    Timer,
    /// Sockets of clients have room.
    Room,
    /// A page task is done.
    Page,
    /// Redrives go on.
    Redrive,
    /// Cancellations go on.
    Cancel,
    /// The replica is opened anew.
    Reopen,
    /// The leader is asked for files: the log ends before its first entry.
    Ask,
    /// The replica is given up and rebuilt.
    Rebuild,
    /// The process ends itself.
    Exit,
}

/// The surroundings of a process.
pub(crate) struct Context<'a> {
    pub(crate) now_us: u64,
    pub(crate) reading: ClockReading,
    pub(crate) number: usize,
    pub(crate) book: &'a mut Book,
    pub(crate) story: &'a mut Story,
    pub(crate) random: &'a mut Random,
    pub(crate) frames: &'a mut Vec<Frame>,
    pub(crate) later: &'a mut Vec<(u64, Later)>,
    /// Longest sync, in microseconds.
    pub(crate) sync_us: u64,
    /// True if the disk of the node was damaged.
    pub(crate) is_damaged: bool,
    /// True while an alarm of memory or disk is on.
    pub(crate) has_alarm: bool,
    /// True while the node is drained.
    pub(crate) is_drained: bool,
    /// The nodes that are to have the replica, as far as the node knows.
    pub(crate) placement: &'a Placement,
}

/// A process.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each notes another thing that is to be done")]
pub(crate) struct Process {
    pub(crate) run: u64,
    pub(crate) replica: Replica<SimLog>,
    pub(crate) content: Content,
    pub(super) jobs: VecDeque<Job>,
    pub(super) is_applying: bool,
    /// The node that leads the vhost, as far as this one knows.
    pub(crate) leader: Option<NodeId>,
    /// The last term in which the node served clients; 0 before the first.
    pub(crate) served: u64,
    pub(crate) is_writing: bool,
    /// True time at which the turn began.
    pub(super) turn_us: u64,
    /// Time at which the clock was read for the turn, which may need several writes on a full disk.
    pub(super) clock_us: u64,
    /// Writes that the disk did not answer in time.
    pub(super) stalls: u64,
    /// True if a stall of the disk ends the service of clients.
    pub(super) is_watched: bool,
    is_advance_due: bool,
    /// True once the replica is to be opened anew, or to be rebuilt.
    pub(super) is_over: bool,
    /// Requests to the replica that are not answered.
    pub(super) requests: Requests,
    /// Files that are ready to leave.
    pub(crate) prepared: Vec<Prepared>,
    /// Redrives that run here.
    pub(super) redrives: Vec<RedriveRun>,
    pub(super) is_redrive_due: bool,
    /// The time since when each look has found due work.
    late_since_us: Option<u64>,
    /// The time since when each look has found an overdue message.
    pub(super) overdue_since_us: Option<u64>,
    /// Cancellations that are not answered.
    pub(super) cancellations: Vec<Cancellation>,
    /// Page tasks that are not done.
    page_job: Option<PageJob>,
    pub(super) inbox: Vec<Input>,
    /// Ticks so far.
    pub(super) ticks: u64,
    pub(crate) bounds: ClockBounds,
    pub(super) shift_us: i64,
    /// Committed entries since the files of the log were looked at.
    pub(super) entries: u32,
    pub(super) timer_at: Option<Time>,
    /// Ticks as a leader that another has replaced.
    pub(crate) stale_ticks: u64,
    /// Entries that a sabotage has applied before their time.
    pub(super) applied_ahead: u64,
    pub(super) sabotage: Option<Sabotage>,
}

impl Process {
    pub(crate) fn new(
        run: u64,
        member: Member<SimLog>,
        content: Content,
        bounds: ClockBounds,
        sabotage: Option<Sabotage>,
    ) -> Self {
        let options = ReplicaOptions {
            entries_per_digest: ENTRIES_PER_DIGEST,
            unapplied_bytes_max: UNAPPLIED_BYTES_MAX,
        };
        let mut replica = Replica::new(member, None, options);
        replica.take_part(0);
        Self {
            run,
            replica,
            content,
            jobs: VecDeque::new(),
            is_applying: false,
            leader: None,
            served: 0,
            is_writing: false,
            turn_us: 0,
            clock_us: 0,
            stalls: 0,
            is_watched: false,
            is_advance_due: false,
            is_over: false,
            requests: Requests::default(),
            prepared: Vec::new(),
            redrives: Vec::new(),
            is_redrive_due: false,
            late_since_us: None,
            overdue_since_us: None,
            cancellations: Vec::new(),
            page_job: None,
            inbox: Vec::new(),
            ticks: 0,
            bounds,
            shift_us: 0,
            entries: 0,
            timer_at: None,
            stale_ticks: 0,
            applied_ahead: 0,
            sabotage,
        }
    }

    /// The moment on the axis of the vhost.
    pub(crate) fn now(&self, reading: ClockReading) -> Now {
        let mut time_us = reading.monotonic_us.saturating_add_signed(self.shift_us);
        match self.sabotage {
            Some(Sabotage::AxisFromWallClock) => time_us = reading.wall_us,
            Some(Sabotage::AxisJumpsAhead) => time_us += 500_000,
            _ => {}
        }
        Now { time: Time::from_micros(time_us), wall_us: reading.wall_us }
    }

    /// True if everything that is committed here is applied.
    pub(crate) fn is_caught_up(&self) -> bool {
        self.jobs.is_empty() && self.replica.applied() == self.replica.member().delivered()
    }

    /// The term in which the node serves clients.
    pub(crate) fn serves(&self) -> Option<u64> {
        match self.replica.service() {
            Service::Leads(term) => Some(term.0),
            Service::Deposed if self.sabotage == Some(Sabotage::StaleLeaderServes) => {
                Some(self.replica.member().term().0.saturating_sub(1))
            }
            Service::Follows | Service::Promotes(_) | Service::Deposed => None,
        }
    }

    /// Members that vote or learn.
    pub(crate) fn members(&self) -> Vec<MemberId> {
        let (mut members, learners) = self.replica.member().members();
        members.extend(learners);
        members
    }

    /// Input of the member.
    pub(crate) fn input(&mut self, input: Input, ctx: &mut Context<'_>) {
        if self.is_over {
            // The replica is being opened anew.
            return;
        }
        // A member whose disk does not answer learns nothing meanwhile.
        if matches!(input, Input::Tick) && !self.is_writing {
            let is_stale = self.serves().is_some_and(|term| term < ctx.book.newest_term);
            self.stale_ticks = if is_stale { self.stale_ticks + 1 } else { 0 };
        }
        self.inbox.push(input);
        self.advance(ctx);
    }

    /// A frame to a member was dropped.
    pub(crate) fn link_changed(&mut self, member: MemberId) {
        if self.is_writing {
            self.inbox.push(Input::LinkChanged(member.node()));
        } else {
            self.replica.link_changed(member);
        }
    }

    /// After a change of the vhost: the replicator takes the records soon, and the timer is set.
    pub(crate) fn touched(&mut self, ctx: &mut Context<'_>) {
        if self.content.take_wakes() && !self.is_deaf(Sabotage::WriterNotWoken, ctx) {
            self.replica.set_dirty();
            self.advance_soon(ctx);
        }
        let Some(serving) = self.content.vhost() else { return };
        let wakes_pager = std::mem::take(&mut serving.wakes_pager);
        let (is_stalled, is_frozen) = (!serving.stalled.is_empty(), serving.local.is_frozen());
        let wake = if is_frozen { None } else { serving.next_wake() };
        if wakes_pager && !self.is_deaf(Sabotage::PagerNotWoken, ctx) {
            match &mut self.page_job {
                Some(job) => job.wake(),
                None => {
                    self.page_job = Some(PageJob::default());
                    ctx.later.push((page_task_us(ctx.random), Later::Page));
                }
            }
        }
        if is_stalled {
            ctx.later.push((5 + ctx.random.below(200), Later::Room));
        }
        let now = self.now(ctx.reading);
        if let Some(wake) = wake
            && wake != Time::MAX
            && self.timer_at.is_none_or(|at| wake < at)
        {
            self.timer_at = Some(wake);
            ctx.later.push((wake.micros_since(now.time) + 1, Later::Timer));
        }
    }

    /// Looks whether due work is done: it may wait while the vhost is frozen, but not for longer than [`LATE_US_MAX`].
    pub(crate) fn look_for_late_work(&mut self, ctx: &mut Context<'_>) {
        let now = self.now(ctx.reading);
        let is_serving = self.serves().is_some() && !self.is_over;
        let Some(serving) = self.content.vhost() else { return };
        let is_serving = is_serving && !serving.local.is_frozen();
        let wake = serving.next_wake().filter(|_| is_serving);
        let is_late = wake.is_some_and(|wake| now.time.micros_since(wake) > 0);
        let since_us = self.late_since_us.filter(|_| is_late).unwrap_or(ctx.now_us);
        self.late_since_us = is_late.then_some(since_us);
        if ctx.now_us - since_us > LATE_US_MAX {
            let number = ctx.number;
            ctx.book.violation(format!("node {number} does not do work that is due at {wake:?}"));
        }
        if is_serving {
            self.look_at_schedules(now, ctx);
        }
    }

    /// True if this wake-up is lost, as a sabotage says.
    fn is_deaf(&self, to: Sabotage, ctx: &mut Context<'_>) -> bool {
        self.sabotage == Some(to) && ctx.random.percent(2)
    }

    pub(super) fn advance_soon(&mut self, ctx: &mut Context<'_>) {
        if !std::mem::replace(&mut self.is_advance_due, true) {
            ctx.later.push((5 + ctx.random.below(400), Later::Advance));
        }
    }

    /// Does what was put off.
    pub(crate) fn later(&mut self, later: Later, ctx: &mut Context<'_>) {
        match later {
            Later::Written => self.written(ctx),
            Later::Stalled(turn_us) => self.stalled(turn_us, ctx),
            Later::Apply => self.apply(ctx),
            Later::Advance => {
                self.is_advance_due = false;
                self.advance(ctx);
            }
            Later::Timer => {
                self.timer_at = None;
                self.tick(ctx);
            }
            Later::Room => {
                let now = self.now(ctx.reading);
                if let Some(serving) = self.content.vhost() {
                    serving.sockets_have_room(now);
                }
                self.touched(ctx);
            }
            Later::Page => self.do_page_task(ctx),
            Later::Redrive => self.redrive(ctx),
            Later::Cancel => self.cancel(ctx),
            Later::Reopen | Later::Exit | Later::Ask | Later::Rebuild => {}
        }
    }

    /// Does due work, or tries again while the lead is being handed over.
    fn tick(&mut self, ctx: &mut Context<'_>) {
        if self.sabotage == Some(Sabotage::TickWithheld) {
            return;
        }
        let (now, sabotage) = (self.now(ctx.reading), self.sabotage);
        let Some(serving) = self.content.vhost() else { return };
        let has_kept_alarm =
            sabotage == Some(Sabotage::AlarmEndWithheld) && serving.local.vhost().has_alarm();
        if !serving.tick(now, ctx.has_alarm || has_kept_alarm) {
            ctx.later.push((FROZEN_RETRY_US, Later::Timer));
        }
        self.touched(ctx);
    }

    /// An alarm begins or ends.
    pub(crate) fn alarm_changed(&mut self, ctx: &mut Context<'_>) {
        ctx.later.push((0, Later::Timer));
    }

    /// Does the next page task, or reports the result of the last.
    fn do_page_task(&mut self, ctx: &mut Context<'_>) {
        let Some(mut job) = self.page_job.take() else { return };
        let (now, sabotage) = (self.now(ctx.reading), self.sabotage);
        let Some(serving) = self.content.vhost() else { return };
        let (pages, random) = (serving.pages.clone(), &mut *ctx.random);
        let counts = &mut ctx.book.pages;
        let mut vhost = Paged { serving, pages, now, random, sabotage, counts };
        let progress = job.advance(&mut vhost).expect("a page that was written can be read");
        if progress != JobProgress::Done {
            self.page_job = Some(job);
            ctx.later.push((page_task_us(ctx.random), Later::Page));
        }
        self.touched(ctx);
    }

    /// Hands the lead over: to a node, or to the one that is most up to date.
    pub(crate) fn hand_over(&mut self, to: Option<NodeId>, ctx: &mut Context<'_>) {
        if self.is_writing || self.is_over {
            return;
        }
        self.replica.begin_transfer(to, None);
        self.advance(ctx);
    }

    /// A backup asks for a barrier.
    pub(crate) fn ask_barrier(&mut self, ctx: &mut Context<'_>) {
        if self.is_over {
            return;
        }
        let id = self.requests.barrier(ctx.book.ledger.len());
        if self.sabotage == Some(Sabotage::BarrierEarly) && self.replica.leads_in().is_some() {
            let early = self.replica.member().delivered();
            return self.answer_barrier(id, Some(early), ctx);
        }
        self.replica.ask_barrier(id);
        self.advance(ctx);
    }

    /// A node asks for files.
    pub(crate) fn prepare(&mut self, node: NodeId, need: ShipmentNeed, ctx: &mut Context<'_>) {
        if self.replica.can_prepare(need) {
            let id = self.requests.files(need);
            self.replica.prepare_shipment(ShipmentRequest { id, node, need, known: None });
            self.advance(ctx);
        }
    }

    /// A member has the files up to an entry.
    pub(crate) fn shipped(&mut self, member: MemberId, index: EntryIndex, ctx: &mut Context<'_>) {
        if !self.is_writing {
            self.replica.shipped(member, index);
            self.advance(ctx);
        }
    }

    /// Looks for members that are to leave.
    pub(crate) fn look_at_members(&mut self, ctx: &mut Context<'_>) {
        if self.replica.looks_for_gone(ctx.placement) {
            self.advance(ctx);
        }
    }
}

/// The time that a page task takes, in microseconds: now and then so long that much happens meanwhile.
fn page_task_us(random: &mut Random) -> u64 {
    let most = if random.percent(2) { 30_000 } else { 200 };
    10 + random.below(most)
}
