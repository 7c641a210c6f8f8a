//! Handles of scheduled messages: names by which a message is found, cancelled and rescheduled before its delivery
//! time. See `docs/guides/deliver-later.md`.

use std::fmt;
use std::str::FromStr;

use crate::limits::SCHEDULE_ID_BYTES_MAX;
use crate::message::{Message, Name};
use crate::page::PageLocation;
use crate::time::Time;

/// The name of a schedule (`x-schedule-id`): 1 to 255 bytes of UTF-8, chosen by the publisher.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ScheduleId(Name);

impl ScheduleId {
    /// The name as a publisher gives it; none if it is empty or longer than 255 bytes.
    pub fn new(name: &str) -> Option<Self> {
        (1..=SCHEDULE_ID_BYTES_MAX).contains(&name.len()).then(|| Self(name.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ScheduleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The meaning of a publish whose schedule id is in use at its target (`x-schedule-mode`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ScheduleMode {
    /// The new message takes the place of the older ones, in one step.
    #[default]
    Replace,
    /// The older message stays, and the new one is dropped.
    Keep,
    /// Both wait.
    Add,
}

impl ScheduleMode {
    /// The mode of that name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "replace" => Some(Self::Replace),
            "keep" => Some(Self::Keep),
            "add" => Some(Self::Add),
            _ => None,
        }
    }
}

/// A place in which messages wait for their delivery time; as text `queue/NAME` or `exchange/NAME`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScheduleTarget {
    /// The queue of this name.
    Queue(Name),
    /// The delayed exchange of this name.
    Exchange(Name),
}

impl ScheduleTarget {
    /// `queue` or `exchange`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Queue(_) => "queue",
            Self::Exchange(_) => "exchange",
        }
    }

    /// The name of the queue or exchange.
    pub fn name(&self) -> &Name {
        match self {
            Self::Queue(name) | Self::Exchange(name) => name,
        }
    }

    /// The target of that kind and name; none for another kind than `queue` and `exchange`.
    pub fn of(kind: &str, name: &str) -> Option<Self> {
        match kind {
            "queue" => Some(Self::Queue(name.into())),
            "exchange" => Some(Self::Exchange(name.into())),
            _ => None,
        }
    }
}

impl fmt::Display for ScheduleTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind(), self.name())
    }
}

/// The text is no target of schedules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoScheduleTarget;

impl FromStr for ScheduleTarget {
    type Err = NoScheduleTarget;

    fn from_str(text: &str) -> Result<Self, NoScheduleTarget> {
        let (kind, name) = text.split_once('/').ok_or(NoScheduleTarget)?;
        Self::of(kind, name).ok_or(NoScheduleTarget)
    }
}

/// Scheduled messages of one target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScheduleSelector {
    /// All messages with this name.
    Id(ScheduleId),
    /// The message to which the broker gave this number; unique within the target.
    Handle(u64),
}

/// An operation on scheduled messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScheduleOperation {
    /// Removes the messages.
    Cancel,
    /// Gives the messages another delivery time, in milliseconds since the Unix epoch; a time that has passed means
    /// now.
    Reschedule {
        /// The new delivery time, in milliseconds since the Unix epoch.
        delivery_time_ms: u64,
    },
    /// Makes the messages ready, or routes them, now.
    Deliver,
}

/// A request to change scheduled messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleRequest {
    /// The place in which the messages wait.
    pub target: ScheduleTarget,
    /// The messages.
    pub selector: ScheduleSelector,
    /// The operation.
    pub operation: ScheduleOperation,
}

/// The scheduled messages to list.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ScheduledFilter {
    /// Only messages in this place.
    pub target: Option<ScheduleTarget>,
    /// Only messages with this name.
    pub id: Option<ScheduleId>,
    /// Only messages whose delivery time is this moment or later.
    pub from: Option<Time>,
    /// Only messages whose delivery time is before this moment.
    pub before: Option<Time>,
}

/// A position in the list of the scheduled messages of a vhost; as text opaque. Valid until the broker restarts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct ScheduledCursor {
    pub(crate) ready_at: Time,
    /// The number of the target in the log.
    pub(crate) target: u64,
    pub(crate) handle: u64,
}

impl ScheduledCursor {
    /// The position behind all messages with this delivery time or an earlier one.
    pub const fn behind(ready_at: Time) -> Self {
        Self { ready_at, target: u64::MAX, handle: u64::MAX }
    }

    /// The delivery time up to which messages are in front of the position.
    pub const fn ready_at(self) -> Time {
        self.ready_at
    }
}

impl fmt::Display for ScheduledCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}.{:x}.{:x}", self.ready_at.as_micros(), self.target, self.handle)
    }
}

/// The text is no position in a list of scheduled messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoScheduledCursor;

impl FromStr for ScheduledCursor {
    type Err = NoScheduledCursor;

    fn from_str(text: &str) -> Result<Self, NoScheduledCursor> {
        let numbers = text.split('.').map(|number| u64::from_str_radix(number, 16));
        let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().map_err(|_| NoScheduledCursor)?;
        let [at, target, handle] = numbers[..] else { return Err(NoScheduledCursor) };
        Ok(Self { ready_at: Time::from_micros(at), target, handle })
    }
}

/// The place of a message that waits for its delivery time.
#[derive(Clone, Debug)]
pub enum ScheduledContent {
    /// In memory.
    Here(Message),
    /// On disk.
    Paged(PageLocation),
}

/// A message that waits for its delivery time.
#[derive(Clone, Debug)]
pub struct ScheduledMessage<M = Message> {
    /// The place in which the message waits.
    pub target: ScheduleTarget,
    /// The number of the message within the target; the message keeps the number when it is rescheduled.
    pub handle: u64,
    /// The name of the schedule, if the publisher gave one.
    pub id: Option<ScheduleId>,
    /// The delivery time on the broker's axis.
    pub ready_at: Time,
    /// The message, or its place.
    pub message: M,
    /// True if the message survives a restart.
    pub is_durable: bool,
    /// The position behind the message.
    pub behind: ScheduledCursor,
}

impl<M> ScheduledMessage<M> {
    /// The same message with this content.
    pub fn with<Other>(self, message: Other) -> ScheduledMessage<Other> {
        let Self { target, handle, id, ready_at, message: _, is_durable, behind } = self;
        ScheduledMessage { target, handle, id, ready_at, message, is_durable, behind }
    }
}

/// A place in which a publish waits for its delivery time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduledPlace {
    /// The queue or delayed exchange.
    pub target: ScheduleTarget,
    /// The number of the message within the target.
    pub handle: u64,
    /// The name of the schedule, if the publisher gave one.
    pub id: Option<ScheduleId>,
    /// The delivery time on the broker's axis.
    pub ready_at: Time,
}

/// Consecutive scheduled messages of a vhost, by delivery time.
#[derive(Clone, Debug)]
pub struct ScheduledPage<M = Message> {
    /// The messages.
    pub messages: Vec<ScheduledMessage<M>>,
    /// The position to continue from; none at the end.
    pub next: Option<ScheduledCursor>,
}

/// Counters of scheduled messages since the broker started.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ScheduleCounters {
    /// Messages that began to wait, counted once for each target.
    pub scheduled: u64,
    /// Messages whose delivery time came.
    pub released: u64,
    /// Messages that a client or an operator removed before their delivery time.
    pub cancelled: u64,
    /// Messages that got another delivery time, including those delivered early.
    pub rescheduled: u64,
    /// Messages that a publish with the same schedule id replaced.
    pub replaced: u64,
    /// Publishes that were dropped because their schedule id was in use (`x-schedule-mode` `keep`).
    pub kept: u64,
    /// Publishes with a header of a delivery time that was ignored because of its type.
    pub ignored: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_between_1_and_255_bytes() {
        assert_eq!(ScheduleId::new(""), None);
        assert_eq!(ScheduleId::new(&"n".repeat(256)), None);
        assert_eq!(ScheduleId::new(&"n".repeat(255)).unwrap().as_str().len(), 255);
    }

    #[test]
    fn targets_survive_their_text_form() {
        for text in ["queue/q", "exchange/x/y", "queue/"] {
            assert_eq!(text.parse::<ScheduleTarget>().unwrap().to_string(), text);
        }
        for text in ["", "queue", "topic/t", "/q"] {
            assert_eq!(text.parse::<ScheduleTarget>(), Err(NoScheduleTarget), "{text}");
        }
    }

    #[test]
    fn cursors_survive_their_text_form() {
        let cursor = ScheduledCursor { ready_at: Time::MAX, target: 7, handle: u64::MAX };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for text in ["", "1.2", "1.2.3.4", "x.2.3", "1.2.10000000000000000", "-1.2.3"] {
            assert_eq!(text.parse::<ScheduledCursor>(), Err(NoScheduledCursor), "{text}");
        }
    }
}
