//! Parsers of configuration values: numbers, words, addresses, sizes. An error describes the valid values.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use broker::access::PermissionPattern;

use crate::limits::{IDENTITY_BYTES_MAX, NODE_NAME_BYTES_MAX};

/// A whole number.
pub(super) fn number<T>(value: &str, range: RangeInclusive<T>) -> Result<T, String>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    let number = value.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        format!("must be a number from {} to {}, got '{value}'", range.start(), range.end())
    })
}

/// A whole number, or `word` for unlimited.
pub(super) fn number_or<T>(
    word: &str,
    value: &str,
    range: RangeInclusive<T>,
) -> Result<Option<T>, String>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    if value == word {
        return Ok(None);
    }
    number(value, range).map(Some).map_err(|problem| problem.replacen(", got", &or(word), 1))
}

fn or(word: &str) -> String {
    format!(" or '{word}', got")
}

/// `true` or `false`, or one of their synonyms.
pub(super) fn boolean(value: &str) -> Result<bool, String> {
    match value {
        "true" | "yes" | "on" => Ok(true),
        "false" | "no" | "off" => Ok(false),
        _ => Err(format!("must be true or false, got '{value}'")),
    }
}

/// One of some words, each with its meaning.
pub(super) fn one_of<T: Copy>(value: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == value);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        match words.as_slice() {
            [only] => format!("must be {only}, got '{value}'"),
            words => format!("must be one of {}, got '{value}'", words.join(", ")),
        }
    })
}

/// A product name, which clients compare with others.
pub(super) fn product(value: &str) -> Result<String, String> {
    let is_one = !value.is_empty()
        && value.len() <= IDENTITY_BYTES_MAX
        && value.chars().all(|c| !c.is_control());
    if !is_one {
        return Err(format!(
            "must be a name of 1 to {IDENTITY_BYTES_MAX} bytes without control characters, got \
             '{value}'"
        ));
    }
    Ok(value.to_owned())
}

/// A version that clients can parse: three numbers, and an optional suffix after `-` or `+`.
pub(super) fn version(value: &str) -> Result<String, String> {
    let (numbers, suffix) = value.split_at(value.find(['-', '+']).unwrap_or(value.len()));
    let is_number = |part: &str| part.parse::<u32>().is_ok_and(|n| n.to_string() == part);
    let is_suffix = |c: char| c.is_ascii_alphanumeric() || "-+.".contains(c);
    let is_one = value.len() <= IDENTITY_BYTES_MAX
        && numbers.split('.').count() == 3
        && numbers.split('.').all(is_number)
        && suffix.chars().all(is_suffix);
    if !is_one {
        return Err(format!(
            "must be a version such as 4.3.6 or 4.3.6-beta.1, of at most {IDENTITY_BYTES_MAX} bytes, \
             got '{value}'"
        ));
    }
    Ok(value.to_owned())
}

/// A node's name, with or without its host.
pub(super) fn node_name(value: &str) -> Result<String, String> {
    let (name, host) = value.split_once('@').unwrap_or((value, "localhost"));
    let is_word = |word: &str, more: &[u8]| {
        let ok = |b: u8| b.is_ascii_alphanumeric() || more.contains(&b);
        !word.is_empty() && word.bytes().all(ok)
    };
    if value.len() > NODE_NAME_BYTES_MAX || !is_word(name, b"-_") || !is_word(host, b"-_.") {
        return Err(format!("must be NAME or NAME@HOST, got '{value}'"));
    }
    Ok(value.to_owned())
}

/// A pattern of names, checked and returned as text.
pub(super) fn pattern(value: &str) -> Result<String, String> {
    PermissionPattern::new(value)
        .map_err(|problem| format!("must be a regular expression: {problem}"))?;
    Ok(value.to_owned())
}

/// A fraction from 0 to 1.
pub(super) fn fraction(value: &str) -> Result<f64, String> {
    let fraction = value.parse().ok().filter(|number| (0.0..=1.0).contains(number));
    fraction.ok_or_else(|| format!("must be a number from 0 to 1, got '{value}'"))
}

/// A factor, not negative.
pub(super) fn multiple(value: &str) -> Result<f64, String> {
    let multiple = value.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    multiple.ok_or_else(|| format!("must be a number from 0 on, got '{value}'"))
}

/// A number of bytes, with RabbitMQ's units in any case: `k`, `kB` and so on are powers of 1000, `Ki`, `KiB`
/// and so on powers of 1024.
pub(super) fn bytes(value: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "must be a number of bytes, or with a unit (kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB), \
             got '{value}'"
        )
    };
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let (amount, unit) = value.split_at(digits);
    let amount: u64 = amount.parse().map_err(|_| wrong())?;
    let unit = unit.to_ascii_lowercase();
    let unit = unit.strip_suffix('b').unwrap_or(&unit);
    let (unit, base) = unit.strip_suffix('i').map_or((unit, 1000_u64), |unit| (unit, 1024));
    let power = match unit {
        "" if base == 1000 => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return Err(wrong()),
    };
    base.checked_pow(power).and_then(|factor| amount.checked_mul(factor)).ok_or_else(wrong)
}

/// A port, or an address with a port; an IPv6 address may omit the brackets.
pub(super) fn address(value: &str) -> Result<SocketAddr, String> {
    let wrong = || format!("must be a port or an address with a port, got '{value}'");
    if let Ok(port) = value.parse() {
        return Ok(SocketAddr::new(IpAddr::from([0_u16; 8]), port));
    }
    if let Ok(address) = value.parse() {
        return Ok(address);
    }
    let (address, port) = value.rsplit_once(':').ok_or_else(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    Ok(SocketAddr::new(address, port.parse().map_err(|_| wrong())?))
}

/// An IP address without a port.
pub(super) fn ip(value: &str) -> Result<IpAddr, String> {
    value.parse().map_err(|_| format!("must be an IP address, got '{value}'"))
}

/// The path of a readable file.
pub(super) fn readable_file(value: &str) -> Result<PathBuf, String> {
    match std::fs::File::open(value) {
        Ok(_) => Ok(PathBuf::from(value)),
        Err(error) => Err(format!("must be a file that can be read, got '{value}': {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_rabbitmqs_units() {
        for (text, amount) in [
            ("3", 3),
            ("3k", 3000),
            ("3kB", 3000),
            ("3Ki", 3072),
            ("3kib", 3072),
            ("3m", 3_000_000),
            ("3MiB", 3_145_728),
            ("2GB", 2_000_000_000),
            ("512MiB", 536_870_912),
            ("3GiB", 3_221_225_472),
            ("1TB", 1_000_000_000_000),
            ("1TiB", 1_099_511_627_776),
            ("1PB", 1_000_000_000_000_000),
        ] {
            assert_eq!(bytes(text), Ok(amount), "{text}");
        }
        for text in ["", "MB", "1.5GB", "2 GB", "1X", "-1", "1iB", "1MBs", "99999999PB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_may_be_ports() {
        let shown = |text| address(text).map(|address| address.to_string());
        assert_eq!(shown("5672").as_deref(), Ok("[::]:5672"));
        assert_eq!(shown("127.0.0.1:5672").as_deref(), Ok("127.0.0.1:5672"));
        assert_eq!(shown("::1:5673").as_deref(), Ok("[::1]:5673"));
        assert_eq!(shown("[::1]:5673").as_deref(), Ok("[::1]:5673"));
        for text in ["localhost:5672", "70000", "127.0.0.1", "127.0.0.1:", ""] {
            assert!(address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn errors_list_the_accepted_values() {
        assert_eq!(number("x", 0..=9), Err("must be a number from 0 to 9, got 'x'".to_owned()));
        assert_eq!(
            number_or("infinity", "x", 0..=9),
            Err("must be a number from 0 to 9 or 'infinity', got 'x'".to_owned())
        );
        assert_eq!(
            one_of("c", &[("a", 1), ("b", 2)]),
            Err("must be one of a, b, got 'c'".to_owned())
        );
        assert_eq!(one_of("c", &[("none", ())]), Err("must be none, got 'c'".to_owned()));
    }
}
