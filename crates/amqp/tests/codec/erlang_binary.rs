//! Binaries in texts, against what RabbitMQ printed.

use amqp::erlang_binary::{ByteList, PrintedBinary, PrintedString};

/// Texts of RabbitMQ 4.3.6 for a frame of unknown type with this payload.
#[test]
fn binaries_print_as_in_rabbitmq() {
    let observed: &[(&[u8], &str)] = &[
        (b"", "<<>>"),
        (b"hi", "<<\"hi\">>"),
        (b"'", "<<\"'\">>"),
        (b"abc\n\t\"\\", "<<\"abc\\n\\t\\\"\\\\\">>"),
        (b"\x1b\x08\x0b\x0c\r~ ", "<<\"\\e\\b\\v\\f\\r~ \">>"),
        (b"\x7f", "<<127>>"),
        (b"ab\x1b\x08\x7f", "<<97,98,27,8,127>>"),
        ("\u{e9}".as_bytes(), "<<\"\u{e9}\"/utf8>>"),
        ("a\u{e9}\n".as_bytes(), "<<\"a\u{e9}\\n\"/utf8>>"),
        ("\u{65e5}\u{672c}".as_bytes(), "<<\"\u{65e5}\u{672c}\"/utf8>>"),
        ("\u{1f600}".as_bytes(), "<<\"\u{1f600}\"/utf8>>"),
        ("\u{ad}".as_bytes(), "<<\"\u{ad}\"/utf8>>"),
        ("\u{80}a".as_bytes(), "<<194,128,97>>"),
        ("\u{7f}\u{e9}".as_bytes(), "<<127,195,169>>"),
        (b"\xe9", "<<\"\u{e9}\">>"),
        (b"a\xc3", "<<\"a\u{c3}\">>"),
        (b"ab\xe9\xff", "<<\"ab\u{e9}\u{ff}\">>"),
        (b"\xe9\x80", "<<233,128>>"),
        (b"\xa0", "<<\"\u{a0}\">>"),
        (&[0; 3], "<<0,0,0>>"),
    ];
    for (octets, text) in observed {
        assert_eq!(PrintedBinary(octets).to_string(), *text, "{octets:?}");
    }
}

#[test]
fn byte_list_prints_numbers_even_for_text() {
    assert_eq!(ByteList(b"").to_string(), "<<>>");
    assert_eq!(ByteList(b"abc").to_string(), "<<97,98,99>>");
}

/// Texts of RabbitMQ 4.3.6 for the rest of an expiration.
#[test]
fn strings_print_as_in_rabbitmq() {
    let observed: &[(&[u8], &str)] = &[
        (b" ", "\" \""),
        (b"\"\n", "\"\\\"\\n\""),
        ("\u{e9}".as_bytes(), "\"\u{c3}\u{a9}\""),
        ("\u{a0}".as_bytes(), "\"\u{c2}\u{a0}\""),
        (b"\0", "[0]"),
        (b"\x07a", "[7,97]"),
        (b"\x7f", "[127]"),
        ("\u{e9}\0".as_bytes(), "[195,169,0]"),
    ];
    for (octets, text) in observed {
        assert_eq!(PrintedString(octets).to_string(), *text, "{octets:?}");
    }
}
