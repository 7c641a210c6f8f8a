//! The history of dead letters of a vhost: a queue of deaths with a limit of entries, bytes and age.
//!
//! A death adds one entry to the buffer. Consecutive deaths with the same circumstances share them, and the properties
//! are those of the dead letter, so that most deaths allocate nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use amqp::properties::Properties;
use amqp::table::TableBuilder;

use super::recorded_death::{
    DeadLetterHistoryLimits, DeathCircumstances, KeptProperties, RecordedDeath, RecordedDeaths,
    RestoredDeath, SettledBy,
};
use crate::channel_key::ChannelKey;
use crate::death_headers::is_death_header;
use crate::ids::{ConsumerId, QueueId};
use crate::limits::{
    DEATH_HEADERS_BYTES_MAX, DEATH_HEADERS_EXAMINED_MAX, DEATH_MESSAGE_BYTES_MAX,
    DEATH_PROPERTIES_BYTES_MAX,
};
use crate::message::{Message, SharedProperties};
use crate::time::{Now, Time};
use crate::timers::{Timers, Wake};

/// The history of dead letters of a vhost.
#[derive(Debug)]
pub(crate) struct DeathLedger {
    limits: DeadLetterHistoryLimits,
    /// Deaths, the oldest first; the numbers have no gaps.
    kept: VecDeque<KeptDeath>,
    /// The circumstances of the deaths, each from the death with this number to that of the next entry.
    runs: VecDeque<(u64, Arc<DeathCircumstances>)>,
    /// True if the next death cannot have the circumstances of the last one.
    begins_run: bool,
    /// Memory of `kept` and `runs`.
    bytes: u64,
    /// Deaths that were forgotten.
    forgotten: u64,
    /// Time of the last death that was forgotten, in milliseconds since the Unix epoch.
    forgotten_until_ms: Option<u64>,
    /// The wake-up that the timers hold for the age of the oldest death.
    armed: Option<Time>,
    /// The last settlement that ended a message.
    last_settler: Option<(QueueId, Settler, Arc<SettledBy>)>,
    /// The last properties that were cut, and the result.
    last_cut: Option<(SharedProperties, SharedProperties)>,
}

/// A death in the history.
#[derive(Debug)]
struct KeptDeath {
    at: Time,
    time_ms: u64,
    properties: KeptProperties,
}

impl KeptDeath {
    /// Memory of the death besides its circumstances, in bytes; shared properties count for each death.
    #[inline]
    fn memory_bytes(&self) -> u64 {
        size_of::<Self>() as u64 + self.properties.memory_bytes()
    }
}

/// The client whose settlement ends a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Settler {
    pub(crate) at: ChannelKey,
    pub(crate) consumer: Option<ConsumerId>,
}

impl DeathLedger {
    /// Creates an empty history.
    pub(crate) fn new(limits: DeadLetterHistoryLimits) -> Self {
        Self {
            limits,
            kept: VecDeque::new(),
            runs: VecDeque::new(),
            begins_run: false,
            bytes: 0,
            forgotten: 0,
            forgotten_until_ms: None,
            armed: None,
            last_settler: None,
            last_cut: None,
        }
    }

    /// True if deaths are kept.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.limits.entries_max > 0
    }

    /// The circumstances of the last death, unless they have changed since.
    #[inline]
    pub(crate) fn last(&self) -> Option<&DeathCircumstances> {
        if self.begins_run {
            return None;
        }
        self.runs.back().map(|(_, circumstances)| &**circumstances)
    }

    /// The number of the last death; 0 before the first.
    pub(crate) fn last_number(&self) -> u64 {
        self.forgotten + self.kept.len() as u64
    }

    /// Notes that policies have changed, which the circumstances of a death name.
    pub(crate) fn policies_changed(&mut self) {
        self.begins_run = true;
    }

    /// Sets the circumstances of the deaths that follow.
    pub(crate) fn begin_run(&mut self, circumstances: DeathCircumstances) {
        self.begins_run = false;
        self.bytes += circumstances.memory_bytes();
        let number = self.forgotten + self.kept.len() as u64 + 1;
        self.runs.push_back((number, Arc::new(circumstances)));
    }

    /// Adds a death at the end, and forgets the oldest deaths above the limits.
    #[inline]
    pub(crate) fn push(&mut self, now: Now, time_ms: u64, properties: KeptProperties) {
        let death = KeptDeath { at: now.time, time_ms, properties };
        self.bytes += death.memory_bytes();
        self.kept.push_back(death);
        while !self.kept.is_empty()
            && (self.kept.len() as u64 > self.limits.entries_max
                || self.bytes > self.limits.bytes_max)
        {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        let Some(death) = self.kept.pop_front() else { return };
        self.bytes -= death.memory_bytes();
        self.forgotten += 1;
        self.forgotten_until_ms = self.forgotten_until_ms.max(Some(death.time_ms));
        let is_over = match self.runs.get(1) {
            Some((number, _)) => *number == self.forgotten + 1,
            None => self.kept.is_empty(),
        };
        if is_over && let Some((_, circumstances)) = self.runs.pop_front() {
            self.bytes -= circumstances.memory_bytes();
        }
    }

    // ---- age ----

    /// Arms the timer for the end of the oldest death.
    #[inline]
    pub(crate) fn arm(&mut self, timers: &mut Timers) {
        if self.armed.is_none()
            && let Some(first) = self.kept.front()
        {
            let end = first.at.plus_ms(self.limits.age_max_ms);
            timers.arm(&mut self.armed, end, Wake::DeadLetterHistory);
        }
    }

    /// The armed wake-up; for checks.
    #[inline]
    pub(crate) fn armed(&self) -> Option<Time> {
        self.armed
    }

    /// Forgets up to `budget` deaths whose time is over, because the timer has fired; returns their number.
    pub(crate) fn forget_old(&mut self, now: Time, budget: usize) -> usize {
        self.armed = None;
        let mut forgotten = 0;
        while forgotten < budget
            && let Some(first) = self.kept.front()
            && first.at.plus_ms(self.limits.age_max_ms) <= now
        {
            self.forget_first();
            forgotten += 1;
        }
        if self.kept.is_empty() {
            (self.kept, self.runs) = Default::default();
        }
        forgotten
    }

    // ---- settlements ----

    /// The client of a settlement, if it is the same as that of the last settlement.
    #[inline]
    pub(crate) fn known_settler(&self, queue: QueueId, settler: Settler) -> Option<Arc<SettledBy>> {
        let (last_queue, last, settled_by) = self.last_settler.as_ref()?;
        (*last_queue == queue && *last == settler).then(|| Arc::clone(settled_by))
    }

    /// Remembers the client of a settlement.
    pub(crate) fn remember_settler(
        &mut self,
        queue: QueueId,
        settler: Settler,
        settled_by: SettledBy,
    ) -> Arc<SettledBy> {
        let settled_by = Arc::new(settled_by);
        self.last_settler = Some((queue, settler, Arc::clone(&settled_by)));
        settled_by
    }

    // ---- properties ----

    /// The properties of a dead message: those of its dead letter, or else its own.
    #[inline]
    pub(crate) fn properties_of(
        &mut self,
        message: &Message,
        letter: Option<&Message>,
    ) -> KeptProperties {
        if let Some(properties) = letter.unwrap_or(message).shared_properties() {
            if properties.encoded().len() <= DEATH_PROPERTIES_BYTES_MAX {
                return KeptProperties::Whole(properties.clone());
            }
            return KeptProperties::Cut(self.cut(properties));
        }
        let properties = message.properties();
        if message.memory_bytes() <= DEATH_MESSAGE_BYTES_MAX {
            return KeptProperties::Message(message.clone());
        }
        if properties.len() <= DEATH_PROPERTIES_BYTES_MAX {
            return KeptProperties::Whole(SharedProperties::new(properties));
        }
        KeptProperties::Cut(SharedProperties::new(&without_long_headers(properties)))
    }

    /// Messages that died together share the result as they share their properties.
    #[cold]
    fn cut(&mut self, properties: &SharedProperties) -> SharedProperties {
        if let Some((whole, cut)) = &self.last_cut
            && whole.is_same_allocation(properties)
        {
            return cut.clone();
        }
        let cut = SharedProperties::new(&without_long_headers(properties.encoded()));
        self.last_cut = Some((properties.clone(), cut.clone()));
        cut
    }

    // ---- deaths of an earlier process ----

    /// Adds a death of an earlier process at the end; none is older than those before. Deaths whose time is over are
    /// only counted.
    pub(crate) fn restore(&mut self, now: Now, death: RestoredDeath) {
        let RestoredDeath { time_ms, circumstances, properties, is_cut } = death;
        // It is unknown how many deaths came before the first of them.
        self.forgotten_until_ms.get_or_insert(time_ms);
        let at = now.time.minus_ms(now.wall_ms().saturating_sub(time_ms));
        if self.last() != Some(&circumstances) {
            self.begin_run(circumstances);
        }
        let properties = match (properties.is_empty(), is_cut) {
            (true, _) => KeptProperties::Nothing,
            (false, false) => KeptProperties::Whole(SharedProperties::new(&properties)),
            (false, true) => KeptProperties::Cut(SharedProperties::new(&properties)),
        };
        self.push(Now { time: at, ..now }, time_ms, properties);
    }

    /// Up to `count` deaths with numbers above `number`, the oldest first.
    pub(crate) fn read_after(&self, number: u64, count: usize) -> Vec<RecordedDeath> {
        let passed = usize::try_from(number.saturating_sub(self.forgotten)).unwrap_or(usize::MAX);
        let end = passed.saturating_add(count).min(self.kept.len());
        let mut deaths = self.collect(passed.min(end), end);
        deaths.reverse();
        deaths
    }

    // ---- reading ----

    /// Up to `count` deaths with numbers below `before`, the latest first, and none whose time is over.
    pub(crate) fn read(&self, now: Time, before: Option<u64>, count: usize) -> RecordedDeaths {
        let first = self.forgotten + 1;
        let end = (first + self.kept.len() as u64).min(before.unwrap_or(u64::MAX)).max(first);
        let below = usize::try_from(end - first).expect("a length in memory");
        let from = below.saturating_sub(count);
        let mut deaths = self.collect(from, below);
        // Those whose time is over are the last of them.
        let is_kept = |number: u64| {
            let at = usize::try_from(number - first).ok().and_then(|at| self.kept.get(at));
            at.is_some_and(|death| death.at.plus_ms(self.limits.age_max_ms) > now)
        };
        deaths.truncate(deaths.partition_point(|death| is_kept(death.number)));
        let is_whole = deaths.len() == below - from;
        RecordedDeaths {
            deaths,
            before: (is_whole && from > 0).then_some(first + from as u64),
            forgotten: self.forgotten,
            forgotten_until_ms: self.forgotten_until_ms,
        }
    }

    /// The deaths at these places of `kept`, the latest first.
    fn collect(&self, from: usize, end: usize) -> Vec<RecordedDeath> {
        let first = self.forgotten + 1;
        let mut run = self.runs.len();
        let newest_first = self.kept.range(from..end).enumerate().rev();
        let deaths = newest_first.map(|(at, death)| {
            let number = first + (from + at) as u64;
            if self.runs.get(run).is_none_or(|(begin, _)| *begin > number) {
                run = self.runs.partition_point(|(begin, _)| *begin <= number) - 1;
            }
            RecordedDeath {
                number,
                time_ms: death.time_ms,
                circumstances: Arc::clone(&self.runs[run].1),
                properties: death.properties.clone(),
            }
        });
        deaths.collect()
    }
}

/// Encodes the properties with those of the first [`DEATH_HEADERS_EXAMINED_MAX`] headers that fit into
/// [`DEATH_HEADERS_BYTES_MAX`], and without those that the broker writes when a message dies.
fn without_long_headers(properties: &[u8]) -> Vec<u8> {
    // The publish has already validated the properties.
    let properties = Properties::parse(properties).unwrap_or_default();
    let headers = properties.headers.iter().flat_map(|headers| headers.iter());
    let own = headers.filter(|(key, _)| !is_death_header(key)).take(DEATH_HEADERS_EXAMINED_MAX);
    let mut kept = TableBuilder::new();
    let mut room = DEATH_HEADERS_BYTES_MAX;
    for (key, value) in own {
        let mut one = TableBuilder::new();
        one.insert(key, value);
        if let Some(left) = room.checked_sub(one.as_ref().as_bytes().len()) {
            room = left;
            kept.insert(key, value);
        }
    }
    let mut out = Vec::new();
    Properties { headers: Some(kept.as_ref()), ..properties }.encode(&mut out);
    out
}
