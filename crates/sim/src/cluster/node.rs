//! A node: its disk, its clocks, and its process while it runs.

use replica::ShipmentNeed;
use replication::{
    BeginError, ClockBounds, ClockReading, CommitNews, Member, MemberConfig, MemberId,
    QuarantineReason, RunId,
};
use simdisk::{Disk, Random};
use storage::{
    Directory, EntryIndex, Founding, LogEntry, LogOptions, OpenError, ReplicatedLog,
    ReplicatedOptions,
};

use crate::checks::book::Book;
use crate::cluster::content::group_content::GroupContent;
use crate::cluster::content::skipping::Skipping;
use crate::cluster::content::{Content, Restored};
use crate::cluster::ids::{CLUSTER, GROUP, member_id};
use crate::cluster::placement::Placement;
use crate::cluster::process::Process;
use crate::cluster::requests::transfer::Transfer;
use crate::cluster::sim_log::SimLog;
use crate::event::Event;
use crate::faults::sabotage::Sabotage;
use crate::plan::{DRIFT_PPM, Plan};

/// True time at the beginning of a run, in microseconds since 1970.
const EPOCH_US: u64 = 1_700_000_000_000_000;

/// The clocks of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    /// Error of the wall clock, in microseconds.
    pub(crate) error_us: i64,
    /// Rate of both clocks above the true one, in millionths.
    drift_ppm: i64,
    /// True time at which the process began, and its wall clock then.
    began_us: u64,
    anchor_us: u64,
}

impl Clocks {
    fn draw(random: &mut Random) -> Self {
        let error_us = i64::try_from(random.below(120_000_000)).unwrap_or(0) - 60_000_000;
        let drift_ppm = random.below(2 * DRIFT_PPM + 1).cast_signed() - DRIFT_PPM.cast_signed();
        Self { error_us, drift_ppm, began_us: 0, anchor_us: 0 }
    }

    fn wall_us(&self, now_us: u64) -> u64 {
        (EPOCH_US + now_us).saturating_add_signed(self.error_us)
    }

    fn begin(&mut self, now_us: u64) {
        (self.began_us, self.anchor_us) = (now_us, self.wall_us(now_us));
    }

    fn reading(&self, run: u64, now_us: u64) -> ClockReading {
        let age_us = now_us - self.began_us;
        let drift_us = i64::try_from(age_us).unwrap_or(0) * self.drift_ppm / 1_000_000;
        ClockReading {
            run: RunId(run),
            monotonic_us: (self.anchor_us + age_us).saturating_add_signed(drift_us),
            wall_us: self.wall_us(now_us),
        }
    }
}

/// Damage of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Damage {
    None,
    /// A file has rotted.
    Rotten,
    /// The disk is another one, without files.
    Lost,
}

/// A node.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) number: usize,
    /// The member of the group on this node.
    pub(crate) member: MemberId,
    pub(crate) disk: Disk,
    /// The disk that gets the files of a leader, and those that are on their way.
    pub(crate) incoming: Disk,
    pub(crate) transfer: Option<Transfer>,
    pub(crate) clocks: Clocks,
    pub(crate) process: Option<Process>,
    /// True while its process stands still.
    pub(crate) is_paused: bool,
    /// Events that have happened to it meanwhile.
    pub(crate) missed: Vec<Event>,
    /// Longest sync, and the time until which it is so.
    pub(crate) sync_us: (u64, u64),
    /// The time until which an alarm of memory or disk is on.
    pub(crate) alarm_until_us: u64,
    /// The time until which the node is drained.
    pub(crate) drained_until_us: u64,
    /// Damage of its disk since the replica was rebuilt.
    pub(crate) damage: Damage,
    /// True while it asks for files that replace its replica.
    pub(crate) lacks_replica: bool,
    /// True from the first replica on until the group does without it.
    pub(crate) has_replica: bool,
    /// The nodes that are to have the replica, as far as this node knows.
    pub(crate) placement: Placement,
    sabotage: Option<Sabotage>,
}

/// A process that goes on with a replica that is opened anew.
#[derive(Debug)]
pub(crate) struct GoesOn {
    pub(crate) run: u64,
    pub(crate) bounds: ClockBounds,
    /// The content before, which was given up.
    pub(crate) content: Content,
}

/// The reason why a process does not begin.
#[derive(Debug)]
pub(crate) enum StartError {
    Log(OpenError),
    Member(BeginError),
}

impl Node {
    pub(crate) fn new(
        number: usize,
        placement: Placement,
        sabotage: Option<Sabotage>,
        random: &mut Random,
    ) -> Self {
        let disk = Disk::new();
        match sabotage {
            Some(Sabotage::EntriesNotSynced) => {
                disk.lie_about(Some(|name| name.ends_with(".log")));
            }
            Some(Sabotage::HardStateNotSynced) => disk.lie_about(Some(|name| name == "raft")),
            _ => {}
        }
        Self {
            number,
            member: member_id(number),
            disk,
            incoming: Disk::new(),
            transfer: None,
            clocks: Clocks::draw(random),
            process: None,
            is_paused: false,
            missed: Vec::new(),
            sync_us: (0, 0),
            alarm_until_us: 0,
            drained_until_us: 0,
            damage: Damage::None,
            lacks_replica: false,
            has_replica: placement.has(number),
            placement,
            sabotage,
        }
    }

    pub(crate) fn reading(&self, now_us: u64) -> ClockReading {
        let run = self.process.as_ref().map_or(0, |process| process.run);
        self.clocks.reading(run, now_us)
    }

    /// True if files would be of use.
    pub(crate) fn needs(&self, need: ShipmentNeed) -> bool {
        match need {
            ShipmentNeed::Behind => self.process.is_some(),
            ShipmentNeed::Replacement => self.lacks_replica,
        }
    }

    /// Longest sync at this time, in microseconds.
    pub(crate) fn longest_sync_us(&self, now_us: u64) -> u64 {
        let (sync_us, until_us) = self.sync_us;
        if now_us < until_us { sync_us } else { 2_000 }
    }

    /// Begins the process, or opens the replica anew in one that goes on.
    ///
    /// # Errors
    /// [`StartError`].
    pub(crate) fn start(
        &mut self,
        plan: &Plan,
        goes_on: Option<GoesOn>,
        book: &mut Book,
        random: &mut Random,
        now_us: u64,
    ) -> Result<(), StartError> {
        let is_new = goes_on.is_none();
        let (run, bounds, before) = match goes_on {
            Some(GoesOn { run, bounds, content }) => (run, bounds, Some(content)),
            None => (random.next() >> 2, ClockBounds::default(), None),
        };
        let mut skipping = Skipping::new(self.sabotage == Some(Sabotage::RecordSkipped));
        let mut restored = Restored::new(plan.content, random);
        let mut fault = None;
        let mut each = |record: storage::Record<'_>, references: &mut storage::References<'_>| {
            if skipping.skips() {
                return;
            }
            if let Err(problem) = restored.apply(&record, references) {
                fault.get_or_insert_with(|| format!("record {}: {problem}", record.lsn));
            }
        };
        let options = options(self.member, plan);
        let opened = ReplicatedLog::open(self.disk.clone(), options, &mut each, &mut |_| {});
        let (log, report) = opened.map_err(StartError::Log)?;
        if let Some(damage) = report.damages.first() {
            fault.get_or_insert_with(|| damage.to_string());
        }
        let applier = log.applier();
        let (applied, position) = (applier.applied().0, applier.applied_position());
        if let Err(divergence) = restored.follow(position) {
            fault.get_or_insert(divergence);
        }
        if fault.is_none() {
            // A member saves that an entry is committed before it tells of the entry: the power went, or the disk was
            // full, between the two.
            for entry in entries_between(&log, book.ledger.len(), applied) {
                let root = book.root_of(entry.term.0);
                book.ledger.committed(self.number, &entry, root);
            }
            book.ledger.compare(self.number, applied, restored.state(), "as its log says");
            book.look_at_ledger();
        }
        let log = SimLog::new(log, self.sabotage);
        let config = MemberConfig {
            cluster: CLUSTER,
            group: GROUP,
            me: self.member,
            seed: random.next(),
            tells_commits: match plan.content {
                GroupContent::Vhost => CommitNews::AtTick,
                GroupContent::Metadata => CommitNews::AtOnce,
            },
        };
        let mut member = Member::open(config, log).map_err(StartError::Member)?;
        let is_damaged = fault.is_some();
        if let Some(fault) = fault {
            member.quarantine(QuarantineReason::Damaged(fault));
        }
        let content = restored.serve((position, is_damaged), skipping, before, plan, self.sabotage);
        let mut process = Process::new(run, member, content, bounds, self.sabotage);
        if self.sabotage == Some(Sabotage::ReplayAboveCommit) {
            process.apply_ahead();
        }
        self.process = Some(process);
        if is_new {
            self.clocks.begin(now_us);
        }
        Ok(())
    }
}

/// The entries behind `before` up to `last`, if the log has all of them.
fn entries_between<D: Directory>(log: &ReplicatedLog<D>, before: u64, last: u64) -> Vec<LogEntry> {
    let (from, to) = (EntryIndex(before + 1), EntryIndex(last + 1));
    if to <= from { Vec::new() } else { log.entries(from, to, usize::MAX).unwrap_or_default() }
}

fn options(member: MemberId, plan: &Plan) -> ReplicatedOptions {
    ReplicatedOptions {
        log: LogOptions {
            log_id: GROUP.0,
            segment_bytes_min: 8 * 1024,
            segment_bytes_max: 32 * 1024,
            ..LogOptions::default()
        },
        cluster_id: CLUSTER.0,
        member_id: member.get(),
        founding: Some(Founding {
            voters: (0..plan.nodes).map(|node| member_id(node).get()).collect(),
            ..Founding::default()
        }),
        tail_bytes_max: 16 * 1024,
        retention_bytes: plan.retention_bytes,
    }
}
