//! Numbers in the sentences of warnings: with separators, units and the fitting form of the noun.

/// A number with separators: `1,805`.
pub(super) fn number(value: u64) -> String {
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

/// `1 message`, `1,805 messages`.
pub(super) fn count(value: u64, noun: &str) -> String {
    let plural = if value == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", number(value))
}

/// A duration in the largest unit that leaves nothing over: `10 min`, `90 s`, `1,500 ms`.
pub(super) fn duration(ms: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")];
    let fitting = units.into_iter().find(|(size, _)| ms >= *size && ms.is_multiple_of(*size));
    let (size, unit) = fitting.unwrap_or((1, "ms"));
    format!("{} {unit}", number(ms / size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_separators_units_and_the_fitting_noun() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(count(1, "message"), "1 message");
        assert_eq!(count(1805, "message"), "1,805 messages");
        assert_eq!(duration(600_000), "10 min");
        assert_eq!(duration(90_000), "90 s");
        assert_eq!(duration(1500), "1,500 ms");
        assert_eq!(duration(0), "0 ms");
        assert_eq!(duration(172_800_000), "2 d");
    }
}
