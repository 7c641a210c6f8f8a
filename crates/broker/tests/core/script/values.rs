//! Values of field tables as text, in both directions.
//!
//! `5` is an int32 (an int64 when larger), `true` a bool, `void` no value, `{k=v;k=v}` a table,
//! `[v,v]` an array, anything else a string; quotes keep a number a string. Every other type has its
//! wire letter in front: `b:5 B:5 s:5 u:5 i:5 l:5` integers, `f:1.5 d:1.5` floats, `D:2/150` a
//! decimal, `T:5` a timestamp, `x:text` bytes.

use amqp::table::{ArrayBuilder, Table, TableBuilder, TableRef, Value};

/// Appends `key` with the value that `text` means.
pub(crate) fn insert(table: &mut TableBuilder, key: &str, text: &str) {
    parse(text, &mut |value| {
        table.insert(key, value);
    });
}

/// Hands the value that `text` means to `each`.
fn parse(text: &str, each: &mut dyn FnMut(Value<'_>)) {
    if let Some(value) = typed(text) {
        return each(value);
    }
    if let Some(items) = within(text, '[', ']') {
        let mut array = ArrayBuilder::new();
        for item in split(items, ',') {
            parse(item, &mut |value| {
                array.push(value);
            });
        }
        return each(Value::Array(array.finish().as_ref()));
    }
    if let Some(fields) = within(text, '{', '}') {
        return each(Value::Table(fields_of(fields).as_ref()));
    }
    match (text, text.parse::<i32>(), text.parse::<i64>()) {
        ("true", ..) => each(Value::Bool(true)),
        ("false", ..) => each(Value::Bool(false)),
        ("void", ..) => each(Value::Void),
        (_, Ok(number), _) => each(Value::I32(number)),
        (_, _, Ok(number)) => each(Value::I64(number)),
        _ => each(Value::LongStr(text.replace('"', "").as_bytes())),
    }
}

fn fields_of(text: &str) -> Table {
    let mut table = TableBuilder::new();
    for field in split(text, ';') {
        let (key, value) = field.split_once('=').unwrap();
        insert(&mut table, key, value);
    }
    table.finish()
}

fn typed(text: &str) -> Option<Value<'_>> {
    let (letter, rest) = text.split_once(':')?;
    Some(match letter {
        "b" => Value::I8(rest.parse().unwrap()),
        "B" => Value::U8(rest.parse().unwrap()),
        "s" => Value::I16(rest.parse().unwrap()),
        "u" => Value::U16(rest.parse().unwrap()),
        "i" => Value::U32(rest.parse().unwrap()),
        "l" => Value::I64(rest.parse().unwrap()),
        "f" => Value::F32(rest.parse().unwrap()),
        "d" => Value::F64(rest.parse().unwrap()),
        "T" => Value::Timestamp(rest.parse().unwrap()),
        "x" => Value::Binary(rest.as_bytes()),
        "D" => {
            let (scale, value) = rest.split_once('/').unwrap();
            Value::Decimal { scale: scale.parse().unwrap(), value: value.parse().unwrap() }
        }
        _ => return None,
    })
}

fn within(text: &str, open: char, close: char) -> Option<&str> {
    text.strip_prefix(open)?.strip_suffix(close)
}

/// The parts of `text` between separators that stand outside all brackets.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            c if c == separator && depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if start < text.len() {
        parts.push(&text[start..]);
    }
    parts
}

/// A table as a script shows it.
pub(crate) fn table(table: TableRef<'_>) -> String {
    let fields: Vec<String> = table
        .iter()
        .map(|(key, value)| format!("{}={}", String::from_utf8_lossy(key), render(&value)))
        .collect();
    format!("{{{}}}", fields.join(" "))
}

fn render(value: &Value<'_>) -> String {
    match value {
        Value::Bool(flag) => flag.to_string(),
        Value::I8(n) => format!("b:{n}"),
        Value::U8(n) => format!("B:{n}"),
        Value::I16(n) => format!("s:{n}"),
        Value::U16(n) => format!("u:{n}"),
        Value::I32(n) => n.to_string(),
        Value::U32(n) => format!("i:{n}"),
        Value::I64(n) => format!("l:{n}"),
        Value::F32(n) => format!("f:{n}"),
        Value::F64(n) => format!("d:{n}"),
        Value::Decimal { scale, value } => format!("D:{scale}/{value}"),
        Value::Timestamp(seconds) => format!("T:{seconds}"),
        Value::Binary(bytes) => format!("x:{}", String::from_utf8_lossy(bytes)),
        Value::Void => "void".to_owned(),
        Value::Table(fields) => table(*fields),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| render(&item)).collect();
            format!("[{}]", items.join(","))
        }
        Value::LongStr(text) => {
            let text = String::from_utf8_lossy(text);
            let is_plain = typed_letter(&text).is_none()
                && text.parse::<i64>().is_err()
                && !matches!(&*text, "true" | "false" | "void");
            if is_plain { text.into_owned() } else { format!("\"{text}\"") }
        }
    }
}

fn typed_letter(text: &str) -> Option<&str> {
    let (letter, _) = text.split_once(':')?;
    matches!(letter, "b" | "B" | "s" | "u" | "i" | "l" | "f" | "d" | "T" | "x" | "D")
        .then_some(letter)
}
