//! Columns of lists, as the words of a command choose them.

use serde_json::Value;

use crate::failure::{Failure, USAGE};
use crate::pids::Pids;
use crate::term::Term;

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    read: Read,
}

/// Where a cell comes from.
#[derive(Clone, Copy, Debug)]
enum Read {
    /// The field of the same name.
    Same,
    /// The same, a name that the broker gives.
    Atom,
    /// The same, arguments that a client gave.
    Arguments,
    /// Something else.
    By(fn(&Value, &Pids) -> Term),
}

impl Column {
    /// The field of that name.
    pub(crate) const fn same(name: &'static str) -> Self {
        Self { name, read: Read::Same }
    }

    /// The field of that name, which is a name that the broker gives.
    pub(crate) const fn atom(name: &'static str) -> Self {
        Self { name, read: Read::Atom }
    }

    /// The field of that name, which a client has given.
    pub(crate) const fn arguments(name: &'static str) -> Self {
        Self { name, read: Read::Arguments }
    }

    /// What this function makes of it.
    pub(crate) const fn new(name: &'static str, read: fn(&Value, &Pids) -> Term) -> Self {
        Self { name, read: Read::By(read) }
    }

    /// The cell of something.
    pub(crate) fn cell(&self, of: &Value, pids: &Pids) -> (String, Term) {
        let field = of.get(self.name);
        let term = match self.read {
            Read::Same => Term::of(field),
            Read::Atom => Term::atom_of(field),
            Read::Arguments => Term::arguments(field),
            Read::By(read) => read(of, pids),
        };
        (self.name.to_owned(), term)
    }
}

/// The names that the words have, which may be separated by commas, too; each once.
fn names(words: &[String]) -> Vec<&str> {
    let mut names = Vec::new();
    for name in words.iter().flat_map(|word| word.split(',')).map(str::trim) {
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Checks that there are columns of these names.
pub(crate) fn validate(words: &[String], columns: &[Column]) -> Result<(), Failure> {
    let is_known = |name: &&str| columns.iter().any(|column| column.name == *name);
    let unknown: Vec<&str> = names(words).into_iter().filter(|name| !is_known(name)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let problem = format!("Info key(s) {} are not supported", unknown.join(","));
    Err(Failure::arguments(USAGE, problem))
}

/// The columns of these names, in that order; without names those that are usual.
pub(crate) fn selected<'a>(
    words: &[String],
    columns: &'a [Column],
    usual: &[&str],
) -> Vec<&'a Column> {
    let mut names = names(words);
    if names.is_empty() {
        names = usual.to_vec();
    }
    let column = |name: &&str| columns.iter().find(|column| column.name == *name);
    names.iter().filter_map(column).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const COLUMNS: &[Column] = &[
        Column::same("name"),
        Column::atom("state"),
        Column::arguments("arguments"),
        Column::new("twice", |of, _| Term::text(format!("{0}{0}", of["name"].as_str().unwrap()))),
    ];

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn columns_come_in_the_order_of_the_words() {
        let shown = |line| {
            let columns = selected(&words(line), COLUMNS, &["name", "state"]);
            columns.iter().map(|column| column.name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown(""), "name state");
        assert_eq!(shown("state name"), "state name");
        assert_eq!(shown("state,name, twice state"), "state name twice");
    }

    #[test]
    fn unknown_columns_are_named() {
        assert_eq!(validate(&words("name,state twice"), COLUMNS), Ok(()));
        let expected = Failure::arguments(USAGE, "Info key(s) size,age are not supported");
        assert_eq!(validate(&words("name size age size"), COLUMNS), Err(expected));
    }

    #[test]
    fn cells() {
        let of = json!({"name": "q", "state": "running", "arguments": {"x-max-length": 5}});
        let cell = |name| {
            let column = COLUMNS.iter().find(|column| column.name == name).unwrap();
            column.cell(&of, &Pids::default()).1
        };
        assert_eq!(cell("name"), Term::text("q"));
        assert_eq!(cell("state"), Term::atom("running"));
        assert_eq!(cell("arguments").shown(), "[{\"x-max-length\",5}]");
        assert_eq!(cell("twice"), Term::text("qq"));
    }
}
