//! Keys for certificates, and for the verification of client certificates.

use crate::config::key::Key;
use crate::config::values::{boolean, number, one_of, readable_file};
use crate::config::{CertificateName, Config, SanType, TlsOptions, TlsVersion};

/// The values for TLS versions.
const VERSIONS: &[(&str, TlsVersion)] =
    &[("tlsv1.2", TlsVersion::Tls12), ("tlsv1.3", TlsVersion::Tls13)];

/// The values for the verification of client certificates.
const VERIFY: &[(&str, bool)] = &[("verify_none", false), ("verify_peer", true)];

/// The values for the part of a certificate that names the user.
const LOGIN_FROM: &[(&str, CertificateName)] = &[
    ("distinguished_name", CertificateName::Subject),
    ("common_name", CertificateName::SubjectCn),
    ("subject_alternative_name", CertificateName::AlternativeName),
    ("subject_alt_name", CertificateName::AlternativeName),
];

/// The values for types of alternative names.
const SAN_TYPES: &[(&str, SanType)] =
    &[("dns", SanType::Dns), ("ip", SanType::Ip), ("email", SanType::Email), ("uri", SanType::Uri)];

pub(super) const KEYS: &[Key] = &[
    Key::new("ssl_options.cacertfile", None, cacertfile::<Amqps>),
    Key::new("ssl_options.certfile", None, certfile::<Amqps>),
    Key::new("ssl_options.keyfile", None, keyfile::<Amqps>),
    Key::new("ssl_options.password", None, password::<Amqps>).secret(),
    Key::new("ssl_options.verify", Some("verify_none"), verify::<Amqps>),
    Key::new("ssl_options.fail_if_no_peer_cert", Some("false"), fail_if_none::<Amqps>),
    Key::new("ssl_options.versions.$version", None, version::<Amqps>),
    Key::new("ssl_handshake_timeout", Some("5000"), |config, _, value| {
        config.tls_handshake_timeout_ms = number(value, 1..=600_000)?;
        Ok(())
    }),
    Key::new("ssl_cert_login_from", Some("distinguished_name"), |config, _, value| {
        config.certificate_login.name = one_of(value, LOGIN_FROM)?;
        Ok(())
    }),
    Key::new("ssl_cert_login_san_type", Some("dns"), |config, _, value| {
        config.certificate_login.san_type = one_of(value, SAN_TYPES)?;
        Ok(())
    }),
    Key::new("ssl_cert_login_san_index", Some("0"), |config, _, value| {
        config.certificate_login.san_index = number(value, 0..=1000)?;
        Ok(())
    }),
    Key::new("management.ssl.cacertfile", None, cacertfile::<Https>),
    Key::new("management.ssl.certfile", None, certfile::<Https>),
    Key::new("management.ssl.keyfile", None, keyfile::<Https>),
    Key::new("management.ssl.password", None, password::<Https>).secret(),
    Key::new("management.ssl.verify", Some("verify_none"), verify::<Https>),
    Key::new("management.ssl.fail_if_no_peer_cert", Some("false"), fail_if_none::<Https>),
    Key::new("management.ssl.versions.$version", None, version::<Https>),
];

/// Selects one of the two sets of options.
pub(super) trait Which {
    /// The selected options of a configuration.
    fn of(config: &mut Config) -> &mut TlsOptions;
}

struct Amqps;

impl Which for Amqps {
    fn of(config: &mut Config) -> &mut TlsOptions {
        &mut config.tls
    }
}

/// The options of the links of a cluster.
pub(super) struct Links;

impl Which for Links {
    fn of(config: &mut Config) -> &mut TlsOptions {
        &mut config.cluster.tls
    }
}

struct Https;

impl Which for Https {
    fn of(config: &mut Config) -> &mut TlsOptions {
        &mut config.https_tls
    }
}

pub(super) fn cacertfile<W: Which>(
    config: &mut Config,
    _: &str,
    value: &str,
) -> Result<(), String> {
    W::of(config).cacertfile = Some(readable_file(value)?);
    Ok(())
}

pub(super) fn certfile<W: Which>(config: &mut Config, _: &str, value: &str) -> Result<(), String> {
    W::of(config).certfile = Some(readable_file(value)?);
    Ok(())
}

pub(super) fn keyfile<W: Which>(config: &mut Config, _: &str, value: &str) -> Result<(), String> {
    W::of(config).keyfile = Some(readable_file(value)?);
    Ok(())
}

pub(super) fn password<W: Which>(config: &mut Config, _: &str, value: &str) -> Result<(), String> {
    W::of(config).password = Some(value.to_owned());
    Ok(())
}

fn verify<W: Which>(config: &mut Config, _: &str, value: &str) -> Result<(), String> {
    W::of(config).verifies_peer = one_of(value, VERIFY)?;
    Ok(())
}

fn fail_if_none<W: Which>(config: &mut Config, _: &str, value: &str) -> Result<(), String> {
    W::of(config).needs_peer_certificate = boolean(value)?;
    Ok(())
}

fn version<W: Which>(config: &mut Config, _: &str, value: &str) -> Result<(), String> {
    let version = one_of(value, VERSIONS)?;
    let versions = &mut W::of(config).versions;
    if !versions.contains(&version) {
        versions.push(version);
    }
    Ok(())
}
