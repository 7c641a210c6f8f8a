//! Output of a command, and its formats.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::printable::{self, printable};
use crate::term::Term;

/// A row of a list: columns with their names, in order.
pub(crate) type Row = Vec<(String, Term)>;

/// Output of a command.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Output {
    /// No output.
    Done,
    /// A sentence or a document, which JSON wraps with the node's name.
    Text(String),
    /// A sentence, and what JSON has in its place.
    Said(String, Value),
    /// A list.
    Rows(Rows),
    /// A list, and what JSON has in its place.
    Listed(Rows, Value),
    /// A text for people, and a value for programs in all their formats.
    Both(String, Value),
    /// Output of a check, with the exit code of the process.
    Graded { output: Box<Self>, code: u8 },
}

/// A list.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Rows {
    /// Rows; all have the same columns.
    pub(crate) rows: Vec<Row>,
    /// Form of a table without rows.
    pub(crate) empty: Empty,
    /// True if a table begins with the names of the columns.
    pub(crate) has_header: bool,
}

/// Form of a table without rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Empty {
    /// No line.
    Nothing,
    /// An empty line.
    Line,
}

impl Output {
    /// A sentence that is a message in JSON.
    pub(crate) fn message(text: impl Into<String>) -> Self {
        let text = text.into();
        let told = json!({"message": text});
        Self::Said(text, told)
    }

    /// A sentence about success, which JSON tells without it.
    pub(crate) fn passed(text: impl Into<String>) -> Self {
        Self::Said(text.into(), json!({"result": "ok"}))
    }
}

impl From<Vec<Row>> for Rows {
    fn from(rows: Vec<Row>) -> Self {
        Self { rows, empty: Empty::Line, has_header: true }
    }
}

impl From<Vec<Row>> for Output {
    fn from(rows: Vec<Row>) -> Self {
        Self::Rows(rows.into())
    }
}

/// Format of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Formatter {
    Table,
    PrettyTable,
    Csv,
    Json,
    Erlang,
}

impl Formatter {
    /// The formatter with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "table" => Self::Table,
            "pretty_table" => Self::PrettyTable,
            "csv" => Self::Csv,
            "json" | "json_stream" => Self::Json,
            "erlang" => Self::Erlang,
            _ => return None,
        })
    }

    /// True for a format for programs, which has no banner before it.
    pub(crate) fn is_for_programs(self) -> bool {
        matches!(self, Self::Csv | Self::Json)
    }
}

/// Style of tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// Tables begin with the names of their columns.
    pub(crate) has_header: bool,
    /// The terminal shows the lines of Unicode; else those of a VT100.
    pub(crate) is_unicode: bool,
}

/// The text for standard output, with its last line ended. It has no control sequences except the lines of
/// a table.
pub(crate) fn formatted(output: &Output, formatter: Formatter, style: Style, node: &str) -> String {
    let text = written(output, formatter, style, node);
    match formatter {
        // The cells are printable already.
        Formatter::PrettyTable => text,
        Formatter::Table | Formatter::Csv | Formatter::Json | Formatter::Erlang => {
            printable(&text).into_owned()
        }
    }
}

fn written(output: &Output, formatter: Formatter, style: Style, node: &str) -> String {
    match (output, formatter) {
        (Output::Graded { output, .. }, _) => written(output, formatter, style, node),
        (Output::Done, Formatter::Json) => line(&json!({"result": "ok", "node": node}).to_string()),
        (Output::Done, _) => String::new(),
        (Output::Text(text), Formatter::Json) => {
            line(&json!({"result": "ok", "node": node, "value": text}).to_string())
        }
        (Output::Said(_, value) | Output::Both(_, value), Formatter::Json) => {
            line(&value.to_string())
        }
        (
            Output::Said(text, _) | Output::Both(text, _),
            Formatter::Table | Formatter::PrettyTable,
        ) if text.is_empty() => String::new(),
        (
            Output::Text(text) | Output::Said(text, _) | Output::Both(text, _),
            Formatter::PrettyTable,
        ) => pretty_table(&[vec!["Output".to_owned()], vec![text.clone()]], style.is_unicode),
        (Output::Text(text) | Output::Said(text, _), Formatter::Erlang) => {
            line(&Term::text(text.as_str()).erlang(0))
        }
        (Output::Both(_, value), Formatter::Erlang) => line(&Term::of(Some(value)).erlang(0)),
        (Output::Text(text) | Output::Said(text, _) | Output::Both(text, _), _) => line(text),
        (Output::Listed(_, value), Formatter::Json) => line(&value.to_string()),
        (Output::Rows(rows) | Output::Listed(rows, _), Formatter::Table) => {
            table(rows, style.has_header)
        }
        (Output::Rows(rows) | Output::Listed(rows, _), Formatter::PrettyTable) => {
            let cells = |row: &Row| row.iter().map(|(_, term)| unbracketed(term)).collect();
            match rows.rows.first() {
                None => String::new(),
                Some(first) => {
                    let names = first.iter().map(|(name, _)| name.clone()).collect();
                    let all: Vec<Vec<String>> =
                        std::iter::once(names).chain(rows.rows.iter().map(cells)).collect();
                    pretty_table(&all, style.is_unicode)
                }
            }
        }
        (Output::Rows(rows) | Output::Listed(rows, _), Formatter::Csv) => csv(&rows.rows),
        (Output::Rows(rows), Formatter::Json) if rows.rows.is_empty() => {
            (if rows.empty == Empty::Line { "[]\n" } else { "[\n]\n" }).to_owned()
        }
        (Output::Rows(rows), Formatter::Json) => json_rows(&rows.rows),
        (Output::Rows(rows) | Output::Listed(rows, _), Formatter::Erlang) => {
            let rows = rows.rows.iter().map(|row| Term::Pairs(row.clone())).collect();
            line(&Term::List(rows).erlang(0))
        }
    }
}

/// A cell of a table.
fn shown(term: &Term) -> String {
    printable::in_line(&term.shown()).into_owned()
}

/// A cell of a table with lines, where a list has no brackets.
// COMPAT: lists in a pretty table: the elements have commas between them, where RabbitMQ's tool joins them.
fn unbracketed(term: &Term) -> String {
    match term {
        Term::List(all) => all.iter().map(shown).collect::<Vec<_>>().join(", "),
        Term::Arguments(arguments) if arguments.is_empty() => String::new(),
        Term::Text(_)
        | Term::Atom(_)
        | Term::Number(_)
        | Term::Pairs(_)
        | Term::Map(_)
        | Term::Arguments(_) => shown(term),
    }
}

fn line(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

fn table(Rows { rows, empty, has_header: may_have }: &Rows, has_header: bool) -> String {
    let Some(first) = rows.first() else {
        return if *empty == Empty::Line { "\n".to_owned() } else { String::new() };
    };
    let mut text = String::new();
    let mut add = |cells: Vec<String>| {
        text.push_str(&cells.join("\t"));
        text.push('\n');
    };
    if has_header && *may_have {
        add(first.iter().map(|(name, _)| name.clone()).collect());
    }
    for row in rows {
        add(row.iter().map(|(_, term)| shown(term)).collect());
    }
    text
}

// COMPAT: csv of lists: what is no text is written as a table shows it, where RabbitMQ's tool fails.
fn csv(rows: &[Row]) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let mut text = String::new();
    let mut add = |cells: Vec<String>| {
        text.push_str(&cells.join(","));
        text.push('\n');
    };
    if let Some(first) = rows.first() {
        add(first.iter().map(|(name, _)| quoted(name)).collect());
    }
    for row in rows {
        let cell = |(_, term): &(String, Term)| match term {
            Term::List(all) if all.is_empty() => quoted(""),
            Term::Arguments(arguments) if arguments.is_empty() => quoted(""),
            Term::List(_)
            | Term::Text(_)
            | Term::Atom(_)
            | Term::Number(_)
            | Term::Pairs(_)
            | Term::Map(_)
            | Term::Arguments(_) => quoted(&term.shown()),
        };
        add(row.iter().map(cell).collect());
    }
    text
}

fn json_rows(rows: &[Row]) -> String {
    let mut text = "[\n".to_owned();
    for (at, row) in json_of(rows).iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}{row}", if at == 0 { "" } else { "," });
    }
    text + "]\n"
}

/// Rows as objects.
pub(crate) fn json_of(rows: &[Row]) -> Vec<Value> {
    let cell = |(name, term): &(String, Term)| (name.clone(), term.json());
    rows.iter().map(|row| Value::Object(row.iter().map(cell).collect::<Map<_, _>>())).collect()
}

/// A table with lines around its cells; the first row is its head.
fn pretty_table(rows: &[Vec<String>], is_unicode: bool) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let cells = |row: &[String]| -> Vec<Vec<String>> {
        row.iter().map(|cell| cell.trim_end().lines().map(plain).collect()).collect()
    };
    let rows: Vec<Vec<Vec<String>>> = rows.iter().map(|row| cells(row)).collect();
    let width_of = |cell: &Vec<String>| cell.iter().map(|l| l.chars().count()).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column).map(width_of)).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    let drawn =
        |vt100: &str| if is_unicode { unicode(vt100) } else { format!("\u{1b}(0{vt100}\u{1b}(B") };
    let border = |left: &str, middle: &str, right: &str| {
        let lines: Vec<String> = widths.iter().map(|width| "q".repeat(width + 2)).collect();
        drawn(&format!("{left}{}{right}", lines.join(middle))) + "\n"
    };
    let bar = drawn("x");
    let mut text = border("l", "w", "k");
    for (at, row) in rows.iter().enumerate() {
        if at > 0 {
            text.push_str(&border("t", "n", "u"));
        }
        let height = row.iter().map(Vec::len).max().unwrap_or_default().max(1);
        for part in 0..height {
            for (column, width) in widths.iter().enumerate() {
                let cell = row.get(column).and_then(|cell| cell.get(part));
                let cell = cell.map(String::as_str).unwrap_or_default();
                let padding = " ".repeat(width - cell.chars().count().min(*width));
                let (bold, thin) = if at == 0 { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
                let _ = write!(text, "{bar} {bold}{cell}{thin}{padding} ");
            }
            let _ = writeln!(text, "{bar}");
        }
    }
    text + &border("m", "v", "j")
}

/// A line without control sequences.
fn plain(line: &str) -> String {
    printable::in_line(&line.replace('\t', " ")).into_owned()
}

/// The lines of a VT100 as characters.
fn unicode(vt100: &str) -> String {
    let character = |c| match c {
        'l' => '\u{250c}',
        'w' => '\u{252c}',
        'k' => '\u{2510}',
        't' => '\u{251c}',
        'n' => '\u{253c}',
        'u' => '\u{2524}',
        'm' => '\u{2514}',
        'v' => '\u{2534}',
        'j' => '\u{2518}',
        'q' => '\u{2500}',
        'x' => '\u{2502}',
        other => other,
    };
    vt100.chars().map(character).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style { has_header: true, is_unicode: true };

    fn users() -> Output {
        let row = |name: &str, tags: &[&str]| {
            let tags = tags.iter().map(|tag| Term::atom(*tag)).collect();
            vec![("user".to_owned(), Term::text(name)), ("tags".to_owned(), Term::List(tags))]
        };
        vec![row("anna", &[]), row("gu\"est", &["administrator", "other"])].into()
    }

    #[test]
    fn list_in_every_format() {
        let is = |formatter, text: &str| {
            assert_eq!(formatted(&users(), formatter, STYLE, "n@h"), text, "{formatter:?}");
        };
        is(Formatter::Table, "user\ttags\nanna\t[]\ngu\"est\t[administrator, other]\n");
        is(
            Formatter::Csv,
            "\"user\",\"tags\"\n\"anna\",\"\"\n\"gu\"\"est\",\"[administrator, other]\"\n",
        );
        is(
            Formatter::Json,
            "[\n{\"user\":\"anna\",\"tags\":[]}\n\
             ,{\"user\":\"gu\\\"est\",\"tags\":[\"administrator\",\"other\"]}\n]\n",
        );
        is(
            Formatter::Erlang,
            "[[{user,<<\"anna\">>},{tags,[]}],\n [{user,<<\"gu\\\"est\">>},{tags,[administrator,other]}]]\n",
        );
        // With the lines of a VT100, which can be read here.
        let drawn = |line: &str| format!("\u{1b}(0{line}\u{1b}(B");
        let border = |left: &str, middle: &str, right: &str| {
            drawn(&format!("{left}{}{middle}{}{right}", "q".repeat(8), "q".repeat(22)))
        };
        let bar = drawn("x");
        let lines = [
            border("l", "w", "k"),
            format!(
                "{bar} \u{1b}[1muser\u{1b}[0m   {bar} \u{1b}[1mtags\u{1b}[0m{}{bar}",
                " ".repeat(17)
            ),
            border("t", "n", "u"),
            format!("{bar} anna   {bar} {}{bar}", " ".repeat(21)),
            border("t", "n", "u"),
            format!("{bar} gu\"est {bar} administrator, other {bar}"),
            border("m", "v", "j"),
        ];
        let style = Style { is_unicode: false, ..STYLE };
        let text = formatted(&users(), Formatter::PrettyTable, style, "n@h");
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
        assert_eq!(unicode("lqk"), "\u{250c}\u{2500}\u{2510}");
    }

    #[test]
    fn list_without_rows() {
        let text = |empty, formatter| {
            let rows = Output::Rows(Rows { rows: Vec::new(), empty, has_header: true });
            formatted(&rows, formatter, STYLE, "n@h")
        };
        assert_eq!(text(Empty::Nothing, Formatter::Table), "");
        assert_eq!(text(Empty::Line, Formatter::Table), "\n");
        assert_eq!(text(Empty::Line, Formatter::Json), "[]\n");
        assert_eq!(text(Empty::Nothing, Formatter::Json), "[\n]\n");
        assert_eq!(text(Empty::Line, Formatter::Erlang), "[]\n");
        assert_eq!(text(Empty::Line, Formatter::Csv), "");
        assert_eq!(text(Empty::Line, Formatter::PrettyTable), "");
    }

    #[test]
    fn text_in_every_format() {
        let text = |output: &Output, formatter| formatted(output, formatter, STYLE, "n@h");
        let said = Output::Text("well".to_owned());
        assert_eq!(text(&said, Formatter::Table), "well\n");
        assert_eq!(
            text(&said, Formatter::Json),
            "{\"result\":\"ok\",\"node\":\"n@h\",\"value\":\"well\"}\n"
        );
        let said = Output::message("well");
        assert_eq!(text(&said, Formatter::Table), "well\n");
        assert_eq!(text(&said, Formatter::Json), "{\"message\":\"well\"}\n");
        assert_eq!(text(&said, Formatter::Erlang), "<<\"well\">>\n");
        assert_eq!(text(&Output::passed("well"), Formatter::Json), "{\"result\":\"ok\"}\n");
        assert_eq!(text(&Output::Done, Formatter::Table), "");
        let both = Output::Both("{\"a\":1}".to_owned(), json!([1]));
        assert_eq!(text(&both, Formatter::Json), "[1]\n");
        assert_eq!(text(&both, Formatter::Table), "{\"a\":1}\n");
    }
}
