//! The first frames of a stream for a client: `Adopt`, with everything that the leader must know of the client, and its
//! answer.
//!
//! The judgement is that of [`replica::relay`]; the description is here, because it tells of TLS in the words of the
//! management API. Both frames are a length (4 octets, little-endian) and that many octets. Texts are bounded; the peer is a proved node of the
//! cluster, and still its octets are read like those of a stranger.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use amqp::table::{Table, TableRef};
use replica::relay::Answer;

use crate::limits::ADOPT_TEXT_BYTES_MAX;
use crate::membership::fields::{FieldWriter, Fields, Malformed};
use crate::snapshot::client::{CertificateDetails, TlsDetails};
use crate::tls::known_word;

/// A client whose vhost the receiver leads.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Adopt {
    pub(super) user: String,
    pub(super) vhost: String,
    /// Address of the client.
    pub(super) peer: SocketAddr,
    /// Address of the listener.
    pub(super) local: SocketAddr,
    pub(super) mechanism: &'static str,
    pub(super) frame_max: u32,
    pub(super) channel_max: u16,
    pub(super) heartbeat_s: u16,
    /// The table in `connection.start-ok`.
    pub(super) properties: Table,
    pub(super) tls: Option<TlsDetails>,
}

const ADOPTED: u8 = 1;
const NOT_LEADING: u8 = 2;
const UNKNOWN: u8 = 3;
const STOPPING: u8 = 4;

impl Adopt {
    /// The octets of the frame, without its length.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = FieldWriter::default();
        // Names are never cut: another name is another user.
        out.octets(self.user.as_bytes()).octets(self.vhost.as_bytes());
        for end in [self.peer, self.local] {
            put_address(&mut out, end);
        }
        put(&mut out, self.mechanism);
        out.u32(self.frame_max).u16(self.channel_max).u16(self.heartbeat_s);
        out.octets(self.properties.as_ref().as_bytes()).flag(self.tls.is_some());
        if let Some(TlsDetails { protocol, key_exchange, cipher, hash, certificate }) = &self.tls {
            for word in [protocol, key_exchange, cipher, hash] {
                put(&mut out, word);
            }
            out.flag(certificate.is_some());
            if let Some(CertificateDetails { subject, issuer, validity }) = certificate {
                for text in [subject, issuer, validity] {
                    put(&mut out, text);
                }
            }
        }
        out.into_bytes()
    }

    /// Reads a frame. Octets behind it are of later versions.
    ///
    /// # Errors
    /// [`Malformed`].
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields(bytes);
        let (user, vhost) = (text(&mut fields)?, text(&mut fields)?);
        let (peer, local) = (address(&mut fields)?, address(&mut fields)?);
        let mechanism = text(&mut fields)?;
        let known = session::MECHANISMS.into_iter().find(|known| *known == mechanism);
        let (frame_max, channel_max, heartbeat_s) = (fields.u32()?, fields.u16()?, fields.u16()?);
        let properties = TableRef::from_bytes(fields.octets()?).map_err(|_| Malformed)?;
        let tls = if fields.flag()? { Some(tls(&mut fields)?) } else { None };
        Ok(Self {
            user,
            vhost,
            peer,
            local,
            mechanism: known.ok_or(Malformed)?,
            frame_max,
            channel_max,
            heartbeat_s,
            properties: properties.to_table(),
            tls,
        })
    }
}

/// The octets of the frame of an answer, without its length.
pub(super) fn encode_answer(answer: &Answer) -> Vec<u8> {
    let mut out = FieldWriter::default();
    match answer {
        Answer::Adopted => out.u8(ADOPTED),
        Answer::NotLeading(leader) => {
            put(out.u8(NOT_LEADING), leader.as_deref().unwrap_or_default())
        }
        Answer::Unknown => out.u8(UNKNOWN),
        Answer::Stopping => out.u8(STOPPING),
    };
    out.into_bytes()
}

/// Reads the frame of an answer.
///
/// # Errors
/// [`Malformed`].
pub(super) fn decode_answer(bytes: &[u8]) -> Result<Answer, Malformed> {
    let mut fields = Fields(bytes);
    Ok(match fields.u8()? {
        ADOPTED => Answer::Adopted,
        NOT_LEADING => {
            let leader = text(&mut fields)?;
            Answer::NotLeading(Some(leader).filter(|leader| !leader.is_empty()))
        }
        UNKNOWN => Answer::Unknown,
        STOPPING => Answer::Stopping,
        _ => return Err(Malformed),
    })
}

/// Reads an `Adopt` or an answer, for fuzzing.
///
/// # Panics
/// When one that was read is not written as one that is read again with the same result.
pub(crate) fn check_bytes(is_answer: bool, bytes: &[u8]) {
    if is_answer {
        let Ok(answer) = decode_answer(bytes) else { return };
        assert_eq!(decode_answer(&encode_answer(&answer)), Ok(answer), "an answer is read again");
    } else {
        let Ok(adopt) = Adopt::decode(bytes) else { return };
        assert_eq!(Adopt::decode(&adopt.encode()), Ok(adopt), "an adopt is read again");
    }
}

/// Writes a text, without what exceeds its bound.
fn put<'a>(out: &'a mut FieldWriter, text: &str) -> &'a mut FieldWriter {
    let end = text.floor_char_boundary(ADOPT_TEXT_BYTES_MAX);
    out.octets(text.get(..end).unwrap_or_default().as_bytes())
}

/// Writes an address; one of IPv4 as IPv6 maps it.
fn put_address(out: &mut FieldWriter, address: SocketAddr) {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    out.bytes(&ip.octets()).u16(address.port());
}

fn text(fields: &mut Fields<'_>) -> Result<String, Malformed> {
    let octets = fields.octets()?;
    if octets.len() > ADOPT_TEXT_BYTES_MAX {
        return Err(Malformed);
    }
    String::from_utf8(octets.to_vec()).map_err(|_| Malformed)
}

fn address(fields: &mut Fields<'_>) -> Result<SocketAddr, Malformed> {
    let (ip, port) = (Ipv6Addr::from(fields.array::<16>()?), fields.u16()?);
    Ok(SocketAddr::new(IpAddr::V6(ip).to_canonical(), port))
}

fn tls(fields: &mut Fields<'_>) -> Result<TlsDetails, Malformed> {
    let mut word = || text(fields).map(|word| known_word(&word));
    let (protocol, key_exchange, cipher, hash) = (word()?, word()?, word()?, word()?);
    let certificate = match fields.flag()? {
        true => Some(CertificateDetails {
            subject: text(fields)?,
            issuer: text(fields)?,
            validity: text(fields)?,
        }),
        false => None,
    };
    Ok(TlsDetails { protocol, key_exchange, cipher, hash, certificate })
}

#[cfg(test)]
mod tests {
    use amqp::table::{TableBuilder, Value};
    use proptest::prelude::*;

    use super::*;
    use crate::limits::ADOPT_BYTES_MAX;
    use crate::membership::fields::{hex, read_message, write_message};

    fn adopt() -> Adopt {
        let certificate = CertificateDetails {
            subject: "CN=anna".to_owned(),
            issuer: "CN=authority".to_owned(),
            validity: "2026".to_owned(),
        };
        let tls = TlsDetails {
            protocol: "tlsv1.3",
            key_exchange: "any",
            cipher: "aes_256_gcm",
            hash: "aead",
            certificate: Some(certificate),
        };
        let properties = TableBuilder::new().insert("product", Value::LongStr(b"pika")).finish();
        Adopt {
            user: "guest".to_owned(),
            vhost: "/".to_owned(),
            peer: "10.1.2.3:4567".parse().unwrap(),
            local: "[fe80::1]:5672".parse().unwrap(),
            mechanism: "PLAIN",
            frame_max: 131_072,
            channel_max: 2047,
            heartbeat_s: 60,
            properties,
            tls: Some(tls),
        }
    }

    #[test]
    fn frames_have_the_octets_of_earlier_builds() {
        let all = [adopt(), Adopt { tls: None, ..adopt() }].map(|adopt| hex(&adopt.encode()));
        let leader = Some("b@h".to_owned());
        let answers =
            [Answer::Adopted, Answer::NotLeading(leader), Answer::Unknown, Answer::Stopping];
        let answers = answers.map(|answer| hex(&encode_answer(&answer)));
        let without_tls = "050000006775657374010000002f00000000000000000000ffff0a010203d711fe800000000000000000000000000001281605000000504c41494e00000200ff073c00110000000770726f64756374530000000470696b61";
        let tls = "0107000000746c7376312e3303000000616e790b0000006165735f3235365f67636d04000000616561640107000000434e3d616e6e610c000000434e3d617574686f726974790400000032303236";
        assert_eq!(all, [format!("{without_tls}{tls}"), format!("{without_tls}00")]);
        assert_eq!(answers, ["01", "0203000000624068", "03", "04"]);
    }

    #[test]
    fn adopt_reads_back_and_is_refused_when_cut() {
        for adopt in [adopt(), Adopt { tls: None, ..adopt() }] {
            let bytes = adopt.encode();
            assert_eq!(Adopt::decode(&bytes), Ok(adopt));
            for length in 0..bytes.len() {
                assert_eq!(Adopt::decode(&bytes[..length]), Err(Malformed), "{length}");
            }
            let later = [bytes, vec![1, 2, 3]].concat();
            assert!(Adopt::decode(&later).is_ok());
        }
    }

    #[test]
    fn texts_of_certificates_are_cut() {
        let mut long = adopt();
        let tls = long.tls.as_mut().unwrap();
        tls.certificate.as_mut().unwrap().subject = "é".repeat(ADOPT_TEXT_BYTES_MAX);
        let bytes = long.encode();
        assert!(bytes.len() <= ADOPT_BYTES_MAX);
        let read = Adopt::decode(&bytes).unwrap();
        let subject = read.tls.unwrap().certificate.unwrap().subject;
        assert_eq!(subject.len(), ADOPT_TEXT_BYTES_MAX);
    }

    #[test]
    fn answers_read_back() {
        let leader = Some("b@h".to_owned());
        for answer in [
            Answer::Adopted,
            Answer::NotLeading(None),
            Answer::NotLeading(leader),
            Answer::Unknown,
            Answer::Stopping,
        ] {
            assert_eq!(decode_answer(&encode_answer(&answer)), Ok(answer));
        }
        assert_eq!(decode_answer(&[9]), Err(Malformed));
        assert_eq!(decode_answer(&[]), Err(Malformed));
    }

    #[tokio::test]
    async fn frames_beyond_the_bound_take_no_memory() {
        let mut bytes = &[0xff, 0xff, 0xff, 0xff, 1][..];
        let error = read_message(&mut bytes, ADOPT_BYTES_MAX).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
        let mut out = Vec::new();
        write_message(&mut out, b"content").await.unwrap();
        assert_eq!(read_message(&mut &out[..], 7).await.unwrap(), b"content");
        assert!(read_message(&mut &out[..], 6).await.is_err());
    }

    proptest! {
        #[test]
        fn any_octets_are_read_or_refused(
            octets in proptest::collection::vec(any::<u8>(), 0..300),
            changes in proptest::collection::vec((0_usize..300, any::<u8>()), 0..4),
        ) {
            let _ = (Adopt::decode(&octets), decode_answer(&octets));
            let mut bytes = adopt().encode();
            for (at, octet) in changes {
                let at = at % bytes.len();
                bytes[at] = octet;
            }
            if let Ok(read) = Adopt::decode(&bytes) {
                prop_assert_eq!(Adopt::decode(&read.encode()), Ok(read));
            }
        }
    }
}
