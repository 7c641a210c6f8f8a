//! TLS of the links between nodes: TLS 1.3, with certificates of both sides.

use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, TlsStream};

use super::{Basis, Tls, TlsError, certificates, private_key};
use crate::config::{TlsOptions, TlsVersion};

/// The protocol name of ALPN, so that no other TLS service is mistaken for a node.
const ALPN: &[u8] = b"leveret-link";

/// Label of the exporter.
const EXPORTER: &[u8] = b"EXPORTER-leveret-link";

const LINK_BASIS: Basis = Basis { provider: ring::default_provider, alpn: &[ALPN], tickets: 0 };

/// Options of links: both sides show a certificate, and TLS 1.3 is the only version.
fn options(configured: &TlsOptions) -> TlsOptions {
    TlsOptions {
        verifies_peer: true,
        needs_peer_certificate: true,
        versions: vec![TlsVersion::Tls13],
        ..configured.clone()
    }
}

impl Tls {
    /// Creates the TLS of a listener for links.
    ///
    /// # Errors
    /// [`TlsError`], which names the file.
    pub(crate) fn for_links(
        configured: &TlsOptions,
        handshake_timeout: Duration,
    ) -> Result<Self, TlsError> {
        client_config(configured)?;
        Self::new("links", options(configured), handshake_timeout, LINK_BASIS)
    }

    /// Shakes hands with a node that has connected.
    ///
    /// # Errors
    /// The reason as text.
    pub(crate) async fn accept_link(
        &self,
        socket: TcpStream,
    ) -> Result<TlsStream<TcpStream>, String> {
        let accepted = self.acceptor().accept(socket).await;
        accepted.map(TlsStream::from).map_err(|error| super::handshake_error(&error))
    }
}

/// Shakes hands with the node at `host`. The files are read anew, so that a renewed certificate is in use.
///
/// # Errors
/// The reason as text.
pub(crate) async fn connect(
    configured: &TlsOptions,
    socket: TcpStream,
    host: &str,
) -> Result<TlsStream<TcpStream>, String> {
    let config = client_config(configured).map_err(|error| error.to_string())?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let connected = TlsConnector::from(Arc::new(config)).connect(name, socket).await;
    connected.map(TlsStream::from).map_err(|error| error.to_string())
}

/// Bytes that both ends derive from a session.
///
/// # Errors
/// If the session cannot derive it.
pub(crate) fn exporter<const N: usize>(stream: &TlsStream<TcpStream>) -> Result<[u8; N], String> {
    let (_, connection) = stream.get_ref();
    let exported = match stream {
        TlsStream::Client(stream) => {
            stream.get_ref().1.export_keying_material([0; N], EXPORTER, None)
        }
        TlsStream::Server(stream) => {
            stream.get_ref().1.export_keying_material([0; N], EXPORTER, None)
        }
    };
    // Without ALPN the other side is some other service.
    if connection.alpn_protocol() != Some(ALPN) {
        return Err("the peer is not a node".to_owned());
    }
    exported.map_err(|error| error.to_string())
}

fn client_config(configured: &TlsOptions) -> Result<ClientConfig, TlsError> {
    let certificate = configured.certfile.clone().unwrap_or_default();
    let key = configured.keyfile.clone().unwrap_or_default();
    let authorities = configured.cacertfile.clone().unwrap_or_default();
    let chain = certificates(&certificate)?;
    let private_key = private_key(&key, configured.password.as_deref())?;
    let mut roots = RootCertStore::empty();
    for authority in certificates(&authorities)? {
        roots.add(authority).map_err(|error| TlsError::Authorities {
            path: authorities.clone(),
            error: error.to_string(),
        })?;
    }
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_details(provider, Arc::new(super::AnyTime));
    let mut config = builder
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, private_key)
        .map_err(|error| TlsError::Unusable { certificate, key, error })?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(config)
}
