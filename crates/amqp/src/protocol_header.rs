//! The eight bytes with which a client opens a connection.
//!
//! The protocol that they ask for is decided here; the session answers. AMQP 1.0 is foreign: this crate
//! speaks 0-9-1 only.
//!
//! ```text
//! "A" "M" "Q" "P"   0  0  9  1     AMQP 0-9-1
//! "A" "M" "Q" "P"   1  1  0  9     the same, as clients of the 0-9 days wrote it
//! ```

/// The header of AMQP 0-9-1. A client sends it first; the server answers with it to offer 0-9-1.
pub const AMQP_0_9_1: [u8; 8] = *b"AMQP\x00\x00\x09\x01";

/// The older spelling of the same version, which RabbitMQ 4.3.6 still accepts (observed).
const AMQP_0_9_LEGACY: [u8; 8] = *b"AMQP\x01\x01\x00\x09";

/// Smallest minor version after `AMQP 0 0` for which RabbitMQ answers `AMQP 0 0 9 1`, not `AMQP 3 1 0 0`.
const MINOR_MIN: u8 = 9;

/// The protocol that the first bytes of a connection ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolHeader {
    /// A beginning of a known header, but fewer than eight bytes.
    Incomplete,
    /// AMQP 0-9-1; eight bytes are consumed.
    Amqp091,
    /// `AMQP 0 0` and a version from 9 on other than 9-1: the server answers [`AMQP_0_9_1`] and
    /// closes. RabbitMQ 4.3.6, observed: `0 0 9 0`, `0 0 9 2`, `0 0 10 0` and `0 0 255 255`.
    OtherAmqp09,
    /// Any other protocol: HTTP, TLS, AMQP 1.0, AMQP 0-8. RabbitMQ 4.3.6 answers `AMQP 3 1 0 0`
    /// (observed), because it speaks AMQP 1.0 too.
    Foreign,
}

/// Recognises the protocol in the bytes that a connection has received so far.
///
/// Answers at the first wrong octet: RabbitMQ 4.3.6 waits for all eight (observed), which lets a
/// client hold a socket until the handshake times out.
// COMPAT: protocol header: refused at its first wrong octet; RabbitMQ waits for all eight.
#[must_use]
pub fn parse(input: &[u8]) -> ProtocolHeader {
    if let Some(header) = input.first_chunk::<8>() {
        if *header == AMQP_0_9_1 || *header == AMQP_0_9_LEGACY {
            return ProtocolHeader::Amqp091;
        }
    } else if AMQP_0_9_1.starts_with(input) || AMQP_0_9_LEGACY.starts_with(input) {
        return ProtocolHeader::Incomplete;
    }
    match input {
        [b'A', b'M', b'Q', b'P', 0, 0, minor, ..] if *minor >= MINOR_MIN => {
            ProtocolHeader::OtherAmqp09
        }
        _ => ProtocolHeader::Foreign,
    }
}
