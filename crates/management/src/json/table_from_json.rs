//! JSON as AMQP's field tables, with the types that RabbitMQ gives the values: whole numbers are
//! 64 bits wide, others are doubles, texts are long strings.

use amqp::limits::{SHORT_STRING_BYTES_MAX, TABLE_DEPTH_MAX};
use amqp::table::{Array, ArrayBuilder, Table, TableBuilder, Value as Field};
use serde_json::{Map, Number, Value};

use crate::http::answer::ApiError;
use crate::limits::TABLE_BYTES_MAX;

/// Why JSON is no field table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BadTable {
    /// It is something else than an object.
    NoObject,
    /// A value is null.
    Null,
    /// A whole number is wider than 64 bits.
    Number,
    /// A key is longer than a short string.
    Key,
    /// It is nested too deeply.
    Depth,
    /// It would fit into no frame.
    Size,
}

impl From<BadTable> for ApiError {
    fn from(bad: BadTable) -> Self {
        Self::bad_request(match bad {
            BadTable::NoObject => "a table must be an object",
            BadTable::Null => "null_not_allowed",
            BadTable::Number => "a number in a table is wider than 64 bits",
            BadTable::Key => "a key of a table is longer than 255 bytes",
            BadTable::Depth => "a table is nested too deeply",
            BadTable::Size => "a table is too large",
        })
    }
}

/// The table that `value` stands for; as in RabbitMQ an empty list is an empty table.
pub(crate) fn table_from_json(value: &Value) -> Result<Table, BadTable> {
    if value.as_array().is_some_and(Vec::is_empty) {
        return Ok(Table::default());
    }
    let table = table(value.as_object().ok_or(BadTable::NoObject)?, 1)?;
    match table.as_ref().as_bytes().len() > TABLE_BYTES_MAX {
        true => Err(BadTable::Size),
        false => Ok(table),
    }
}

fn table(fields: &Map<String, Value>, depth: usize) -> Result<Table, BadTable> {
    let mut table = TableBuilder::new();
    for (key, value) in fields {
        if key.len() > SHORT_STRING_BYTES_MAX {
            return Err(BadTable::Key);
        }
        with_field(value, depth, |field| {
            table.insert(key, field);
        })?;
    }
    Ok(table.finish())
}

fn array(items: &[Value], depth: usize) -> Result<Array, BadTable> {
    let mut array = ArrayBuilder::new();
    for item in items {
        with_field(item, depth, |field| {
            array.push(field);
        })?;
    }
    Ok(array.finish())
}

/// Hands on what `value` stands for, in a table or array of this depth.
fn with_field(value: &Value, depth: usize, put: impl FnOnce(Field<'_>)) -> Result<(), BadTable> {
    if depth > TABLE_DEPTH_MAX {
        return Err(BadTable::Depth);
    }
    match value {
        Value::Null => return Err(BadTable::Null),
        Value::Bool(value) => put(Field::Bool(*value)),
        Value::Number(number) => put(number_field(number)?),
        Value::String(text) => put(Field::LongStr(text.as_bytes())),
        Value::Array(items) => put(Field::Array(array(items, depth + 1)?.as_ref())),
        Value::Object(fields) => put(Field::Table(table(fields, depth + 1)?.as_ref())),
    }
    Ok(())
}

/// What is not below this may have been a whole number with more digits than a double has.
const WHOLE_MAX: f64 = 9_223_372_036_854_775_808.0;

fn number_field(number: &Number) -> Result<Field<'static>, BadTable> {
    match (number.as_i64(), number.as_f64()) {
        (Some(value), _) => Ok(Field::I64(value)),
        (None, Some(value)) if value.abs() < WHOLE_MAX => Ok(Field::F64(value)),
        _ => Err(BadTable::Number),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_those_of_rabbitmq_and_what_went_in_comes_out() {
        let value = json!({
            "whole": 1, "least": i64::MIN, "half": 0.5, "float": 2.0, "text": "é", "yes": true,
            "list": [1, "a", [false], {"x": 1.5}], "table": {"y": []}, "": {},
        });
        let table = table_from_json(&value).unwrap();
        assert_eq!(crate::json::table::table(table.as_ref()), value);
        assert_eq!(table.as_ref().get("whole"), Some(Field::I64(1)));
        assert_eq!(table.as_ref().get("float"), Some(Field::F64(2.0)));
        assert_eq!(table.as_ref().get("text"), Some(Field::LongStr("é".as_bytes())));
        assert_eq!(table_from_json(&json!([])), Ok(Table::default()));
    }

    #[test]
    fn what_no_table_can_hold_is_refused() {
        let mut deep = json!(1);
        for _ in 0..TABLE_DEPTH_MAX {
            deep = json!([deep]);
        }
        for (value, expected) in [
            (json!(null), BadTable::NoObject),
            (json!("a"), BadTable::NoObject),
            (json!([1]), BadTable::NoObject),
            (json!({"a": null}), BadTable::Null),
            (json!({"a": [{"b": null}]}), BadTable::Null),
            (json!({"a": u64::MAX}), BadTable::Number),
            (json!({"a": -1e20}), BadTable::Number),
            (json!({"k".repeat(256): 1}), BadTable::Key),
            (json!({"a": deep}), BadTable::Depth),
            (json!({"a": "x".repeat(TABLE_BYTES_MAX)}), BadTable::Size),
        ] {
            assert_eq!(table_from_json(&value), Err(expected), "{value}");
        }
    }
}
