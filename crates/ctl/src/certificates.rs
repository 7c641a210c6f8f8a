//! Verification of the certificates of nodes whose API uses HTTPS.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};

use crate::failure::{CONFIG, Failure};

/// Files in which systems keep the certificates of trusted authorities.
const SYSTEM: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Authorities that may sign the certificate of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Trust {
    /// The authorities of the system.
    System,
    /// The authorities in this file.
    File(String),
    /// No verification: the address is one of this machine, or the caller has switched it off.
    Anybody,
}

impl Trust {
    /// Configuration of the HTTP client.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn tls(&self, read: &dyn Fn(&Path) -> Option<String>) -> Result<TlsConfig, Failure> {
        let certificates = match self {
            Self::Anybody => Vec::new(),
            Self::System => {
                let bundle = SYSTEM.iter().find_map(|file| read(Path::new(file)));
                certificates(&bundle.unwrap_or_default())
            }
            Self::File(file) => {
                let all = certificates(&read(Path::new(file)).unwrap_or_default());
                if all.is_empty() {
                    let problem = format!("Error: there are no certificates in '{file}'");
                    return Err(Failure::plain(CONFIG, problem));
                }
                all
            }
        };
        Ok(TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .root_certs(RootCerts::new_with_certs(&certificates))
            .disable_verification(*self == Self::Anybody)
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
            .build())
    }
}

/// The certificates in a file.
fn certificates(pem: &str) -> Vec<Certificate<'static>> {
    let certificate = |item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    };
    parse_pem(pem.as_bytes()).filter_map(certificate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_file_without_certificates_is_refused() {
        let trust = Trust::File("ca.pem".to_owned());
        let wrong = |text: Option<&str>| trust.tls(&|_| text.map(str::to_owned)).unwrap_err();
        let expected = Failure::plain(CONFIG, "Error: there are no certificates in 'ca.pem'");
        assert_eq!(wrong(None), expected);
        assert_eq!(wrong(Some("no PEM")), expected);
        assert!(Trust::System.tls(&|_| None).is_ok());
        assert!(Trust::Anybody.tls(&|_| None).unwrap().disable_verification());
        assert!(!Trust::System.tls(&|_| None).unwrap().disable_verification());
    }
}
