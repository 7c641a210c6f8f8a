//! Formats values as RabbitMQ does in its reply texts.
//!
//! RabbitMQ's explanations contain Erlang terms (`{value_negative,-1}`, `"expected integer, got longstr"`).
//! Clients and test suites match on these texts, so the format is the same here.

use amqp::table::Value;

/// Formats a table value as in an inequivalence text: the plain value without its type.
pub(crate) fn value(value: &Value<'_>) -> String {
    match value {
        Value::Bool(v) => v.to_string(),
        Value::I8(v) => v.to_string(),
        Value::U8(v) => v.to_string(),
        Value::I16(v) => v.to_string(),
        Value::U16(v) => v.to_string(),
        Value::I32(v) => v.to_string(),
        Value::U32(v) => v.to_string(),
        Value::I64(v) => v.to_string(),
        Value::Timestamp(v) => v.to_string(),
        Value::F32(v) => float(f64::from(*v)),
        Value::F64(v) => float(*v),
        Value::Decimal { scale, value } => format!("{{{scale},{value}}}"),
        Value::LongStr(bytes) | Value::Binary(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Table(_) => "table".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Void => "undefined".to_owned(),
    }
}

/// Formats a float in the shorter of plain and scientific notation, plain if equal, always with a decimal
/// point: `1.5`, `100.0`, `1.0e3`.
pub(crate) fn float(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let plain = format!("{value:?}");
    let plain = if plain.contains('e') { format!("{value:.1}") } else { plain };
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let point = if mantissa.contains('.') { "" } else { ".0" };
    let scientific = format!("{mantissa}{point}e{exponent}");
    if plain.len() <= scientific.len() { plain } else { scientific }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn float_is_printed_in_the_shorter_notation() {
        for (value, text) in [
            (1000.0, "1.0e3"),
            (100.0, "100.0"),
            (1.5, "1.5"),
            (1234.5, "1234.5"),
            (123_456.0, "123456.0"),
            (0.001, "0.001"),
            (1e22, "1.0e22"),
            (-2.0, "-2.0"),
        ] {
            assert_eq!(float(value), text);
        }
    }
}
