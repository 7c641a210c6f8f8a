//! Hashes of what has happened: every octet of a run goes through one, so they take words.

const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// The hash of a number behind what has this hash.
pub(crate) fn add(hash: u64, number: u64) -> u64 {
    let product = u128::from(hash ^ number ^ FACTOR.rotate_left(32)) * u128::from(FACTOR);
    (product as u64) ^ ((product >> 64) as u64)
}

/// The hash of octets behind what has this hash.
pub(crate) fn hash(octets: &[u8], before: u64) -> u64 {
    let (words, rest) = octets.as_chunks();
    let sum = words.iter().fold(before, |sum, word| add(sum, u64::from_le_bytes(*word)));
    let mut last = [0; size_of::<u64>()];
    last[..rest.len()].copy_from_slice(rest);
    add(add(sum, u64::from_le_bytes(last)), octets.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_depends_on_every_octet_and_the_length() {
        let octets: Vec<u8> = (0..20).collect();
        let whole = hash(&octets, 1);
        assert_ne!(whole, hash(&octets, 2));
        for at in 0..octets.len() {
            let mut other = octets.clone();
            other[at] ^= 1;
            assert_ne!(whole, hash(&other, 1), "octet {at}");
        }
        assert_ne!(hash(&[0; 7], 1), hash(&[0; 8], 1));
        assert_ne!(hash(&[0; 8], 1), hash(&[0; 16], 1));
    }
}
