//! Numbers and times in a readable form.

use std::fmt::{self, Write as _};

/// A time in microseconds.
pub(crate) struct Time(pub(crate) f64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            us if us < 10.0 => write!(f, "{us:.1} us"),
            us if us < 999.5 => write!(f, "{us:.0} us"),
            us if us < 999_995.0 => write!(f, "{:.2} ms", us / 1_000.0),
            us => write!(f, "{:.2} s", us / 1_000_000.0),
        }
    }
}

/// A number with three digits and a unit prefix: `2.5M`.
pub(crate) struct Short(pub(crate) f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = match self.0 {
            number if number < 999.5 => (number, ""),
            number if number < 999_500.0 => (number / 1e3, "k"),
            number if number < 999_500_000.0 => (number / 1e6, "M"),
            number => (number / 1e9, "G"),
        };
        let digits = if number < 10.0 {
            format!("{number:.2}")
        } else if number < 100.0 {
            format!("{number:.1}")
        } else {
            format!("{number:.0}")
        };
        let digits = match digits.contains('.') {
            true => digits.trim_end_matches('0').trim_end_matches('.'),
            false => &digits,
        };
        write!(f, "{digits}{unit}")
    }
}

/// A number with its digits in groups of three.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        let _ = grouped.write_char(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_readable() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        let said = [0.4, 17.0, 999.9, 1_500.0, 2_000_000.0].map(|us| Time(us).to_string());
        assert_eq!(said, ["0.4 us", "17 us", "1.00 ms", "1.50 ms", "2.00 s"]);
        let said = [0.0, 7.0, 999.9, 1_000.0, 12_340.0, 2_500_000.0, 200e6, 4e9];
        let said = said.map(|number| Short(number).to_string());
        assert_eq!(said, ["0", "7", "1k", "1k", "12.3k", "2.5M", "200M", "4G"]);
    }
}
