//! Event counters of a queue: every message that entered the queue is either still in it or in exactly one of
//! these counts.

use crate::death_history::DeathReason;

/// The cause for which a dying message left no dead letter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DropCause {
    /// The queue has no dead-letter exchange.
    NoDeadLetterExchange,
    /// The dead-letter exchange does not exist.
    ExchangeMissing,
    /// The dead-letter exchange routed the dead letter to no queue.
    Unroutable,
    /// Every target queue would have closed a cycle.
    Cycle,
    /// Every target queue was full and refuses publishes.
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

    /// The label in metrics.
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

    /// Mutable access to the count for one reason.
    pub fn get_mut(&mut self, reason: DeathReason) -> &mut T {
        &mut self.0[reason as usize]
    }

    /// Each reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (DeathReason, T)> {
        DeathReason::ALL.into_iter().zip(self.0)
    }

    fn counts(&self) -> impl Iterator<Item = T> {
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

    /// Adds `count` to the count for a cause.
    pub(crate) fn count(&mut self, cause: DropCause, count: u64) {
        self.0[cause as usize] += count;
    }

    /// The sum over all causes.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Deliveries and acknowledgements of a queue or a channel.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Deliveries {
    /// Deliveries by `basic.get` (1) or consumer (0), then by no-ack (1) or not (0).
    handed_out: [[u64; 2]; 2],
    /// Deliveries of messages that had been delivered before.
    pub redelivered: u64,
    /// Messages acknowledged.
    pub acknowledged: u64,
    /// `basic.get` commands that found no message.
    pub got_nothing: u64,
}

impl Deliveries {
    /// Counts a delivery.
    pub(crate) fn count(&mut self, no_ack: bool, by_get: bool, redelivered: bool) {
        self.handed_out[usize::from(by_get)][usize::from(no_ack)] += 1;
        self.redelivered += u64::from(redelivered);
    }

    /// Deliveries to consumers that acknowledge.
    pub fn delivered(&self) -> u64 {
        self.handed_out[0][0]
    }

    /// Deliveries to consumers in no-ack mode.
    pub fn delivered_no_ack(&self) -> u64 {
        self.handed_out[0][1]
    }

    /// Messages taken with `basic.get` that need an acknowledgement.
    pub fn got(&self) -> u64 {
        self.handed_out[1][0]
    }

    /// Messages taken with `basic.get` in no-ack mode.
    pub fn got_no_ack(&self) -> u64 {
        self.handed_out[1][1]
    }

    /// All deliveries, redeliveries included.
    pub fn all(&self) -> u64 {
        self.handed_out.iter().flatten().sum()
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        let both = self.handed_out.iter_mut().flatten().zip(other.handed_out.iter().flatten());
        both.for_each(|(count, more)| *count += more);
        self.redelivered += other.redelivered;
        self.acknowledged += other.acknowledged;
        self.got_nothing += other.got_nothing;
    }
}

/// Counters of one queue since its declaration.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct QueueCounters {
    /// Messages that entered the queue, as publishes or as dead letters.
    pub entered: u64,
    /// Publishes routed to the queue, including refused ones.
    pub published: u64,
    /// Publishes refused because the queue was full; they never entered the queue.
    pub refused: u64,
    /// Deliveries to consumers and `basic.get`.
    pub deliveries: Deliveries,
    /// Messages removed by purges.
    pub purged: u64,
    /// Counters of messages that died. Boxed, because most queues never have a death.
    deaths: Option<Box<DeathCounters>>,
}

/// Counters of the messages that died in a queue, that were redriven from it, and that were cancelled in it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DeathCounters {
    /// Messages that died and became at least one dead letter.
    pub dead_lettered: ByReason<u64>,
    /// Messages that died without becoming a dead letter.
    pub dropped: ByReason<ByCause>,
    /// Copies of dead letters that one of several targets did not accept, and refused publishes that could
    /// not be dead-lettered.
    pub copies_dropped: ByCause,
    /// Messages redriven from this queue.
    pub redriven: u64,
    /// Messages that were cancelled or replaced before their delivery time.
    pub cancelled: u64,
}

impl QueueCounters {
    /// Counters of a queue that is new or restored with `count` messages in it.
    pub(crate) fn entered(count: u64) -> Self {
        Self { entered: count, ..Self::default() }
    }

    /// Counters of messages that died.
    pub fn deaths(&self) -> DeathCounters {
        self.deaths.as_deref().copied().unwrap_or_default()
    }

    /// Mutable counters of messages that died.
    pub(crate) fn deaths_mut(&mut self) -> &mut DeathCounters {
        self.deaths.get_or_insert_default()
    }

    /// Messages that entered the queue and have left it.
    pub fn left(&self) -> u64 {
        let deaths = self.deaths();
        let dead_lettered: u64 = deaths.dead_lettered.counts().sum();
        let dropped: u64 = deaths.dropped.counts().map(|by_cause| by_cause.total()).sum();
        let Deliveries { acknowledged, .. } = self.deliveries;
        let without_ack = self.deliveries.delivered_no_ack() + self.deliveries.got_no_ack();
        let removed = deaths.redriven + deaths.cancelled + self.purged;
        acknowledged + without_ack + dead_lettered + dropped + removed
    }
}
