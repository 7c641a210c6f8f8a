//! Protocol headers, with the answers that RabbitMQ gave to each.

use amqp::protocol_header::{AMQP_0_9_1, ProtocolHeader, parse};

#[test]
fn protocol_header_accepts_both_spellings_of_0_9_1() {
    assert_eq!(AMQP_0_9_1, *b"AMQP\0\0\x09\x01");
    assert_eq!(parse(&AMQP_0_9_1), ProtocolHeader::Amqp091);
    assert_eq!(parse(b"AMQP\x01\x01\x00\x09"), ProtocolHeader::Amqp091);
    assert_eq!(parse(b"AMQP\0\0\x09\x01\x01\0\0"), ProtocolHeader::Amqp091, "with frames behind");
}

#[test]
fn protocol_header_prefixes_are_incomplete() {
    for header in [AMQP_0_9_1, *b"AMQP\x01\x01\x00\x09"] {
        for length in 0..header.len() {
            assert_eq!(parse(&header[..length]), ProtocolHeader::Incomplete);
        }
    }
}

/// RabbitMQ 4.3.6 answers these with `AMQP 0 0 9 1`.
#[test]
fn protocol_header_distinguishes_other_versions_from_0_9_on() {
    for header in [b"AMQP\0\0\x09\0", b"AMQP\0\0\x09\x02", b"AMQP\0\0\x0a\0", b"AMQP\0\0\xff\xff"] {
        assert_eq!(parse(header), ProtocolHeader::OtherAmqp09, "{header:?}");
    }
}

/// RabbitMQ 4.3.6 answers these with `AMQP 3 1 0 0`.
#[test]
fn protocol_header_of_any_other_protocol_is_foreign() {
    let headers: &[&[u8]] = &[
        b"AMQP\x01\x01\x09\x01",
        b"AMQP\x01\x01\x00\x0a",
        b"AMQP\x01\x01\x00\x08",
        b"AMQP\x01\x01\x08\x00",
        b"AMQP\x01\x01\x01\x09",
        b"AMQP\0\0\x08\0",
        b"AMQP\0\x01\0\0",
        b"AMQP\x02\x01\0\0",
        b"AMQP\0\x09\x01\0",
        b"AMQP\x01\0\x09\x01",
        b"AMQPX\0\x09\x01",
        b"AMQQ\0\0\x09\x01",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\0\0\0\0\0",
    ];
    for header in headers {
        assert_eq!(parse(header), ProtocolHeader::Foreign, "{header:?}");
    }
}

#[test]
fn protocol_header_is_refused_at_the_first_wrong_byte() {
    for octet in 0..=255 {
        let expected =
            if octet == b'A' { ProtocolHeader::Incomplete } else { ProtocolHeader::Foreign };
        assert_eq!(parse(&[octet]), expected);
    }
    assert_eq!(parse(b"AMQQ"), ProtocolHeader::Foreign);
    assert_eq!(parse(b"AMQP\x03"), ProtocolHeader::Foreign);
    assert_eq!(parse(b"AMQP\0\0\x08"), ProtocolHeader::Foreign);
    assert_eq!(parse(b"AMQP\0\0\x0a"), ProtocolHeader::OtherAmqp09);
}
