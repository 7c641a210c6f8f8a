//! Whose value counts if two give one for the same key.

/// How two values of one key become one (spec 5.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Merge {
    /// The lower counts.
    Lower,
    /// The higher counts.
    Higher,
    /// The first counts, whatever the second is.
    First,
    /// The second counts, whatever the first is.
    Second,
    /// The lower counts, but the higher if one of them is negative, which means unlimited.
    DeliveryLimit,
}

impl Merge {
    /// Whether the second value counts and not the first; what is no number is given as none.
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
    fn a_delivery_limit_counts_where_the_other_is_none() {
        for (first, second, expected) in
            [(5, 3, true), (3, 5, false), (-1, 3, true), (3, -1, false), (0, -5, false)]
        {
            let chosen = Merge::DeliveryLimit.prefers_second(Some(first), Some(second));
            assert_eq!(chosen, expected, "{first} {second}");
        }
    }
}
