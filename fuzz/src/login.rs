//! The first octets of a connection and the answers to SASL, against naive readers.

use amqp::protocol_header::{self, AMQP_0_9_1, ProtocolHeader};
use amqp::sasl::{Credentials, parse_amqplain, parse_plain};
use amqp::table::{TableBuilder, TableRef, Value};

/// Checks octets as a protocol header and as the response of each mechanism.
pub fn check(octets: &[u8]) {
    header(octets);
    plain(octets);
    amqplain(octets);
}

/// What was judged is not judged otherwise when more arrives.
fn header(octets: &[u8]) {
    let judged = protocol_header::parse(octets);
    assert_eq!(judged == ProtocolHeader::Amqp091, is_ours(octets));
    for cut in 0..octets.len().min(9) {
        let earlier = protocol_header::parse(&octets[..cut]);
        assert!(
            earlier == ProtocolHeader::Incomplete || earlier == judged,
            "{earlier:?} {judged:?}"
        );
    }
    assert!(octets.len() < 8 || judged != ProtocolHeader::Incomplete);
}

fn is_ours(octets: &[u8]) -> bool {
    octets.starts_with(&AMQP_0_9_1) || octets.starts_with(b"AMQP\x01\x01\x00\x09")
}

fn plain(octets: &[u8]) {
    let zeros: Vec<usize> = (0..octets.len()).filter(|at| octets[*at] == 0).collect();
    let expected = match zeros[..] {
        [0, second] => Some((&octets[1..second], &octets[second + 1..])),
        _ => None,
    };
    let parsed = parse_plain(octets).ok();
    assert_eq!(parsed.map(|Credentials { user, password }| (user, password)), expected);
    if let Some(credentials) = parsed {
        hides_its_password(&credentials);
    }
}

fn amqplain(octets: &[u8]) {
    let Ok(credentials) = parse_amqplain(octets) else { return };
    assert!(TableRef::from_bytes(octets).is_ok(), "only a table can say who it is");
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
