//! The form in which RabbitMQ delivers header tables.
//!
//! RabbitMQ 4.3.6, observed with a raw socket:
//!
//! * fields are sorted by key, byte by byte (`""`, `Z`, `a`, `a\0`, `ab`, `\xFF`), and of several
//!   with one key the first is kept: sent `z a=1 a=2 m`, received `a=1 m z`;
//! * only the outermost table is sorted: nested tables keep their order and their duplicates;
//! * at any depth, `L` becomes `l` and a true that was not written as 1 becomes 1;
//! * everything else is unchanged; an empty table stays present.

use super::owned::Table;
use super::value::{ArrayRef, Nested, TableRef, Value, read_value};
use crate::primitives::{Reader, begin_size, end_size, put_short_bytes};

impl<'a> TableRef<'a> {
    /// True if RabbitMQ would deliver this header table as other bytes. Walks the table.
    #[must_use]
    pub fn needs_normalising(&self) -> bool {
        !is_sorted_without_duplicates(*self) || table_is_rewritten(*self)
    }

    /// A copy of this header table as RabbitMQ delivers it.
    #[must_use]
    pub fn normalised(&self) -> Table {
        let mut out = Vec::with_capacity(self.as_bytes().len());
        if is_sorted_without_duplicates(*self) {
            put_fields(&mut out, *self);
        } else {
            for field in sorted_fields(*self) {
                put_fields(&mut out, field);
            }
        }
        Table { bytes: out.into_boxed_slice() }
    }
}

fn is_sorted_without_duplicates(table: TableRef<'_>) -> bool {
    table.iter().map(|(key, _)| key).is_sorted_by(|one, next| one < next)
}

/// The fields, each as a table of its own, sorted by key; of several with one key only the first.
fn sorted_fields<'a>(table: TableRef<'a>) -> Vec<TableRef<'a>> {
    let mut fields = Vec::new();
    let mut iter = table.iter();
    loop {
        let before = iter.rest();
        if iter.next().is_none() {
            break;
        }
        let size = before.len() - iter.rest().len();
        let (bytes, _) = before.split_at(size);
        fields.push(TableRef { bytes });
    }
    fields.sort_by_key(first_key);
    fields.dedup_by_key(|field| first_key(field));
    fields
}

fn first_key<'a>(field: &TableRef<'a>) -> &'a [u8] {
    field.iter().next().map(|(key, _)| key).unwrap_or_default()
}

fn table_is_rewritten(table: TableRef<'_>) -> bool {
    let mut reader = Reader::new(table.as_bytes());
    while reader.short_bytes().is_ok() {
        if next_value_is_rewritten(&mut reader) {
            return true;
        }
    }
    false
}

fn array_is_rewritten(array: ArrayRef<'_>) -> bool {
    let mut reader = Reader::new(array.as_bytes());
    while !reader.is_empty() {
        if next_value_is_rewritten(&mut reader) {
            return true;
        }
    }
    false
}

/// True if RabbitMQ writes the value at the front of `reader` in another form than it was read.
fn next_value_is_rewritten(reader: &mut Reader<'_>) -> bool {
    let wire = reader.rest();
    let Ok(value) = read_value(reader) else { return false };
    match value.nested() {
        Some(Nested::Table(table)) => table_is_rewritten(table),
        Some(Nested::Array(array)) => array_is_rewritten(array),
        None if matches!(value, Value::Bool(_)) => wire.get(1).is_some_and(|octet| *octet > 1),
        None => wire.first() == Some(&b'L'),
    }
}

/// Appends the fields in their order, each value in the one form in which RabbitMQ writes it.
fn put_fields(out: &mut Vec<u8>, table: TableRef<'_>) {
    for (key, value) in table {
        put_short_bytes(out, key);
        put_value(out, &value);
    }
}

fn put_value(out: &mut Vec<u8>, value: &Value<'_>) {
    match value.nested() {
        Some(Nested::Table(table)) => {
            out.push(b'F');
            let size = begin_size(out);
            put_fields(out, table);
            end_size(out, size);
        }
        Some(Nested::Array(array)) => {
            out.push(b'A');
            let size = begin_size(out);
            for value in array {
                put_value(out, &value);
            }
            end_size(out, size);
        }
        None => value.write(out),
    }
}
