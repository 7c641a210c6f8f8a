//! The format of `rabbitmq.conf`: one `key = value` per line; `#` starts a comment.
//!
//! A value may be enclosed in `'single quotes'` (see [`setting_value`]), or span several lines between `'''` and `'''`.
//! A backslash before a dot makes the dot a part of a name. `include FILE` is replaced by the contents of another
//! file.

use line::setting_value::{self, Value, nothing_behind};

/// A parsed line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Line {
    /// A key with a value.
    Entry { key: KeyName, value: Value },
    /// The inclusion of another file.
    Include(String),
}

/// The parts of a key, separated by dots.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct KeyName(pub(super) Vec<String>);

impl KeyName {
    /// Parses a key as written in a file.
    pub(super) fn new(text: &str) -> Self {
        let mut parts = vec![String::new()];
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' if chars.peek() == Some(&'.') => {
                    chars.next();
                    push(&mut parts, '.');
                }
                '.' => parts.push(String::new()),
                c => push(&mut parts, c),
            }
        }
        Self(parts)
    }
}

fn push(parts: &mut [String], c: char) {
    if let Some(last) = parts.last_mut() {
        last.push(c);
    }
}

impl std::fmt::Display for KeyName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, part) in self.0.iter().enumerate() {
            let dot = if index == 0 { "" } else { "." };
            write!(f, "{dot}{}", part.replace('.', "\\."))?;
        }
        Ok(())
    }
}

/// The number of an invalid line, and the problem.
pub(super) type Problem = (usize, String);

/// Parses the lines of a file, with their numbers.
pub(super) fn lines(text: &str) -> Vec<Result<(usize, Line), Problem>> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let number = index + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(path) = line.strip_prefix("include ").filter(|path| !path.contains('=')) {
            let path = setting_value::read(path.trim()).map(|path| Line::Include(path.text));
            found.push(path.map(|line| (number, line)).map_err(|problem| (number, problem)));
            continue;
        }
        let entry = match split(line) {
            Ok((key, _)) if key.contains(line::is_obeyed) => {
                Err(format!("a key has no control characters, got '{key}'"))
            }
            Ok((key, value)) => match value.strip_prefix("'''") {
                Some(begin) => long_value(begin, &mut lines.by_ref().map(|(_, line)| line)),
                None => setting_value::read(value),
            }
            .map(|value| Line::Entry { key: KeyName::new(key), value })
            .map_err(|problem| format!("{key}: {problem}")),
            Err(problem) => Err(problem),
        };
        found.push(entry.map(|line| (number, line)).map_err(|problem| (number, problem)));
    }
    found
}

/// The line in which a text begins as Erlang terms do: `[{rabbit, ...`.
pub(super) fn erlang_terms(text: &str) -> Option<usize> {
    let is_content = |line: &str| !line.is_empty() && !line.starts_with(['#', '%']);
    let mut lines = text.lines().map(str::trim).enumerate();
    let (index, first) = lines.find(|(_, line)| is_content(line))?;
    first.starts_with(['[', '{']).then_some(index + 1)
}

fn split(line: &str) -> Result<(&str, &str), String> {
    let (key, value) = line.split_once('=').ok_or_else(|| {
        // The rest of the line may be a password.
        let word = line.split_whitespace().next().unwrap_or_default();
        let more = if word == line { "" } else { " ..." };
        format!("expected 'key = value', got '{word}{more}'")
    })?;
    Ok((key.trim(), value.trim()))
}

/// Reads a value that continues up to `'''`.
fn long_value<'a>(
    begin: &'a str,
    lines: &mut dyn Iterator<Item = &'a str>,
) -> Result<Value, String> {
    let mut value = String::new();
    for line in std::iter::once(begin).chain(lines) {
        match line.split_once("'''") {
            Some((end, rest)) => {
                nothing_behind(rest)?;
                value.push_str(end);
                if value.is_empty() {
                    return Err("there is no value".to_owned());
                }
                return Ok(value.as_str().into());
            }
            None => {
                value.push_str(line);
                value.push('\n');
            }
        }
    }
    Err("the quotes ''' are not closed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> Result<(String, String), String> {
        match lines(text).remove(0) {
            Ok((1, Line::Entry { key, value })) => Ok((key.to_string(), value.text)),
            Ok(other) => panic!("{other:?}"),
            Err((1, problem)) => Err(problem),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_are_read_as_rabbitmq_reads_them() {
        for (text, key, value) in [
            ("a=1", "a", "1"),
            ("  a.b-c = with spaces  in  # and a comment", "a.b-c", "with spaces  in"),
            ("a = abc#def", "a", "abc"),
            ("a = 'abc#def'", "a", "abc#def"),
            ("a = b=c", "a", "b=c"),
            ("a = \"b\"", "a", "\"b\""),
            ("a = '''one\ntwo''' # three\n", "a", "one\ntwo"),
            ("a = 'it'\\''s'\\n'#1' # two", "a", "it's\n#1"),
            ("user\\.name = ü", "user\\.name", "ü"),
        ] {
            assert_eq!(entry(text), Ok((key.to_owned(), value.to_owned())), "{text}");
        }
        assert_eq!(lines("\r\n# nothing\r\n"), []);
    }

    #[test]
    fn name_may_contain_a_dot() {
        let parts = |text| KeyName::new(text).0;
        assert_eq!(parts("loopback_users.a\\.b"), ["loopback_users", "a.b"]);
        assert_eq!(parts("loopback_users.a.b"), ["loopback_users", "a", "b"]);
    }

    #[test]
    fn unknown_setting_is_reported() {
        for (text, problem) in [
            ("heartbeat", "expected 'key = value', got 'heartbeat'"),
            ("a =", "a: there is no value"),
            ("a = ''", "a: there is no value"),
            ("a = # b", "a: there is no value"),
            ("default_pass hunter2", "expected 'key = value', got 'default_pass ...'"),
            ("a = 'open", "a: the quote is not closed"),
            ("a = 'it's'  # mine", "a: something stands behind the quotes"),
            ("a = '''b\nc", "a: the quotes ''' are not closed"),
            ("a = ''''''", "a: there is no value"),
            ("a\rb = c", "a key has no control characters, got 'a\rb'"),
            ("a.\u{2028}b = c", "a key has no control characters, got 'a.\u{2028}b'"),
            ("include ''", "there is no value"),
        ] {
            assert_eq!(entry(text), Err(problem.to_owned()), "{text}");
        }
    }

    #[test]
    fn config_file_may_be_named() {
        let line = Line::Include("/etc/more.conf".to_owned());
        assert_eq!(lines("include /etc/more.conf"), [Ok((1, line))]);
    }
}
