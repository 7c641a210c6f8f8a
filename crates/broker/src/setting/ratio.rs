//! Ratios, as `delayed-retry-multiplier` and `delayed-retry-jitter` give them.

use std::fmt;

use amqp::table::Value;

/// A number that is not negative, in millionths, so that equal values are equal bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ratio {
    millionths: u32,
}

/// One, in millionths.
const ONE: u32 = 1_000_000;

impl Ratio {
    /// The highest ratio.
    pub(super) const MAX: u32 = u32::MAX / ONE;

    /// The nearest ratio; none for a number that is negative, higher than 4294 or no number.
    pub fn of(number: f64) -> Option<Self> {
        let millionths = (number * f64::from(ONE)).round();
        let is_known = (0.0..=f64::from(u32::MAX)).contains(&millionths);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within the range of the type"
        )]
        is_known.then_some(Self { millionths: millionths as u32 })
    }

    /// The ratio as a number.
    pub fn as_f64(self) -> f64 {
        f64::from(self.millionths) / f64::from(ONE)
    }

    /// The whole number, if it is one.
    pub(super) const fn as_whole(self) -> Option<u32> {
        if self.millionths.is_multiple_of(ONE) { Some(self.millionths / ONE) } else { None }
    }

    /// The ratio as a number by which ratios are compared.
    pub(super) fn as_number(self) -> i64 {
        i64::from(self.millionths)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_f64().fmt(f)
    }
}

/// The number of a value that may have a fraction.
#[expect(clippy::cast_precision_loss, reason = "ratios are small")]
pub(super) fn number(value: &Value<'_>) -> Option<f64> {
    if let Value::F32(number) = *value {
        Some(f64::from(number))
    } else if let Value::F64(number) = *value {
        Some(number)
    } else {
        value.as_integer().map(|number| number as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_keeps_six_digits() {
        for (number, shown) in
            [(0.0, "0"), (0.2, "0.2"), (1.5, "1.5"), (2.0, "2"), (0.333_333_3, "0.333333")]
        {
            assert_eq!(Ratio::of(number).unwrap().to_string(), shown);
        }
        assert_eq!(Ratio::of(2.0).unwrap().as_whole(), Some(2));
        assert_eq!(Ratio::of(2.5).unwrap().as_whole(), None);
    }

    #[test]
    fn ratio_is_refused() {
        for number in [-0.1, 4295.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Ratio::of(number), None, "{number}");
        }
    }
}
