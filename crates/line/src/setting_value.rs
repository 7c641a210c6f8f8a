//! A value in a file of settings, `rabbitmq.conf`: with or without quotes, and with escapes between quotes.
//!
//! `'it'\''s'` is `it's`, as in a shell: behind a closing quote stand characters that cannot stand within quotes, each
//! behind a backslash, and perhaps more quotes. RabbitMQ refuses such a line, so no file of RabbitMQ means another
//! value. [`written`] writes any value in one line that [`read`] reads as the same value.

use super::is_obeyed;

/// A value as read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value {
    /// The value itself.
    pub text: String,
    /// True if a `$(NAME)` in the text stands for itself, because the value has an escaped `$`.
    pub is_literal: bool,
}

impl From<&str> for Value {
    /// A value that has no escapes.
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), is_literal: false }
    }
}

/// Reads the value of a line without the spaces around it, which may end with a comment.
///
/// # Errors
/// A description of what is wrong: there is no value, or its quotes or escapes are wrong.
pub fn read(line: &str) -> Result<Value, String> {
    let value = match line.strip_prefix('\'') {
        Some(quoted) => read_quoted(quoted)?,
        None => line.split_once('#').map_or(line, |(value, _)| value).trim().into(),
    };
    if value.text.is_empty() {
        return Err("there is no value".to_owned());
    }
    Ok(value)
}

/// Reads what stands behind the first quote.
fn read_quoted(mut rest: &str) -> Result<Value, String> {
    let mut value = Value::from("");
    loop {
        let (quoted, mut behind) = rest.split_once('\'').ok_or("the quote is not closed")?;
        value.text.push_str(quoted);
        let has_escapes = behind.starts_with('\\');
        while let Some(escape) = behind.strip_prefix('\\') {
            let (c, after) = read_escape(escape)?;
            value.is_literal |= c == '$';
            value.text.push(c);
            behind = after;
        }
        match behind.strip_prefix('\'') {
            Some(more) if has_escapes => rest = more,
            _ => return nothing_behind(behind).map(|()| value),
        }
    }
}

/// Reads an escape behind its backslash: the character, and what stands behind it.
fn read_escape(text: &str) -> Result<(char, &str), String> {
    let mut chars = text.chars();
    let c = match chars.next() {
        Some('n') => Some('\n'),
        Some('r') => Some('\r'),
        Some('t') => Some('\t'),
        Some(c @ ('\'' | '\\' | '$')) => Some(c),
        Some('u') => {
            let digits = chars.as_str().strip_prefix('{').and_then(|rest| rest.split_once('}'));
            digits.and_then(|(digits, rest)| {
                chars = rest.chars();
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)
            })
        }
        _ => None,
    };
    let problem =
        "behind the quotes stands a backslash, but none of \\n, \\r, \\t, \\', \\\\, \\$, \\u{..}";
    c.map(|c| (c, chars.as_str())).ok_or_else(|| problem.to_owned())
}

/// Checks that nothing but a comment stands behind the closing quote.
///
/// # Errors
/// A description of what is wrong.
pub fn nothing_behind(rest: &str) -> Result<(), String> {
    let rest = rest.trim();
    if rest.is_empty() || rest.starts_with('#') {
        Ok(())
    } else {
        Err("something stands behind the quotes".to_owned())
    }
}

/// A value, which is not empty, as [`read`] reads it: in one line, without characters that a terminal obeys.
pub fn written(value: &str) -> String {
    let is_plain = !value.contains(is_obeyed)
        && !value.contains('#')
        && !value.contains("$(")
        && !value.starts_with('\'')
        && value.trim() == value;
    if is_plain {
        return value.to_owned();
    }
    let (mut out, mut is_open) = ("'".to_owned(), true);
    let mut chars = value.chars().peekable();
    while let Some(c) = chars.next() {
        let is_escaped = c == '\'' || is_obeyed(c) || (c == '$' && chars.peek() == Some(&'('));
        if is_escaped == is_open {
            out.push('\'');
            is_open = !is_open;
        }
        match c {
            '$' if is_escaped => out.push_str("\\$"),
            c if is_escaped => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    if is_open {
        out.push('\'');
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Characters with a meaning in a file, at its edges or on a terminal.
    const CHARS: &str =
        "'#$()\\= \t\n\r\u{b}\u{0}\u{1b}\u{85}\u{a0}\u{2028}\u{202e}\u{feff}\"nruü{}x";

    proptest! {
        #[test]
        fn written_value_is_read_as_the_same(
            chars in prop::collection::vec(prop::sample::select(CHARS.chars().collect::<Vec<_>>()), 1..12),
        ) {
            let value: String = chars.into_iter().collect();
            let line = written(&value);
            prop_assert!(!line.contains(is_obeyed), "{line:?}");
            prop_assert!(!line.starts_with("'''"), "{line}");
            for line in [line.clone(), format!("{line}   # a comment with 'quotes'")] {
                let read = read(line.trim());
                prop_assert_eq!(read.as_ref().map(|read| read.text.as_str()), Ok(value.as_str()), "{}", line);
                let has_reference = value.contains("$(");
                prop_assert_eq!(read.is_ok_and(|read| read.is_literal), has_reference, "{}", line);
            }
        }
    }

    #[test]
    fn written_values_are_quoted_as_far_as_they_need_it() {
        for (value, line) in [
            ("any name", "any name"),
            ("it's", "it's"),
            ("\"b\"", "\"b\""),
            ("^a\\.b$", "^a\\.b$"),
            ("abc#def", "'abc#def'"),
            ("it's #1", "'it'\\''s #1'"),
            ("'", "''\\'"),
            ("'''", "''\\'\\'\\'"),
            (" a ", "' a '"),
            ("a\nlisteners.tcp.default = 1\nb", "'a'\\n'listeners.tcp.default = 1'\\n'b'"),
            ("\u{1b}[31m\u{2028}", "''\\u{1b}'[31m'\\u{2028}"),
            ("/a/$(HOME)", "'/a/'\\$'(HOME)'"),
        ] {
            assert_eq!(written(value), line);
        }
    }

    #[test]
    fn wrong_escapes_are_reported() {
        for line in
            ["'a'\\x'b'", "'a'\\", "'a'\\u0041", "'a'\\u{", "'a'\\u{d800}", "'a'\\u{1234567}"]
        {
            let problem = read(line).unwrap_err();
            assert!(
                problem.starts_with("behind the quotes stands a backslash"),
                "{line}: {problem}"
            );
        }
        let behind = Err("something stands behind the quotes".to_owned());
        for line in ["'a''b'", "'a'\\n b", "'a' 'b'"] {
            assert_eq!(read(line), behind, "{line}");
        }
        assert_eq!(read("'a'\\n'b"), Err("the quote is not closed".to_owned()));
        assert_eq!(read("''\\n").map(|value| value.text), Ok("\n".to_owned()));
    }
}
