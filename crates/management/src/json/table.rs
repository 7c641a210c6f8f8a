//! AMQP's field tables from JSON.
//!
//! JSON values get the types that RabbitMQ gives them: whole numbers are 64 bits wide, other numbers are doubles,
//! strings are long strings.

use amqp::limits::{SHORT_STRING_BYTES_MAX, TABLE_DEPTH_MAX};
use amqp::table::{Array, ArrayBuilder, Table, TableBuilder, Value as Field};
use serde_json::{Map, Number, Value};

use crate::http::answer::ApiError;
use crate::limits::TABLE_BYTES_MAX;

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
    use serde_json::json;
    use server::json::table::table_to_json;

    use super::*;

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
