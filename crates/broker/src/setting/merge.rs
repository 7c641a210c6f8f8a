//! The choice between two values of one key.

/// The rule by which one of two values counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Merge {
    /// The lower counts.
    Lower,
    /// The higher counts.
    Higher,
    /// The first counts, regardless of the second.
    First,
    /// The second counts, regardless of the first.
    Second,
    /// The lower counts, but the higher if one of them is negative, which means unlimited.
    DeliveryLimit,
}

impl Merge {
    /// The rule, as the documentation names it. The first value is that of the policies, the second the
    /// argument.
    pub(super) const fn in_words(self) -> &'static str {
        match self {
            Self::Lower => "the lower",
            Self::Higher => "the higher",
            Self::First => "policy",
            Self::Second => "argument",
            Self::DeliveryLimit => "the lower; the higher if one is negative",
        }
    }

    /// True if the second value counts and not the first; a value that is not a number is passed as none.
    pub(crate) fn prefers_second(self, first: Option<i64>, second: Option<i64>) -> bool {
        match (self, first, second) {
            (Self::Lower, Some(first), Some(second)) => second < first,
            (Self::Higher, Some(first), Some(second)) => second > first,
            (Self::DeliveryLimit, Some(first), Some(second)) => {
                let is_unlimited = first < 0 || second < 0;
                if is_unlimited { second > first } else { second < first }
            }
            (Self::First, ..) => false,
            (Self::Second | Self::Lower | Self::Higher | Self::DeliveryLimit, ..) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delivery_limit_counts_if_the_other_is_unlimited() {
        for (first, second, expected) in
            [(5, 3, true), (3, 5, false), (-1, 3, true), (3, -1, false), (0, -5, false)]
        {
            let chosen = Merge::DeliveryLimit.prefers_second(Some(first), Some(second));
            assert_eq!(chosen, expected, "{first} {second}");
        }
    }
}
