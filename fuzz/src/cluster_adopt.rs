//! The frames with which nodes hand over a client. The first byte chooses: an `Adopt`, or the answer to one.

/// Checks a frame.
pub fn check(input: &[u8]) {
    let Some((choice, frame)) = input.split_first() else { return };
    server::check_adopt_bytes(choice % 2 == 1, frame);
}
