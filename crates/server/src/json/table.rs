//! AMQP's field tables as JSON.

use amqp::table::{TableRef, Value as Field};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// A field table as a JSON object. Of duplicate keys, the first counts.
pub fn table_to_json(fields: TableRef<'_>) -> Value {
    let mut object = Map::new();
    for (key, value) in fields {
        object.entry(bytes_to_text(key)).or_insert_with(|| value_to_json(value));
    }
    Value::Object(object)
}

/// A value of a field table as JSON.
pub(crate) fn value_to_json(value: Field<'_>) -> Value {
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
        Field::LongStr(value) | Field::Binary(value) => json!(bytes_to_text(value)),
        Field::Timestamp(seconds) => json!(seconds),
        Field::Table(fields) => table_to_json(fields),
        Field::Array(items) => items.iter().map(value_to_json).collect(),
        Field::Void => Value::Null,
    }
}

/// Bytes as text. Bytes that are not UTF-8 are shown in base64, in RabbitMQ's words.
pub fn bytes_to_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("Not UTF-8, base64 is: {}", STANDARD.encode(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use amqp::table::TableBuilder;

    use super::*;

    #[test]
    fn table_to_json_keeps_the_types_of_numbers() {
        let mut fields = TableBuilder::new();
        fields.insert("byte", Field::I8(-1));
        fields.insert("long", Field::I64(i64::MAX));
        fields.insert("float", Field::F32(1.5));
        fields.insert("double", Field::F64(2.0));
        fields.insert("decimal", Field::Decimal { scale: 2, value: 314 });
        fields.insert("time", Field::Timestamp(u64::MAX));
        let expected = r#"{"byte":-1,"long":9223372036854775807,"float":1.5,"double":2.0,"#;
        let expected = format!("{expected}\"decimal\":3.14,\"time\":18446744073709551615}}");
        assert_eq!(table_to_json(fields.finish().as_ref()).to_string(), expected);
    }

    #[test]
    fn table_to_json_shows_bytes_as_base64_and_the_first_of_duplicate_keys() {
        let mut fields = TableBuilder::new();
        fields.insert([0xff], Field::LongStr(b"a\xff"));
        fields.insert("k", Field::Bool(true));
        fields.insert("k", Field::Void);
        fields.array("list", |list| {
            list.push(Field::Void);
        });
        let shown = table_to_json(fields.finish().as_ref());
        let not_text = |base64: &str| format!("Not UTF-8, base64 is: {base64}");
        assert_eq!(shown, json!({not_text("/w=="): not_text("Yf8="), "k": true, "list": [null]}));
    }
}
