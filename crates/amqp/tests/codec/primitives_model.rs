//! Tables as plain owned values, with a writer that shares nothing with the crate's.
//!
//! Holds what the wire holds, also what the crate folds together: `L` and `l`, and the octet of a
//! bool.

use std::collections::BTreeMap;

/// Fields in wire order.
pub(crate) type ModelTable = Vec<(Vec<u8>, ModelValue)>;

/// A value as it lies on the wire.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ModelValue {
    /// A fixed-size value: type octet and bytes.
    Fixed(u8, Vec<u8>),
    /// A value with a size in front: type octet (`S` or `x`) and bytes.
    Sized(u8, Vec<u8>),
    /// A nested table.
    Table(ModelTable),
    /// A nested array.
    Array(Vec<Self>),
}

/// The bytes of a table without its size.
pub(crate) fn table_octets(table: &ModelTable) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in table {
        out.push(u8::try_from(key.len()).expect("a key of at most 255 octets"));
        out.extend(key);
        out.extend(value_octets(value));
    }
    out
}

fn value_octets(value: &ModelValue) -> Vec<u8> {
    let sized = |tag: u8, content: Vec<u8>| {
        let size = u32::try_from(content.len()).expect("small").to_be_bytes();
        [&[tag][..], &size, &content].concat()
    };
    match value {
        ModelValue::Fixed(tag, octets) => [&[*tag][..], octets].concat(),
        ModelValue::Sized(tag, octets) => sized(*tag, octets.clone()),
        ModelValue::Table(table) => sized(b'F', table_octets(table)),
        ModelValue::Array(values) => sized(b'A', values.iter().flat_map(value_octets).collect()),
    }
}

/// The header table that RabbitMQ delivers: a map from key to the first value, in key order.
pub(crate) fn delivered(table: &ModelTable) -> ModelTable {
    let mut first = BTreeMap::new();
    for (key, value) in table {
        first.entry(key.clone()).or_insert_with(|| delivered_value(value));
    }
    first.into_iter().collect()
}

fn delivered_value(value: &ModelValue) -> ModelValue {
    match value {
        ModelValue::Fixed(b'L', octets) => ModelValue::Fixed(b'l', octets.clone()),
        ModelValue::Fixed(b't', octets) => ModelValue::Fixed(b't', vec![u8::from(octets != &[0])]),
        ModelValue::Table(table) => ModelValue::Table(
            table.iter().map(|(key, value)| (key.clone(), delivered_value(value))).collect(),
        ),
        ModelValue::Array(values) => {
            ModelValue::Array(values.iter().map(delivered_value).collect())
        }
        ModelValue::Fixed(..) | ModelValue::Sized(..) => value.clone(),
    }
}
