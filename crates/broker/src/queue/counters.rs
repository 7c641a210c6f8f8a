//! What has happened in a queue, counted: every message that entered it is either still there or in
//! exactly one of these counts.

use crate::death_history::DeathReason;

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

/// What clients got, of a queue or on a channel, and what they acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Deliveries {
    /// By `basic.get` or not, without need of an acknowledgement or with.
    handed_out: [[u64; 2]; 2],
    /// Those of messages that had been delivered before.
    pub redelivered: u64,
    /// Messages acknowledged.
    pub acknowledged: u64,
    /// `basic.get`s that found nothing.
    pub got_nothing: u64,
}

impl Deliveries {
    /// Counts a delivery.
    pub(crate) fn count(&mut self, no_ack: bool, by_get: bool, redelivered: bool) {
        self.handed_out[usize::from(by_get)][usize::from(no_ack)] += 1;
        self.redelivered += u64::from(redelivered);
    }

    /// To consumers that acknowledge.
    pub fn delivered(&self) -> u64 {
        self.handed_out[0][0]
    }

    /// To consumers that need not acknowledge.
    pub fn delivered_no_ack(&self) -> u64 {
        self.handed_out[0][1]
    }

    /// Answers to `basic.get` that are acknowledged.
    pub fn got(&self) -> u64 {
        self.handed_out[1][0]
    }

    /// Answers to `basic.get` that need no acknowledgement.
    pub fn got_no_ack(&self) -> u64 {
        self.handed_out[1][1]
    }

    /// All of these, repeated ones included.
    pub fn all(&self) -> u64 {
        self.handed_out.iter().flatten().sum()
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Self) {
        let both = self.handed_out.iter_mut().flatten().zip(other.handed_out.iter().flatten());
        both.for_each(|(count, more)| *count += more);
        self.redelivered += other.redelivered;
        self.acknowledged += other.acknowledged;
        self.got_nothing += other.got_nothing;
    }
}

/// The counts of one queue since it was declared.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct QueueCounters {
    /// Messages that entered the queue, by publish or as dead letters.
    pub entered: u64,
    /// Publishes that were routed here, those included that were refused.
    pub published: u64,
    /// Publishes refused because the queue was full; they never entered.
    pub refused: u64,
    /// Deliveries to consumers and `basic.get`.
    pub deliveries: Deliveries,
    /// Messages purged.
    pub purged: u64,
    /// What became of those that died. Most queues never see a death, so that it costs them nothing.
    deaths: Option<Box<Deaths>>,
}

/// What became of the messages that died in a queue, and of dead ones that were sent back from it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Deaths {
    /// Messages that died and became at least one dead letter.
    pub dead_lettered: ByReason<u64>,
    /// Messages that died and left nothing.
    pub dropped: ByReason<ByCause>,
    /// Dead letters that one of several targets did not take, and publishes that were refused and
    /// dead-lettered to nobody.
    pub copies_dropped: ByCause,
    /// Messages that were redriven from here.
    pub redriven: u64,
}

impl QueueCounters {
    /// These, of a queue just declared or restored in which so many messages wait.
    pub(crate) fn entered(count: u64) -> Self {
        Self { entered: count, ..Self::default() }
    }

    /// What became of the messages that died.
    pub fn deaths(&self) -> Deaths {
        self.deaths.as_deref().copied().unwrap_or_default()
    }

    /// What became of the messages that died, to count some.
    pub(crate) fn deaths_mut(&mut self) -> &mut Deaths {
        self.deaths.get_or_insert_default()
    }

    /// Messages that entered and are not there any more.
    pub fn left(&self) -> u64 {
        let deaths = self.deaths();
        let dead_lettered: u64 = deaths.dead_lettered.all().sum();
        let dropped: u64 = deaths.dropped.all().map(|by_cause| by_cause.total()).sum();
        let Deliveries { acknowledged, .. } = self.deliveries;
        let without_ack = self.deliveries.delivered_no_ack() + self.deliveries.got_no_ack();
        acknowledged + without_ack + dead_lettered + dropped + deaths.redriven + self.purged
    }
}
