//! TLS options of the configuration.

use std::path::PathBuf;

/// A TLS version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TlsVersion {
    Tls12,
    Tls13,
}

/// TLS options of a listener.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TlsOptions {
    /// The certificates of the authorities that sign client certificates.
    pub(crate) cacertfile: Option<PathBuf>,
    /// The certificate chain of the server.
    pub(crate) certfile: Option<PathBuf>,
    /// The private key of the server.
    pub(crate) keyfile: Option<PathBuf>,
    /// The password of an encrypted key.
    pub(crate) password: Option<String>,
    /// True if clients are asked for a certificate.
    pub(crate) verifies_peer: bool,
    /// True if clients must present a certificate.
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
    /// The reason why a listener cannot use these options. `listener` is the key that enables the listener,
    /// `prefix` the prefix of the keys of these options.
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

/// The part of a client certificate that names the user.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum CertificateName {
    /// The whole subject in the format of RFC 4514.
    #[default]
    Subject,
    /// The common name (CN) of the subject.
    SubjectCn,
    /// One of the subject alternative names.
    AlternativeName,
}

/// A type of subject alternative name.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum SanType {
    #[default]
    Dns,
    Ip,
    Email,
    Uri,
}

/// Rules for reading the user name from a client certificate.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct CertificateLogin {
    pub(crate) name: CertificateName,
    pub(crate) san_type: SanType,
    /// Index among the alternative names of this type.
    pub(crate) san_index: usize,
}
