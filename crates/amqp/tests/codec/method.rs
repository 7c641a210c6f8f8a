//! Methods: round trips of every one, malformed arguments, and the precedence and texts of errors.

use amqp::limits::{METHOD_ID_SIZE, TABLE_DEPTH_MAX};
use amqp::method::*;
use amqp::primitives::DecodeError;
use amqp::reply_code::ReplyCode;
use amqp::table::TableError;
use proptest::prelude::*;

use crate::generate::Arguments;

fn encode(method: &Method<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    method.encode(&mut out);
    out
}

fn payload(class_id: u16, method_id: u16, arguments: &[u8]) -> Vec<u8> {
    [&class_id.to_be_bytes()[..], &method_id.to_be_bytes(), arguments].concat()
}

fn kind(payload: &[u8]) -> MethodErrorKind {
    Method::decode(payload).expect_err("a malformed method").kind
}

proptest! {
    #[test]
    fn methods_round_trip(arguments in Arguments::any()) {
        for method in arguments.methods() {
            let octets = encode(&method);
            prop_assert_eq!(Method::decode(&octets), Ok(method));
        }
    }

    #[test]
    fn strict_prefixes_of_methods_are_errors(arguments in Arguments::any()) {
        for method in arguments.methods() {
            let octets = encode(&method);
            for cut in 0..octets.len() {
                let error = Method::decode(&octets[..cut]).unwrap_err();
                let expected = match cut < METHOD_ID_SIZE {
                    true => MethodErrorKind::TooShort,
                    false => MethodErrorKind::Malformed(DecodeError::Truncated),
                };
                prop_assert_eq!(error.kind, expected, "{} cut at {}", method.name(), cut);
                prop_assert_eq!(error.id.is_some(), cut >= METHOD_ID_SIZE);
            }
        }
    }

    #[test]
    fn bytes_after_a_method_are_an_error(arguments in Arguments::any(), extra in any::<u8>()) {
        for method in arguments.methods() {
            let mut octets = encode(&method);
            octets.push(extra);
            let error = Method::decode(&octets).unwrap_err();
            prop_assert_eq!(error.kind, MethodErrorKind::TrailingBytes(1));
            prop_assert_eq!(error.id, Some(method.id()));
        }
    }
}

#[test]
fn method_ids_and_names_are_listed_once_and_in_order() {
    let arguments = Arguments::sample();
    let generated: Vec<_> =
        arguments.methods().iter().map(|method| (method.id(), method.name())).collect();
    assert_eq!(METHODS, generated, "the generator makes one method of every kind");
    assert_eq!(METHODS.len(), 66);
    assert!(METHODS.is_sorted_by(|(one, _), (next, _)| one < next));
}

#[test]
fn method_ids_that_are_not_listed_are_unknown() {
    for class_id in 0..=100 {
        for method_id in 0..=130 {
            let id = MethodId { class_id, method_id };
            let known = METHODS.iter().any(|(listed, _)| *listed == id);
            let octets = payload(class_id, method_id, &[]);
            let decoded = Method::decode(&octets).map_err(|error| error.kind);
            assert_eq!(decoded == Err(MethodErrorKind::UnknownMethod), !known, "{id}");
        }
    }
}

/// `queue.declare` as RabbitMQ 4.3.6 was sent it: passive is the lowest bit, nowait the fifth.
#[test]
fn bits_share_an_octet_from_the_lowest_place_on() {
    let declare = |bits| payload(50, 10, &[&[0, 0, 1, b'q', bits][..], &[0, 0, 0, 0]].concat());
    for bits in 0..32u8 {
        let octets = declare(bits);
        let Ok(Method::QueueDeclare(method)) = Method::decode(&octets) else { panic!("declare") };
        let QueueDeclare { passive, durable, exclusive, auto_delete, nowait, .. } = method;
        let read = [passive, durable, exclusive, auto_delete, nowait];
        assert_eq!(read, std::array::from_fn(|place| bits >> place & 1 == 1));
        assert_eq!(encode(&method.into()), octets);
    }
    assert_eq!(Method::decode(&declare(0xE0)), Method::decode(&declare(0)), "unused bits");
}

#[test]
fn reserved_fields_accept_any_value_and_are_written_as_zero() {
    let open = payload(10, 40, b"\x01/\x03abc\x01");
    let method = Method::decode(&open).unwrap();
    assert_eq!(method, ConnectionOpen { virtual_host: "/" }.into());
    assert_eq!(encode(&method), payload(10, 40, b"\x01/\x00\x00"));

    let declare = payload(50, 10, b"\xff\xff\x01q\x04\0\0\0\0");
    let method = Method::decode(&declare).unwrap();
    assert_eq!(encode(&method), payload(50, 10, b"\0\0\x01q\x04\0\0\0\0"));

    let get_empty = payload(60, 72, b"\x02id");
    assert_eq!(Method::decode(&get_empty), Ok(BasicGetEmpty.into()));
    assert_eq!(encode(&BasicGetEmpty.into()), payload(60, 72, b"\0"));
    assert_eq!(encode(&ChannelOpenOk.into()), payload(20, 11, &[0, 0, 0, 0]));
}

/// RabbitMQ 4.3.6: 501 for each of these, but not for basic.publish.
#[test]
fn short_strings_of_methods_are_utf8_except_in_publishes() {
    for name in [&b"\xff"[..], b"ok\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"] {
        let length = u8::try_from(name.len()).unwrap();
        let declare = [&[0, 0, length][..], name, &[4, 0, 0, 0, 0]].concat();
        assert_eq!(kind(&payload(50, 10, &declare)), MethodErrorKind::MalformedUtf8);

        let publish = [&[0, 0, 0, length][..], name, &[0]].concat();
        let octets = payload(60, 40, &publish);
        let Ok(Method::BasicPublish(publish)) = Method::decode(&octets) else { panic!("publish") };
        assert_eq!(publish.routing_key, name);
    }
    for name in ["\u{ffff}", "a\0b\n", "\u{10ffff}"] {
        let method = Method::from(BasicCancelOk { consumer_tag: name });
        assert_eq!(Method::decode(&encode(&method)), Ok(method));
    }
    let reserved = payload(20, 10, b"\x01\xff");
    assert_eq!(kind(&reserved), MethodErrorKind::MalformedUtf8);
}

/// Each combination was sent to RabbitMQ 4.3.6, whose close frame names the first of the two.
#[test]
fn method_sizes_are_checked_before_strings_and_strings_before_tables() {
    let unknown_type = b"\0\0\0\x05\x01kU\0\0";
    let declare =
        |name: &[u8], rest: &[u8]| payload(50, 10, &[b"\0\0", name, b"\x04", rest].concat());
    let trailing = |table: &[u8]| [table, &[0]].concat();
    assert_eq!(kind(&declare(b"\x01\xff", unknown_type)), MethodErrorKind::MalformedUtf8);
    assert_eq!(kind(&declare(b"\x01\xff", &trailing(&[0; 4]))), MethodErrorKind::TrailingBytes(1));
    assert_eq!(
        kind(&declare(b"\x01q", &trailing(unknown_type))),
        MethodErrorKind::TrailingBytes(1)
    );
    assert_eq!(kind(&payload(20, 10, b"\x01\xff\0")), MethodErrorKind::TrailingBytes(1));
    assert_eq!(
        kind(&declare(b"\x01q", unknown_type)),
        MethodErrorKind::MalformedTable(TableError::UnknownFieldType(b'U'))
    );
}

/// The texts are those of RabbitMQ 4.3.6.
#[test]
fn method_error_explanations_are_those_of_rabbitmq() {
    let observed: &[(Vec<u8>, &str)] = &[
        (
            payload(50, 10, b"\0\0\x06ampq-t\x04\0\0\0\0\0"),
            "cannot decode <<0,0,6,97,109,112,113,45,116,4,0,0,0,0,0>>",
        ),
        (payload(60, 40, b"\0\0\0\x01a"), "cannot decode <<0,0,0,1,97>>"),
        (payload(90, 10, b"abc\n\t\"\\"), "cannot decode <<97,98,99,10,9,34,92>>"),
        (
            payload(50, 10, b"\0\0\x01d\x04\xff\xff\xff\xff\x01kV"),
            "cannot decode <<0,0,1,100,4,255,255,255,255,1,107,86>>",
        ),
        (payload(60, 30, b"\x01\xff\0"), "Malformed UTF-8 in shortstr"),
    ];
    for (octets, text) in observed {
        assert_eq!(Method::decode(octets).unwrap_err().explanation(octets), *text);
    }

    let octets = payload(90, 10, &[1; 400]);
    let explanation = Method::decode(&octets).unwrap_err().explanation(&octets);
    let text = ReplyCode::FrameError.text(&explanation);
    assert_eq!(text.len(), 255);
    assert_eq!(text, format!("FRAME_ERROR - cannot decode <<{}...", "1,".repeat(111)));
}

#[test]
fn method_arguments_may_nest_up_to_the_limit() {
    let nested = |depth: usize| {
        let mut table = Vec::new();
        for _ in 1..depth {
            let size = u32::try_from(table.len()).unwrap().to_be_bytes();
            table = [&b"\x01kF"[..], &size, &table].concat();
        }
        let size = u32::try_from(table.len()).unwrap().to_be_bytes();
        payload(50, 10, &[&b"\0\0\x01q\x04"[..], &size, &table].concat())
    };
    assert!(Method::decode(&nested(TABLE_DEPTH_MAX)).is_ok());
    assert_eq!(
        kind(&nested(TABLE_DEPTH_MAX + 1)),
        MethodErrorKind::MalformedTable(TableError::TooDeep)
    );
}

#[test]
fn method_frame_has_header_payload_and_end() {
    let mut out = vec![0xAA];
    write_method(&mut out, 0x0102, &BasicAck { delivery_tag: 7, multiple: true }.into());
    let frame = [1, 1, 2, 0, 0, 0, 13, 0, 60, 0, 80, 0, 0, 0, 0, 0, 0, 0, 7, 1, 0xCE];
    assert_eq!(out, [&[0xAA][..], &frame].concat());
}

#[test]
fn methods_with_content_are_four() {
    let arguments = Arguments::sample();
    let with_content: Vec<_> = arguments
        .methods()
        .iter()
        .filter(|method| method.has_content())
        .map(Method::name)
        .collect();
    assert_eq!(with_content, ["basic.publish", "basic.return", "basic.deliver", "basic.get-ok"]);
}
