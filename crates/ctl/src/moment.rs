//! Durations and moments in options.

use std::time::{SystemTime, UNIX_EPOCH};

/// The forms of a moment, for errors.
pub(crate) const MOMENT_FORMS: &str =
    "milliseconds since 1970, a time as 2030-01-31T08:00:00Z, or +DURATION from now";

/// The forms of a duration, for errors.
pub(crate) const DURATION_FORMS: &str = "milliseconds, or a number with ms, s, m, h or d";

const DAY_MS: u64 = 86_400_000;

/// A moment in milliseconds since 1970; none if the text has another form.
pub(crate) fn moment_ms(text: &str) -> Option<u64> {
    match text.strip_prefix('+') {
        Some(duration) => now_ms().checked_add(duration_ms(duration)?),
        None => number(text).or_else(|| rfc3339_ms(text)),
    }
}

/// A duration in milliseconds, as `90s`; a plain number is one of milliseconds. None if the text has another form.
pub(crate) fn duration_ms(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (count, unit) = text.split_at(end);
    let unit_ms = match unit {
        "" | "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => DAY_MS,
        _ => return None,
    };
    number(count)?.checked_mul(unit_ms)
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Digits only: a number has no sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// A time as RFC 3339 in milliseconds since 1970.
fn rfc3339_ms(text: &str) -> Option<u64> {
    let (date, rest) = text.split_at_checked(10)?;
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (time, rest) = rest.split_at_checked(8)?;
    let [year, month, day] = fields(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = fields(time, ':', [2, 2, 2])?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        None => ("", rest),
        Some(rest) => rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?),
    };
    if rest.starts_with('.') && fraction.is_empty() {
        return None;
    }
    let days = days_since_1970(year, month, day)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let ms = match fraction.len() {
        0 => 0,
        digits => {
            let first = number(fraction.get(..3).unwrap_or(fraction))?;
            first * [1000, 100, 10, 1][digits.min(3)]
        }
    };
    let time_ms = hour * 3_600_000 + minute * 60_000 + second * 1000 + ms;
    let local = days * DAY_MS + time_ms;
    if zone == "Z" || zone == "z" {
        return Some(local);
    }
    let [hours, minutes] = fields(zone.get(1..)?, ':', [2, 2])?;
    if hours > 23 || minutes > 59 {
        return None;
    }
    let offset_ms = hours * 3_600_000 + minutes * 60_000;
    match zone.get(..1)? {
        "+" => local.checked_sub(offset_ms),
        "-" => local.checked_add(offset_ms),
        _ => None,
    }
}

/// Numbers of these lengths between separators.
fn fields<const N: usize>(text: &str, separator: char, lengths: [usize; N]) -> Option<[u64; N]> {
    let parts: Vec<&str> = text.split(separator).collect();
    let fits = parts.len() == N && parts.iter().zip(lengths).all(|(part, len)| part.len() == len);
    let numbers: Option<Vec<u64>> = parts.into_iter().map(number).collect();
    numbers.filter(|_| fits)?.try_into().ok()
}

/// Days from 1970-01-01 to a date in the Gregorian calendar; none for a date that does not exist or is earlier.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let february = 28 + u64::from(is_leap);
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = usize::try_from(month.checked_sub(1)?).ok()?;
    if year < 1970 || !(1..=*months.get(before)?).contains(&day) {
        return None;
    }
    let past = year - 1;
    let leaps = past / 4 - past / 100 + past / 400 - 477;
    Some((year - 1970) * 365 + leaps + months.iter().take(before).sum::<u64>() + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::rfc3339;

    #[test]
    fn durations_have_units() {
        for (text, ms) in [
            ("0", 0),
            ("1500", 1500),
            ("5ms", 5),
            ("30s", 30_000),
            ("10m", 600_000),
            ("2h", 7_200_000),
            ("7d", 604_800_000),
        ] {
            assert_eq!(duration_ms(text), Some(ms), "{text}");
        }
        for text in ["", "s", "-5", "+5", "1.5s", "5 s", "5w", "1h30m", "99999999999999999999"] {
            assert_eq!(duration_ms(text), None, "{text}");
        }
        assert_eq!(duration_ms(&format!("{}d", u64::MAX)), None);
    }

    #[test]
    fn moments_are_numbers_times_or_in_the_future() {
        for (text, ms) in [
            ("0", 0),
            ("1795462769700", 1_795_462_769_700),
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:34:56.789Z", 951_827_696_789),
            ("2000-02-29 12:34:56.7z", 951_827_696_700),
            ("2000-02-29T12:34:56.789999+00:00", 951_827_696_789),
            ("2000-02-29T14:34:56+02:00", 951_827_696_000),
            ("2000-02-29T07:04:56-05:30", 951_827_696_000),
            ("2024-02-29T23:59:59Z", 1_709_251_199_000),
        ] {
            assert_eq!(moment_ms(text), Some(ms), "{text}");
        }
        let in_an_hour = moment_ms("+1h").unwrap();
        assert!(in_an_hour.abs_diff(now_ms() + 3_600_000) < 60_000);
        for text in [
            "",
            "+",
            "soon",
            "-5",
            "2030-01-31",
            "2030-01-31T08:00:00",
            "2030-02-30T08:00:00Z",
            "2030-13-01T08:00:00Z",
            "2030-00-01T08:00:00Z",
            "2030-01-31T24:00:00Z",
            "2030-01-31T08:00:60Z",
            "2030-01-31T08:00Z",
            "2030-1-31T08:00:00Z",
            "2030-01-31T08:00:00.Z",
            "2030-01-31T08:00:00.5",
            "2030-01-31T08:00:00+0200",
            "2030-01-31T08:00:00+24:00",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+01:00",
            "2030-01-31T08:00:00ü",
            "2030-01-3ü",
        ] {
            assert_eq!(moment_ms(text), None, "{text}");
        }
    }

    #[test]
    fn moments_are_read_as_they_are_shown() {
        for days in [0, 58, 59, 60, 365, 10_956, 10_957, 11_016, 20_000, 47_540, 47_541, 120_000] {
            let ms = days * DAY_MS + 45_296_000;
            assert_eq!(moment_ms(&rfc3339(ms)), Some(ms), "{days}");
        }
    }
}
