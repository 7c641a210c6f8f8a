//! Faults that are put into the cluster on purpose, so that it is seen whether the checks find them.

/// A guard that the simulation leaves out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sabotage {
    /// A batch that the leader has written counts as durable: a majority is not asked.
    ConfirmAtOwnSync,
    /// Answers that wait for the log are sent at once.
    AnswerBeforeDurable,
    /// Deliveries of quorum queues leave at once.
    DeliverBeforeCommit,
    /// A deposed leader sends what it holds.
    SendHeldWhenDeposed,
    /// Syncs of log files do nothing.
    EntriesNotSynced,
    /// Syncs of the hard state do nothing.
    HardStateNotSynced,
    /// A member that starts has forgotten its vote.
    VoteForgotten,
    /// A contradicted end of the log stays.
    TruncationIgnored,
    /// A member that starts applies all entries of its log, committed or not.
    ReplayAboveCommit,
    /// A deposed leader goes on serving clients.
    StaleLeaderServes,
    /// A new leader goes by its wall clock.
    AxisFromWallClock,
    /// A new leader's axis is half a second ahead.
    AxisJumpsAhead,
    /// A replica leaves out a record now and then.
    RecordSkipped,
    /// A replica that becomes the leader does not assume that messages were delivered.
    MarksForgotten,
    /// The leader's dead letters lose the end of their source in the log.
    DeathTorn,
    /// Settlements of clients do not reach the log.
    SettlementLost,
    /// A node that has lost its disk votes as if it had never run.
    LostDiskVotes,
    /// Files of a leader replace entries that are newer.
    NewerEntriesReplaced,
    /// A new leader does not go on with redrives.
    RedriveAbandoned,
    /// A redrive that goes on has forgotten how many messages it may have moved.
    RedriveRestarted,
    /// A member leaves before those vote that come in its place.
    LeaverRemovedEarly,
    /// A leader whose node is not to have the replica any more leads on.
    LeaverKeepsLead,
    /// A node that gets the replica again has the members that it had.
    IncarnationReused,
}

/// All sabotages, with their names.
pub const SABOTAGES: &[(&str, Sabotage)] = &[
    ("confirm-at-own-sync", Sabotage::ConfirmAtOwnSync),
    ("answer-before-durable", Sabotage::AnswerBeforeDurable),
    ("deliver-before-commit", Sabotage::DeliverBeforeCommit),
    ("send-held-when-deposed", Sabotage::SendHeldWhenDeposed),
    ("entries-not-synced", Sabotage::EntriesNotSynced),
    ("hard-state-not-synced", Sabotage::HardStateNotSynced),
    ("vote-forgotten", Sabotage::VoteForgotten),
    ("truncation-ignored", Sabotage::TruncationIgnored),
    ("replay-above-commit", Sabotage::ReplayAboveCommit),
    ("stale-leader-serves", Sabotage::StaleLeaderServes),
    ("axis-from-wall-clock", Sabotage::AxisFromWallClock),
    ("axis-jumps-ahead", Sabotage::AxisJumpsAhead),
    ("record-skipped", Sabotage::RecordSkipped),
    ("marks-forgotten", Sabotage::MarksForgotten),
    ("death-torn", Sabotage::DeathTorn),
    ("settlement-lost", Sabotage::SettlementLost),
    ("lost-disk-votes", Sabotage::LostDiskVotes),
    ("newer-entries-replaced", Sabotage::NewerEntriesReplaced),
    ("redrive-abandoned", Sabotage::RedriveAbandoned),
    ("redrive-restarted", Sabotage::RedriveRestarted),
    ("leaver-removed-early", Sabotage::LeaverRemovedEarly),
    ("leaver-keeps-lead", Sabotage::LeaverKeepsLead),
    ("incarnation-reused", Sabotage::IncarnationReused),
];

impl Sabotage {
    /// The sabotage with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        SABOTAGES.iter().find(|(known, _)| *known == name).map(|(_, sabotage)| *sabotage)
    }

    /// The name of the sabotage.
    #[must_use]
    pub fn name(self) -> &'static str {
        SABOTAGES.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }
}
