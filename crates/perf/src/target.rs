//! The broker under load: address, login, vhost, TLS.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use amq_protocol_uri::{AMQPScheme, AMQPUri};
use anyhow::{Context as _, Result, anyhow};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, crypto};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The two halves of a connection.
type Halves = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

/// A broker, and the login there.
#[derive(Clone)]
pub(crate) struct Target {
    host: String,
    port: u16,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) vhost: String,
    tls: Option<TlsConnector>,
}

impl fmt::Display for Target {
    /// Leaves the login out, because logs print this.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Target {
    /// Reads `amqp[s]://USER:PASSWORD@HOST:PORT/VHOST`; `authority` signs the broker's certificate.
    ///
    /// # Errors
    /// If the URI is malformed, or the certificate cannot be read.
    pub(crate) fn new(uri: &str, authority: Option<&Path>) -> Result<Self> {
        // Without the URI itself, which has a password.
        let uri: AMQPUri = uri.parse().map_err(|error| anyhow!("--uri: {error}"))?;
        let tls = match uri.scheme {
            AMQPScheme::AMQP => None,
            AMQPScheme::AMQPS => {
                let file = authority.context("amqps needs --cacert FILE")?;
                Some(connector(file).with_context(|| file.display().to_string())?)
            }
        };
        Ok(Self {
            host: uri.authority.host,
            port: uri.authority.port,
            user: uri.authority.userinfo.username,
            password: uri.authority.userinfo.password,
            vhost: uri.vhost,
            tls,
        })
    }

    /// Opens the socket, and TLS over it.
    ///
    /// # Errors
    /// If the connection is refused, or the certificate is not trusted.
    pub(crate) async fn connect(&self) -> Result<Halves> {
        let socket = TcpStream::connect((self.host.as_str(), self.port)).await;
        let socket = socket.with_context(|| format!("cannot connect to {self}"))?;
        socket.set_nodelay(true)?;
        let Some(tls) = &self.tls else {
            let (read, write) = socket.into_split();
            return Ok((Box::new(read), Box::new(write)));
        };
        let name = ServerName::try_from(self.host.clone())?;
        let stream = tls.connect(name, socket).await.with_context(|| format!("TLS to {self}"))?;
        let (read, write) = tokio::io::split(stream);
        Ok((Box::new(read), Box::new(write)))
    }
}

fn connector(file: &Path) -> Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file)? {
        roots.add(certificate?)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
