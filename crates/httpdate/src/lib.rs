//! Dates of HTTP, for every reading of the clock.
//!
//! hyper writes the header `Date` with the crate of this name from the registry, which panics for a clock
//! before 1970 or after 9999, and a broker ends with a panic. This one takes its place (`[patch]` in the
//! manifest of the workspace) and has what hyper uses of it: such a clock shows the nearest date there is.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_PER_DAY: u64 = 86_400;
/// The last second of the year 9999: a year has four digits.
const LAST_SECOND: u64 = 253_402_300_799;
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [(&str, u64); 12] = [
    ("Jan", 31),
    ("Feb", 28),
    ("Mar", 31),
    ("Apr", 30),
    ("May", 31),
    ("Jun", 30),
    ("Jul", 31),
    ("Aug", 31),
    ("Sep", 30),
    ("Oct", 31),
    ("Nov", 30),
    ("Dec", 31),
];

/// A date as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`, always 29 octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HttpDate {
    /// Seconds since 1970.
    seconds: u64,
}

impl From<SystemTime> for HttpDate {
    fn from(time: SystemTime) -> Self {
        let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self { seconds: seconds.min(LAST_SECOND) }
    }
}

impl fmt::Display for HttpDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second) = (self.seconds / SECONDS_PER_DAY, self.seconds % SECONDS_PER_DAY);
        let weekday = WEEKDAYS.into_iter().cycle().nth(usize::try_from(days % 7).unwrap_or(0));
        let (year, day_of_year) = year(days);
        let (month, day) = month(year, day_of_year);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let weekday = weekday.unwrap_or_default();
        write!(f, "{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
    }
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400)
}

/// Days from 1970 to the beginning of a year.
const fn days_before(year: u64) -> u64 {
    let last = year - 1;
    let leap_days = last / 4 - last / 100 + last / 400;
    // 477 of them were before 1970.
    (year - 1970) * 365 + leap_days - 477
}

/// The year of a day since 1970, and the day in it, from 0 on.
const fn year(days: u64) -> (u64, u64) {
    // Too late by a year at most.
    let mut year = 1970 + days / 365;
    while days_before(year) > days {
        year -= 1;
    }
    (year, days - days_before(year))
}

/// The month of a day of a year, and the day in it, from 1 on.
fn month(year: u64, mut day: u64) -> (&'static str, u64) {
    for (at, (name, days)) in MONTHS.into_iter().enumerate() {
        let days = days + u64::from(at == 1 && is_leap(year));
        if day < days {
            return (name, day + 1);
        }
        day -= days;
    }
    // No year has so many days.
    ("Dec", 31)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn date(seconds: u64) -> String {
        HttpDate::from(UNIX_EPOCH + Duration::from_secs(seconds)).to_string()
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        // As `date -u` prints them.
        for (seconds, expected) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (978_307_199, "Sun, 31 Dec 2000 23:59:59 GMT"),
            (1_709_164_800, "Thu, 29 Feb 2024 00:00:00 GMT"),
            (1_795_305_600, "Sun, 22 Nov 2026 00:00:00 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (LAST_SECOND, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            assert_eq!(date(seconds), expected);
        }
    }

    #[test]
    fn every_clock_has_a_date() {
        let before = UNIX_EPOCH - Duration::from_secs(1_000_000_000);
        assert_eq!(HttpDate::from(before).to_string(), date(0));
        assert_eq!(date(LAST_SECOND + 1), date(LAST_SECOND));
        for day in (0..LAST_SECOND / SECONDS_PER_DAY).step_by(97) {
            assert_eq!(date(day * SECONDS_PER_DAY).len(), 29, "{day}");
        }
    }
}
