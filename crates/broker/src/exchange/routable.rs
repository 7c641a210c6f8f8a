//! The part of a message that exchanges route by, and the hash used to choose one of several destinations.

use amqp::properties::Properties;
use amqp::table::TableRef;

/// The parts of a message that an exchange can see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routable<'a> {
    pub(crate) routing_key: &'a [u8],
    /// The encoded properties of the message; only some exchange types decode them.
    pub(crate) properties: &'a [u8],
}

impl<'a> Routable<'a> {
    /// The decoded properties; the publish has already validated them.
    pub(super) fn decoded(self) -> Properties<'a> {
        Properties::parse(self.properties).expect("a message has valid properties")
    }

    pub(super) fn headers(self) -> TableRef<'a> {
        self.decoded().headers.unwrap_or(TableRef::EMPTY)
    }
}

/// A hash that stays the same across restarts and releases: FNV-1a with a final mix, so that similar keys get
/// distant values.
pub(super) fn stable_hash(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
