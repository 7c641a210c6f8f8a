//! AMQP's field tables as JSON, and back.
//!
//! JSON values get the types that RabbitMQ gives them: whole numbers are 64 bits wide, other numbers are doubles,
//! strings are long strings.

use amqp::limits::{SHORT_STRING_BYTES_MAX, TABLE_DEPTH_MAX};
use amqp::table::{Array, ArrayBuilder, Table, TableBuilder, TableRef, Value as Field};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value, json};

use crate::http::answer::ApiError;
use crate::limits::TABLE_BYTES_MAX;

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
pub(crate) fn bytes_to_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("Not UTF-8, base64 is: {}", STANDARD.encode(bytes)),
    }
}

/// The reason why a JSON value is no field table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JsonTableError {
    /// Not an object.
    NoObject,
    /// Contains null.
    Null,
    /// Contains a whole number of more than 64 bits.
    Number,
    /// Contains a key that is longer than a short string.
    Key,
    /// Nested too deeply.
    Depth,
    /// Too large for a frame.
    Size,
}

impl From<JsonTableError> for ApiError {
    fn from(bad: JsonTableError) -> Self {
        Self::bad_request(match bad {
            JsonTableError::NoObject => "a table must be an object",
            JsonTableError::Null => "null_not_allowed",
            JsonTableError::Number => "a number in a table is wider than 64 bits",
            JsonTableError::Key => "a key of a table is longer than 255 bytes",
            JsonTableError::Depth => "a table is nested too deeply",
            JsonTableError::Size => "a table is too large",
        })
    }
}

/// Parses a field table. As in RabbitMQ, an empty list is an empty table.
pub(crate) fn table_from_json(value: &Value) -> Result<Table, JsonTableError> {
    if value.as_array().is_some_and(Vec::is_empty) {
        return Ok(Table::default());
    }
    let table = build_table(value.as_object().ok_or(JsonTableError::NoObject)?, 1)?;
    match table.as_ref().as_bytes().len() > TABLE_BYTES_MAX {
        true => Err(JsonTableError::Size),
        false => Ok(table),
    }
}

fn build_table(fields: &Map<String, Value>, depth: usize) -> Result<Table, JsonTableError> {
    let mut table = TableBuilder::new();
    for (key, value) in fields {
        if key.len() > SHORT_STRING_BYTES_MAX {
            return Err(JsonTableError::Key);
        }
        with_field(value, depth, |field| {
            table.insert(key, field);
        })?;
    }
    Ok(table.finish())
}

fn build_array(items: &[Value], depth: usize) -> Result<Array, JsonTableError> {
    let mut array = ArrayBuilder::new();
    for item in items {
        with_field(item, depth, |field| {
            array.push(field);
        })?;
    }
    Ok(array.finish())
}

/// Calls `put` with the field for `value`, which is in a table or array of this depth.
fn with_field(
    value: &Value,
    depth: usize,
    put: impl FnOnce(Field<'_>),
) -> Result<(), JsonTableError> {
    if depth > TABLE_DEPTH_MAX {
        return Err(JsonTableError::Depth);
    }
    match value {
        Value::Null => return Err(JsonTableError::Null),
        Value::Bool(value) => put(Field::Bool(*value)),
        Value::Number(number) => put(number_field(number)?),
        Value::String(text) => put(Field::LongStr(text.as_bytes())),
        Value::Array(items) => put(Field::Array(build_array(items, depth + 1)?.as_ref())),
        Value::Object(fields) => put(Field::Table(build_table(fields, depth + 1)?.as_ref())),
    }
    Ok(())
}

/// Numbers of this size may have been whole numbers with more digits than a double holds.
const WHOLE_MAX: f64 = 9_223_372_036_854_775_808.0;

fn number_field(number: &Number) -> Result<Field<'static>, JsonTableError> {
    match (number.as_i64(), number.as_f64()) {
        (Some(value), _) => Ok(Field::I64(value)),
        (None, Some(value)) if value.abs() < WHOLE_MAX => Ok(Field::F64(value)),
        _ => Err(JsonTableError::Number),
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn table_from_json_takes_the_types_of_rabbitmq() {
        let value = json!({
            "whole": 1, "least": i64::MIN, "half": 0.5, "float": 2.0, "text": "é", "yes": true,
            "list": [1, "a", [false], {"x": 1.5}], "table": {"y": []}, "": {},
        });
        let table = table_from_json(&value).unwrap();
        assert_eq!(table_to_json(table.as_ref()), value);
        assert_eq!(table.as_ref().get("whole"), Some(Field::I64(1)));
        assert_eq!(table.as_ref().get("float"), Some(Field::F64(2.0)));
        assert_eq!(table.as_ref().get("text"), Some(Field::LongStr("é".as_bytes())));
        assert_eq!(table_from_json(&json!([])), Ok(Table::default()));
    }

    #[test]
    fn table_from_json_refuses_values_without_a_type() {
        let mut deep = json!(1);
        for _ in 0..TABLE_DEPTH_MAX {
            deep = json!([deep]);
        }
        for (value, expected) in [
            (json!(null), JsonTableError::NoObject),
            (json!("a"), JsonTableError::NoObject),
            (json!([1]), JsonTableError::NoObject),
            (json!({"a": null}), JsonTableError::Null),
            (json!({"a": [{"b": null}]}), JsonTableError::Null),
            (json!({"a": u64::MAX}), JsonTableError::Number),
            (json!({"a": -1e20}), JsonTableError::Number),
            (json!({"k".repeat(256): 1}), JsonTableError::Key),
            (json!({"a": deep}), JsonTableError::Depth),
            (json!({"a": "x".repeat(TABLE_BYTES_MAX)}), JsonTableError::Size),
        ] {
            assert_eq!(table_from_json(&value), Err(expected), "{value}");
        }
    }
}
