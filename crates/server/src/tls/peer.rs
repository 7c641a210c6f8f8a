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
        let der = connection.peer_certificates().and_then(|chain| chain.first());
        let details = TlsDetails {
            protocol: match connection.protocol_version() {
                Some(ProtocolVersion::TLSv1_2) => "tlsv1.2",
                _ => "tlsv1.3",
            },
            cipher: suite.and_then(|suite| suite.as_str()).unwrap_or_default().to_owned(),
            certificate: der.and_then(|der| certificate::info(der)),
        };
        Self { details, certificate_der: der.map(|der| der.to_vec()) }
    }
}

/// Why a handshake has failed, in words for an operator.
pub(crate) fn handshake_problem(error: &std::io::Error) -> String {
    let tls = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    match tls {
        Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            "the client does not speak TLS".to_owned()
        }
        Some(error) => error.to_string(),
        None => error.to_string(),
    }
}
