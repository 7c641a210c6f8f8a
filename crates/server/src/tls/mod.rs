//! TLS of a listener: certificate and key from files, reloaded while the broker runs.

mod accept;
mod certificate;
mod handshake_records;
pub(crate) mod links;
mod peer;
pub(crate) mod reload;
mod stream;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, RwLock};
use pkcs8::{EncryptedPrivateKeyInfoRef, SecretDocument};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::time_provider::TimeProvider;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use tokio_rustls::TlsAcceptor;

use crate::config::{TlsOptions, TlsVersion, is_readable_by_all};

pub(crate) use certificate::user_name;
pub(crate) use peer::{TlsPeer, handshake_error, known_word};
pub(crate) use stream::{TlsReader, TlsWriter, split};

/// The reason why a listener cannot use its certificate.
#[derive(thiserror::Error, Debug)]
pub(crate) enum TlsError {
    #[error("cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: std::io::Error },
    #[error("{} has no certificate in PEM format", .0.display())]
    NoCertificate(PathBuf),
    #[error("{} has no private key in PEM format", .0.display())]
    NoKey(PathBuf),
    #[error("{} is encrypted, with another password or none that is given", .0.display())]
    Encrypted(PathBuf),
    #[error("{} and {} do not work: {error}", certificate.display(), key.display())]
    Unusable { certificate: PathBuf, key: PathBuf, error: rustls::Error },
    #[error("{} does not work: {error}", path.display())]
    Authorities { path: PathBuf, error: String },
    #[error("{0}")]
    Other(#[from] rustls::Error),
}

/// The ALPN name of HTTP/1.1.
const HTTP_1_1: &[u8] = b"http/1.1";

/// The PEM delimiters of an encrypted key.
const ENCRYPTED_BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const ENCRYPTED_END: &str = "-----END ENCRYPTED PRIVATE KEY-----";

/// The TLS of a listener, with the configuration that new clients get.
#[derive(Debug)]
pub(crate) struct Tls {
    what: &'static str,
    options: TlsOptions,
    basis: Basis,
    handshake_timeout: Duration,
    current: RwLock<Arc<ServerConfig>>,
    seen: Mutex<Vec<Option<Stamp>>>,
}

/// The part of a TLS configuration that depends on the protocol of the listener.
#[derive(Clone, Copy, Debug)]
struct Basis {
    provider: fn() -> CryptoProvider,
    /// The protocols offered by ALPN.
    alpn: &'static [&'static [u8]],
    /// Session tickets that a client gets after a TLS 1.3 handshake, to resume the session later.
    tickets: usize,
}

/// No tickets, as in RabbitMQ: a ticket arrives in a record without data between the handshake and
/// `connection.start`, and some clients mistake such a record for the end of the stream. AMQP connections
/// live long, so tickets would save few handshakes.
const AMQP_BASIS: Basis = Basis { provider: handshake_records::provider, alpn: &[], tickets: 0 };

const HTTP_BASIS: Basis = Basis { provider: ring::default_provider, alpn: &[HTTP_1_1], tickets: 2 };

/// Modification time and length of a file, to detect changes.
type Stamp = (SystemTime, u64);

impl Tls {
    /// Creates the TLS of AMQP, with one record for each handshake message.
    ///
    /// # Errors
    /// [`TlsError`], which names the file.
    pub(crate) fn for_amqp(
        options: TlsOptions,
        handshake_timeout: Duration,
    ) -> Result<Self, TlsError> {
        Self::new("AMQPS", options, handshake_timeout, AMQP_BASIS)
    }

    /// Creates the TLS of HTTP.
    ///
    /// # Errors
    /// [`TlsError`], which names the file.
    pub(crate) fn for_http(
        options: TlsOptions,
        handshake_timeout: Duration,
    ) -> Result<Self, TlsError> {
        Self::new("HTTPS", options, handshake_timeout, HTTP_BASIS)
    }

    /// Reads the files and builds the configuration.
    fn new(
        what: &'static str,
        options: TlsOptions,
        handshake_timeout: Duration,
        basis: Basis,
    ) -> Result<Self, TlsError> {
        let seen = Mutex::new(stamps(&options));
        let current = RwLock::new(Arc::new(server_config(&options, basis)?));
        Ok(Self { what, options, basis, handshake_timeout, current, seen })
    }

    /// The time limit of a handshake.
    pub(crate) const fn handshake_timeout(&self) -> Duration {
        self.handshake_timeout
    }

    /// The listener that uses this TLS, for log lines.
    pub(crate) const fn what(&self) -> &'static str {
        self.what
    }

    /// The acceptor for the next HTTP client.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.current())
    }

    /// The configuration for the next client.
    fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read())
    }

    /// Reloads the files if one has changed, or in any case if `must` is true. If the new files are unusable,
    /// the old configuration stays in force.
    pub(crate) fn reload(&self, must: bool) {
        let now = stamps(&self.options);
        let before = std::mem::replace(&mut *self.seen.lock(), now.clone());
        if before == now && !must {
            return;
        }
        let what = self.what;
        match server_config(&self.options, self.basis) {
            Ok(config) => {
                *self.current.write() = Arc::new(config);
                tracing::info!("{what} has a new certificate");
            }
            Err(error) => tracing::error!("{what} keeps its certificate: {error}"),
        }
    }
}

/// Earliest expiry of a certificate in a file, in seconds since the Unix epoch.
pub(crate) fn expiry_s(path: &Path) -> Option<i64> {
    let all = certificates(path).ok()?;
    all.iter().map(|one| certificate::expiry_s(one)).min().flatten()
}

fn stamps(options: &TlsOptions) -> Vec<Option<Stamp>> {
    let files = [&options.certfile, &options.keyfile, &options.cacertfile];
    let stamp = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    files.into_iter().flatten().map(stamp).collect()
}

fn server_config(options: &TlsOptions, basis: Basis) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new((basis.provider)());
    let certificate = options.certfile.clone().unwrap_or_default();
    let key = options.keyfile.clone().unwrap_or_default();
    let (chain, private_key) =
        (certificates(&certificate)?, private_key(&key, options.password.as_deref())?);
    if is_readable_by_all(&key) {
        tracing::warn!(key = %key.display(), "every user of this machine can read the private key");
    }
    let versions: Vec<&SupportedProtocolVersion> = options.versions.iter().map(version).collect();
    let builder = ServerConfig::builder_with_details(Arc::clone(&provider), Arc::new(AnyTime))
        .with_protocol_versions(&versions)?;
    let builder = match options.cacertfile.as_ref().filter(|_| options.verifies_peer) {
        Some(path) => builder.with_client_cert_verifier(verifier(options, path, provider)?),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder
        .with_single_cert(chain, private_key)
        .map_err(|error| TlsError::Unusable { certificate, key, error })?;
    config.alpn_protocols = basis.alpn.iter().map(|name| name.to_vec()).collect();
    config.send_tls13_tickets = basis.tickets;
    Ok(config)
}

/// The clock for the validity of client certificates: a time before 1970 counts as 1970, where the clock of
/// rustls panics.
#[derive(Debug)]
struct AnyTime;

impl TimeProvider for AnyTime {
    fn current_time(&self) -> Option<UnixTime> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Some(UnixTime::since_unix_epoch(since))
    }
}

const fn version(version: &TlsVersion) -> &'static SupportedProtocolVersion {
    match version {
        TlsVersion::Tls12 => &rustls::version::TLS12,
        TlsVersion::Tls13 => &rustls::version::TLS13,
    }
}

/// The verifier of client certificates.
fn verifier(
    options: &TlsOptions,
    path: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let unusable = |error: String| TlsError::Authorities { path: path.to_owned(), error };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = match options.needs_peer_certificate {
        true => builder,
        false => builder.allow_unauthenticated(),
    };
    builder.build().map_err(|error| unusable(error.to_string()))
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|error| TlsError::Read { path: path.to_owned(), error })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(path)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let all = all.ok().filter(|all| !all.is_empty());
    all.ok_or_else(|| TlsError::NoCertificate(path.to_owned()))
}

/// The first private key of a file; a PKCS#8 key may be encrypted.
fn private_key(path: &Path, password: Option<&str>) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = read(path)?;
    if let Ok(key) = PrivateKeyDer::from_pem_slice(&text) {
        return Ok(key);
    }
    let text = String::from_utf8_lossy(&text);
    let (_, begin) =
        text.split_once(ENCRYPTED_BEGIN).ok_or_else(|| TlsError::NoKey(path.to_owned()))?;
    let (body, _) =
        begin.split_once(ENCRYPTED_END).ok_or_else(|| TlsError::NoKey(path.to_owned()))?;
    decrypted(&format!("{ENCRYPTED_BEGIN}{body}{ENCRYPTED_END}\n"), password)
        .ok_or_else(|| TlsError::Encrypted(path.to_owned()))
}

fn decrypted(pem: &str, password: Option<&str>) -> Option<PrivateKeyDer<'static>> {
    let (_, encrypted) = SecretDocument::from_pem(pem).ok()?;
    let encrypted = EncryptedPrivateKeyInfoRef::try_from(encrypted.as_bytes()).ok()?;
    let key = encrypted.decrypt(password?).ok()?;
    Some(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}
