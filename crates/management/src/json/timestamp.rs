//! Timestamps as text.

/// A time in milliseconds of the epoch in RFC 3339 and UTC, as RabbitMQ writes it.
pub(crate) fn rfc3339(epoch_ms: u64) -> String {
    let (days, ms) = (epoch_ms / DAY_MS, epoch_ms % DAY_MS);
    let (year, month, day) = civil(days);
    let (hour, minute) = (ms / 3_600_000, ms / 60_000 % 60);
    let (second, ms) = (ms / 1000 % 60, ms % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}+00:00")
}

const DAY_MS: u64 = 86_400_000;

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar. Years begin in March
/// here, so that the leap day is their last.
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let days = days + 719_468;
    let (era, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, is_next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + is_next_year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_written_as_rabbitmq_writes_them() {
        for (epoch_ms, text) in [
            (0, "1970-01-01T00:00:00.000+00:00"),
            (951_827_696_789, "2000-02-29T12:34:56.789+00:00"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999+00:00"),
            (1_795_296_756_821, "2026-11-21T21:32:36.821+00:00"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000+00:00"),
        ] {
            assert_eq!(rfc3339(epoch_ms), text);
        }
    }
}
