//! Values as RabbitMQ's tools print them, which are Erlang's.

use serde_json::{Map, Number, Value, json};

/// A value of a column.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Term {
    /// A text.
    Text(String),
    /// A name that the broker gives: a state, a type, `true`.
    Atom(String),
    /// A number.
    Number(Number),
    /// Values in order.
    List(Vec<Self>),
    /// Names with values, in order.
    Pairs(Vec<(String, Self)>),
    /// Names with values.
    Map(Vec<(String, Self)>),
    /// Arguments or properties, as a client gave them.
    Arguments(Map<String, Value>),
}

impl Term {
    /// A text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A name.
    pub(crate) fn atom(name: impl Into<String>) -> Self {
        Self::Atom(name.into())
    }

    /// A term from JSON; a missing value is an empty text.
    pub(crate) fn of(value: Option<&Value>) -> Self {
        match value {
            None | Some(Value::Null) => Self::text(""),
            Some(Value::Bool(is)) => Self::atom(is.to_string()),
            Some(Value::Number(number)) => Self::Number(number.clone()),
            Some(Value::String(text)) => Self::text(text.as_str()),
            Some(Value::Array(all)) => {
                Self::List(all.iter().map(|one| Self::of(Some(one))).collect())
            }
            Some(Value::Object(map)) => {
                Self::Map(map.iter().map(|(name, v)| (name.clone(), Self::of(Some(v)))).collect())
            }
        }
    }

    /// A term from JSON whose text is a name: a state, a type.
    pub(crate) fn atom_of(value: Option<&Value>) -> Self {
        let named = |one| if let Self::Text(name) = one { Self::Atom(name) } else { one };
        let of = Self::of(value);
        if let Self::List(all) = of {
            return Self::List(all.into_iter().map(named).collect());
        }
        named(of)
    }

    /// Arguments or properties of a client.
    pub(crate) fn arguments(value: Option<&Value>) -> Self {
        Self::Arguments(value.and_then(Value::as_object).cloned().unwrap_or_default())
    }

    /// The term in a cell of a table.
    pub(crate) fn shown(&self) -> String {
        let listed = |all: Vec<String>| format!("[{}]", all.join(", "));
        match self {
            Self::Text(text) | Self::Atom(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::List(all) => listed(all.iter().map(Self::shown).collect()),
            Self::Pairs(pairs) => listed(
                pairs.iter().map(|(k, v)| format!("{{{}, {}}}", atom(k), v.shown())).collect(),
            ),
            Self::Map(map) => {
                let pairs: Vec<_> =
                    map.iter().map(|(k, v)| format!("{k} => {}", v.shown())).collect();
                format!("#{{{}}}", pairs.join(", "))
            }
            Self::Arguments(arguments) => argument_table(arguments),
        }
    }

    /// The term in JSON.
    pub(crate) fn json(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(text.as_str()),
            Self::Atom(name) => match name.as_str() {
                "true" => Value::from(true),
                "false" => Value::from(false),
                "null" | "undefined" => Value::Null,
                name => Value::from(name),
            },
            Self::Number(number) => Value::Number(number.clone()),
            Self::List(all) => all.iter().map(Self::json).collect(),
            Self::Pairs(pairs) | Self::Map(pairs) => {
                Value::Object(pairs.iter().map(|(name, v)| (name.clone(), v.json())).collect())
            }
            Self::Arguments(arguments) => typed_json(arguments),
        }
    }

    /// The term in Erlang's syntax, broken into lines of 80 columns; it begins at this column.
    pub(crate) fn erlang(&self, column: usize) -> String {
        let flat = self.erlang_flat();
        if column + flat.chars().count() <= LINE {
            return flat;
        }
        let inner: Vec<String> = match self {
            Self::List(all) => all.iter().map(|one| one.erlang(column + 1)).collect(),
            Self::Pairs(pairs) => pairs.iter().map(|pair| erlang_pair(pair, column + 1)).collect(),
            Self::Arguments(arguments) => arguments.iter().map(typed_entry).collect(),
            Self::Text(_) | Self::Atom(_) | Self::Number(_) | Self::Map(_) => return flat,
        };
        format!("[{}]", inner.join(&format!(",\n{}", " ".repeat(column + 1))))
    }

    fn erlang_flat(&self) -> String {
        let pair = |open: &str, (name, value): &(String, Self), between: &str| {
            format!("{open}{}{between}{}", atom(name), value.erlang_flat())
        };
        match self {
            Self::Text(text) => binary(text),
            Self::Atom(name) => atom(name),
            Self::Number(number) => number.to_string(),
            Self::List(all) => {
                let all: Vec<_> = all.iter().map(Self::erlang_flat).collect();
                format!("[{}]", all.join(","))
            }
            Self::Pairs(pairs) => {
                let all: Vec<_> = pairs.iter().map(|p| pair("{", p, ",") + "}").collect();
                format!("[{}]", all.join(","))
            }
            Self::Map(map) => {
                let all: Vec<_> = map.iter().map(|p| pair("", p, " => ")).collect();
                format!("#{{{}}}", all.join(","))
            }
            Self::Arguments(arguments) => typed_table(arguments),
        }
    }
}

impl From<bool> for Term {
    fn from(is: bool) -> Self {
        Self::atom(is.to_string())
    }
}

impl From<i64> for Term {
    fn from(number: i64) -> Self {
        Self::Number(number.into())
    }
}

/// The width of a line of Erlang's printer.
const LINE: usize = 80;

fn erlang_pair((name, value): &(String, Term), column: usize) -> String {
    let name = atom(name);
    let flat = format!("{{{name},{}}}", value.erlang_flat());
    if column + flat.chars().count() <= LINE {
        return flat;
    }
    let behind = column + name.chars().count() + 2;
    format!("{{{name},{}}}", value.erlang(behind))
}

/// A name as Erlang writes it: in quotes unless it is plain.
pub(crate) fn atom(name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '@'));
    if is_plain { name.to_owned() } else { between('\'', name) }
}

/// A text in double quotes.
pub(crate) fn quoted(text: &str) -> String {
    between('"', text)
}

/// A text between quotes, with the escapes of Erlang.
fn between(quote: char, text: &str) -> String {
    let mut quoted = String::from(quote);
    for c in text.chars() {
        match c {
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            '\u{1b}' => quoted.push_str("\\e"),
            c if c == quote || c == '\\' => quoted.extend(['\\', c]),
            c if line::is_obeyed(c) => quoted.push_str(&format!("\\x{{{:x}}}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push(quote);
    quoted
}

/// Arguments as a list of pairs: `[{"x-max-length",5},{"s","text"}]`.
fn argument_table(arguments: &Map<String, Value>) -> String {
    let pair =
        |(name, value): (&String, &Value)| format!("{{{},{}}}", quoted(name), argument(value));
    let pairs: Vec<String> = arguments.iter().map(pair).collect();
    format!("[{}]", pairs.join(","))
}

fn argument(value: &Value) -> String {
    match value {
        Value::Null => "undefined".to_owned(),
        Value::Bool(is) => is.to_string(),
        Value::Number(number) => number.to_string(),
        // In Erlang an empty text is an empty list.
        Value::String(text) if text.is_empty() => "[]".to_owned(),
        Value::String(text) => quoted(text),
        Value::Array(all) => {
            let all: Vec<String> = all.iter().map(argument).collect();
            format!("[{}]", all.join(","))
        }
        Value::Object(table) => argument_table(table),
    }
}

/// The name of the type that AMQP has for a value; of numbers the usual one.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "void",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "double",
        Value::Number(number) => match number.as_i64().map(i32::try_from) {
            Some(Ok(_)) => "signedint",
            _ => "long",
        },
        Value::String(_) => "longstr",
        Value::Array(_) => "array",
        Value::Object(_) => "table",
    }
}

/// Arguments as JSON with their types: `[["x-max-length","signedint",5]]`.
fn typed_json(arguments: &Map<String, Value>) -> Value {
    let entry =
        |(name, value): (&String, &Value)| json!([name, type_of(value), typed_value(value)]);
    arguments.iter().map(entry).collect()
}

fn typed_value(value: &Value) -> Value {
    match value {
        Value::Array(all) => {
            all.iter().map(|one| json!([type_of(one), typed_value(one)])).collect()
        }
        Value::Object(table) => typed_json(table),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Arguments as terms with their types: `[{<<"x-max-length">>,signedint,5}]`.
fn typed_table(arguments: &Map<String, Value>) -> String {
    let pairs: Vec<String> = arguments.iter().map(typed_entry).collect();
    format!("[{}]", pairs.join(","))
}

fn typed_entry((name, value): (&String, &Value)) -> String {
    format!("{{{},{}}}", binary(name), typed(value))
}

fn typed(value: &Value) -> String {
    let shown = match value {
        Value::Null => "undefined".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => binary(text),
        Value::Array(all) => {
            let all: Vec<String> = all.iter().map(|one| format!("{{{}}}", typed(one))).collect();
            format!("[{}]", all.join(","))
        }
        Value::Object(table) => typed_table(table),
    };
    format!("{},{shown}", type_of(value))
}

/// A text as an Erlang binary: `<<"text">>`.
pub(crate) fn binary(text: &str) -> String {
    if text.is_empty() { "<<>>".to_owned() } else { format!("<<{}>>", quoted(text)) }
}

/// An Erlang term that came as JSON, in the form in which RabbitMQ's tools print terms in texts: names,
/// tuples, and texts as lists of characters.
pub(crate) fn inspected(term: &Value) -> String {
    let character = |value: &Value| {
        let c = char::from_u32(u32::try_from(value.as_u64()?).ok()?)?;
        (!c.is_control()).then_some(c)
    };
    match term {
        Value::String(name) => format!(":{name}"),
        Value::Array(all) => match all.iter().map(character).collect::<Option<String>>() {
            Some(text) if !text.is_empty() => format!("~c{}", quoted(&text)),
            _ => format!("{{{}}}", all.iter().map(inspected).collect::<Vec<_>>().join(", ")),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => term.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn term_of_arguments_in_a_table() {
        let arguments = json!({
            "x-max-length": 5, "x-dead-letter-exchange": "", "s": "te\"xt", "t": true,
            "l": [1, "a"], "d": {"x": 1},
        });
        assert_eq!(
            Term::arguments(Some(&arguments)).shown(),
            "[{\"x-max-length\",5},{\"x-dead-letter-exchange\",[]},{\"s\",\"te\\\"xt\"},{\"t\",true},\
             {\"l\",[1,\"a\"]},{\"d\",[{\"x\",1}]}]"
        );
        assert_eq!(Term::arguments(None).shown(), "[]");
    }

    #[test]
    fn term_of_broker_values_in_a_table() {
        let shown = |value| Term::of(Some(&value)).shown();
        assert_eq!(shown(json!(null)), "");
        assert_eq!(shown(json!(["a", "b"])), "[a, b]");
        assert_eq!(
            shown(json!({"max-length": 5, "overflow": "x"})),
            "#{max-length => 5, overflow => x}"
        );
        let states = Term::Pairs(vec![("leveret@my-host".to_owned(), Term::atom("running"))]);
        assert_eq!(states.shown(), "[{'leveret@my-host', running}]");
    }

    #[test]
    fn long_terms_are_broken_into_lines() {
        let row = |name: &str| {
            let arguments =
                json!({"x-dead-letter-exchange": "one", "x-dead-letter-routing-key": 5});
            Term::Pairs(vec![
                ("name".to_owned(), Term::text(name)),
                ("arguments".to_owned(), Term::arguments(Some(&arguments))),
            ])
        };
        let lines = Term::List(vec![row("a"), row("")]).erlang(0);
        let expected = [
            "[[{name,<<\"a\">>},",
            "  {arguments,[{<<\"x-dead-letter-exchange\">>,longstr,<<\"one\">>},",
            "              {<<\"x-dead-letter-routing-key\">>,signedint,5}]}],",
            " [{name,<<>>},",
            "  {arguments,[{<<\"x-dead-letter-exchange\">>,longstr,<<\"one\">>},",
            "              {<<\"x-dead-letter-routing-key\">>,signedint,5}]}]]",
        ];
        assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn control_characters_have_the_escapes_of_erlang() {
        let text = "a\n\t\r\u{1b}\u{0}\u{7f}\u{9b}\u{2028}'\"\\";
        assert_eq!(quoted(text), "\"a\\n\\t\\r\\e\\x{0}\\x{7f}\\x{9b}\\x{2028}'\\\"\\\\\"");
        assert_eq!(atom("it's\n"), "'it\\'s\\n'");
        let tags = Term::List(vec![Term::atom("a\nb")]);
        assert_eq!(tags.erlang(0), "['a\\nb']");
    }

    #[test]
    fn terms_from_json() {
        let term = json!(["invalid_regexp", [40], [[98, 97, 100], 1]]);
        assert_eq!(inspected(&term), "{:invalid_regexp, ~c\"(\", {~c\"bad\", 1}}");
    }
}
