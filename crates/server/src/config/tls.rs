//! What can be said of TLS.

use std::path::PathBuf;

/// A version of TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TlsVersion {
    Tls12,
    Tls13,
}

/// The TLS of a listener.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TlsOptions {
    /// Certificates of those who sign clients' certificates.
    pub(crate) cacertfile: Option<PathBuf>,
    /// The chain of the server's certificate.
    pub(crate) certfile: Option<PathBuf>,
    /// Its private key.
    pub(crate) keyfile: Option<PathBuf>,
    /// What the key is encrypted with, if it is.
    pub(crate) password: Option<String>,
    /// Whether clients are asked for a certificate.
    pub(crate) verifies_peer: bool,
    /// Whether they must have one.
    pub(crate) needs_peer_certificate: bool,
    pub(crate) versions: Vec<TlsVersion>,
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self {
            cacertfile: None,
            certfile: None,
            keyfile: None,
            password: None,
            verifies_peer: false,
            needs_peer_certificate: false,
            versions: vec![TlsVersion::Tls13, TlsVersion::Tls12],
        }
    }
}

impl TlsOptions {
    /// What keeps a listener from using these: it is set by `listener`, they by keys that begin with
    /// `prefix`.
    pub(super) fn problem(&self, listener: &str, prefix: &str) -> Option<String> {
        let missing = [
            ("certfile", self.certfile.is_none()),
            ("keyfile", self.keyfile.is_none()),
            ("cacertfile", self.verifies_peer && self.cacertfile.is_none()),
        ];
        if let Some((name, _)) = missing.into_iter().find(|(_, is_missing)| *is_missing) {
            let why = if name == "cacertfile" { "verify_peer" } else { listener };
            return Some(format!("{why} needs {prefix}.{name}"));
        }
        (self.needs_peer_certificate && !self.verifies_peer).then(|| {
            format!("{prefix}.fail_if_no_peer_cert = true needs {prefix}.verify = verify_peer")
        })
    }
}

/// What of a client's certificate is the name of a user.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum CertificateName {
    /// The whole subject, as RFC 4514 writes it.
    #[default]
    Subject,
    /// What is called CN in it.
    SubjectCn,
    /// One of the alternative names.
    AlternativeName,
}

/// A kind of alternative name.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum SanType {
    #[default]
    Dns,
    Ip,
    Email,
    Uri,
}

/// How the name of a user is found in a client's certificate.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct CertificateLogin {
    pub(crate) name: CertificateName,
    pub(crate) san_type: SanType,
    /// Which of the alternative names of that type.
    pub(crate) san_index: usize,
}
