//! What has happened in a queue, counted: every message that entered it is either still there or in
//! exactly one of these counts.

use crate::dead_letter::DeathReason;

/// Why a dying message left without a dead letter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DropCause {
    /// The queue has no dead-letter exchange.
    NoDeadLetterExchange,
    /// The dead-letter exchange does not exist.
    ExchangeMissing,
    /// The dead-letter exchange routed it nowhere.
    Unroutable,
    /// Every target would have been a cycle.
    Cycle,
    /// Every target was full and refuses publishes.
    TargetFull,
}

impl DropCause {
    /// All causes, in the order counters list them.
    pub const ALL: [Self; 5] = [
        Self::NoDeadLetterExchange,
        Self::ExchangeMissing,
        Self::Unroutable,
        Self::Cycle,
        Self::TargetFull,
    ];

    /// The word in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoDeadLetterExchange => "no_dead_letter_exchange",
            Self::ExchangeMissing => "exchange_missing",
            Self::Unroutable => "unroutable",
            Self::Cycle => "cycle",
            Self::TargetFull => "target_full",
        }
    }
}

/// Counts by reason of death.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ByReason<T>([T; DeathReason::ALL.len()]);

impl<T: Copy> ByReason<T> {
    /// The count for one reason.
    pub fn get(&self, reason: DeathReason) -> T {
        self.0[reason as usize]
    }

    /// The count for one reason, to change it.
    pub fn get_mut(&mut self, reason: DeathReason) -> &mut T {
        &mut self.0[reason as usize]
    }

    fn all(&self) -> impl Iterator<Item = T> {
        self.0.into_iter()
    }
}

/// Counts by cause of a drop.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ByCause([u64; DropCause::ALL.len()]);

impl ByCause {
    /// The count for one cause.
    pub fn get(&self, cause: DropCause) -> u64 {
        self.0[cause as usize]
    }

    /// Counts some more.
    pub(crate) fn count(&mut self, cause: DropCause, count: u64) {
        self.0[cause as usize] += count;
    }

    /// The sum over all causes.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// The counts of one queue since it was declared.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct QueueCounters {
    /// Messages that entered the queue, by publish or as dead letters.
    pub entered: u64,
    /// Publishes refused because the queue was full; they never entered.
    pub refused: u64,
    /// Deliveries to consumers and `basic.get`, repeated ones included.
    pub delivered: u64,
    /// Deliveries of messages that had been delivered before.
    pub redelivered: u64,
    /// Messages acknowledged by a client.
    pub acknowledged: u64,
    /// Messages delivered without need of an acknowledgement.
    pub auto_acknowledged: u64,
    /// Those of all deliveries that answered a `basic.get`.
    pub got: u64,
    /// Those of them that needed no acknowledgement.
    pub got_auto_acknowledged: u64,
    /// Messages that died and became at least one dead letter.
    pub dead_lettered: ByReason<u64>,
    /// Messages that died and left nothing.
    pub dropped: ByReason<ByCause>,
    /// Dead letters that one of several targets did not take, and publishes that were refused and
    /// dead-lettered to nobody.
    pub copies_dropped: ByCause,
    /// Messages purged.
    pub purged: u64,
}

impl QueueCounters {
    /// Messages that entered and are not there any more.
    pub fn left(&self) -> u64 {
        let dead_lettered: u64 = self.dead_lettered.all().sum();
        let dropped: u64 = self.dropped.all().map(|by_cause| by_cause.total()).sum();
        self.acknowledged + self.auto_acknowledged + dead_lettered + dropped + self.purged
    }
}
