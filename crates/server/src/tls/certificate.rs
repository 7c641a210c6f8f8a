//! Names in certificates, as text.

use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::Decode as _;
use x509_cert::der::asn1::{
    BmpString, Ia5StringRef, PrintableStringRef, TeletexStringRef, Utf8StringRef,
};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::name::Name;

use crate::config::{CertificateLogin, CertificateName, SanType};
use crate::snapshot::client::CertificateDetails;

/// A certificate that may break rules which are not about what is read here.
type AnyCertificate = CertificateInner<Raw>;

/// Reads the details shown for a certificate.
pub(super) fn info(der: &[u8]) -> Option<CertificateDetails> {
    let certificate = AnyCertificate::from_der(der).ok()?;
    let certificate = certificate.tbs_certificate();
    let validity = certificate.validity();
    let (begin, end) = (validity.not_before.to_date_time(), validity.not_after.to_date_time());
    Some(CertificateDetails {
        subject: distinguished(certificate.subject()),
        issuer: distinguished(certificate.issuer()),
        validity: format!("{begin} - {end}"),
    })
}

/// Expiry of a certificate, in seconds since the Unix epoch.
pub(super) fn expiry_s(der: &[u8]) -> Option<i64> {
    let certificate = AnyCertificate::from_der(der).ok()?;
    let end = certificate.tbs_certificate().validity().not_after;
    i64::try_from(end.to_unix_duration().as_secs()).ok()
}

/// The user name in a certificate.
pub(crate) fn user_name(der: &[u8], login: CertificateLogin) -> Option<String> {
    let certificate = AnyCertificate::from_der(der).ok()?;
    let certificate = certificate.tbs_certificate();
    match login.name {
        CertificateName::Subject => Some(distinguished(certificate.subject())),
        CertificateName::SubjectCn => cn(certificate.subject()),
        CertificateName::AlternativeName => {
            let (_, SubjectAltName(names)) = certificate.get_extension().ok()??;
            let mut of_type = names.iter().filter_map(|name| alternative(name, login.san_type));
            of_type.nth(login.san_index)
        }
    }
}

/// The common names of a subject, joined by commas as in RabbitMQ.
fn cn(name: &Name) -> Option<String> {
    let attributes = name.iter().filter(|one| short_name(&one.oid.to_string()) == "CN");
    let names: Vec<String> = attributes.filter_map(text).collect();
    (!names.is_empty()).then(|| names.join(","))
}

/// The value of an attribute; none if it is no text.
fn text(attribute: &AttributeTypeAndValue) -> Option<String> {
    let value = &attribute.value;
    let text = value.decode_as::<Utf8StringRef<'_>>().map(|text| text.to_string());
    text.or_else(|_| value.decode_as::<PrintableStringRef<'_>>().map(|text| text.to_string()))
        .or_else(|_| value.decode_as::<Ia5StringRef<'_>>().map(|text| text.to_string()))
        .or_else(|_| value.decode_as::<TeletexStringRef<'_>>().map(|text| text.to_string()))
        .or_else(|_| value.decode_as::<BmpString>().map(|text| text.to_string()))
        .ok()
}

fn alternative(name: &GeneralName, wanted: SanType) -> Option<String> {
    match (wanted, name) {
        (SanType::Dns, GeneralName::DnsName(text))
        | (SanType::Email, GeneralName::Rfc822Name(text))
        | (SanType::Uri, GeneralName::UniformResourceIdentifier(text)) => Some(text.to_string()),
        (SanType::Ip, GeneralName::IpAddress(bytes)) => match <[u8; 4]>::try_from(bytes.as_bytes())
        {
            Ok(bytes) => Some(std::net::Ipv4Addr::from(bytes).to_string()),
            Err(_) => {
                let bytes = <[u8; 16]>::try_from(bytes.as_bytes()).ok()?;
                Some(std::net::Ipv6Addr::from(bytes).to_string())
            }
        },
        _ => None,
    }
}

/// A name in the format of RFC 4514: the last part first.
fn distinguished(name: &Name) -> String {
    let parts = name.iter_rdn().map(|rdn| {
        let attributes = rdn.iter().map(|attribute| {
            let value = text(attribute).map_or_else(|| "?".to_owned(), |value| escaped(&value));
            format!("{}={value}", short_name(&attribute.oid.to_string()))
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

    /// A certificate whose names have several types of text, and two attributes in one part.
    const TYPES: &str = "\
     MIIB3TCCAYKgAwIBAgIBBzAKBggqhkjOPQQDAjBMMREwDwYDVQQKDAjQl9Cw0Y/RhjEbMAgGA1UEAwwBYTAPBgoJkiaJk/I\
     sZAEBDAFiMRowGAYJKoZIhvcNAQkBFgt4QHkuZXhhbXBsZTAgFw0yNjExMzAxOTU0NDJaGA8yMTI2MTEwNjE5NTQ0MlowTD\
     ERMA8GA1UECgwI0JfQsNGP0YYxGzAIBgNVBAMMAWEwDwYKCZImiZPyLGQBAQwBYjEaMBgGCSqGSIb3DQEJARYLeEB5LmV4Y\
     W1wbGUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATw2adCSiOuUjuQDYcwqOz3MzniOdjCqSROp8QgwNmL2eHNYM1w4IJu\
     JsEeSPQV/emZkkeUU3u3SziYUNxxpx/oo1MwUTAdBgNVHQ4EFgQUT9J8ckeyb9rHFU6d68XZtEBnt68wHwYDVR0jBBgwFoA\
     UT9J8ckeyb9rHFU6d68XZtEBnt68wDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEA2eHqbWzBtS2YRzgTKT\
     H6cM/o64ZwUTHlY9wAL5e+G60CIQCTEMjKN4QmcpyGJehUnNHuEy1rDH12LVnD3ecldJ28EA==";

    /// A certificate whose serial number has 23 octets.
    const LONG_SERIAL: &str = "\
     MIIB8DCCAZagAwIBAgIXf/////////////////////////////8wCgYIKoZIzj0EAwIwTDERMA8GA1UECgwI0JfQsNGP0YY\
     xGzAIBgNVBAMMAWEwDwYKCZImiZPyLGQBAQwBYjEaMBgGCSqGSIb3DQEJARYLeEB5LmV4YW1wbGUwHhcNMjYxMTMwMTk1ND\
     MxWhcNMjcwMzEwMTk1NDMxWjBMMREwDwYDVQQKDAjQl9Cw0Y/RhjEbMAgGA1UEAwwBYTAPBgoJkiaJk/IsZAEBDAFiMRowG\
     AYJKoZIhvcNAQkBFgt4QHkuZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABPDZp0JKI65SO5ANhzCo7PczOeI5\
     2MKpJE6nxCDA2YvZ4c1gzXDggm4mwR5I9BX96ZmSR5RTe7dLOJhQ3HGnH+ijUzBRMB0GA1UdDgQWBBRP0nxyR7Jv2scVTp3\
     rxdm0QGe3rzAfBgNVHSMEGDAWgBRP0nxyR7Jv2scVTp3rxdm0QGe3rzAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0\
     gAMEUCIQDCHfAh0z1MsicPJme033Ys8tGw0BctWKEVj/oeo60+dQIgBczIG+EMVr589hl0iQLVbFOOQ5yjSyoID8k5NPIBW\
     RY=";

    fn der() -> Vec<u8> {
        bytes(CERTIFICATE)
    }

    fn bytes(text: &str) -> Vec<u8> {
        base64::engine::general_purpose::STANDARD.decode(text).unwrap()
    }

    #[test]
    fn names_are_read_in_every_type_of_text() {
        let info = info(&bytes(TYPES)).unwrap();
        assert_eq!(info.subject, "EMAILADDRESS=x@y.example,CN=a+UID=b,O=Заяц");
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
    fn serial_number_may_be_longer_than_the_standard_allows() {
        assert!(info(&bytes(LONG_SERIAL)).is_some());
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
