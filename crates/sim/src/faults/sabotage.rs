//! Faults that are put into the cluster on purpose, so that it is seen whether the checks find them.

use crate::cluster::content::group_content::GroupContent;

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
    /// A leader says that it delivers nothing more, and does.
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
    /// A barrier is answered with an entry that is there already.
    BarrierEarly,
    /// A batch of the vhost is taken and not proposed, now and then.
    BatchLost,
    /// The vhost is told that a majority has everything once it has a batch.
    DurableAhead,
    /// The vhost is not told what a majority has.
    DurableWithheld,
    /// A replica that must not be used any more is not rebuilt.
    RebuildWithheld,
    /// A member that is offered files does not ask for them.
    OfferIgnored,
    /// A new leader takes the clock of its node for the axis.
    AxisShiftIgnored,
    /// The vhost does not hear that a batch without records is on a majority, which holds up all others.
    EmptyBatchWithheld,
    /// Messages that were read from a page do not reach the vhost, now and then.
    PageReadLost,
    /// Answers that wait for the log never come.
    AnswerWithheld,
    /// Deliveries leave twice.
    DeliveryDoubled,
    /// Deliveries leave without the mark that the message was delivered before.
    MarkErased,
    /// Purges do not reach the log.
    PurgeLost,
    /// Marks of deliveries do not reach the log.
    MarkLost,
    /// Policies do not reach the log.
    PolicyLost,
    /// The timer of a vhost does nothing.
    TickWithheld,
    /// A replica is not made the vhost of a leader.
    PromotionWithheld,
    /// A vhost whose lead was not handed over does not go on.
    ResumeWithheld,
    /// The lock of a leader's vhost is held for ever.
    LockHeld,
    /// The replica does not hear of new records, now and then.
    WriterNotWoken,
    /// The work on pages does not hear of new tasks, now and then.
    PagerNotWoken,
    /// A redrive that is over stays in the log.
    RedriveNotCleared,
    /// The vhost does not hear that an alarm is over.
    AlarmEndWithheld,
    /// Operations on messages that wait are answered at once.
    OperationAnsweredEarly,
    /// A new leader forgets a message that waits.
    ScheduleForgotten,
    /// New delivery times do not reach the log.
    RescheduleLost,
    /// A message that is replaced stays in the log.
    ReplacementTorn,
    /// Metadata and notices that only newer versions read are written before the level has risen.
    NewerBeforeRisen,
    /// Nodes accept peers that read less than the cluster has.
    OlderPeerAccepted,
    /// The level rises although a node is not connected.
    LevelRisenEarly,
    /// The level does not rise.
    LevelWithheld,
    /// An entry node closes a client within a frame.
    RelayCloseWithinFrame,
    /// The end of a leader's stream is passed on before the octets ahead of it.
    RelayEndOvertakes,
    /// An entry node does not notice that the leader was replaced.
    RelayKeepsLeader,
    /// The end of a client is not passed on to the leader.
    RelayClientEndLost,
    /// A node that does not lead is taken for one that has adopted the client.
    NotLeadingAdopted,
    /// A change of the metadata is answered once it has its records.
    ChangeAnsweredEarly,
    /// A change of the metadata that a lost lead leaves open is answered as a made one.
    LostChangeAnswered,
    /// A change of the metadata that is refused is made when the node leads the next time.
    RefusedChangeKept,
    /// Changes of the metadata are made while the lead is handed over.
    ChangedWhileHandingOver,
    /// A new leader of the metadata does not begin with a digest.
    FirstDigestLost,
    /// The metadata begin without items after their log was read.
    ItemsNotRestored,
    /// The metadata of a damaged log are shown as if they were whole.
    DamagedItemsShown,
    /// Items are shown as committed ones while a majority does not have them.
    UncommittedShown,
}

/// All sabotages, with their names, and the first seed with which the checks see each.
pub const SABOTAGES: &[(&str, Sabotage, u64)] = &[
    ("confirm-at-own-sync", Sabotage::ConfirmAtOwnSync, 0),
    ("answer-before-durable", Sabotage::AnswerBeforeDurable, 1),
    ("deliver-before-commit", Sabotage::DeliverBeforeCommit, 0),
    ("send-held-when-deposed", Sabotage::SendHeldWhenDeposed, 14),
    ("entries-not-synced", Sabotage::EntriesNotSynced, 2),
    ("hard-state-not-synced", Sabotage::HardStateNotSynced, 12),
    ("vote-forgotten", Sabotage::VoteForgotten, 0),
    ("truncation-ignored", Sabotage::TruncationIgnored, 2),
    ("replay-above-commit", Sabotage::ReplayAboveCommit, 2),
    ("stale-leader-serves", Sabotage::StaleLeaderServes, 2),
    ("axis-from-wall-clock", Sabotage::AxisFromWallClock, 1),
    ("axis-jumps-ahead", Sabotage::AxisJumpsAhead, 0),
    ("record-skipped", Sabotage::RecordSkipped, 0),
    ("marks-forgotten", Sabotage::MarksForgotten, 17),
    ("death-torn", Sabotage::DeathTorn, 0),
    ("settlement-lost", Sabotage::SettlementLost, 0),
    ("lost-disk-votes", Sabotage::LostDiskVotes, 0),
    ("newer-entries-replaced", Sabotage::NewerEntriesReplaced, 10),
    ("redrive-abandoned", Sabotage::RedriveAbandoned, 2),
    ("redrive-restarted", Sabotage::RedriveRestarted, 2),
    ("leaver-removed-early", Sabotage::LeaverRemovedEarly, 17),
    ("leaver-keeps-lead", Sabotage::LeaverKeepsLead, 29),
    ("incarnation-reused", Sabotage::IncarnationReused, 9),
    ("barrier-early", Sabotage::BarrierEarly, 0),
    ("batch-lost", Sabotage::BatchLost, 0),
    ("durable-ahead", Sabotage::DurableAhead, 0),
    ("durable-withheld", Sabotage::DurableWithheld, 0),
    ("rebuild-withheld", Sabotage::RebuildWithheld, 3),
    ("offer-ignored", Sabotage::OfferIgnored, 10),
    ("axis-shift-ignored", Sabotage::AxisShiftIgnored, 1),
    ("empty-batch-withheld", Sabotage::EmptyBatchWithheld, 10),
    ("page-read-lost", Sabotage::PageReadLost, 0),
    ("answer-withheld", Sabotage::AnswerWithheld, 10),
    ("delivery-doubled", Sabotage::DeliveryDoubled, 0),
    ("mark-erased", Sabotage::MarkErased, 0),
    ("purge-lost", Sabotage::PurgeLost, 1),
    ("mark-lost", Sabotage::MarkLost, 0),
    ("policy-lost", Sabotage::PolicyLost, 0),
    ("tick-withheld", Sabotage::TickWithheld, 0),
    ("promotion-withheld", Sabotage::PromotionWithheld, 0),
    ("resume-withheld", Sabotage::ResumeWithheld, 54),
    ("lock-held", Sabotage::LockHeld, 0),
    ("writer-not-woken", Sabotage::WriterNotWoken, 1),
    ("pager-not-woken", Sabotage::PagerNotWoken, 0),
    ("redrive-not-cleared", Sabotage::RedriveNotCleared, 0),
    ("alarm-end-withheld", Sabotage::AlarmEndWithheld, 4),
    ("operation-answered-early", Sabotage::OperationAnsweredEarly, 1),
    ("schedule-forgotten", Sabotage::ScheduleForgotten, 1),
    ("reschedule-lost", Sabotage::RescheduleLost, 1),
    ("replacement-torn", Sabotage::ReplacementTorn, 1),
    ("newer-before-risen", Sabotage::NewerBeforeRisen, 1),
    ("older-peer-accepted", Sabotage::OlderPeerAccepted, 348),
    ("level-risen-early", Sabotage::LevelRisenEarly, 5),
    ("level-withheld", Sabotage::LevelWithheld, 1),
    ("relay-close-within-frame", Sabotage::RelayCloseWithinFrame, 30),
    ("relay-end-overtakes", Sabotage::RelayEndOvertakes, 3),
    ("relay-keeps-leader", Sabotage::RelayKeepsLeader, 6),
    ("relay-client-end-lost", Sabotage::RelayClientEndLost, 0),
    ("not-leading-adopted", Sabotage::NotLeadingAdopted, 29),
    ("change-answered-early", Sabotage::ChangeAnsweredEarly, 7),
    ("lost-change-answered", Sabotage::LostChangeAnswered, 7),
    ("refused-change-kept", Sabotage::RefusedChangeKept, 7),
    ("changed-while-handing-over", Sabotage::ChangedWhileHandingOver, 71),
    ("first-digest-lost", Sabotage::FirstDigestLost, 7),
    ("items-not-restored", Sabotage::ItemsNotRestored, 7),
    ("damaged-items-shown", Sabotage::DamagedItemsShown, 455),
    ("uncommitted-shown", Sabotage::UncommittedShown, 7),
];

impl Sabotage {
    /// True if it shows only where clients connect to any node.
    pub(crate) fn needs_relays(self) -> bool {
        matches!(
            self,
            Self::RelayCloseWithinFrame
                | Self::RelayEndOvertakes
                | Self::RelayKeepsLeader
                | Self::RelayClientEndLost
                | Self::NotLeadingAdopted
        )
    }

    /// The sabotage with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        SABOTAGES.iter().find(|(known, ..)| *known == name).map(|(_, sabotage, _)| *sabotage)
    }

    /// True if the checks can see it in a run of this seed: it is one of the metadata, or one of what vhosts do.
    #[must_use]
    pub fn shows_with(self, seed: u64) -> bool {
        let of = match self {
            Self::ChangeAnsweredEarly
            | Self::LostChangeAnswered
            | Self::RefusedChangeKept
            | Self::ChangedWhileHandingOver
            | Self::FirstDigestLost
            | Self::ItemsNotRestored
            | Self::DamagedItemsShown
            | Self::UncommittedShown => GroupContent::Metadata,
            _ => GroupContent::Vhost,
        };
        GroupContent::of(seed) == of
    }

    /// The name of the sabotage.
    #[must_use]
    pub fn name(self) -> &'static str {
        SABOTAGES.iter().find(|(_, known, _)| *known == self).map_or("", |(name, ..)| name)
    }
}
