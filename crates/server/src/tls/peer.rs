//! What is known of a client that speaks TLS.

use management::TlsDetails;
use rustls::{InvalidMessage, ProtocolVersion, ServerConnection};

use super::certificate;

/// How a client speaks TLS, and who it says it is: beside the connection's other metadata.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TlsPeer {
    /// What is told of that.
    pub(crate) details: TlsDetails,
    /// The octets of its certificate, which was verified.
    pub(crate) certificate_der: Option<Vec<u8>>,
}

impl TlsPeer {
    /// Reads it from a connection whose handshake is over.
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

/// How a connection is enciphered, in RabbitMQ's words. Every suite of rustls authenticates with its
/// cipher (`aead`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Suite {
    /// `any` in TLS 1.3, which agrees on it apart from the suite.
    key_exchange: &'static str,
    cipher: &'static str,
    hash: &'static str,
}

impl Suite {
    /// The words for a suite, by its name in the standard.
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

/// Why a handshake has failed, in words for an operator.
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
    fn every_suite_that_is_spoken_has_its_words() {
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
            assert_ne!(Suite::of(suite.suite().as_str().unwrap()).cipher, "");
        }
    }
}
