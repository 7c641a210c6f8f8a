//! PLAIN and AMQPLAIN responses, with RabbitMQ's answer to each.

use amqp::sasl::{Credentials, SaslError, parse_amqplain, parse_plain};
use amqp::table::{TableBuilder, TableError, Value};

const GUEST: Credentials<'_> = Credentials { user: b"guest", password: b"guest" };

#[test]
fn plain_response_is_nul_user_nul_password() {
    assert_eq!(parse_plain(b"\0guest\0guest"), Ok(GUEST));
    assert_eq!(parse_plain(b"\0u\xff\0"), Ok(Credentials { user: b"u\xff", password: b"" }));
    assert_eq!(parse_plain(b"\0\0"), Ok(Credentials { user: b"", password: b"" }));
}

/// RabbitMQ 4.3.6 drops the connection for each of these.
#[test]
fn plain_response_of_any_other_form_is_malformed() {
    let responses: &[&[u8]] = &[
        b"",
        b"\0",
        b"guest",
        b"\0guest",
        b"guest\0guest",
        b"guest\0guest\0guest",
        b"\0guest\0guest\0",
        b"\0guest\0guest\0x",
        b"\0\0guest\0guest",
        b"a\0b\0guest\0guest",
        b"\0\0\0\0\0\0",
    ];
    for response in responses {
        assert_eq!(parse_plain(response), Err(SaslError::MalformedPlain), "{response:?}");
    }
}

fn amqplain(fields: &[(&str, Value<'_>)]) -> Vec<u8> {
    let mut builder = TableBuilder::new();
    for (key, value) in fields {
        builder.insert(key, *value);
    }
    builder.finish().as_ref().as_bytes().to_vec()
}

/// RabbitMQ 4.3.6 lets each of these in.
#[test]
fn amqplain_response_is_a_table_with_login_and_password() {
    let guest = Value::LongStr(b"guest");
    let accepted: &[&[(&str, Value<'_>)]] = &[
        &[("LOGIN", guest), ("PASSWORD", guest)],
        &[("PASSWORD", guest), ("LOGIN", guest)],
        &[("LOGIN", guest), ("X", Value::Void), ("PASSWORD", guest)],
        &[("LOGIN", guest), ("LOGIN", Value::LongStr(b"other")), ("PASSWORD", guest)],
        &[("LOGIN", Value::Binary(b"guest")), ("PASSWORD", guest)],
    ];
    for fields in accepted {
        assert_eq!(parse_amqplain(&amqplain(fields)), Ok(GUEST), "{fields:?}");
    }
}

/// RabbitMQ 4.3.6 drops the connection for each of these.
#[test]
fn amqplain_response_of_any_other_form_is_refused() {
    let guest = Value::LongStr(b"guest");
    let lacking: &[&[(&str, Value<'_>)]] = &[
        &[],
        &[("LOGIN", guest)],
        &[("PASSWORD", guest)],
        &[("LOGIN", Value::I32(1)), ("PASSWORD", guest)],
        &[("login", guest), ("password", guest)],
    ];
    for fields in lacking {
        let response = amqplain(fields);
        let refused = parse_amqplain(&response);
        assert_eq!(refused, Err(SaslError::MissingField), "{fields:?}");
    }
    let malformed: &[(&[u8], TableError)] = &[
        (b"\x05LOG", TableError::Truncated),
        (b"\x05LOGINU\0\0", TableError::UnknownFieldType(b'U')),
        (b"\0\0\0\x09\x05LOGINV", TableError::UnknownFieldType(0)),
    ];
    for (response, error) in malformed {
        assert_eq!(parse_amqplain(response), Err(SaslError::MalformedAmqplain(*error)));
    }
}

#[test]
fn password_is_not_printed() {
    let printed = format!("{:?}", Credentials { user: b"bob", password: b"secret" });
    assert!(printed.contains("bob") && !printed.contains("secret"));
}
