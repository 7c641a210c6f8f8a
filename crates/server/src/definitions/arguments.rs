//! Arguments of queues, exchanges and bindings from JSON.

use amqp::limits::SHORT_STRING_BYTES_MAX;
use amqp::table::{Array, ArrayBuilder, Table, TableBuilder, Value as Field};
use serde_json::{Map, Value};

use super::Problem;

/// Converts JSON arguments as RabbitMQ does: integers become 64-bit.
pub(super) fn table(object: &Map<String, Value>) -> Result<Table, Problem> {
    let mut table = TableBuilder::new();
    for (key, value) in object {
        if key.len() > SHORT_STRING_BYTES_MAX {
            return Err("an argument's name is too long".to_owned());
        }
        with_field(value, |field| {
            table.insert(key, field);
        })?;
    }
    Ok(table.finish())
}

fn array(list: &[Value]) -> Result<Array, Problem> {
    let mut array = ArrayBuilder::new();
    for value in list {
        with_field(value, |field| {
            array.push(field);
        })?;
    }
    Ok(array.finish())
}

fn with_field(value: &Value, take: impl FnOnce(Field<'_>)) -> Result<(), Problem> {
    match value {
        Value::Null => take(Field::Void),
        Value::Bool(value) => take(Field::Bool(*value)),
        Value::String(text) => take(Field::LongStr(text.as_bytes())),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => take(Field::I64(integer)),
            (None, Some(float)) => take(Field::F64(float)),
            (None, None) => return Err(format!("{number} is out of range")),
        },
        Value::Array(list) => take(Field::Array(array(list)?.as_ref())),
        Value::Object(object) => take(Field::Table(table(object)?.as_ref())),
    }
    Ok(())
}
