//! Numbers that do not change, in as few bytes as they need.

/// Bytes that one access reads, whatever the width.
const READ_BYTES: usize = size_of::<u64>();

/// A list of numbers. Each takes as many bytes as the largest distance from the lowest number needs: none if all are
/// equal.
#[derive(Debug)]
pub(crate) struct PackedNumbers {
    lowest: u64,
    /// Bytes of each distance.
    width: usize,
    /// The bits of a distance in the octets of an access.
    mask: u64,
    len: usize,
    /// The distances from the lowest number, in little endian, and octets behind the last that an access reads, too.
    bytes: Box<[u8]>,
}

impl PackedNumbers {
    /// Packs these numbers.
    pub(crate) fn new(numbers: impl ExactSizeIterator<Item = u64> + Clone) -> Self {
        let len = numbers.len();
        let lowest = numbers.clone().min().unwrap_or_default();
        let farthest = numbers.clone().max().unwrap_or_default() - lowest;
        let width = (u64::BITS - farthest.leading_zeros()).div_ceil(u8::BITS) as usize;
        let mask = u64::MAX.checked_shr(u64::BITS - u8::BITS * width as u32).unwrap_or(0);
        let mut bytes = vec![0; len * width + READ_BYTES - width].into_boxed_slice();
        for (at, number) in numbers.enumerate() {
            // The octets behind those of the width are 0, and the next distance replaces them.
            let octets = (number - lowest).to_le_bytes();
            bytes[at * width..][..READ_BYTES].copy_from_slice(&octets);
        }
        Self { lowest, width, mask, len, bytes }
    }

    /// The number at an index.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn get(&self, at: usize) -> u64 {
        assert!(at < self.len, "number {at} of {}", self.len);
        let octets = &self.bytes[at * self.width..][..READ_BYTES];
        let octets = octets.try_into().expect("the slice has the length of an integer");
        self.lowest + (u64::from_le_bytes(octets) & self.mask)
    }

    /// Index of the first of the ascending numbers that is not less than `bound`.
    pub(crate) fn lower_bound(&self, bound: u64) -> usize {
        let (mut from, mut to) = (0, self.len);
        while from < to {
            let middle = from.midpoint(to);
            if self.get(middle) < bound {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packed(numbers: &[u64]) -> PackedNumbers {
        PackedNumbers::new(numbers.iter().copied())
    }

    #[test]
    fn numbers_take_as_many_bytes_as_their_distances_need() {
        for (numbers, width) in [
            (&[][..], 0),
            (&[u64::MAX, u64::MAX], 0),
            (&[1000, 1255], 1),
            (&[1000, 1256], 2),
            (&[0, (1 << 56) - 1], 7),
            (&[0, u64::MAX], 8),
        ] {
            let packed = packed(numbers);
            assert_eq!(packed.width, width, "{numbers:?}");
            assert_eq!(packed.bytes.len(), numbers.len() * width + READ_BYTES - width);
        }
    }

    proptest! {
        #[test]
        fn packed_numbers_are_the_numbers(
            mut numbers in prop::collection::vec(any::<u64>(), 0..50),
            kept_bits in 0..=u64::BITS,
            bound in any::<u64>(),
        ) {
            let lost = u64::MAX.checked_shr(kept_bits).unwrap_or(0);
            numbers.iter_mut().for_each(|number| *number |= lost);
            numbers.sort_unstable();
            let packed = packed(&numbers);
            let read: Vec<u64> = (0..packed.len).map(|at| packed.get(at)).collect();
            prop_assert_eq!(&read, &numbers);
            let expected = numbers.partition_point(|number| *number < bound);
            prop_assert_eq!(packed.lower_bound(bound), expected);
            for number in &numbers {
                let at = packed.lower_bound(*number);
                prop_assert_eq!(packed.get(at), *number);
            }
        }
    }
}
