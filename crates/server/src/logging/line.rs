//! Keeps every log event on one line: names in an event come from clients and may contain line breaks and
//! terminal escape sequences.

use std::borrow::Cow;
use std::io::{self, Write};

use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

/// The form of an event in the log, which decides on the escapes of characters in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Text for a file.
    Plain,
    /// Text for a terminal. Its colour sequences are kept, because values are escaped before.
    Coloured,
    /// JSON, whose writer leaves some of the characters as they are.
    Json,
}

/// Makes writers that keep every event on one line.
#[derive(Clone, Debug)]
pub(crate) struct OneLine<M> {
    to: M,
    form: Form,
}

impl<M> OneLine<M> {
    pub(crate) const fn new(to: M, form: Form) -> Self {
        Self { to, form }
    }
}

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for OneLine<M> {
    type Writer = LineWriter<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        LineWriter { to: self.to.make_writer(), form: self.form }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Self::Writer {
        LineWriter { to: self.to.make_writer_for(metadata), form: self.form }
    }
}

/// Writes events, each with one call.
#[derive(Debug)]
pub(crate) struct LineWriter<W> {
    to: W,
    form: Form,
}

impl<W: Write> Write for LineWriter<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.to.write_all(&in_form(event, self.form))?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn in_form(event: &[u8], form: Form) -> Cow<'_, [u8]> {
    let (line, end) = match event.strip_suffix(b"\n") {
        Some(line) => (line, &b"\n"[..]),
        None => (event, &b""[..]),
    };
    // The subscriber only writes text.
    let text = String::from_utf8_lossy(line);
    let escaped = match form {
        Form::Plain => line::one_line(&text),
        Form::Coloured => line::escaped(&text, |c| line::is_obeyed(c) && c != '\u{1b}'),
        Form::Json => line::escaped_as_json(&text, line::is_obeyed),
    };
    match escaped {
        Cow::Borrowed(_) => Cow::Borrowed(event),
        Cow::Owned(escaped) => Cow::Owned([escaped.as_bytes(), end].concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(event: &str, form: Form) -> String {
        let mut writer = LineWriter { to: Vec::new(), form };
        writer.write_all(event.as_bytes()).unwrap();
        String::from_utf8(writer.to).unwrap()
    }

    #[test]
    fn event_is_one_line() {
        let is = |event, form, expected: &str| assert_eq!(written(event, form), expected);
        is("INFO queue ä\n", Form::Plain, "INFO queue ä\n");
        is("a\nb\r\u{1b}[1m\u{9b}1m\n", Form::Plain, "a\\nb\\r\\u{1b}[1m\\u{9b}1m\n");
        is("a\u{2028}\u{202e}b\n", Form::Plain, "a\\u{2028}\\u{202e}b\n");
        is("\u{1b}[32mINFO\u{1b}[0m a\nb\n", Form::Coloured, "\u{1b}[32mINFO\u{1b}[0m a\\nb\n");
    }

    #[test]
    fn event_in_json_is_read_as_the_same_event() {
        let event =
            serde_json::json!({"queue": "a\n\r\t\"\\\u{1b}\u{7f}\u{85}\u{9b}\u{2028}\u{202e}"});
        let line = written(&format!("{event}\n"), Form::Json);
        assert!(!line.trim_end_matches('\n').contains(line::is_obeyed), "{line:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), event);
    }
}
