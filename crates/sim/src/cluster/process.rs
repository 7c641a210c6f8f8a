//! The process of a node: its member between two turns, as the server's replicator drives it.

use std::collections::{BTreeMap, VecDeque};

use broker::Lsn;
use broker::time::{Now, Time};
use bytes::Bytes;
use replication::{
    AxisOrigin, ClockBounds, ClockReading, Committed, EntryLog as _, Frame, FrameError, HandOver,
    HandOverStep, Member, MemberId, NodeId, Proposed, QuarantineReason, Role, TurnClock,
    TurnResult,
};
use simdisk::{Disk, Random};
use storage::{Applier, EntryIndex, LogEntry, LogError, Term, WriteBatch};

use crate::checks::book::Book;
use crate::checks::ledger::word;
use crate::cluster::placement::Placement;
use crate::cluster::redrive_job::RedriveRun;
use crate::cluster::serving::Serving;
use crate::cluster::sim_log::SimLog;
use crate::cluster::transfer::{Preparation, Prepared};
use crate::faults::sabotage::Sabotage;
use crate::story::Story;

/// Entries from one digest to the next.
const ENTRIES_PER_DIGEST: u32 = 50;

/// Time after which a full disk is tried again, in microseconds.
const FULL_RETRY_US: u64 = 100_000;

/// Ticks that a process takes at once after it has slept.
const TICKS_AT_ONCE_MAX: u32 = 2;

/// The part of the node in the service of the vhost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Service {
    Follows,
    Promotes(Term),
    Leads(Term),
    Deposed,
}

/// A batch of the vhost on its way.
#[derive(Clone, Copy, Debug)]
pub(super) enum Batch {
    None,
    Taken { has_more: bool },
    Proposed { index: EntryIndex, durable: Lsn, has_more: bool },
}

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
    /// Another attempt to write.
    Retry,
    /// Jobs are done.
    Apply,
    /// A turn.
    Advance,
    /// Work of the vhost is due.
    Timer,
    /// Sockets of clients have room.
    Room,
    /// Redrives go on.
    Redrive,
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
    /// The nodes that are to have the replica, as far as the node knows.
    pub(crate) placement: &'a Placement,
}

/// A process.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each notes another thing that is to be done")]
pub(crate) struct Process {
    pub(crate) run: u64,
    pub(crate) member: Member<SimLog>,
    pub(super) applier: Applier<Disk>,
    pub(crate) serving: Serving,
    pub(super) jobs: VecDeque<Job>,
    pub(super) is_applying: bool,
    pub(crate) service: Service,
    /// The last term in which the node served clients; 0 before the first.
    pub(crate) served: u64,
    pub(super) records: WriteBatch,
    pub(super) batch: Batch,
    pub(super) durable: Option<EntryIndex>,
    pub(super) is_dirty: bool,
    pub(super) has_work: bool,
    pub(crate) is_writing: bool,
    /// True time at which the turn began.
    pub(super) turn_us: u64,
    pub(super) is_full: bool,
    pub(super) is_advance_due: bool,
    hand_over: Option<HandOver>,
    /// Files that are being prepared for other nodes, and those that are ready to leave.
    pub(super) preparations: Vec<Preparation>,
    pub(crate) prepared: Vec<Prepared>,
    /// True time at which files were offered to members.
    pub(super) offered: BTreeMap<MemberId, u64>,
    pub(super) looks_at_members: bool,
    /// Redrives that run here.
    pub(super) redrives: Vec<RedriveRun>,
    pub(super) is_redrive_due: bool,
    pub(super) inbox: Vec<Input>,
    pub(crate) bounds: ClockBounds,
    pub(super) shift_us: i64,
    pub(super) entries_to_digest: u32,
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
        serving: Serving,
        bounds: ClockBounds,
        sabotage: Option<Sabotage>,
    ) -> Self {
        let applier = member.log().log.applier();
        Self {
            run,
            member,
            applier,
            serving,
            jobs: VecDeque::new(),
            is_applying: false,
            service: Service::Follows,
            served: 0,
            records: WriteBatch::default(),
            batch: Batch::None,
            durable: None,
            is_dirty: false,
            has_work: true,
            is_writing: false,
            turn_us: 0,
            is_full: false,
            is_advance_due: false,
            hand_over: None,
            preparations: Vec::new(),
            prepared: Vec::new(),
            offered: BTreeMap::new(),
            looks_at_members: false,
            redrives: Vec::new(),
            is_redrive_due: false,
            inbox: Vec::new(),
            bounds,
            shift_us: 0,
            entries_to_digest: ENTRIES_PER_DIGEST,
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

    pub(crate) fn applied(&self) -> EntryIndex {
        self.applier.applied()
    }

    /// True if everything that is committed here is applied.
    pub(crate) fn is_caught_up(&self) -> bool {
        self.jobs.is_empty() && self.applied() == self.member.delivered()
    }

    /// The term in which the node serves clients.
    pub(crate) fn serves(&self) -> Option<u64> {
        match self.service {
            Service::Leads(term) => Some(term.0),
            Service::Deposed if self.sabotage == Some(Sabotage::StaleLeaderServes) => {
                Some(self.member.term().0.saturating_sub(1))
            }
            Service::Follows | Service::Promotes(_) | Service::Deposed => None,
        }
    }

    /// Input of the member.
    pub(crate) fn input(&mut self, input: Input, ctx: &mut Context<'_>) {
        if self.service == Service::Deposed && self.sabotage.is_none() {
            // The replica is being opened anew.
            return;
        }
        // A member whose disk does not answer learns nothing meanwhile.
        if matches!(input, Input::Tick) && !self.is_writing {
            let is_stale = self.serves().is_some_and(|term| term < ctx.book.newest_term);
            self.stale_ticks = if is_stale { self.stale_ticks + 1 } else { 0 };
        }
        self.inbox.push(input);
        if !self.is_writing {
            self.advance(ctx);
        }
    }

    /// A frame to a member was dropped.
    pub(crate) fn link_changed(&mut self, member: MemberId) {
        if self.is_writing {
            self.inbox.push(Input::LinkChanged(member.node()));
        } else {
            self.member.link_lost(member);
        }
    }

    /// True if nothing is under way that goes on with each tick, as the server's replicator sees it.
    fn is_idle(&self) -> bool {
        matches!(self.service, Service::Follows | Service::Leads(_))
            && !self.is_dirty
            && matches!(self.batch, Batch::None)
            && !self.is_full
            && self.hand_over.is_none()
            && self.preparations.is_empty()
    }

    fn members_of(&self, node: NodeId) -> Vec<MemberId> {
        self.members().into_iter().filter(|member| member.node() == node).collect()
    }

    fn take_inbox(&mut self) {
        let mut ticks = 0;
        for input in std::mem::take(&mut self.inbox) {
            self.has_work |= match input {
                Input::Frame(from, frame) => {
                    let received = self.member.receive(from, &frame);
                    if let Err(FrameError::NewerIncarnation { incarnation, .. }) = received {
                        let text = format!("there is an incarnation {incarnation}");
                        self.member.quarantine(QuarantineReason::Diverged(text));
                    }
                    // A frame of another time is refused, as by the server.
                    received.unwrap_or(true)
                }
                Input::Tick if ticks < TICKS_AT_ONCE_MAX => {
                    ticks += 1;
                    let needs_turn = self.member.tick() || !self.is_idle();
                    self.looks_at_members |= needs_turn;
                    needs_turn
                }
                Input::Tick => false,
                Input::LinkChanged(node) => {
                    for member in self.members_of(node) {
                        self.member.link_lost(member);
                    }
                    true
                }
                Input::PeerLost(node) => {
                    for member in self.members_of(node) {
                        self.member.peer_lost(member);
                    }
                    true
                }
            };
        }
    }

    /// After a change of the vhost: the replicator takes the records soon, and the timer is set.
    pub(crate) fn touched(&mut self, ctx: &mut Context<'_>) {
        if std::mem::take(&mut self.serving.wakes) {
            self.is_dirty = true;
            self.has_work = true;
            self.advance_soon(ctx);
        }
        if !self.serving.stalled.is_empty() {
            ctx.later.push((5 + ctx.random.below(200), Later::Room));
        }
        if self.serving.is_frozen {
            return;
        }
        let now = self.now(ctx.reading);
        if let Some(wake) = self.serving.next_wake()
            && wake != Time::MAX
            && self.timer_at.is_none_or(|at| wake < at)
        {
            self.timer_at = Some(wake);
            ctx.later.push((wake.micros_since(now.time) + 1, Later::Timer));
        }
    }

    /// A turn, because something has changed in the member.
    pub(crate) fn turn(&mut self, ctx: &mut Context<'_>) {
        self.has_work = true;
        self.advance(ctx);
    }

    pub(super) fn advance_soon(&mut self, ctx: &mut Context<'_>) {
        if !std::mem::replace(&mut self.is_advance_due, true) {
            ctx.later.push((5 + ctx.random.below(400), Later::Advance));
        }
    }

    /// Does what was put off.
    pub(crate) fn later(&mut self, later: Later, ctx: &mut Context<'_>) {
        match later {
            Later::Written | Later::Retry => self.write(ctx),
            Later::Apply => self.apply(ctx),
            Later::Advance => {
                self.is_advance_due = false;
                self.advance(ctx);
            }
            Later::Timer => {
                self.timer_at = None;
                let now = self.now(ctx.reading);
                self.serving.tick(now);
                self.touched(ctx);
            }
            Later::Room => {
                let now = self.now(ctx.reading);
                self.serving.sockets_have_room(now);
                self.touched(ctx);
            }
            Later::Redrive => self.redrive(ctx),
            Later::Reopen | Later::Exit | Later::Ask | Later::Rebuild => {}
        }
    }

    /// Takes the member through turns until there is nothing to do, or something to write.
    pub(crate) fn advance(&mut self, ctx: &mut Context<'_>) {
        while !self.is_writing {
            if self.service == Service::Deposed
                && self.sabotage != Some(Sabotage::StaleLeaderServes)
            {
                return;
            }
            self.take_inbox();
            self.report_durable(ctx);
            self.propose(ctx);
            self.step_hand_over(ctx);
            self.step_members(ctx);
            if !std::mem::take(&mut self.has_work) {
                return;
            }
            let clock = TurnClock {
                now: ctx.reading,
                wall_after_us: ctx.reading.wall_us,
                bounds: &self.bounds,
            };
            self.turn_us = ctx.now_us;
            if self.member.begin(&clock, ctx.frames) {
                self.is_writing = true;
                let sync_us = 30 + ctx.random.below(ctx.sync_us);
                ctx.later.push((sync_us, Later::Written));
            } else {
                self.end_turn(ctx);
            }
        }
    }

    /// Hands the lead over to another member.
    pub(crate) fn hand_over(&mut self, to: NodeId, ctx: &mut Context<'_>) {
        if self.begin_hand_over(to, ctx) {
            self.turn(ctx);
        }
    }

    /// Begins to hand the lead over to another member; false if that is not possible.
    pub(super) fn begin_hand_over(&mut self, to: NodeId, ctx: &mut Context<'_>) -> bool {
        let to = self.member.members().0.into_iter().find(|voter| voter.node() == to);
        if self.hand_over.is_none()
            && let Some(to) = to
            && let Some(hand_over) = self.member.hand_over(Some(to))
        {
            ctx.story.tell(ctx.now_us, format_args!("node {} hands over to {to}", ctx.number));
            self.hand_over = Some(hand_over);
            self.serving.freeze(self.now(ctx.reading));
            self.touched(ctx);
            self.has_work = true;
            return true;
        }
        false
    }

    fn step_hand_over(&mut self, ctx: &mut Context<'_>) {
        let Some(hand_over) = &mut self.hand_over else { return };
        if !matches!(self.service, Service::Leads(_)) {
            self.hand_over = None;
            return;
        }
        let is_quiet = !self.is_dirty && matches!(self.batch, Batch::None);
        let step = hand_over.step(&mut self.member, is_quiet);
        let now = self.now(ctx.reading);
        match step {
            HandOverStep::Wait => return,
            HandOverStep::KeepLeading => self.serving.write(now, |vhost| vhost.keep_leading(now)),
            HandOverStep::Resume => {
                ctx.story.tell(ctx.now_us, format_args!("node {} goes on", ctx.number));
                self.hand_over = None;
                self.serving.resume(now);
            }
        }
        self.touched(ctx);
    }

    fn propose(&mut self, ctx: &mut Context<'_>) {
        let can_take = matches!(self.service, Service::Leads(_)) && self.is_dirty;
        if can_take && matches!(self.batch, Batch::None) {
            let has_more = self.serving.take_batch(&mut self.records);
            self.is_dirty = false;
            if !self.records.is_empty() {
                self.batch = Batch::Taken { has_more };
            }
        }
        let Batch::Taken { has_more } = self.batch else { return };
        let Some(axis) = self.member.axis() else { return };
        let durable = Lsn(self.records.last().0);
        let axis_us = axis.at(ctx.reading.monotonic_us);
        if let Ok(proposed) = self.member.propose(&mut self.records, axis_us) {
            let (Proposed::Entry(index) | Proposed::Nothing(index)) = proposed;
            if matches!(proposed, Proposed::Entry(_)) {
                let key = (index.0, self.member.term().0);
                ctx.book.ledger.proposed_at.insert(key, ctx.now_us);
            }
            self.records.clear();
            self.durable = None;
            self.batch = Batch::Proposed { index, durable, has_more };
            self.has_work = true;
        }
    }

    fn write(&mut self, ctx: &mut Context<'_>) {
        if !self.is_writing {
            return;
        }
        match self.member.write() {
            Ok(()) => {
                if std::mem::take(&mut self.is_full) {
                    self.member.recovered();
                }
                self.is_writing = false;
                self.end_turn(ctx);
                self.advance(ctx);
            }
            Err(error) if error.is_full() => {
                self.is_full = true;
                self.member.stalled();
                ctx.later.push((FULL_RETRY_US, Later::Retry));
            }
            Err(error) => self.exit(&error, ctx),
        }
    }

    pub(super) fn exit(&mut self, error: &LogError, ctx: &mut Context<'_>) {
        ctx.story.tell(ctx.now_us, format_args!("node {} ends: {error}", ctx.number));
        ctx.later.push((0, Later::Exit));
    }

    fn end_turn(&mut self, ctx: &mut Context<'_>) {
        let result = self.member.end(ctx.frames);
        self.follow(result, ctx);
        self.report_durable(ctx);
    }

    fn follow(&mut self, result: TurnResult, ctx: &mut Context<'_>) {
        let TurnResult {
            role,
            committed,
            durable,
            axis,
            quarantine,
            has_more,
            offer,
            needs_snapshot,
        } = result;
        self.has_work |= has_more;
        self.offer(&needs_snapshot, ctx);
        if offer.is_some() {
            ctx.later.push((ctx.random.below(50_000), Later::Ask));
        }
        if let Some(new) = axis {
            let (term, last) = (self.member.term().0, self.member.last_index().0);
            ctx.book.ledger.proposed_at.insert((last, term), self.turn_us);
            let before = self.member.log().term_of(EntryIndex(last.saturating_sub(1)));
            let continues = match new.origin {
                AxisOrigin::Continued { term } => Some(term),
                AxisOrigin::Log => Some(before.map_or(0, |term| term.0)),
                // The wall clocks may have stepped while the nodes were down.
                AxisOrigin::Restored { .. } | AxisOrigin::WallClocks => None,
            };
            ctx.book.axis(term, continues);
            ctx.story.tell(
                ctx.now_us,
                format_args!("node {} begins term {term}: {:?}", ctx.number, new.origin),
            );
        }
        for Committed { entry, facts } in committed {
            self.committed(entry, facts, ctx);
        }
        if let Some(reason) = quarantine {
            let (QuarantineReason::Damaged(why) | QuarantineReason::Diverged(why)) = reason;
            ctx.story.tell(ctx.now_us, format_args!("node {} is quarantined: {why}", ctx.number));
            if !ctx.is_damaged {
                ctx.book.violation(format!("node {} is quarantined: {why}", ctx.number));
            }
            ctx.later.push((0, Later::Rebuild));
        }
        if durable.is_some() {
            self.durable = durable;
        }
        if let Some(role) = role {
            self.take_role(role, ctx);
        }
        if self.entries_to_digest == 0 && matches!(self.service, Service::Leads(_)) {
            self.entries_to_digest = ENTRIES_PER_DIGEST;
            let now = self.now(ctx.reading);
            self.serving.write(now, |vhost| vhost.log_digest(now));
            self.touched(ctx);
        }
        if self.entries >= 8 {
            self.entries = 0;
            self.care_for_files(ctx);
        }
    }

    fn committed(
        &mut self,
        entry: LogEntry,
        facts: Option<storage::EntryFacts>,
        ctx: &mut Context<'_>,
    ) {
        self.entries += 1;
        self.entries_to_digest = self.entries_to_digest.saturating_sub(1);
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
        match (self.service, facts) {
            // The log is read again when it is opened anew.
            (Service::Deposed, _) => {}
            (Service::Follows | Service::Promotes(_), None) => {
                self.jobs.push_back(Job::Apply(entry));
                self.apply_soon(ctx);
            }
            (_, facts) => {
                self.applier.applied_by_leader(entry.index, &facts.unwrap_or_default());
            }
        }
    }

    fn take_role(&mut self, role: Role, ctx: &mut Context<'_>) {
        ctx.story.tell(ctx.now_us, format_args!("node {} is {role:?}", ctx.number));
        if let Role::Leader { term, .. } = role {
            ctx.book.leads(term.0, ctx.number);
        }
        match (role, self.service) {
            (Role::Leader { term, is_active: true }, Service::Follows) => {
                let Some(axis) = self.member.axis() else { return };
                self.service = Service::Promotes(term);
                self.jobs.push_back(Job::Promote(term, axis.offset_us()));
                self.apply_soon(ctx);
            }
            (Role::Leader { term, .. }, Service::Promotes(of) | Service::Leads(of))
                if term == of => {}
            (_, Service::Promotes(_) | Service::Leads(_)) => {
                ctx.story.tell(ctx.now_us, format_args!("node {} is deposed", ctx.number));
                self.service = Service::Deposed;
                if self.sabotage != Some(Sabotage::StaleLeaderServes) {
                    ctx.later.push((0, Later::Reopen));
                }
            }
            (_, Service::Follows | Service::Deposed) => {}
        }
    }

    fn report_durable(&mut self, ctx: &mut Context<'_>) {
        let Batch::Proposed { index, durable, has_more } = self.batch else { return };
        if !matches!(self.service, Service::Leads(_)) {
            return;
        }
        let is_written =
            self.sabotage == Some(Sabotage::ConfirmAtOwnSync) && !self.has_work && !self.is_writing;
        if !is_written && self.durable.is_none_or(|reached| reached < index) {
            return;
        }
        let now = self.now(ctx.reading);
        self.serving.batch_durable(durable, now);
        self.batch = Batch::None;
        self.is_dirty |= has_more;
        self.has_work |= has_more;
        self.touched(ctx);
        if self.is_dirty {
            self.advance_soon(ctx);
        }
    }
}
