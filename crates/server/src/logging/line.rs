//! Keeps every log event on one line: names in an event come from clients and may contain line breaks and
//! terminal escape sequences.

use std::borrow::Cow;
use std::io::{self, Write};

use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

/// Makes writers that keep every event on one line.
#[derive(Clone, Debug)]
pub(crate) struct OneLine<M> {
    to: M,
    /// True if events are coloured: colour sequences are kept, because values are escaped before.
    has_colours: bool,
}

impl<M> OneLine<M> {
    pub(crate) const fn new(to: M, has_colours: bool) -> Self {
        Self { to, has_colours }
    }
}

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for OneLine<M> {
    type Writer = LineWriter<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        LineWriter { to: self.to.make_writer(), has_colours: self.has_colours }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Self::Writer {
        LineWriter { to: self.to.make_writer_for(metadata), has_colours: self.has_colours }
    }
}

/// Writes events, each with one call.
#[derive(Debug)]
pub(crate) struct LineWriter<W> {
    to: W,
    has_colours: bool,
}

impl<W: Write> Write for LineWriter<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.to.write_all(&one_line(event, self.has_colours))?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn one_line(event: &[u8], has_colours: bool) -> Cow<'_, [u8]> {
    let (line, end) = match event.strip_suffix(b"\n") {
        Some(line) => (line, &b"\n"[..]),
        None => (event, &b""[..]),
    };
    let is_escaped = |c: char| c.is_control() && !(has_colours && c == '\u{1b}');
    // The subscriber only writes text.
    let text = String::from_utf8_lossy(line);
    if !text.contains(is_escaped) {
        return Cow::Borrowed(event);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if is_escaped(c) => escaped.extend(c.escape_default()),
            c => escaped.push(c),
        }
    }
    Cow::Owned([escaped.as_bytes(), end].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_is_one_line() {
        let written = |event: &str, has_colours| {
            let mut writer = LineWriter { to: Vec::new(), has_colours };
            writer.write_all(event.as_bytes()).unwrap();
            String::from_utf8(writer.to).unwrap()
        };
        assert_eq!(written("INFO queue ä\n", false), "INFO queue ä\n");
        assert_eq!(written("a\nb\r\u{1b}[1m\u{9b}1m\n", false), "a\\nb\\r\\u{1b}[1m\\u{9b}1m\n");
        assert_eq!(
            written("\u{1b}[32mINFO\u{1b}[0m a\nb\n", true),
            "\u{1b}[32mINFO\u{1b}[0m a\\nb\n"
        );
    }
}
