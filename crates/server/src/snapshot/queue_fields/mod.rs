//! The numbers of a queue, one row each: field of the API, meaning, source, metric, and where people see it.
//!
//! The JSON of the API, the sampled numbers with their rates, and the metrics are read off the rows. The test
//! `fields_shown` writes the columns of the web page and the tables of the documentation from them, and holds the columns
//! of `list_queues` against them. A new number is a row of [`QUEUE_FIELDS`]; if no counter of the core has it, also a field
//! of [`QueueLevels`] with its source.

mod table;

use broker::{DeathCounters, Deliveries, Queue, QueueCounters};

use crate::snapshot::queue::QueueView;
use crate::snapshot::queue_levels::QueueLevels;

pub use table::QUEUE_FIELDS;

/// The unit of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Messages, and what happens to them.
    Messages,
    /// Bytes of bodies.
    Bytes,
    /// Consumers of the queue.
    Consumers,
    /// Part of the whole, from 0 to 1.
    Share,
    /// Seconds of a duration.
    Seconds,
    /// Seconds since 1970.
    EpochSeconds,
}

/// The value of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// In whole units.
    Whole(u64),
    /// In millionths of the unit.
    Millionths(u64),
    /// No value now.
    Missing,
}

/// The source of a number.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// A number of messages that is sampled: of the queue, and of its copied levels.
    Length(fn(&Queue) -> u64, fn(&QueueLevels) -> u64),
    /// A level that is not sampled.
    Level(fn(&QueueLevels) -> Level),
    /// A count since the declaration, or since the start of the broker.
    Counter(fn(&QueueCounters) -> u64),
    /// A count of deliveries, which vhosts and channels have as well.
    Delivery(fn(&Deliveries) -> u64),
    /// A count of deaths, which vhosts have as well.
    Death(fn(&DeathCounters) -> u64),
}

/// A group of metrics with families of queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueGroup {
    /// Part of `queue_coarse_metrics`.
    Coarse,
    /// Part of `queue_consumer_count` and of `queue_metrics`.
    ConsumerCount,
    /// Part of `queue_metrics`.
    Queue,
    /// Part of `queue_delivery_metrics`.
    Delivery,
    /// Part of `channel_queue_exchange_metrics`.
    Published,
    /// Part of `queue_time_metrics`.
    Time,
}

/// A group of columns on the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageGroup {
    /// Properties of the queue.
    Overview,
    /// Numbers of messages.
    Messages,
    /// Bytes of messages.
    Bytes,
    /// Arrivals and deliveries per second.
    Rates,
    /// Deaths per second.
    Deaths,
}

/// A column of the page's list of queues.
#[derive(Clone, Copy, Debug)]
pub struct PageColumn {
    /// Place among the columns.
    pub place: u32,
    /// Group in the menu of columns.
    pub group: PageGroup,
    /// Name in addresses and in the browser's storage.
    pub key: &'static str,
    /// Text of the header.
    pub title: &'static str,
    /// Name in the menu of columns, if not the title.
    pub name: Option<&'static str>,
    /// Explanation of the header.
    pub hint: Option<&'static str>,
    /// Place after the name on a phone.
    pub phone: Option<u32>,
    /// True if the column is hidden until a user chooses it.
    pub is_optional: bool,
}

/// A number of a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueField {
    /// Field of a queue in the API, of `message_stats` if it is a count; empty for a number of the metrics alone.
    pub name: &'static str,
    /// The unit.
    pub unit: Unit,
    /// The meaning, which is the help text of the family.
    pub meaning: &'static str,
    /// The source.
    pub source: Source,
    /// Family of metrics, with its group.
    pub family: Option<(QueueGroup, &'static str)>,
    /// True if `list_queues` has a column of this name, and for a count one with the suffix `_rate`.
    pub is_listed: bool,
    /// Column of the page's list of queues.
    pub page: Option<PageColumn>,
}

impl QueueField {
    /// True if the number is a count.
    pub const fn is_count(&self) -> bool {
        matches!(self.source, Source::Counter(_) | Source::Delivery(_) | Source::Death(_))
    }

    /// True if the number is sampled.
    pub const fn is_sampled(&self) -> bool {
        !self.name.is_empty() && !matches!(self.source, Source::Level(_))
    }

    /// The number of a queue.
    pub fn of(&self, queue: &QueueView) -> Level {
        match self.source {
            Source::Length(_, read) => Level::Whole(read(&queue.levels)),
            Source::Level(read) => read(&queue.levels),
            Source::Counter(read) => Level::Whole(read(&queue.counters)),
            Source::Delivery(read) => Level::Whole(read(&queue.counters.deliveries)),
            Source::Death(read) => Level::Whole(read(&queue.counters.deaths())),
        }
    }

    const fn new(name: &'static str, unit: Unit, meaning: &'static str, source: Source) -> Self {
        Self { name, unit, meaning, source, family: None, is_listed: false, page: None }
    }

    const fn family(mut self, group: QueueGroup, name: &'static str) -> Self {
        self.family = Some((group, name));
        self
    }

    const fn listed(mut self) -> Self {
        self.is_listed = true;
        self
    }

    const fn page(
        mut self,
        place: u32,
        group: PageGroup,
        key: &'static str,
        title: &'static str,
    ) -> Self {
        let (name, hint, phone) = (None, None, None);
        self.page =
            Some(PageColumn { place, group, key, title, name, hint, phone, is_optional: true });
        self
    }

    /// Shows the column of the page unless a user hides it.
    const fn shown(mut self) -> Self {
        if let Some(page) = &mut self.page {
            page.is_optional = false;
        }
        self
    }

    /// Shows the column of the page, at a place on a phone.
    const fn on_phone(mut self, place: u32) -> Self {
        if let Some(page) = &mut self.page {
            page.phone = Some(place);
        }
        self.shown()
    }

    const fn hint(mut self, hint: &'static str) -> Self {
        if let Some(page) = &mut self.page {
            page.hint = Some(hint);
        }
        self
    }

    /// Gives the column of the page a longer name in the menu.
    const fn named(mut self, name: &'static str) -> Self {
        if let Some(page) = &mut self.page {
            page.name = Some(name);
        }
        self
    }
}
