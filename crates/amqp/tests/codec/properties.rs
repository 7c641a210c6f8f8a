//! Properties: round trips, flags, and the malformed lists that RabbitMQ refuses.

use amqp::properties::{Properties, PropertiesError};
use amqp::table::{TableBuilder, TableError, TableRef, Value};
use proptest::prelude::*;

use crate::generate::Arguments;

fn encode(properties: &Properties<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    properties.encode(&mut out);
    out
}

proptest! {
    #[test]
    fn properties_round_trip(arguments in Arguments::any()) {
        let properties = arguments.properties();
        let octets = encode(&properties);
        prop_assert_eq!(Properties::parse(&octets), Ok(properties));
    }

    #[test]
    fn strict_prefixes_of_properties_are_errors(arguments in Arguments::any()) {
        let octets = encode(&arguments.properties());
        for cut in 0..octets.len() {
            let parsed = Properties::parse(&octets[..cut]);
            prop_assert!(matches!(
                parsed,
                Err(PropertiesError::Truncated | PropertiesError::Headers(TableError::Truncated))
            ));
        }
    }

    #[test]
    fn bytes_after_the_properties_are_an_error(arguments in Arguments::any()) {
        let mut octets = encode(&arguments.properties());
        octets.push(0);
        prop_assert_eq!(Properties::parse(&octets), Err(PropertiesError::TrailingBytes(1)));
    }

    #[test]
    fn properties_are_normalised_with_their_headers(arguments in Arguments::any()) {
        let properties = arguments.properties();
        let octets = encode(&properties);
        let mut normalised = Vec::new();
        properties.encode_normalised(&mut normalised);
        prop_assert_eq!(properties.needs_normalising(&octets), normalised != octets);
        let headers = properties.headers.map(|headers| headers.normalised());
        let headers = headers.as_ref().map(|headers| headers.as_ref());
        prop_assert_eq!(Properties::parse(&normalised), Ok(Properties { headers, ..properties }));
    }
}

/// Every property set, as RabbitMQ 4.3.6 was sent it and delivered it.
#[test]
fn properties_are_encoded_in_the_order_of_their_bits() {
    let octets = b"\xff\xfc\x02ct\x02ce\0\0\0\x03\x01aV\x02\x07\x02ci\x02rt\x0560000\x02mi\
                   \0\0\0\0\0\0\0\x05\x02ty\x05guest\x02ai\x02cl";
    let headers = TableBuilder::new().insert("a", Value::Void).finish();
    let properties = Properties {
        content_type: Some(b"ct"),
        content_encoding: Some(b"ce"),
        headers: Some(headers.as_ref()),
        delivery_mode: Some(2),
        priority: Some(7),
        correlation_id: Some(b"ci"),
        reply_to: Some(b"rt"),
        expiration: Some(b"60000"),
        message_id: Some(b"mi"),
        timestamp: Some(5),
        type_: Some(b"ty"),
        user_id: Some(b"guest"),
        app_id: Some(b"ai"),
        cluster_id: Some(b"cl"),
    };
    assert_eq!(Properties::parse(octets), Ok(properties));
    assert_eq!(encode(&properties), octets);
}

#[test]
fn empty_properties_are_two_bytes_of_flags() {
    assert_eq!(encode(&Properties::default()), [0, 0]);
    assert_eq!(Properties::parse(&[0, 0]), Ok(Properties::default()));
}

#[test]
fn empty_property_is_not_absent() {
    let properties = Properties {
        expiration: Some(b""),
        headers: Some(TableRef::EMPTY),
        ..Properties::default()
    };
    let octets = encode(&properties);
    assert_eq!(octets, [0x21, 0, 0, 0, 0, 0, 0]);
    assert_eq!(Properties::parse(&octets), Ok(properties));
    assert!(!properties.needs_normalising(&octets));
}

#[test]
fn property_strings_may_be_any_bytes() {
    let octets = b"\x80\x00\x02\xff\xfe";
    let properties = Properties::parse(octets).unwrap();
    assert_eq!(properties.content_type, Some(&b"\xff\xfe"[..]));
    assert_eq!(encode(&properties), octets);
}

/// RabbitMQ 4.3.6 answers each of these with 541, but for the lone continuation bit.
#[test]
fn malformed_properties_are_errors() {
    let cases: &[(&[u8], PropertiesError)] = &[
        (b"", PropertiesError::Truncated),
        (b"\0", PropertiesError::Truncated),
        (b"\x10\0", PropertiesError::Truncated),
        (b"\x10\0\x02\x03", PropertiesError::TrailingBytes(1)),
        (b"\0\0\0", PropertiesError::TrailingBytes(1)),
        (b"\0\x01\0\0", PropertiesError::ContinuationBit),
        (b"\0\x01", PropertiesError::ContinuationBit),
        (b"\x10\x01\x02\0\0", PropertiesError::ContinuationBit),
        (b"\xff\xff", PropertiesError::ContinuationBit),
        (
            b"\x20\0\0\0\0\x05\x01kU\0\0",
            PropertiesError::Headers(TableError::UnknownFieldType(b'U')),
        ),
        (
            b"\x20\0\0\0\0\x0b\x01dd\x7f\xf8\0\0\0\0\0\0",
            PropertiesError::Headers(TableError::NotFinite),
        ),
    ];
    for (octets, error) in cases {
        assert_eq!(Properties::parse(octets), Err(*error), "{octets:?}");
    }
}

#[test]
fn unused_property_flag_is_ignored_and_not_delivered() {
    let octets = b"\x10\x02\x02";
    let properties = Properties::parse(octets).unwrap();
    assert_eq!(properties, Properties { delivery_mode: Some(2), ..Properties::default() });
    assert!(properties.needs_normalising(octets));
    let mut delivered = Vec::new();
    properties.encode_normalised(&mut delivered);
    assert_eq!(delivered, b"\x10\0\x02");
}
