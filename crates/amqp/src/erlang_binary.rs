//! Bytes as RabbitMQ prints them in its reply texts: as Erlang binaries and strings.
//!
//! Test suites of clients match on those texts, so the forms are reproduced here. The form that each
//! error prints was observed on RabbitMQ 4.3.6.

use std::fmt::{self, Display, Write};

/// Every byte as a number: `<<0,50,0>>`. The form of `cannot decode <<...>>`.
#[derive(Debug, Clone, Copy)]
pub struct ByteList<'a>(pub &'a [u8]);

impl Display for ByteList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<<")?;
        write_numbers(f, self.0)?;
        f.write_str(">>")
    }
}

/// Text where the bytes are printable text, else numbers: `<<"GET / HTTP">>`, `<<"\u{e9}"/utf8>>`,
/// `<<0,1>>`. The form of `all octets = <<...>>`.
///
/// UTF-8 is tried first and marked when a character is not ASCII; then every byte is tried as one
/// character of Latin-1, so that `E9` alone is the text `\u{e9}` without the mark.
#[derive(Debug, Clone, Copy)]
pub struct PrintedBinary<'a>(pub &'a [u8]);

impl Display for PrintedBinary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0;
        if bytes.is_empty() {
            return f.write_str("<<>>");
        }
        if let Ok(text) = std::str::from_utf8(bytes)
            && text.chars().all(is_printable)
        {
            f.write_str("<<")?;
            write_quoted(f, text.chars())?;
            return f.write_str(if text.is_ascii() { ">>" } else { "/utf8>>" });
        }
        if bytes.iter().copied().map(char::from).all(is_printable) {
            f.write_str("<<")?;
            write_quoted(f, bytes.iter().copied().map(char::from))?;
            return f.write_str(">>");
        }
        ByteList(bytes).fmt(f)
    }
}

/// An Erlang string, which is a list of numbers: text where every byte is a printable character of
/// Latin-1, else the numbers: `"text"`, `[53,0]`. The form of `{leftover_string,...}`.
#[derive(Debug, Clone, Copy)]
pub struct PrintedString<'a>(pub &'a [u8]);

impl Display for PrintedString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let characters = self.0.iter().copied().map(char::from);
        if characters.clone().all(is_printable) {
            return write_quoted(f, characters);
        }
        f.write_char('[')?;
        write_numbers(f, self.0)?;
        f.write_char(']')
    }
}

/// True for what Erlang prints as a character: ASCII and Latin-1 without their control codes, the controls
/// that have an escape, and the rest of Unicode. DEL is not among them.
fn is_printable(character: char) -> bool {
    let printed = matches!(character, ' '..='~' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..);
    printed || escape(character).is_some()
}

fn escape(character: char) -> Option<char> {
    match character {
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        '\u{08}' => Some('b'),
        '\u{0b}' => Some('v'),
        '\u{0c}' => Some('f'),
        '\u{1b}' => Some('e'),
        '"' => Some('"'),
        '\\' => Some('\\'),
        _ => None,
    }
}

fn write_numbers(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    let mut separator = "";
    for octet in bytes {
        write!(f, "{separator}{octet}")?;
        separator = ",";
    }
    Ok(())
}

fn write_quoted(f: &mut fmt::Formatter<'_>, characters: impl Iterator<Item = char>) -> fmt::Result {
    f.write_char('"')?;
    for character in characters {
        match escape(character) {
            Some(letter) => {
                f.write_char('\\')?;
                f.write_char(letter)?;
            }
            None => f.write_char(character)?,
        }
    }
    f.write_char('"')
}
