//! A Rust file taken apart just far enough for the rules: code, comments, literals, test regions.
//!
//! A lexer of five states, not a parser: it knows where comments and literals begin and end, and
//! which lines belong to an item under `#[cfg(test)]`. It takes the file as compiling; on a file
//! that does not compile it may misplace a region but always ends.

use std::ops::Range;

/// One Rust file. Byte offsets in `code` and `text` are the same.
#[derive(Debug)]
pub(crate) struct RustSource {
    /// The file as it is.
    pub(crate) text: String,
    /// The file with every byte of comments and literals blanked, line ends kept.
    pub(crate) code: String,
    /// Ranges of the comments, with their slashes.
    comments: Vec<Range<usize>>,
    /// Ranges of string, byte string and character literals, with their quotes.
    literals: Vec<Range<usize>>,
    /// Ranges of the items under `#[cfg(test)]`.
    test_regions: Vec<Range<usize>>,
}

/// Kind of the token that begins at a byte of the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Token {
    Comment,
    Literal,
    /// An identifier or a number: skipped as a whole, so that the `r` of `for"` starts nothing.
    Word,
    Other,
}

impl RustSource {
    pub(crate) fn new(text: String) -> Self {
        let (mut comments, mut literals) = (Vec::new(), Vec::new());
        let mut code = text.clone().into_bytes();
        let mut at = 0;
        while at < text.len() {
            let (token, length) = next_token(&text.as_bytes()[at..]);
            let range = at..(at + length).min(text.len());
            if matches!(token, Token::Comment | Token::Literal) {
                blank(&mut code[range.clone()]);
                let ranges = if token == Token::Comment { &mut comments } else { &mut literals };
                ranges.push(range.clone());
            }
            at = range.end;
        }
        let code = String::from_utf8_lossy(&code).into_owned();
        let test_regions = test_regions(&code);
        Self { text, code, comments, literals, test_regions }
    }

    /// The line of a byte offset, counted from 1.
    pub(crate) fn line(&self, offset: usize) -> usize {
        1 + self.text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count()
    }

    /// The comments with their offsets, slashes included.
    pub(crate) fn comments(&self) -> impl Iterator<Item = (usize, &str)> {
        self.comments.iter().map(|range| (range.start, &self.text[range.clone()]))
    }

    /// True if the offset lies in a literal.
    pub(crate) fn is_literal(&self, offset: usize) -> bool {
        self.literals.iter().any(|range| range.contains(&offset))
    }

    /// True if the offset lies in an item under `#[cfg(test)]`.
    pub(crate) fn is_test(&self, offset: usize) -> bool {
        self.test_regions.iter().any(|range| range.contains(&offset))
    }

    /// The identifiers and numbers of the code with their offsets.
    pub(crate) fn words(&self) -> impl Iterator<Item = (usize, &str)> {
        words(&self.code)
    }

    /// Every place in the code where `phrase` stands as whole words.
    pub(crate) fn mentions<'a>(&'a self, phrase: &'a str) -> impl Iterator<Item = usize> + 'a {
        let is_whole = |at: usize| {
            let before = self.code[..at].bytes().next_back();
            let after = self.code[at + phrase.len()..].bytes().next();
            let end = phrase.bytes().next_back();
            !(before.is_some_and(is_word) || after.is_some_and(is_word) && end.is_some_and(is_word))
        };
        self.code.match_indices(phrase).map(|(at, _)| at).filter(move |&at| is_whole(at))
    }

    /// The items outside tests that begin with a keyword, as offset of the keyword, name, and the code behind the name.
    pub(crate) fn items<'a>(
        &'a self,
        keyword: &'a str,
    ) -> impl Iterator<Item = (usize, &'a str, &'a str)> + 'a {
        let places = self.mentions(keyword).filter(|at| !self.is_test(*at));
        places.filter_map(move |at| {
            let rest = &self.code[at + keyword.len()..];
            let (name_at, name) = words(rest).next()?;
            // The type of a function has no name.
            let is_named = !rest[..name_at].contains('(');
            is_named.then(|| (at, name, &rest[name_at + name.len()..]))
        })
    }
}

/// The identifiers and numbers of `code` with their offsets.
pub(crate) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let bytes = code.as_bytes();
    let starts =
        (0..bytes.len()).filter(|&at| is_word(bytes[at]) && (at == 0 || !is_word(bytes[at - 1])));
    starts.map(move |at| (at, &code[at..at + word_length(&bytes[at..])]))
}

fn next_token(rest: &[u8]) -> (Token, usize) {
    match rest {
        [b'/', b'/', ..] => (Token::Comment, until(rest, b"\n").unwrap_or(rest.len())),
        [b'/', b'*', ..] => (Token::Comment, block_comment_length(rest)),
        [b'"', ..] => (Token::Literal, string_length(rest)),
        [b'\'', ..] => match character_length(rest) {
            Some(length) => (Token::Literal, length),
            None => (Token::Other, 1),
        },
        [first, ..] if is_word(*first) => prefixed_literal(rest)
            .map_or_else(|| (Token::Word, word_length(rest)), |length| (Token::Literal, length)),
        _ => (Token::Other, 1),
    }
}

/// The length of a literal that starts with letters: `b"`, `c"`, `b'`, `r"`, `br#"`, `cr#"`.
fn prefixed_literal(rest: &[u8]) -> Option<usize> {
    let letters = match rest {
        [b'b' | b'c', b'r', ..] => 2,
        [b'b' | b'c' | b'r', ..] => 1,
        _ => return None,
    };
    let is_raw = rest[letters - 1] == b'r';
    let hashes = rest[letters..].iter().take_while(|&&byte| byte == b'#').count();
    let start = letters + hashes;
    match rest.get(start)? {
        b'"' if is_raw => {
            let end = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
            let body = &rest[start + 1..];
            Some(until(body, &end).map_or(rest.len(), |length| start + 1 + length + end.len()))
        }
        b'"' if hashes == 0 => Some(letters + string_length(&rest[letters..])),
        b'\'' if rest[..start] == *b"b" => Some(1 + character_length(&rest[1..])?),
        _ => None,
    }
}

fn block_comment_length(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn string_length(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// The length of a character literal; `None` when the quote begins a lifetime or a label.
fn character_length(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        return Some(3 + until(rest.get(3..)?, b"'")? + 1);
    }
    let text = String::from_utf8_lossy(rest.get(1..rest.len().min(6))?).into_owned();
    let first = text.chars().next()?;
    text[first.len_utf8()..].starts_with('\'').then_some(first.len_utf8() + 2)
}

fn word_length(rest: &[u8]) -> usize {
    rest.iter().take_while(|&&byte| is_word(byte)).count()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn until(bytes: &[u8], end: &[u8]) -> Option<usize> {
    bytes.windows(end.len()).position(|window| window == end)
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

/// Ranges of the items under `#[cfg(test)]` or `#[cfg(all(test, ...))]`.
fn test_regions(code: &str) -> Vec<Range<usize>> {
    let mut regions: Vec<Range<usize>> = Vec::new();
    for (start, _) in code.match_indices("#[cfg(") {
        let Some(length) = code[start..].find(']') else {
            continue;
        };
        let attribute = &code[start..start + length];
        let is_test = words(attribute).any(|(_, word)| word == "test");
        if is_test && !attribute.contains("not(") && regions.last().is_none_or(|r| r.end <= start) {
            let end = start + length;
            regions.push(start..end + item_length(&code[end..]));
        }
    }
    regions
}

/// Length of the item that starts here, to its semicolon or its closing brace.
pub(crate) fn item_length(code: &str) -> usize {
    let (mut braces, mut groups) = (0_usize, 0_usize);
    for (at, byte) in code.bytes().enumerate().skip(1) {
        match byte {
            b'{' => braces += 1,
            b'}' if braces <= 1 => return at + 1,
            b'}' => braces -= 1,
            b'(' | b'[' => groups += 1,
            b')' | b']' => groups = groups.saturating_sub(1),
            b';' if braces == 0 && groups == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> RustSource {
        RustSource::new(text.to_owned())
    }

    fn code(text: &str) -> String {
        source(text).code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_are_blanked() {
        assert_eq!(code("a // b\nc /* d /* e */ f */ g"), "a c g");
    }

    #[test]
    fn every_kind_of_literal_is_blanked() {
        assert_eq!(code(r#"a "b \" // c" d"#), "a d");
        assert_eq!(code("a r#\"b \" c\"# d br\"e\\\" f b\"g\" h c\"i\" j"), "a d f h j");
        assert_eq!(code(r"a 'b' c '\'' d b'e' f '\u{7f}' g"), "a c d f g");
    }

    #[test]
    fn lifetimes_raw_identifiers_and_words_before_quotes_are_code() {
        assert_eq!(code("fn f<'a>(x: &'a str) {}"), "fn f<'a>(x: &'a str) {}");
        assert_eq!(code("'outer: loop { r#type; var\"x\" }"), "'outer: loop { r#type; var }");
    }

    #[test]
    fn unfinished_files_end() {
        for text in ["\"a", "r#\"a", "/* a", "'\\", "b'", "'", "#[cfg(test", "#[cfg(test)]"] {
            assert_eq!(source(text).code.len(), text.len());
        }
    }

    #[test]
    fn test_region_is_the_item_behind_the_attribute() {
        let text =
            "#[cfg(test)]\nuse a::{b};\nfn c() {}\n#[cfg(test)]\nmod d { fn e() {} }\nfn g() {}";
        let source = source(text);
        let is_test = |word: &str| source.is_test(text.find(word).unwrap());
        assert_eq!(["b}", "c()", "e()", "g()"].map(is_test), [true, false, true, false]);
    }

    #[test]
    fn cfg_not_test_is_no_test_region() {
        let text =
            "#[cfg(not(test))]\nfn a() {}\n#[cfg(all(test, unix))]\nfn b(x: [u8; 2]) { c(); }";
        let source = source(text);
        let is_test = |word: &str| source.is_test(text.find(word).unwrap());
        assert_eq!(["a()", "c()"].map(is_test), [false, true]);
    }

    #[test]
    fn mentions_are_whole_words_of_code() {
        let source =
            source("std::fs; std::fsx; my_std::fs; // std::fs\n\"std::fs\"; std::fs::read");
        assert_eq!(source.mentions("std::fs").collect::<Vec<_>>(), [0, 53]);
    }

    #[test]
    fn words_have_offsets_and_offsets_have_lines() {
        let source = source("a b_1\nc");
        assert_eq!(source.words().collect::<Vec<_>>(), [(0, "a"), (2, "b_1"), (6, "c")]);
        assert_eq!(source.line(6), 2);
    }

    #[test]
    fn comments_keep_their_slashes() {
        let source = source("/// a\nb // c");
        assert_eq!(source.comments().collect::<Vec<_>>(), [(0, "/// a"), (8, "// c")]);
    }
}
