//! Names in certificates, as text.

use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::X509Name;

use crate::config::{CertificateLogin, CertificateName, SanType};
use crate::snapshot::client::CertificateDetails;

/// Reads the details shown for a certificate.
pub(super) fn info(der: &[u8]) -> Option<CertificateDetails> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let validity = certificate.validity();
    let time = |time: i64| {
        let time = x509_parser::time::ASN1Time::from_timestamp(time).ok()?;
        let time = time.to_datetime();
        let date = time.date();
        let (month, day) = (u8::from(date.month()), date.day());
        Some(format!("{}-{month:02}-{day:02}T{}Z", date.year(), clock(time.to_hms())))
    };
    let (begin, end) = (validity.not_before.timestamp(), validity.not_after.timestamp());
    Some(CertificateDetails {
        subject: distinguished(certificate.subject()),
        issuer: distinguished(certificate.issuer()),
        validity: format!("{} - {}", time(begin)?, time(end)?),
    })
}

/// Expiry of a certificate, in seconds since the Unix epoch.
pub(super) fn expiry_s(der: &[u8]) -> Option<i64> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

fn clock((hour, minute, second): (u8, u8, u8)) -> String {
    format!("{hour:02}:{minute:02}:{second:02}")
}

/// The user name in a certificate.
pub(crate) fn user_name(der: &[u8], login: CertificateLogin) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    match login.name {
        CertificateName::Subject => Some(distinguished(certificate.subject())),
        CertificateName::SubjectCn => cn(certificate.subject()),
        CertificateName::AlternativeName => {
            let names = certificate.subject_alternative_name().ok()??;
            let of_type = names.value.general_names.iter();
            of_type.filter_map(|name| alternative(name, login.san_type)).nth(login.san_index)
        }
    }
}

/// The common names of a subject, joined by commas as in RabbitMQ.
fn cn(name: &X509Name<'_>) -> Option<String> {
    let attributes = name.iter_attributes();
    let attributes = attributes.filter(|one| short_name(&one.attr_type().to_id_string()) == "CN");
    let names: Vec<&str> = attributes.filter_map(|one| one.as_str().ok()).collect();
    (!names.is_empty()).then(|| names.join(","))
}

fn alternative(name: &GeneralName<'_>, wanted: SanType) -> Option<String> {
    match (wanted, name) {
        (SanType::Dns, GeneralName::DNSName(text))
        | (SanType::Email, GeneralName::RFC822Name(text))
        | (SanType::Uri, GeneralName::URI(text)) => Some((*text).to_owned()),
        (SanType::Ip, GeneralName::IPAddress(bytes)) => match <[u8; 4]>::try_from(*bytes) {
            Ok(bytes) => Some(std::net::Ipv4Addr::from(bytes).to_string()),
            Err(_) => {
                let bytes = <[u8; 16]>::try_from(*bytes).ok()?;
                Some(std::net::Ipv6Addr::from(bytes).to_string())
            }
        },
        _ => None,
    }
}

/// A name in the format of RFC 4514: the last part first.
fn distinguished(name: &X509Name<'_>) -> String {
    let parts = name.iter_rdn().map(|rdn| {
        let attributes = rdn.iter().map(|attribute| {
            let oid = attribute.attr_type().to_id_string();
            let value = attribute.as_str().map(escaped);
            format!("{}={}", short_name(&oid), value.unwrap_or_else(|_| "?".to_owned()))
        });
        attributes.collect::<Vec<_>>().join("+")
    });
    let mut parts: Vec<String> = parts.collect();
    parts.reverse();
    parts.join(",")
}

/// The short names of RFC 4514 and those that RabbitMQ adds; other attributes keep their number.
fn short_name(oid: &str) -> &str {
    match oid {
        "2.5.4.3" => "CN",
        "2.5.4.6" => "C",
        "2.5.4.7" => "L",
        "2.5.4.8" => "ST",
        "2.5.4.9" => "STREET",
        "2.5.4.10" => "O",
        "2.5.4.11" => "OU",
        "0.9.2342.19200300.100.1.1" => "UID",
        "0.9.2342.19200300.100.1.25" => "DC",
        "1.2.840.113549.1.9.1" => "EMAILADDRESS",
        "2.5.4.5" => "SERIALNUMBER",
        other => other,
    }
}

fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let last = value.chars().count().saturating_sub(1);
    for (index, c) in value.chars().enumerate() {
        let is_edge = (c == ' ' && (index == 0 || index == last)) || (c == '#' && index == 0);
        if is_edge || matches!(c, ',' | '+' | '"' | '\\' | '<' | '>' | ';') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::*;

    /// A certificate of `C=SE, O="Hare, Inc.", CN=bob, CN=smith`, signed by `CN=ca`.
    const CERTIFICATE: &str = "\
     MIIBfjCCASSgAwIBAgIBATAKBggqhkjOPQQDAjANMQswCQYDVQQDDAJjYTAeFw0yNjAxMDIwMzA0MDVaFw00NjEyMz\
     EyMzU5NTlaMEAxCzAJBgNVBAYTAlNFMRMwEQYDVQQKDApIYXJlLCBJbmMuMQwwCgYDVQQDDANib2IxDjAMBgNVBAMM\
     BXNtaXRoMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEvihdVkAtNI8nNFRsV+INjqUwAlFrb7RF3CXJ9rHAxno84q\
     Uo9HKMHjjvOnjR30vB4CMlwCct/OsYuFIGx6Ecd6NCMEAwPgYDVR0RBDcwNYIJYS5leGFtcGxlggliLmV4YW1wbGWB\
     C2JvYkBleGFtcGxlhxAAAAAAAAAAAAAAAAAAAAABMAoGCCqGSM49BAMCA0gAMEUCIQCjTXc+arYtCUFfSgMo/t5T30\
     l5AegwtCBpSJhWO8c+VwIgXdrd3zJ/dNSKG2H8J89XUimZk7DOCb6R3GE6jH1NPdc=";

    fn der() -> Vec<u8> {
        base64::engine::general_purpose::STANDARD.decode(CERTIFICATE).unwrap()
    }

    #[test]
    fn certificate_subject_and_issuer_are_read() {
        let info = info(&der()).unwrap();
        assert_eq!(info.subject, "CN=smith,CN=bob,O=Hare\\, Inc.,C=SE");
        assert_eq!(info.issuer, "CN=ca");
        assert_eq!(info.validity, "2026-01-02T03:04:05Z - 2046-12-31T23:59:59Z");
        assert_eq!(expiry_s(&der()), Some(2_429_913_599));
    }

    #[test]
    fn user_name_is_the_configured_field() {
        let name = |name, san_type, san_index| {
            user_name(&der(), CertificateLogin { name, san_type, san_index })
        };
        let san = |san_type, index| name(CertificateName::AlternativeName, san_type, index);
        let subject = name(CertificateName::Subject, SanType::Dns, 0);
        assert_eq!(subject.as_deref(), Some("CN=smith,CN=bob,O=Hare\\, Inc.,C=SE"));
        let cn = name(CertificateName::SubjectCn, SanType::Dns, 0);
        assert_eq!(cn.as_deref(), Some("bob,smith"));
        assert_eq!(san(SanType::Dns, 1).as_deref(), Some("b.example"));
        assert_eq!(san(SanType::Dns, 2), None);
        assert_eq!(san(SanType::Email, 0).as_deref(), Some("bob@example"));
        assert_eq!(san(SanType::Ip, 0).as_deref(), Some("::1"));
        assert_eq!(san(SanType::Uri, 0), None);
    }

    #[test]
    fn invalid_certificate_has_no_details() {
        let whole = der();
        for length in 0..whole.len() {
            let part = whole.get(..length).unwrap_or_default();
            assert_eq!(info(part), None);
            assert_eq!(user_name(part, CertificateLogin::default()), None);
        }
    }

    #[test]
    fn separators_in_names_are_escaped() {
        assert_eq!(escaped("a,b+c"), "a\\,b\\+c");
        assert_eq!(escaped(" #a "), "\\ #a\\ ");
        assert_eq!(escaped("#a"), "\\#a");
    }
}
