//! Text from outside in one line of output.
//!
//! A name, a path, a value or the text of an error may hold anything: line ends, a sequence that moves the cursor of
//! a terminal or is typed back by it, characters that change the direction of writing. Whoever puts such a text into
//! a line escapes it here, or in the way of his format, for which [`is_obeyed`] names the characters.

pub mod setting_value;

use std::borrow::Cow;

/// True for a character that terminals and editors obey instead of showing it: a control character, a line end, or
/// one that changes the direction of writing.
pub fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` in one line: `\n`, `\r`, `\t`, or `\u{1b}` instead of a character that is obeyed.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_obeyed)
}

/// `text` with such escapes for the characters of which `is_escaped` is true.
pub fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    replaced(text, is_escaped, |c, out| out.extend(c.escape_default()))
}

/// `text` with the escapes of JSON, `\u001b`, for the characters of which `is_escaped` is true. JSON stays the same
/// JSON. All these characters are obeyed ones.
pub fn escaped_as_json(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    // All of them have at most 16 bits.
    replaced(text, is_escaped, |c, out| out.push_str(&format!("\\u{:04x}", u32::from(c))))
}

fn replaced(
    text: &str,
    is_replaced: impl Fn(char) -> bool,
    replace: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    if !text.contains(&is_replaced) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_replaced(c) {
            true => replace(c, &mut out),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn obeyed_characters_are_escaped() {
        for (text, expected) in [
            ("a\nb\r\tc", "a\\nb\\r\\tc"),
            ("\u{1b}[31m\u{9b}1m\u{7f}", "\\u{1b}[31m\\u{9b}1m\\u{7f}"),
            ("\u{2028}\u{2029}\u{85}\u{b}", "\\u{2028}\\u{2029}\\u{85}\\u{b}"),
            ("\u{202e}gpj.exe\u{2066}", "\\u{202e}gpj.exe\\u{2066}"),
        ] {
            assert_eq!(one_line(text), expected);
        }
        assert!(matches!(one_line("hällo \u{1f430} 'a' \"b\" \\.*"), Cow::Borrowed(_)));
    }

    #[test]
    fn escaped_characters_are_chosen() {
        assert_eq!(escaped_as_json("\u{1b}\n\u{2028}", |c| c != '\n'), "\\u001b\n\\u2028");
        assert_eq!(escaped("\u{1b}[1ma\n", |c| is_obeyed(c) && c != '\u{1b}'), "\u{1b}[1ma\\n");
    }
}
