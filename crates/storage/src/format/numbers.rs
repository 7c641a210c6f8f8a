//! Fields of headers, little-endian.

/// Reads a field of a header whose length has been checked.
///
/// # Panics
/// If `bytes` is too short: the caller has not checked its length.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    u32::from_le_bytes(four.expect("the length of a header is checked before its fields"))
}

/// Reads a field of a header whose length has been checked; panics as [`u32_at`].
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let eight = bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok());
    u64::from_le_bytes(eight.expect("the length of a header is checked before its fields"))
}

/// Writes a field of a header.
///
/// # Panics
/// If `out` is too short: the header on the disk would lack the field.
pub(crate) fn put(out: &mut [u8], at: usize, value: u32) {
    let four = out.get_mut(at..at + 4).expect("a header has room for its fields");
    four.copy_from_slice(&value.to_le_bytes());
}

/// Writes a field of a header; panics as [`put`].
pub(crate) fn put_u64(out: &mut [u8], at: usize, value: u64) {
    let eight = out.get_mut(at..at + 8).expect("a header has room for its fields");
    eight.copy_from_slice(&value.to_le_bytes());
}
