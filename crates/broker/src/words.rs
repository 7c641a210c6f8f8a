//! Numbers, durations and sizes as texts for people, in the form of the web page.

/// Groups the digits of a number: `1,805`.
pub fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with its noun, which gets an `s` unless the number is 1: `1 message`, `1,805 messages`.
pub fn count(value: u64, noun: &str) -> String {
    let plural = if value == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", number(value))
}

const SECOND_MS: u64 = 1000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// A duration in up to two units: `500 ms`, `1.5 s`, `10 min`, `3 min 20 s`, `2 h 5 min`.
pub fn duration(ms: u64) -> String {
    let (unit, size, below, part) = match ms {
        0..SECOND_MS => return format!("{ms} ms"),
        SECOND_MS..MINUTE_MS => return format!("{} s", three_digits(ms, SECOND_MS)),
        MINUTE_MS..HOUR_MS => ("min", MINUTE_MS, "s", SECOND_MS),
        HOUR_MS..DAY_MS => ("h", HOUR_MS, "min", MINUTE_MS),
        _ => ("d", DAY_MS, "h", HOUR_MS),
    };
    let whole = number(ms / size);
    match ms % size / part {
        0 => format!("{whole} {unit}"),
        rest => format!("{whole} {unit} {rest} {below}"),
    }
}

/// Units of bytes, each 1024 times the unit before.
const BYTE_UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// A number of bytes in the largest unit that fits: `1.5 MiB`.
pub fn bytes(value: u64) -> String {
    let step = value.checked_ilog2().unwrap_or_default() / 10;
    let unit = BYTE_UNITS.get(step as usize).copied().unwrap_or_default();
    format!("{} {unit}", three_digits(value, 1 << (10 * step)))
}

/// `value / unit`, rounded to three digits, without zeros at the end.
fn three_digits(value: u64, unit: u64) -> String {
    let (value, unit) = (u128::from(value), u128::from(unit));
    let places = match value / unit {
        0..10 => 2,
        10..100 => 1,
        _ => 0,
    };
    let scale = 10_u128.pow(places);
    let scaled = (value * scale + unit / 2) / unit;
    let (whole, rest) = (scaled / scale, scaled % scale);
    let whole = number(u64::try_from(whole).unwrap_or(u64::MAX));
    if rest == 0 {
        return whole;
    }
    let decimals = format!("{rest:0width$}", width = places as usize);
    format!("{whole}.{}", decimals.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        assert_eq!([0, 999, 1805, 1_234_567].map(number), ["0", "999", "1,805", "1,234,567"]);
        assert_eq!(count(1, "message"), "1 message");
        assert_eq!(count(1805, "message"), "1,805 messages");
    }

    #[test]
    fn durations_have_two_units_at_most() {
        for (ms, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1500, "1.5 s"),
            (30_000, "30 s"),
            (600_000, "10 min"),
            (200_000, "3 min 20 s"),
            (7_500_000, "2 h 5 min"),
            (DAY_MS, "1 d"),
            (u64::MAX, "213,503,982,334 d 14 h"),
        ] {
            assert_eq!(duration(ms), text);
        }
    }

    #[test]
    fn bytes_have_three_digits() {
        for (value, text) in [
            (0, "0 B"),
            (1023, "1,023 B"),
            (1024, "1 KiB"),
            (1_572_864, "1.5 MiB"),
            (50_000_000, "47.7 MiB"),
            (900_000_000_000, "838 GiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(bytes(value), text);
        }
    }
}
