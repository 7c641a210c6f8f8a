//! Scheduled messages: messages before their delivery time, in queues and in delayed exchanges.

use broker::refusal::Refusal;
use broker::time::{Now, Time};
use broker::{ScheduleId, ScheduleTarget, ScheduledFilter, ScheduledPage};

/// The scheduled messages that a request selects.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ScheduleQuery {
    /// Only messages in this place.
    pub target: Option<ScheduleTarget>,
    /// Only messages with this name.
    pub id: Option<ScheduleId>,
    /// Only messages with this delivery time or a later one, in milliseconds since the Unix epoch.
    pub after_ms: Option<u64>,
    /// Only messages with an earlier delivery time, in milliseconds since the Unix epoch.
    pub before_ms: Option<u64>,
}

impl ScheduleQuery {
    /// The filter at this moment: delivery times are on the broker's time axis.
    pub fn filter(&self, now: Now) -> ScheduledFilter {
        ScheduledFilter {
            target: self.target.clone(),
            id: self.id.clone(),
            from: self.after_ms.map(|ms| on_axis(now, ms)),
            before: self.before_ms.map(|ms| on_axis(now, ms)),
        }
    }
}

/// A point on the broker's axis in front of all messages with this delivery time, in milliseconds since the Unix epoch.
///
/// Those of earlier builds are up to a millisecond behind their exact points.
pub fn on_axis(now: Now, wall_ms: u64) -> Time {
    Time::from_micros(now.time_at(wall_ms).as_micros().saturating_sub(999))
}

/// Consecutive scheduled messages of a vhost.
#[derive(Clone, Debug)]
pub struct ScheduledBatch {
    /// The messages, and the position of the next ones.
    pub page: ScheduledPage,
    /// Time of the read.
    pub now: Now,
}

/// A change of scheduled messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScheduleChanged {
    /// Number of changed messages.
    pub messages: u64,
    /// Time of the change.
    pub now: Now,
}

/// The result of the cancellation of many scheduled messages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ScheduleCancelled {
    /// Cancelled messages.
    pub cancelled: u64,
    /// Messages that the user may read but not cancel.
    pub refused: u64,
    /// False if more messages may match than one request cancels.
    pub is_complete: bool,
}

/// The reason why scheduled messages are not shown or not changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScheduleError {
    /// No vhost has this name.
    NoSuchVhost,
    /// The user has no permissions in the vhost.
    NoPermissions,
    /// The refusal that AMQP would send.
    Refused(Refusal),
    /// A page of messages cannot be read from disk, for this reason.
    Unreadable(String),
}

impl From<Refusal> for ScheduleError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_has_delivery_times_from_their_first_microsecond() {
        let now =
            |us: u64| Now { time: Time::from_micros(7_000_000 + us), wall_us: 1_000_000_000 + us };
        for published_us in [0, 500, 999] {
            let ready_at = now(published_us).time_at(1_000_250);
            assert_eq!(ready_at, Time::from_micros(7_250_000), "{published_us}");
            for read_us in [0, 500, 999] {
                let from = on_axis(now(read_us), 1_000_250);
                assert!(from <= ready_at, "{published_us} {read_us}");
                assert!(on_axis(now(read_us), 1_000_251) > ready_at, "{published_us} {read_us}");
            }
        }
        assert_eq!(on_axis(now(0), 0), Time::default());
        assert!(on_axis(now(0), u64::MAX) > now(0).time.plus_ms(1 << 40));
    }
}
