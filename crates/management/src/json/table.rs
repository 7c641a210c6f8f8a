//! AMQP's field tables as JSON.

use amqp::table::{TableRef, Value as Field};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// The fields by name, numbers as they were given. Of duplicate keys the first counts, as everywhere.
pub fn table(fields: TableRef<'_>) -> Value {
    let mut object = Map::new();
    for (key, value) in fields {
        object.entry(text(key)).or_insert_with(|| field(value));
    }
    Value::Object(object)
}

/// A value.
pub(crate) fn field(value: Field<'_>) -> Value {
    match value {
        Field::Bool(value) => json!(value),
        Field::I8(value) => json!(value),
        Field::U8(value) => json!(value),
        Field::I16(value) => json!(value),
        Field::U16(value) => json!(value),
        Field::I32(value) => json!(value),
        Field::U32(value) => json!(value),
        Field::I64(value) => json!(value),
        Field::F32(value) => json!(f64::from(value)),
        Field::F64(value) => json!(value),
        Field::Decimal { scale, value } => json!(f64::from(value) / 10f64.powi(scale.into())),
        Field::LongStr(value) | Field::Binary(value) => json!(text(value)),
        Field::Timestamp(seconds) => json!(seconds),
        Field::Table(fields) => table(fields),
        Field::Array(items) => items.iter().map(field).collect(),
        Field::Void => Value::Null,
    }
}

/// JSON has no octets: what is no text is shown in the words of RabbitMQ.
pub(crate) fn text(octets: &[u8]) -> String {
    match std::str::from_utf8(octets) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("Not UTF-8, base64 is: {}", STANDARD.encode(octets)),
    }
}

#[cfg(test)]
mod tests {
    use amqp::table::TableBuilder;

    use super::*;

    #[test]
    fn numbers_stay_what_they_are() {
        let mut fields = TableBuilder::new();
        fields.insert("byte", Field::I8(-1));
        fields.insert("long", Field::I64(i64::MAX));
        fields.insert("float", Field::F32(1.5));
        fields.insert("double", Field::F64(2.0));
        fields.insert("decimal", Field::Decimal { scale: 2, value: 314 });
        fields.insert("time", Field::Timestamp(u64::MAX));
        let expected = r#"{"byte":-1,"long":9223372036854775807,"float":1.5,"double":2.0,"#;
        let expected = format!("{expected}\"decimal\":3.14,\"time\":18446744073709551615}}");
        assert_eq!(table(fields.finish().as_ref()).to_string(), expected);
    }

    #[test]
    fn what_is_no_text_can_be_shown_and_the_first_key_counts() {
        let mut fields = TableBuilder::new();
        fields.insert([0xff], Field::LongStr(b"a\xff"));
        fields.insert("k", Field::Bool(true));
        fields.insert("k", Field::Void);
        fields.array("list", |list| {
            list.push(Field::Void);
        });
        let shown = table(fields.finish().as_ref());
        let octets = |base64: &str| format!("Not UTF-8, base64 is: {base64}");
        assert_eq!(shown, json!({octets("/w=="): octets("Yf8="), "k": true, "list": [null]}));
    }
}
