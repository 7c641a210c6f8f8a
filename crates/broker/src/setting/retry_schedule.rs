//! Schedules of delays, as `x-delayed-retry-schedule` and `delayed-retry-schedule` give them: `1s,10s,5m,1h`.

use std::sync::Arc;

use amqp::table::Value;

use crate::ids::Name;
use crate::limits::{DELIVERY_DELAY_MS_MAX, RETRY_SCHEDULE_ENTRIES_MAX};

/// The delays of the first, second, third ... return of a message; the last one repeats.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetrySchedule {
    /// The schedule as it was given.
    text: Name,
    /// Milliseconds, 1 to [`DELIVERY_DELAY_MS_MAX`]; at least one delay.
    delays_ms: Arc<[u64]>,
}

impl RetrySchedule {
    /// Parses delays separated by commas: integers with a unit of `ms`, `s`, `m`, `h` or `d`, milliseconds without
    /// one. None if the text is no schedule, or one of more than [`RETRY_SCHEDULE_ENTRIES_MAX`] delays.
    pub fn parse(text: &str) -> Option<Self> {
        let delays_ms: Option<Vec<u64>> = text.split(',').map(delay_ms).collect();
        Self::of(text.into(), delays_ms?)
    }

    /// Reads the value of an argument: text, or an array of milliseconds.
    pub(super) fn of_argument(value: &Value<'_>) -> Option<Self> {
        if let Value::Array(delays) = value {
            let delay = |value: Value<'_>| Some(value.as_integer()?.to_string());
            let delays: Option<Vec<String>> = delays.iter().map(delay).collect();
            return Self::parse(&delays?.join(","));
        }
        Self::parse(std::str::from_utf8(value.as_long_str()?).ok()?)
    }

    fn of(text: Name, delays_ms: Vec<u64>) -> Option<Self> {
        let is_valid = delays_ms.len() <= RETRY_SCHEDULE_ENTRIES_MAX
            && delays_ms.iter().all(|delay| (1..=DELIVERY_DELAY_MS_MAX).contains(delay));
        is_valid.then(|| Self { text, delays_ms: delays_ms.into() })
    }

    /// The schedule as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The delay before delivery number `attempt` + 1, in milliseconds.
    pub(crate) fn delay_ms(&self, attempt: u32) -> u64 {
        let at = usize::try_from(attempt.max(1) - 1).unwrap_or(usize::MAX);
        let delay = self.delays_ms.get(at).or_else(|| self.delays_ms.last());
        *delay.expect("a schedule has a delay")
    }
}

/// The milliseconds of a delay such as `10s`.
fn delay_ms(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "" | "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedule_has_units_and_repeats_its_last_delay() {
        let schedule = RetrySchedule::parse("500, 2s,1500ms ,5m,1h,1d").unwrap();
        let delays: Vec<u64> = (0..9).map(|attempt| schedule.delay_ms(attempt)).collect();
        let day = 86_400_000;
        assert_eq!(delays, [500, 500, 2000, 1500, 300_000, 3_600_000, day, day, day]);
        assert_eq!(schedule.as_str(), "500, 2s,1500ms ,5m,1h,1d");
    }

    #[test]
    fn schedule_is_refused() {
        let long = vec!["1"; RETRY_SCHEDULE_ENTRIES_MAX + 1].join(",");
        let day = "3651d";
        for text in [
            "",
            ",",
            "1s,",
            "0",
            "0s",
            "-1",
            "1.5s",
            "s",
            "1w",
            "1 s",
            &long,
            day,
            "99999999999999999999",
        ] {
            assert_eq!(RetrySchedule::parse(text), None, "{text}");
        }
        assert!(RetrySchedule::parse("3650d").is_some());
        assert!(RetrySchedule::parse(&long[2..]).is_some());
    }

    #[test]
    fn schedule_is_text_or_an_array_of_milliseconds() {
        use amqp::table::TableBuilder;
        let mut table = TableBuilder::new();
        table.insert(b"text", Value::LongStr(b"1s,2s"));
        table.insert(b"number", Value::I32(5));
        let table = table.finish();
        let parse = |key| RetrySchedule::of_argument(&table.get(key).unwrap());
        assert_eq!(parse("text").unwrap().delay_ms(2), 2000);
        assert_eq!(parse("number"), None);
    }
}
