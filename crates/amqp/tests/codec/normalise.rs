//! Header tables as they are delivered, against a naive model and against what RabbitMQ did.

use amqp::table::{TableBuilder, TableRef, Value};
use proptest::prelude::*;

use crate::generate::model_table;
use crate::primitives_model::{delivered, table_octets};

proptest! {
    #[test]
    fn normalised_table_equals_the_model(model in model_table()) {
        let octets = table_octets(&model);
        let expected = table_octets(&delivered(&model));
        let table = TableRef::from_bytes(&octets).unwrap();
        let normalised = table.normalised();
        prop_assert_eq!(normalised.as_ref().as_bytes(), expected.as_slice());
        prop_assert_eq!(table.needs_normalising(), octets != expected);
        prop_assert!(!normalised.as_ref().needs_normalising());
        prop_assert!(TableRef::from_bytes(&expected).is_ok());
    }
}

/// Sent to RabbitMQ 4.3.6 as the headers of a message, and what was delivered.
#[test]
fn header_tables_are_delivered_as_in_rabbitmq() {
    let observed: &[(&[u8], &[u8])] = &[
        (b"", b""),
        (
            b"\x01zS\0\0\0\x011\x01aS\0\0\0\x011\x01aS\0\0\0\x012\x01mS\0\0\0\x011",
            b"\x01aS\0\0\0\x011\x01mS\0\0\0\x011\x01zS\0\0\0\x011",
        ),
        (b"\x02abV\x01aV\x01ZV\x01\xffV\0V\x02a\0V", b"\0V\x01ZV\x01aV\x02a\0V\x02abV\x01\xffV"),
        (
            b"\x01nF\0\0\0\x13\x01zL\xff\xff\xff\xff\xff\xff\xff\xff\x01ab\x80\x01aB\x80",
            b"\x01nF\0\0\0\x13\x01zl\xff\xff\xff\xff\xff\xff\xff\xff\x01ab\x80\x01aB\x80",
        ),
        (b"\x01nA\0\0\0\x09L\0\0\0\0\0\0\0\x05", b"\x01nA\0\0\0\x09l\0\0\0\0\0\0\0\x05"),
        (b"\x01ft\0\x01tt\x02", b"\x01ft\0\x01tt\x01"),
        (b"\x01tt\x02\x01ut\xff\x01ft\0", b"\x01ft\0\x01tt\x01\x01ut\x01"),
        (
            b"\x01kF\0\0\0\x0f\x01zt\x07\x01aA\0\0\0\x04t\x07t\0",
            b"\x01kF\0\0\0\x0f\x01zt\x01\x01aA\0\0\0\x04t\x01t\0",
        ),
    ];
    for (sent, received) in observed {
        let table = TableRef::from_bytes(sent).unwrap();
        assert_eq!(table.normalised().as_ref().as_bytes(), *received);
        assert_eq!(table.needs_normalising(), sent != received);
    }
}

#[test]
fn sorted_table_is_not_rewritten() {
    let table = TableBuilder::new()
        .insert("a", Value::I64(1))
        .insert("b", Value::Bool(true))
        .table("c", |nested| {
            nested.insert("z", Value::Void).insert("a", Value::Void);
        })
        .finish();
    assert!(!table.as_ref().needs_normalising());
    assert_eq!(table.as_ref().normalised(), table);
}

#[test]
fn duplicate_fields_keep_the_first() {
    let mut builder = TableBuilder::new();
    for place in 0..1000 {
        builder.insert(["b", "c", "a"][place as usize * 7 % 3], Value::I32(place));
    }
    let first = TableBuilder::new()
        .insert("a", Value::I32(2))
        .insert("b", Value::I32(0))
        .insert("c", Value::I32(1))
        .finish();
    assert_eq!(builder.finish().as_ref().normalised(), first);
}

#[test]
fn large_table_of_one_key_keeps_the_first_field() {
    let mut builder = TableBuilder::new();
    for place in 0..20_000 {
        builder.insert("", Value::I32(place));
    }
    let table = builder.finish();
    let first = TableBuilder::new().insert("", Value::I32(0)).finish();
    assert_eq!(table.as_ref().normalised(), first);
}
