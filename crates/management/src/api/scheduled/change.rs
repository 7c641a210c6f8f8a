//! The body of a request that reschedules messages.

use broker::ScheduleOperation;
use broker::time::Now;
use serde_json::Value;

use crate::http::answer::ApiError;
use crate::http::body::Object;

/// A new delivery time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NewTime {
    /// Milliseconds since the Unix epoch.
    At(u64),
    /// Milliseconds from now.
    In(u64),
}

impl NewTime {
    /// Reads `{"delivery_time": MS}` or `{"delay": MS}`.
    pub(super) fn parse(body: &Object) -> Result<Self, ApiError> {
        if let Some(key) = body.0.keys().find(|key| !["delivery_time", "delay"].contains(&&***key))
        {
            let reason = format!("{key} is not known; known are delivery_time, delay");
            return Err(ApiError::bad_request(reason));
        }
        let number = |name: &str| match body.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_u64().map(Some).ok_or_else(|| {
                let reason =
                    format!("{name} should be a whole number of milliseconds, not less than 0");
                ApiError::bad_request(reason)
            }),
        };
        match (number("delivery_time")?, number("delay")?) {
            (Some(at_ms), None) => Ok(Self::At(at_ms)),
            (None, Some(delay_ms)) => Ok(Self::In(delay_ms)),
            _ => Err(ApiError::bad_request("one of delivery_time and delay is needed")),
        }
    }

    /// The new delivery time in milliseconds since the Unix epoch.
    pub(super) fn wall_ms(self, now: Now) -> u64 {
        match self {
            Self::At(at_ms) => at_ms,
            Self::In(delay_ms) => now.wall_ms_after(delay_ms),
        }
    }

    pub(super) fn operation(self, now: Now) -> ScheduleOperation {
        ScheduleOperation::Reschedule { delivery_time_ms: self.wall_ms(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_time_is_one_of_time_and_delay() {
        let read = |body: &str| NewTime::parse(&Object::parse(body.as_bytes()).unwrap());
        assert_eq!(read(r#"{"delivery_time": 5, "delay": null}"#), Ok(NewTime::At(5)));
        let delay = read(r#"{"delay": 0}"#).unwrap();
        assert_eq!(delay.wall_ms(Now::from_millis(7)), 7);
        assert_eq!(NewTime::In(u64::MAX).wall_ms(Now::from_millis(7)), u64::MAX);
        for (body, reason) in [
            ("{}", "one of delivery_time and delay is needed"),
            (r#"{"delivery_time": 5, "delay": 5}"#, "one of delivery_time and delay is needed"),
            (r#"{"time": 5}"#, "time is not known; known are delivery_time, delay"),
            (r#"{"delay": -1}"#, "delay should be a whole number of milliseconds, not less than 0"),
            (
                r#"{"delivery_time": "5"}"#,
                "delivery_time should be a whole number of milliseconds, not less than 0",
            ),
        ] {
            assert_eq!(read(body).unwrap_err().reason(), reason, "{body}");
        }
    }
}
