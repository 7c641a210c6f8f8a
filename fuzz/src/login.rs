//! The first bytes of a connection and the answers to SASL, against naive readers.

use amqp::protocol_header::{self, AMQP_0_9_1, ProtocolHeader};
use amqp::sasl::{Credentials, parse_amqplain, parse_plain};
use amqp::table::{TableBuilder, TableRef, Value};

/// Checks bytes as a protocol header and as the response of each mechanism.
pub fn check(bytes: &[u8]) {
    header(bytes);
    plain(bytes);
    amqplain(bytes);
}

/// Checks that a verdict stays when more bytes arrive.
fn header(bytes: &[u8]) {
    let judged = protocol_header::parse(bytes);
    assert_eq!(judged == ProtocolHeader::Amqp091, is_ours(bytes));
    for cut in 0..bytes.len().min(9) {
        let earlier = protocol_header::parse(&bytes[..cut]);
        assert!(
            earlier == ProtocolHeader::Incomplete || earlier == judged,
            "{earlier:?} {judged:?}"
        );
    }
    assert!(bytes.len() < 8 || judged != ProtocolHeader::Incomplete);
}

fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(&AMQP_0_9_1) || bytes.starts_with(b"AMQP\x01\x01\x00\x09")
}

fn plain(bytes: &[u8]) {
    let zeros: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == 0).collect();
    let expected = match zeros[..] {
        [0, second] => Some((&bytes[1..second], &bytes[second + 1..])),
        _ => None,
    };
    let parsed = parse_plain(bytes).ok();
    assert_eq!(parsed.map(|Credentials { user, password }| (user, password)), expected);
    if let Some(credentials) = parsed {
        hides_its_password(&credentials);
    }
}

fn amqplain(bytes: &[u8]) {
    let Ok(credentials) = parse_amqplain(bytes) else { return };
    assert!(TableRef::from_bytes(bytes).is_ok(), "only a table can say who it is");
    hides_its_password(&credentials);
    let mut builder = TableBuilder::new();
    builder.insert("LOGIN", Value::LongStr(credentials.user));
    builder.insert("PASSWORD", Value::LongStr(credentials.password));
    let table = builder.finish();
    assert_eq!(parse_amqplain(table.as_ref().as_bytes()), Ok(credentials));
}

fn hides_its_password(credentials: &Credentials<'_>) {
    let Credentials { user, .. } = credentials;
    let shown = format!("Credentials {{ user: \"{}\", .. }}", user.escape_ascii());
    assert_eq!(format!("{credentials:?}"), shown);
}
