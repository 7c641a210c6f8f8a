//! The command line: words and options in any order, as `rabbitmqctl` reads them.
//!
//! Options may stand before, behind and between the words of a command. Unknown options, and options
//! without a valid value, are collected, so that the caller reports all of them together.

/// Kind of the value of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A flag without a value; `--no-NAME` denies it.
    Flag,
    /// A text.
    Text,
    /// A whole number.
    Integer,
}

/// An option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Switch {
    /// Name behind two dashes.
    pub(crate) name: &'static str,
    /// Letter behind one dash.
    pub(crate) short: Option<char>,
    /// Kind of the value.
    pub(crate) kind: Kind,
}

impl Switch {
    /// A flag.
    pub(crate) const fn flag(name: &'static str) -> Self {
        Self { name, short: None, kind: Kind::Flag }
    }

    /// An option with a text.
    pub(crate) const fn text(name: &'static str) -> Self {
        Self { name, short: None, kind: Kind::Text }
    }

    /// An option with a whole number.
    pub(crate) const fn integer(name: &'static str) -> Self {
        Self { name, short: None, kind: Kind::Integer }
    }

    /// The same option with a letter.
    pub(crate) const fn or(self, short: char) -> Self {
        Self { short: Some(short), ..self }
    }
}

/// A wrong option as it was written, and its value.
pub(crate) type Wrong = (String, Option<String>);

/// A command line that was read.
#[derive(Default, Debug)]
pub(crate) struct Parsed {
    /// Words that are no options, in order.
    pub(crate) words: Vec<String>,
    /// Options that are unknown or have no valid value.
    pub(crate) wrong: Vec<Wrong>,
    given: Vec<(&'static str, String)>,
}

impl Parsed {
    /// The same with every text changed.
    pub(crate) fn map(&self, change: impl Fn(&str) -> String) -> Self {
        let words = self.words.iter().map(|word| change(word)).collect();
        let given = self.given.iter().map(|(name, value)| (*name, change(value))).collect();
        Self { words, wrong: self.wrong.clone(), given }
    }

    /// The value of an option; of several the last.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.given.iter().rev().find(|(given, _)| *given == name).map(|(_, value)| value.as_str())
    }

    /// The values of an option that may be there several times, in order.
    pub(crate) fn texts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let given = self.given.iter().filter(move |(given, _)| *given == name);
        given.map(|(_, value)| value.as_str())
    }

    /// The value of a flag; `None` if it is neither given nor denied.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.text(name).map(|value| value == "true")
    }

    /// The value of an option with a number.
    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        self.text(name)?.parse().ok()
    }
}

/// Reads a command line with the options that may be in it.
pub(crate) fn parse(line: &[String], switches: &[Switch]) -> Parsed {
    let mut parsed = Parsed::default();
    let mut rest = line.iter().map(String::as_str).peekable();
    while let Some(word) = rest.next() {
        if word == "--" {
            parsed.words.extend(rest.by_ref().map(str::to_owned));
            break;
        }
        if !is_option(word) {
            parsed.words.push(word.to_owned());
            continue;
        }
        let (written, attached) = match word.split_once('=') {
            Some((written, value)) => (written, Some(value)),
            None => (word, None),
        };
        let Some((switch, denied)) = find(written, switches) else {
            parsed.wrong.push((written.to_owned(), attached.map(str::to_owned)));
            continue;
        };
        let value = match (switch.kind, attached) {
            (Kind::Flag, None) => Some(if denied { "false" } else { "true" }),
            (Kind::Flag, Some(value)) => Some(value),
            (_, Some(value)) => Some(value),
            (_, None) => rest.next_if(|next| !is_option(next)),
        };
        let fits = value.is_some_and(|value| match switch.kind {
            Kind::Flag => matches!(value, "true" | "false"),
            Kind::Text => true,
            Kind::Integer => value.parse::<i64>().is_ok(),
        });
        match value {
            Some(value) if fits => parsed.given.push((switch.name, value.to_owned())),
            value => parsed.wrong.push((written.to_owned(), value.map(str::to_owned))),
        }
    }
    parsed
}

/// True if a word begins as an option does; a lone dash and a negative number do not.
fn is_option(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| !rest.is_empty() && rest.parse::<f64>().is_err())
}

/// The option with this name, and true if it is denied.
pub(crate) fn find<'a>(written: &str, switches: &'a [Switch]) -> Option<(&'a Switch, bool)> {
    let Some(name) = written.strip_prefix("--") else {
        let mut letters = written.chars().skip(1);
        let letter = letters.next().filter(|_| letters.next().is_none())?;
        return switches.iter().find(|switch| switch.short == Some(letter)).map(|s| (s, false));
    };
    let named = |name: &str| switches.iter().find(|switch| switch.name == name);
    if let Some(switch) = named(name) {
        return Some((switch, false));
    }
    let switch = named(name.strip_prefix("no-")?)?;
    (switch.kind == Kind::Flag).then_some((switch, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCHES: &[Switch] = &[
        Switch::text("vhost").or('p'),
        Switch::flag("quiet").or('q'),
        Switch::flag("table-headers"),
        Switch::integer("timeout").or('t'),
    ];

    /// The words, the options, and what is wrong, of a line.
    fn read(line: &str) -> (Vec<String>, Vec<(&'static str, String)>, Vec<Wrong>) {
        let line: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let Parsed { words, wrong, given } = parse(&line, SWITCHES);
        (words, given, wrong)
    }

    #[test]
    fn options_stand_anywhere() {
        for line in [
            "-p v list_queues name -q",
            "list_queues -q name --vhost=v",
            "list_queues name --quiet --vhost v",
        ] {
            let (words, mut given, wrong) = read(line);
            given.sort();
            assert_eq!(words, ["list_queues", "name"], "{line}");
            assert_eq!(given, [("quiet", "true".to_owned()), ("vhost", "v".to_owned())], "{line}");
            assert_eq!(wrong, [], "{line}");
        }
    }

    #[test]
    fn wrong_options_are_reported() {
        let wrong = |line| {
            let (_, _, wrong) = read(line);
            let one = |(written, value): Wrong| (written, value.unwrap_or_default());
            wrong.into_iter().map(one).collect::<Vec<_>>()
        };
        let is = |written: &str, value: &str| vec![(written.to_owned(), value.to_owned())];
        assert_eq!(wrong("c --bogus"), is("--bogus", ""));
        assert_eq!(wrong("c --bogus=5"), is("--bogus", "5"));
        assert_eq!(wrong("c -p"), is("-p", ""));
        assert_eq!(wrong("c -p -q"), is("-p", ""));
        assert_eq!(wrong("c -t soon"), is("-t", "soon"));
        assert_eq!(wrong("c -qp"), is("-qp", ""));
        assert_eq!(wrong("c --no-vhost"), is("--no-vhost", ""));
        assert_eq!(wrong("c --quiet=perhaps"), is("--quiet", "perhaps"));
    }

    #[test]
    fn negative_numbers_and_dashes_are_words() {
        assert_eq!(read("c -1 - -0.5").0, ["c", "-1", "-", "-0.5"]);
        assert_eq!(read("c -- -p --quiet").0, ["c", "-p", "--quiet"]);
        assert_eq!(read("c -t -5").1, [("timeout", "-5".to_owned())]);
    }

    #[test]
    fn flags_can_be_denied_and_the_last_one_counts() {
        let line: Vec<String> =
            ["--no-table-headers", "-p", "a", "-p", "b"].map(str::to_owned).to_vec();
        let parsed = parse(&line, SWITCHES);
        assert_eq!(parsed.flag("table-headers"), Some(false));
        assert_eq!((parsed.flag("quiet"), parsed.text("vhost")), (None, Some("b")));
        assert_eq!(parsed.integer("timeout"), None);
    }
}
