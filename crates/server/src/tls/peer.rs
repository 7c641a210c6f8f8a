//! TLS details of a client connection.

use rustls::{InvalidMessage, ProtocolVersion, ServerConnection};

use super::certificate;
use crate::snapshot::client::TlsDetails;

/// The TLS parameters and the certificate of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TlsPeer {
    /// The details shown in the management API.
    pub(crate) details: TlsDetails,
    /// The verified certificate of the client, DER-encoded.
    pub(crate) certificate_der: Option<Vec<u8>>,
}

impl TlsPeer {
    /// Reads the details from a connection after its handshake.
    pub(crate) fn of(connection: &ServerConnection) -> Self {
        let suite = connection.negotiated_cipher_suite().map(|suite| suite.suite());
        let suite = suite.and_then(|suite| suite.as_str());
        let der = connection.peer_certificates().and_then(|chain| chain.first());
        let Suite { key_exchange, cipher, hash } = Suite::of(suite.unwrap_or_default());
        let details = TlsDetails {
            protocol: match connection.protocol_version() {
                Some(ProtocolVersion::TLSv1_2) => "tlsv1.2",
                _ => "tlsv1.3",
            },
            key_exchange,
            cipher,
            hash,
            certificate: der.and_then(|der| certificate::info(der)),
        };
        Self { details, certificate_der: der.map(|der| der.to_vec()) }
    }
}

/// All words in [`TlsDetails`] but those of the certificate.
const WORDS: [&str; 9] = [
    "tlsv1.2",
    "tlsv1.3",
    "any",
    "ecdhe_ecdsa",
    "ecdhe_rsa",
    "aes_256_gcm",
    "aes_128_gcm",
    "chacha20_poly1305",
    "aead",
];

/// A word in [`TlsDetails`] that another node has told; empty for one that this node does not know.
pub(crate) fn known_word(word: &str) -> &'static str {
    WORDS.into_iter().find(|known| *known == word).unwrap_or_default()
}

/// The parts of a cipher suite in RabbitMQ's terms. Every suite of rustls is an AEAD, so the cipher also
/// authenticates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Suite {
    /// The key exchange; `any` in TLS 1.3, which negotiates it separately.
    key_exchange: &'static str,
    cipher: &'static str,
    hash: &'static str,
}

impl Suite {
    /// The parts of a suite, from its standard name.
    fn of(name: &str) -> Self {
        let find = |words: &[(&str, &'static str)]| {
            words.iter().find(|(part, _)| name.contains(part)).map(|(_, word)| *word)
        };
        let exchanges = [("ECDHE_ECDSA", "ecdhe_ecdsa"), ("ECDHE_RSA", "ecdhe_rsa")];
        let ciphers = [
            ("AES_256_GCM", "aes_256_gcm"),
            ("AES_128_GCM", "aes_128_gcm"),
            ("CHACHA20_POLY1305", "chacha20_poly1305"),
        ];
        Self {
            key_exchange: find(&exchanges).unwrap_or("any"),
            cipher: find(&ciphers).unwrap_or_default(),
            hash: "aead",
        }
    }
}

/// The reason of a failed handshake, as a sentence for an operator.
pub(crate) fn handshake_error(error: &std::io::Error) -> String {
    let tls = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    match tls {
        Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            "the client does not speak TLS".to_owned()
        }
        Some(error) => error.to_string(),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cipher_suites_all_have_descriptions() {
        let words = |name| {
            let suite = Suite::of(name);
            (suite.key_exchange, suite.cipher, suite.hash)
        };
        assert_eq!(words("TLS13_AES_256_GCM_SHA384"), ("any", "aes_256_gcm", "aead"));
        assert_eq!(
            words("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
            ("ecdhe_rsa", "chacha20_poly1305", "aead")
        );
        for suite in rustls::crypto::ring::ALL_CIPHER_SUITES {
            let Suite { key_exchange, cipher, hash } = Suite::of(suite.suite().as_str().unwrap());
            assert_ne!(cipher, "");
            assert_eq!([key_exchange, cipher, hash].map(known_word), [key_exchange, cipher, hash]);
        }
    }
}
