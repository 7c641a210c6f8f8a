//! Columns of lists, chosen by the words of a command.

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

/// Source of a cell.
#[derive(Clone, Copy, Debug)]
enum Read {
    /// The field with the name of the column.
    Same,
    /// The same field, whose value is a name of the broker.
    Atom,
    /// The same field, whose value is a table of a client.
    Arguments,
    /// The count with the name of the column in `message_stats`.
    Count,
    /// The change per second of the count with the name of the column without `_rate`.
    Rate,
    /// The result of a function.
    By(fn(&Value, &Pids) -> Term),
}

impl Column {
    /// A column for the field with this name.
    pub(crate) const fn same(name: &'static str) -> Self {
        Self { name, read: Read::Same }
    }

    /// A column for the field with this name, whose value is a name of the broker.
    pub(crate) const fn atom(name: &'static str) -> Self {
        Self { name, read: Read::Atom }
    }

    /// A column for the field with this name, whose value is a table of a client.
    pub(crate) const fn arguments(name: &'static str) -> Self {
        Self { name, read: Read::Arguments }
    }

    /// A column for the count with this name in `message_stats`.
    pub(crate) const fn count(name: &'static str) -> Self {
        Self { name, read: Read::Count }
    }

    /// A column for the change per second of a count in `message_stats`; its name is the count's with `_rate`.
    pub(crate) const fn rate(name: &'static str) -> Self {
        Self { name, read: Read::Rate }
    }

    /// A column whose cells are results of a function.
    pub(crate) const fn new(name: &'static str, read: fn(&Value, &Pids) -> Term) -> Self {
        Self { name, read: Read::By(read) }
    }

    /// The cell for an element of a list.
    pub(crate) fn cell(&self, of: &Value, pids: &Pids) -> (String, Term) {
        let field = of.get(self.name);
        let term = match self.read {
            // RabbitMQ's tool has the empty name for what a queue or an exchange does not have.
            Read::Same => match field {
                None | Some(Value::Null) => Term::atom(""),
                Some(_) => Term::of(field),
            },
            Read::Atom => Term::atom_of(field),
            Read::Arguments => Term::arguments(field),
            Read::Count => Term::of(of.get("message_stats").and_then(|it| it.get(self.name))),
            Read::Rate => {
                let counted = self.name.trim_end_matches("_rate");
                let stats = of.get("message_stats");
                let details = stats.and_then(|stats| stats.get(format!("{counted}_details")));
                Term::of(details.and_then(|details| details.get("rate")))
            }
            Read::By(read) => read(of, pids),
        };
        (self.name.to_owned(), term)
    }
}

/// Names from the words, which may also be separated by commas; each once.
fn names(words: &[String]) -> Vec<&str> {
    let mut names = Vec::new();
    for name in words.iter().flat_map(|word| word.split(',')).map(str::trim) {
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Checks that all names are those of columns. `lists` adds the columns that there are to RabbitMQ's text.
pub(crate) fn validate(words: &[String], columns: &[Column], lists: bool) -> Result<(), Failure> {
    let is_known = |name: &&str| columns.iter().any(|column| column.name == *name);
    let unknown: Vec<&str> = names(words).into_iter().filter(|name| !is_known(name)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let problem = format!("Info key(s) {} are not supported", unknown.join(","));
    let mut lines = vec![problem];
    if lists {
        lines.push("The columns are:".to_owned());
        lines.extend(wrapped(columns.iter().map(|column| column.name)));
    }
    Err(Failure::arguments_lines(USAGE, lines))
}

/// Names in lines, separated by spaces.
fn wrapped<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut lines = vec![String::new()];
    for name in names {
        match lines.last_mut() {
            Some(line) if line.len() + name.len() < LINE_WIDTH => {
                line.push(' ');
                line.push_str(name);
            }
            _ => lines.push(format!(" {name}")),
        }
    }
    lines
}

/// Width of lines with names of columns.
const LINE_WIDTH: usize = 100;

/// The columns with these names, in order; without names the usual ones.
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
        Column::count("refused"),
        Column::rate("refused_rate"),
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
        assert_eq!(validate(&words("name,state twice"), COLUMNS, true), Ok(()));
        let expected = Failure::arguments(USAGE, "Info key(s) size,age are not supported");
        assert_eq!(validate(&words("name size age size"), COLUMNS, false), Err(expected));
        let expected = [
            "Info key(s) size are not supported",
            "The columns are:",
            " name state arguments refused refused_rate twice",
        ];
        let expected = Failure::arguments_lines(USAGE, expected);
        assert_eq!(validate(&words("size"), COLUMNS, true), Err(expected));
    }

    #[test]
    fn column_cells() {
        let of = json!({"name": "q", "state": "running", "arguments": {"x-max-length": 5}});
        let cell = |name| {
            let column = COLUMNS.iter().find(|column| column.name == name).unwrap();
            column.cell(&of, &Pids::default()).1
        };
        assert_eq!(cell("name"), Term::text("q"));
        assert_eq!(cell("state"), Term::atom("running"));
        assert_eq!(cell("arguments").shown(), "[{\"x-max-length\",5}]");
        assert_eq!(cell("twice"), Term::text("qq"));
        let counted = json!({"message_stats": {"refused": 7, "refused_details": {"rate": 0.5}}});
        let shown = |name, of| {
            let column = COLUMNS.iter().find(|column| column.name == name).unwrap();
            column.cell(of, &Pids::default()).1.shown()
        };
        assert_eq!(["refused", "refused_rate"].map(|name| shown(name, &counted)), ["7", "0.5"]);
        assert_eq!(["refused", "refused_rate"].map(|name| shown(name, &of)), ["", ""]);
    }
}
