//! The proof that a node knows the secret of its cluster.
//!
//! HMAC-SHA-256 with the secret as key, over a label with the direction, both hellos, and the exporter of the TLS
//! session if there is one. Both nonces are in the hellos, so that a proof is of no use in another dialogue; the
//! direction is in it, so that a proof cannot be sent back; the exporter is in it, so that nobody can pass on the
//! messages of one TLS session in another.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of a proof.
pub(crate) const PROOF_BYTES: usize = 32;

/// Bytes that both ends of a TLS session derive from it.
pub(crate) const EXPORTER_BYTES: usize = 32;

/// The secret of a cluster, never shown.
#[derive(Clone)]
pub(crate) struct Secret(Vec<u8>);

impl Secret {
    /// The secret of this text.
    pub(crate) fn new(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The side of a link that sends a proof.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// The side that opened the connection.
    Dialer,
    /// The side that accepted it.
    Acceptor,
}

/// The parts of a dialogue that both sides have seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transcript<'a> {
    /// The hello of the dialer, as it was sent.
    pub(crate) dialer: &'a [u8],
    /// The hello of the acceptor, as it was sent.
    pub(crate) acceptor: &'a [u8],
    /// Bytes that both derive from the TLS session; none without TLS.
    pub(crate) exporter: Option<[u8; EXPORTER_BYTES]>,
}

impl Transcript<'_> {
    fn mac(&self, secret: &Secret, side: Side) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&secret.0).expect("HMAC takes keys of any length");
        mac.update(match side {
            Side::Dialer => b"leveret link proof of the dialer\0",
            Side::Acceptor => b"leveret link proof of the acceptor\0",
        });
        for part in [self.dialer, self.acceptor] {
            let length = u32::try_from(part.len()).expect("a hello has at most 64 KiB");
            mac.update(&length.to_le_bytes());
            mac.update(part);
        }
        mac.update(&[u8::from(self.exporter.is_some())]);
        mac.update(&self.exporter.unwrap_or_default());
        mac
    }

    /// The proof of one side.
    pub(crate) fn proof(&self, secret: &Secret, side: Side) -> [u8; PROOF_BYTES] {
        self.mac(secret, side).finalize().into_bytes().into()
    }

    /// True if `proof` is that of `side`, in constant time.
    pub(crate) fn proves(&self, secret: &Secret, side: Side, proof: &[u8]) -> bool {
        self.mac(secret, side).verify_slice(proof).is_ok()
    }
}
