//! Writes each encrypted handshake message into a record of its own.
//!
//! TLS 1.3 lets a server put several handshake messages into one record, and rustls puts all messages after
//! `ServerHello` into one. The NIO mode of RabbitMQ's Java client cannot read that. For a record with a
//! certificate its TLS engine reports `NEED_TASK`. If `Finished` was in the same record, the engine then
//! waits to send the client's `Finished`, but the client first reads the next record, and none comes. If
//! `Finished` has a record of its own, the engine reports `NEED_WRAP` and the client continues. Erlang's TLS,
//! and so RabbitMQ, sends one record for each message.
//!
//! rustls has no option for that, but it allows custom encryption of records. The encrypter here encrypts
//! each message of the flight into a record and returns these records in one envelope: a record of a type
//! that TLS does not have. [`open_envelopes`] extracts the records before the bytes go to the socket.

use std::sync::LazyLock;

use rustls::crypto::cipher::{
    AeadKey, Iv, MessageDecrypter, MessageEncrypter, OutboundChunks, OutboundOpaqueMessage,
    OutboundPlainMessage, PrefixedPayload, Tls13AeadAlgorithm, UnsupportedOperationError,
};
use rustls::crypto::{CryptoProvider, ring};
use rustls::{
    CipherSuiteCommon, ConnectionTrafficSecrets, ContentType, Error, HandshakeType,
    ProtocolVersion, SupportedCipherSuite, Tls13CipherSuite,
};

/// The record type of an envelope, which TLS does not use.
const ENVELOPE: u8 = 0xff;

/// Bytes of a record header: type, version, and the length in the last two.
const RECORD_HEADER_BYTES: usize = 5;

/// Bytes of a handshake message header: type, and the length in the last three.
const MESSAGE_HEADER_BYTES: usize = 4;

/// The cryptography of `ring`, with one record for each handshake message of TLS 1.3.
///
/// Output of a connection with this provider must pass through [`open_envelopes`] during the handshake; later
/// output contains no envelopes.
pub(super) fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    for suite in &mut provider.cipher_suites {
        let separate = SUITES.iter().find(|one| one.common.suite == suite.suite());
        if let Some(separate) = separate {
            *suite = SupportedCipherSuite::Tls13(separate);
        }
    }
    provider
}

/// Appends the bytes of whole records to `out`, replacing an envelope by the records in it.
pub(super) fn open_envelopes(mut bytes: &[u8], out: &mut Vec<u8>) {
    while let Some((header, after)) = bytes.split_first_chunk::<RECORD_HEADER_BYTES>() {
        let [kind, _, _, length @ ..] = *header;
        let (content, rest) = after.split_at(usize::from(u16::from_be_bytes(length)));
        if kind != ENVELOPE {
            out.extend_from_slice(header);
        }
        out.extend_from_slice(content);
        bytes = rest;
    }
    assert!(bytes.is_empty(), "rustls queues whole records");
}

/// The TLS 1.3 suites of `ring` with encrypters that separate handshake messages.
static SUITES: LazyLock<Vec<Tls13CipherSuite>> = LazyLock::new(|| {
    let suites = ALGORITHMS.iter().map(|(suite, algorithm)| Tls13CipherSuite {
        common: CipherSuiteCommon { ..suite.common },
        hkdf_provider: suite.hkdf_provider,
        aead_alg: algorithm,
        quic: None,
    });
    suites.collect()
});

static ALGORITHMS: LazyLock<Vec<(&'static Tls13CipherSuite, SeparateRecords)>> =
    LazyLock::new(|| {
        let suites = ring::ALL_CIPHER_SUITES.iter().filter_map(SupportedCipherSuite::tls13);
        suites.map(|suite| (suite, SeparateRecords(suite.aead_alg))).collect()
    });

/// An algorithm whose encrypters put each handshake message into a record of its own.
struct SeparateRecords(&'static dyn Tls13AeadAlgorithm);

impl Tls13AeadAlgorithm for SeparateRecords {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        let encrypter = self.0.encrypter(key, iv);
        Box::new(Encrypter { encrypter, flight: None, added_records: 0 })
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        self.0.decrypter(key, iv)
    }

    fn key_len(&self) -> usize {
        self.0.key_len()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv)
    }

    fn fips(&self) -> bool {
        self.0.fips()
    }
}

/// Encrypts outgoing records under one key. Handshake keys protect the server's flight and perhaps an alert;
/// traffic keys protect everything after it.
struct Encrypter {
    encrypter: Box<dyn MessageEncrypter>,
    /// The state of the flight, from its first record on.
    flight: Option<MessageEnds>,
    /// Records made here that rustls does not count: the sequence number of a record is higher by this number
    /// than rustls assumes.
    added_records: u64,
}

impl MessageEncrypter for Encrypter {
    fn encrypt(
        &mut self,
        message: OutboundPlainMessage<'_>,
        sequence: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        let sequence = sequence + self.added_records;
        if message.typ != ContentType::Handshake {
            return self.encrypter.encrypt(message, sequence);
        }
        let bytes = message.payload.to_vec();
        if self.flight.is_none() {
            // Any other message is sent after the handshake.
            if bytes.first().copied().map(HandshakeType::from)
                != Some(HandshakeType::EncryptedExtensions)
            {
                return self.encrypter.encrypt(message, sequence);
            }
            self.flight = Some(MessageEnds::default());
        }
        let mut records = PrefixedPayload::with_capacity(2 * bytes.len());
        let mut count = 0;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let ends = self.flight.get_or_insert_default();
            let (part, after) = rest.split_at(ends.next(rest));
            let (typ, version) = (message.typ, message.version);
            let payload = OutboundChunks::Single(part);
            let part = OutboundPlainMessage { typ, version, payload };
            let record = self.encrypter.encrypt(part, sequence + count)?;
            records.extend_from_slice(&record.encode());
            count += 1;
            rest = after;
        }
        self.added_records += count.saturating_sub(1);
        Ok(OutboundOpaqueMessage::new(
            ContentType::from(ENVELOPE),
            ProtocolVersion::TLSv1_2,
            records,
        ))
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        self.encrypter.encrypted_payload_len(payload_len)
    }
}

/// Finds the ends of handshake messages in bytes that arrive in parts, as a long certificate chain does.
#[derive(Default)]
struct MessageEnds {
    header: [u8; MESSAGE_HEADER_BYTES],
    /// Bytes of the header received so far.
    header_bytes: usize,
    /// Bytes of the message still missing, once the header is complete.
    missing_bytes: usize,
}

impl MessageEnds {
    /// Returns the number of leading bytes that belong to the current message.
    fn next(&mut self, bytes: &[u8]) -> usize {
        let mut used = 0;
        while let Some(place) = self.header.get_mut(self.header_bytes) {
            let Some(byte) = bytes.get(used) else { return used };
            *place = *byte;
            (self.header_bytes, used) = (self.header_bytes + 1, used + 1);
            if self.header_bytes == MESSAGE_HEADER_BYTES {
                let [_, high, middle, low] = self.header;
                self.missing_bytes =
                    usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
            }
        }
        let body = self.missing_bytes.min(bytes.len() - used);
        self.missing_bytes -= body;
        if self.missing_bytes == 0 {
            self.header_bytes = 0;
        }
        used + body
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use rustls::pki_types::{
        CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime,
    };
    use rustls::time_provider::TimeProvider;
    use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

    use super::*;

    /// A self-signed certificate for `broker.example`, and its key.
    const CERTIFICATE: &str = "\
        MIIBojCCAUegAwIBAgIULS9p4d+K7JxhgEP1gmI8/cKsJrwwCgYIKoZIzj0EAwIwGTEXMBUGA1UEAwwOYnJva2VyLm\
        V4YW1wbGUwIBcNMjYxMTIyMTUwMDI3WhgPMjEyNjEwMjkxNTAwMjdaMBkxFzAVBgNVBAMMDmJyb2tlci5leGFtcGxl\
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEMwpDMRlgDukdtptELQsUqfwgk5lvuIliPGUKZW+LPDdXb8pRXjsGzH\
        eQ3J0efIH84iplsR7vgQBwc3CkxdrDoaNrMGkwHQYDVR0OBBYEFIRtpb99wOsk7NG809yDZpl5vSr3MB8GA1UdIwQY\
        MBaAFIRtpb99wOsk7NG809yDZpl5vSr3MBkGA1UdEQQSMBCCDmJyb2tlci5leGFtcGxlMAwGA1UdEwEB/wQCMAAwCg\
        YIKoZIzj0EAwIDSQAwRgIhAKO7x0jenc9SEewzzyopMNeHdTzFl1JPf0pavKKxTrC+AiEAkRg6ikUCeIIfKZDGLXT8\
        8xqpk8+5cZgErsSTDF8xaz8=";
    const KEY: &str = "\
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgK7yXmwMIqQ2SC+fF8KHJkjJiWtwPAspMxq9Zt7v4cK\
        mhRANCAAQzCkMxGWAO6R22m0QtCxSp/CCTmW+4iWI8ZQplb4s8N1dvylFeOwbMd5DcnR58gfziKmWxHu+BAHBzcKTF\
        2sOh";

    /// A time at which the certificate is valid, in seconds since the Unix epoch.
    const VALID_AT_S: u64 = 2_000_000_000;

    const HANDSHAKE: u8 = 22;
    const CHANGE_CIPHER_SPEC: u8 = 20;
    const ENCRYPTED: u8 = 23;

    #[derive(Debug)]
    struct FixedTime;

    impl TimeProvider for FixedTime {
        fn current_time(&self) -> Option<UnixTime> {
            Some(UnixTime::since_unix_epoch(Duration::from_secs(VALID_AT_S)))
        }
    }

    fn der(text: &str) -> Vec<u8> {
        STANDARD.decode(text).unwrap()
    }

    /// A server with a chain of `certificates` certificates.
    fn server(certificates: usize) -> Arc<ServerConfig> {
        let chain = vec![CertificateDer::from(der(CERTIFICATE)); certificates];
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(der(KEY)));
        let builder = ServerConfig::builder_with_provider(Arc::new(provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).unwrap())
    }

    fn client(suite: SupportedCipherSuite) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(der(CERTIFICATE))).unwrap();
        let provider = CryptoProvider { cipher_suites: vec![suite], ..ring::default_provider() };
        let builder = ClientConfig::builder_with_details(Arc::new(provider), Arc::new(FixedTime));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
    }

    /// Performs a handshake and sends a message in each direction. Returns the record types of the server's
    /// first flight, and of all later records.
    fn shake_hands(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> [Vec<u8>; 2] {
        let name = ServerName::try_from("broker.example").unwrap();
        let mut client = ClientConnection::new(Arc::clone(client), name).unwrap();
        let mut server = ServerConnection::new(Arc::clone(server)).unwrap();
        let mut flights = Vec::new();
        while client.is_handshaking() || server.is_handshaking() || server.wants_write() {
            let mut bytes = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut bytes).unwrap();
            }
            transfer(&bytes, |input| server.read_tls(input).unwrap());
            server.process_new_packets().unwrap();
            let (mut queued, mut bytes) = (Vec::new(), Vec::new());
            while server.wants_write() {
                server.write_tls(&mut queued).unwrap();
            }
            open_envelopes(&queued, &mut bytes);
            flights.push(types(&bytes));
            transfer(&bytes, |input| {
                let read = client.read_tls(input).unwrap();
                client.process_new_packets().unwrap();
                read
            });
        }
        std::io::Write::write_all(&mut server.writer(), b"hello").unwrap();
        let mut bytes = Vec::new();
        server.write_tls(&mut bytes).unwrap();
        transfer(&bytes, |input| client.read_tls(input).unwrap());
        client.process_new_packets().unwrap();
        let mut received = [0; 5];
        std::io::Read::read_exact(&mut client.reader(), &mut received).unwrap();
        assert_eq!(&received, b"hello");
        let after = flights.split_off(1);
        [flights.concat(), after.concat()]
    }

    fn transfer(bytes: &[u8], mut read: impl FnMut(&mut dyn std::io::Read) -> usize) {
        let mut rest = bytes;
        while !rest.is_empty() {
            assert_ne!(read(&mut rest), 0);
        }
    }

    fn types(mut bytes: &[u8]) -> Vec<u8> {
        let mut types = Vec::new();
        while let [kind, _, _, high, low, rest @ ..] = bytes {
            types.push(*kind);
            bytes = rest.get(usize::from(u16::from_be_bytes([*high, *low]))..).unwrap();
        }
        types
    }

    #[test]
    fn handshake_messages_have_a_record_each() {
        for suite in ring::ALL_CIPHER_SUITES.iter().filter(|suite| suite.tls13().is_some()) {
            let (client, server) = (client(*suite), server(1));
            let [first, tickets] = shake_hands(&client, &server);
            // `EncryptedExtensions`, `Certificate`, `CertificateVerify` and `Finished`.
            let separate = [ENCRYPTED; 4];
            assert_eq!(first, [&[HANDSHAKE, CHANGE_CIPHER_SPEC], separate.as_slice()].concat());
            assert_eq!(tickets, [ENCRYPTED]);
            // A resumed session has no certificate: `EncryptedExtensions` and `Finished`.
            let [resumed, _] = shake_hands(&client, &server);
            let separate = [ENCRYPTED; 2];
            assert_eq!(resumed, [&[HANDSHAKE, CHANGE_CIPHER_SPEC], separate.as_slice()].concat());
        }
    }

    #[test]
    fn only_a_chain_longer_than_a_record_is_cut() {
        let client = client(ring::cipher_suite::TLS13_AES_256_GCM_SHA384);
        // 428 bytes each, at 16384 per record: two cuts within `Certificate`.
        let [first, _] = shake_hands(&client, &server(90));
        let separate = [ENCRYPTED; 6];
        assert_eq!(first, [&[HANDSHAKE, CHANGE_CIPHER_SPEC], separate.as_slice()].concat());
    }

    #[test]
    fn handshake_messages_end_where_their_headers_say() {
        let bytes = [8, 0, 0, 2, 1, 1, 11, 0, 0, 0, 15, 0, 0, 1, 9];
        for first in 0..=bytes.len() {
            let mut ends = MessageEnds::default();
            let (mut found, mut at) = (Vec::new(), 0);
            for part in [bytes.get(..first).unwrap(), bytes.get(first..).unwrap()] {
                let mut rest = part;
                while !rest.is_empty() {
                    let used = ends.next(rest);
                    at += used;
                    found.push(at);
                    rest = rest.get(used..).unwrap();
                }
            }
            // The boundary between the parts is not an end, unless a message ends there.
            found.retain(|end| *end != first || [6, 10, 15].contains(end));
            assert_eq!(found, [6, 10, 15], "in two parts, the first of {first}");
        }
    }
}
