//! The first frames of a stream for a client: `Adopt`, with everything that the leader must know of the client, and its
//! answer.
//!
//! The judgement is that of [`replica::relay`]; the description is here, because it tells of TLS in the words of the
//! management API. Both frames are a length (4 octets, little-endian) and that many octets. Texts are bounded; the peer is a proved node of the
//! cluster, and still its octets are read like those of a stranger.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use amqp::table::{Table, TableRef};
use replica::relay::Answer;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::cluster::fields::{Fields, Malformed};
use crate::limits::{ADOPT_BYTES_MAX, ADOPT_TEXT_BYTES_MAX};
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
        let mut out = Vec::new();
        // Names are never cut: another name is another user.
        put_octets(&mut out, self.user.as_bytes());
        put_octets(&mut out, self.vhost.as_bytes());
        for end in [self.peer, self.local] {
            put_address(&mut out, end);
        }
        put(&mut out, self.mechanism);
        out.extend_from_slice(&self.frame_max.to_le_bytes());
        out.extend_from_slice(&self.channel_max.to_le_bytes());
        out.extend_from_slice(&self.heartbeat_s.to_le_bytes());
        put_octets(&mut out, self.properties.as_ref().as_bytes());
        out.push(u8::from(self.tls.is_some()));
        if let Some(TlsDetails { protocol, key_exchange, cipher, hash, certificate }) = &self.tls {
            for word in [protocol, key_exchange, cipher, hash] {
                put(&mut out, word);
            }
            out.push(u8::from(certificate.is_some()));
            if let Some(CertificateDetails { subject, issuer, validity }) = certificate {
                for text in [subject, issuer, validity] {
                    put(&mut out, text);
                }
            }
        }
        out
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
        let properties = TableRef::from_bytes(octets(&mut fields)?).map_err(|_| Malformed)?;
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
    match answer {
        Answer::Adopted => vec![ADOPTED],
        Answer::NotLeading(leader) => {
            let mut out = vec![NOT_LEADING];
            put(&mut out, leader.as_deref().unwrap_or_default());
            out
        }
        Answer::Unknown => vec![UNKNOWN],
        Answer::Stopping => vec![STOPPING],
    }
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

/// Writes a frame.
pub(super) async fn write_frame(
    stream: &mut (impl AsyncWrite + Unpin),
    content: &[u8],
) -> io::Result<()> {
    let length = u32::try_from(content.len()).expect("a frame has at most 2^32 octets");
    stream.write_all(&[&length.to_le_bytes(), content].concat()).await?;
    stream.flush().await
}

/// Reads a frame, and never behind it.
///
/// # Errors
/// If the stream ends, or for a frame of more than [`ADOPT_BYTES_MAX`] octets.
pub(super) async fn read_frame(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let length = stream.read_u32_le().await?;
    let length = usize::try_from(length).ok().filter(|length| *length <= ADOPT_BYTES_MAX);
    let Some(length) = length else { return Err(io::ErrorKind::InvalidData.into()) };
    let mut content = vec![0; length];
    stream.read_exact(&mut content).await?;
    Ok(content)
}

/// Appends a text, without what exceeds its bound.
fn put(out: &mut Vec<u8>, text: &str) {
    let end = text.floor_char_boundary(ADOPT_TEXT_BYTES_MAX);
    put_octets(out, text.get(..end).unwrap_or_default().as_bytes());
}

fn put_octets(out: &mut Vec<u8>, octets: &[u8]) {
    let length = u32::try_from(octets.len()).expect("octets of a frame before the tuning are few");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(octets);
}

/// Appends an address; one of IPv4 as IPv6 maps it.
fn put_address(out: &mut Vec<u8>, address: SocketAddr) {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    out.extend_from_slice(&ip.octets());
    out.extend_from_slice(&address.port().to_le_bytes());
}

fn octets<'a>(fields: &mut Fields<'a>) -> Result<&'a [u8], Malformed> {
    let length = usize::try_from(fields.u32()?).map_err(|_| Malformed)?;
    fields.bytes(length)
}

fn text(fields: &mut Fields<'_>) -> Result<String, Malformed> {
    let octets = octets(fields)?;
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
        let error = read_frame(&mut bytes).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let mut out = Vec::new();
        write_frame(&mut out, b"content").await.unwrap();
        assert_eq!(read_frame(&mut &out[..]).await.unwrap(), b"content");
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
