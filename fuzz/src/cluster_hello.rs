//! The bytes that a node reads from another one. The first byte chooses: the messages of a handshake, the chunks of a
//! link, a frame of the link itself, which a checksum would keep from a fuzzer, or a message about joining.

/// Checks a stream of bytes, in whole and in pieces.
pub fn check(input: &[u8]) {
    let Some((choice, rest)) = input.split_first() else { return };
    let (reader, pieces) = (choice % 4, 1 + usize::from(choice / 4));
    let whole = server::check_link_bytes(reader, rest, usize::MAX);
    assert_eq!(whole, server::check_link_bytes(reader, rest, pieces));
}
