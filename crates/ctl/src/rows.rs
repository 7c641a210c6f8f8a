//! Rows of lists from the answers of the API.

use serde_json::Value;

use crate::format::Row;
use crate::term::Term;

/// A row for each element of an answer.
pub(crate) fn rows_of(answer: &Value, row: impl Fn(&Value) -> Row) -> Vec<Row> {
    answer.as_array().map(|all| all.iter().map(row).collect()).unwrap_or_default()
}

/// The column for the field with the same name.
pub(crate) fn same(answer: &Value, name: &str) -> (String, Term) {
    (name.to_owned(), Term::of(answer.get(name)))
}

/// A field.
pub(crate) fn text(answer: &Value, name: &str) -> Term {
    Term::of(answer.get(name))
}

/// A field as JSON.
pub(crate) fn document(answer: &Value, name: &str) -> (String, Term) {
    let value = answer.get(name).cloned().unwrap_or_default();
    (name.to_owned(), Term::text(value.to_string()))
}
