//! Hellos and messages: read back, cut, changed.

use proptest::prelude::*;
use replication::levels::RECORD_LEVEL;

use super::messages::{MessageError, type_bytes_max};
use super::*;
use crate::cluster::refusal::RefusalCode;
use crate::limits::HELLO_BYTES_MAX;
use crate::membership::fields::hex;

pub(crate) fn hello(name: &str) -> Hello {
    Hello {
        protocol: PROTOCOL,
        purpose: Purpose::Link,
        cluster: ClusterId(1),
        node: NodeId::of(name),
        name: name.to_owned(),
        disk: DiskId(3),
        is_founded: true,
        log_format: 3,
        record_level: RECORD_LEVEL,
        build: "0.1.0".to_owned(),
        nonce: [7; NONCE_BYTES],
    }
}

#[test]
fn hello_reads_back_and_is_refused_when_cut() {
    let hello = hello("a@127.0.0.1");
    let bytes = hello.encode();
    assert_eq!(Hello::decode(&bytes), Ok(hello.clone()));
    for length in 0..bytes.len() {
        assert!(Hello::decode(&bytes[..length]).is_err(), "{length}");
    }
    // A later version adds something.
    let more = [bytes, vec![1, 2, 3]].concat();
    assert_eq!(Hello::decode(&more), Ok(hello.clone()));
    let longest = Hello { name: "n".repeat(255), build: "b".repeat(255), ..hello };
    assert!(longest.encode().len() <= HELLO_BYTES_MAX);
}

#[test]
fn hello_has_the_octets_of_earlier_builds() {
    let hello = hello("a@h").encode();
    let refusal = Message::Refusal(RefusalCode::Secret);
    let all = [Message::Hello(hello), Message::Proof([1; PROOF_BYTES]), refusal]
        .map(|message| hex(&message.encode()));
    let nonce = "07".repeat(NONCE_BYTES);
    let expected = [
        format!(
            "0156004c5652544c494e4b01000300000101000000000000000c66ff6c7c1500000300000000000000030000000200{nonce}0361406805302e312e30"
        ),
        format!("022000{}", "01".repeat(PROOF_BYTES)),
        "03010005".to_owned(),
    ];
    assert_eq!(all, expected);
}

#[test]
fn version_is_read_before_everything_that_may_differ() {
    let bytes = |protocol| Hello { protocol, ..hello("a@h") }.encode();
    assert!(Hello::decode(&bytes((1, 9))).is_ok());
    let newer = bytes((4, 9));
    let expected = Err(HelloError::Version { oldest: 4, newest: 9 });
    assert_eq!(Hello::decode(&newer), expected);
    assert_eq!(Hello::decode(&newer[..12]), expected);
    assert_eq!(Hello::decode(&bytes((0, 0))), Err(HelloError::Version { oldest: 0, newest: 0 }));
    assert_eq!(Hello::decode(&bytes((3, 1))), Err(HelloError::Malformed));
    assert_eq!(Hello::decode(b"GET / HTTP/1.1\r\n"), Err(HelloError::NotALink));
}

#[test]
fn proof_depends_on_everything() {
    let secret = Secret::new("secret of a cluster");
    let transcript = Transcript { dialer: b"ab", acceptor: b"c", exporter: None };
    let proof = transcript.proof(&secret, Side::Dialer);
    assert!(transcript.proves(&secret, Side::Dialer, &proof));
    let others = [
        Transcript { dialer: b"a", acceptor: b"bc", ..transcript },
        Transcript { dialer: b"ax", ..transcript },
        Transcript { acceptor: b"x", ..transcript },
        Transcript { exporter: Some([0; EXPORTER_BYTES]), ..transcript },
    ];
    assert!(others.iter().all(|other| !other.proves(&secret, Side::Dialer, &proof)));
    assert!(!transcript.proves(&secret, Side::Acceptor, &proof));
    assert!(!transcript.proves(&Secret::new("another secret"), Side::Dialer, &proof));
    assert!(!transcript.proves(&secret, Side::Dialer, &proof[..31]));
    assert!(!format!("{secret:?}").contains("cluster"));
}

/// All messages in some bytes.
fn messages(bytes: &[u8]) -> Result<Vec<Message>, MessageError> {
    let (mut reader, mut rest, mut all) = (MessageReader::default(), bytes, Vec::new());
    loop {
        if let Some(message) = reader.next()? {
            all.push(message);
        }
        let missing = reader.missing()?;
        let Some((head, tail)) = rest.split_at_checked(missing) else { return Ok(all) };
        reader.add(head);
        rest = tail;
    }
}

#[test]
fn messages_are_bounded_by_their_type() {
    let all = vec![
        Message::Hello(hello("a@h").encode()),
        Message::Proof([1; PROOF_BYTES]),
        Message::Refusal(RefusalCode::Secret),
    ];
    let bytes: Vec<u8> = all.iter().flat_map(Message::encode).collect();
    assert_eq!(messages(&bytes), Ok(all));
    assert_eq!(messages(&[0x16, 3, 1]), Err(MessageError::Tls));
    assert_eq!(messages(b"GET / HTTP/1.1"), Err(MessageError::NotALink));
    for kind in 1..=3 {
        let max = type_bytes_max(kind).unwrap();
        let [low, high] = u16::try_from(max + 1).unwrap().to_le_bytes();
        // The header alone tells.
        assert_eq!(messages(&[kind, low, high]), Err(MessageError::TooLong));
    }
    assert_eq!(messages(&[2, 3, 0, 1, 2, 3]), Err(MessageError::Malformed));
    assert_eq!(messages(&[3, 0, 0]), Err(MessageError::Malformed));
    assert_eq!(messages(&[3, 1, 0, 200]), Err(MessageError::Malformed));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = messages(&bytes);
        let with_magic = [&MAGIC[..], &bytes].concat();
        if let Ok(hello) = Hello::decode(&with_magic) {
            prop_assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
        }
    }
}
