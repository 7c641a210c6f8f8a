//! The text of a dialogue, taken apart from left to right: names, numbers, strings, tables.
//!
//! Decides how bytes are written and read as text. Does not know frames or methods.
//!
//! ```text
//! string   bare   "quoted \n \x00 \u{e9}"   "x"*300   hex:00ff   seq*5000   seq@7*5000
//! table    {key=S:text other=I:5 inner=F:{} list=A:[l:1 t:0] none=V}   hex:...
//! ```
//!
//! `seq@K*N` is N bytes that count up from K and start again at 0 after 250: a body whose pieces
//! cannot be mistaken for each other.

use std::fmt::Write as _;
use std::str::FromStr;

/// Position at which `seq` starts again.
const SEQUENCE_LENGTH: usize = 251;

/// Shorter runs of one character, or of a sequence, are written out.
const RUN_MIN: usize = 24;

/// The rest of a line.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    line: &'a str,
    rest: &'a str,
}

impl<'a> Words<'a> {
    pub(crate) fn new(line: &'a str) -> Self {
        Self { line, rest: line.trim() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.trim_start().is_empty()
    }

    /// Gives up: the dialogue is not what it must be.
    pub(crate) fn fail(&self, what: &str) -> ! {
        panic!("{what} in `{}` before `{}`", self.line, self.rest)
    }

    /// The next word of letters, digits, dots and hyphens.
    pub(crate) fn name(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        let is_part = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if name.is_empty() {
            self.fail("a name is missing");
        }
        self.rest = rest;
        name
    }

    /// Takes `token` if it is what stands next.
    pub(crate) fn eat(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    pub(crate) fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    pub(crate) fn expect(&mut self, token: &str) {
        if !self.eat(token) {
            self.fail(&format!("`{token}` is missing"));
        }
    }

    /// A word up to a blank or a closing bracket.
    fn bare(&mut self) -> &'a str {
        let end = self.rest.find([' ', '}', ']', '=', ':']).unwrap_or(self.rest.len());
        let (bare, rest) = self.rest.split_at(end);
        self.rest = rest;
        bare
    }

    pub(crate) fn number<T: FromStr>(&mut self) -> T {
        match self.bare().parse() {
            Ok(number) => number,
            Err(_) => self.fail("a number is missing"),
        }
    }

    /// Bytes in any of the forms of a string.
    pub(crate) fn string(&mut self) -> Vec<u8> {
        if self.eat("hex:") {
            return self.hex();
        }
        if self.rest.starts_with("seq*") || self.rest.starts_with("seq@") {
            self.rest = &self.rest[3..];
            let first = if self.eat("@") { self.digits() } else { 0 };
            self.expect("*");
            return sequence(first, self.digits());
        }
        if !self.eat("\"") {
            return self.bare().as_bytes().to_vec();
        }
        let quoted = self.quoted();
        if self.eat("*") { quoted.repeat(self.digits()) } else { quoted }
    }

    fn digits(&mut self) -> usize {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits.parse().unwrap_or_else(|_| self.fail("a number is missing"))
    }

    fn hex(&mut self) -> Vec<u8> {
        let digits = self.bare();
        if !digits.len().is_multiple_of(2) {
            self.fail("an odd number of hexadecimal digits");
        }
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16);
        let bytes: Result<Vec<u8>, _> = (0..digits.len()).step_by(2).map(byte).collect();
        bytes.unwrap_or_else(|_| self.fail("a hexadecimal digit is wrong"))
    }

    fn quoted(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        loop {
            let Some(c) = self.next_char() else { self.fail("a quote does not end") };
            match c {
                '"' => return out,
                '\\' => match self.next_char() {
                    Some('n') => out.push(b'\n'),
                    Some('r') => out.push(b'\r'),
                    Some('x') => {
                        let (digits, rest) = self.rest.split_at(2);
                        self.rest = rest;
                        out.push(u8::from_str_radix(digits, 16).unwrap());
                    }
                    Some('u') => {
                        self.expect("{");
                        let (digits, rest) = self.rest.split_once('}').unwrap();
                        self.rest = rest;
                        let c = char::from_u32(u32::from_str_radix(digits, 16).unwrap()).unwrap();
                        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                    Some(other) => out.push(u8::try_from(other).unwrap()),
                    None => self.fail("a quote does not end"),
                },
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }

    fn next_char(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    /// A table without its size.
    pub(crate) fn table(&mut self) -> Vec<u8> {
        if self.eat("hex:") {
            return self.hex();
        }
        self.expect("{");
        let mut out = Vec::new();
        loop {
            self.skip_blanks();
            if self.eat("}") {
                return out;
            }
            put_short(&mut out, &self.string());
            self.expect("=");
            self.value(&mut out);
        }
    }

    /// A value with its type byte.
    fn value(&mut self, out: &mut Vec<u8>) {
        let tag = self.next_char().unwrap_or_else(|| self.fail("a type is missing"));
        out.push(u8::try_from(tag).unwrap());
        if tag == 'V' {
            return;
        }
        self.expect(":");
        match tag {
            't' | 'B' => out.push(self.number()),
            'b' => out.extend(self.number::<i8>().to_be_bytes()),
            's' => out.extend(self.number::<i16>().to_be_bytes()),
            'u' => out.extend(self.number::<u16>().to_be_bytes()),
            'I' => out.extend(self.number::<i32>().to_be_bytes()),
            'i' => out.extend(self.number::<u32>().to_be_bytes()),
            'l' | 'L' => out.extend(self.number::<i64>().to_be_bytes()),
            'f' => out.extend(self.number::<f32>().to_be_bytes()),
            'd' => out.extend(self.number::<f64>().to_be_bytes()),
            'T' => out.extend(self.number::<u64>().to_be_bytes()),
            'D' => {
                out.push(self.number());
                self.expect(":");
                out.extend(self.number::<u32>().to_be_bytes());
            }
            'S' | 'x' => put_long(out, &self.string()),
            'F' => put_long(out, &self.table()),
            'A' => put_long(out, &self.array()),
            _ => self.fail("an unknown type"),
        }
    }

    fn array(&mut self) -> Vec<u8> {
        self.expect("[");
        let mut out = Vec::new();
        loop {
            self.skip_blanks();
            if self.eat("]") {
                return out;
            }
            self.value(&mut out);
        }
    }
}

/// `length` bytes that count up from `first`.
pub(crate) fn sequence(first: usize, length: usize) -> Vec<u8> {
    (first..first + length).map(|at| u8::try_from(at % SEQUENCE_LENGTH).unwrap()).collect()
}

pub(crate) fn put_short(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(u8::try_from(bytes.len()).expect("a short string of up to 255 bytes"));
    out.extend_from_slice(bytes);
}

pub(crate) fn put_long(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Bytes as a string that reads back as the same bytes.
pub(crate) fn shown(bytes: &[u8]) -> String {
    if bytes.len() >= RUN_MIN {
        let first = usize::from(bytes[0]);
        if bytes == sequence(first, bytes.len()) {
            let from = if first == 0 { String::new() } else { format!("@{first}") };
            return format!("seq{from}*{}", bytes.len());
        }
        if let Some((unit, count)) = run(bytes) {
            return format!("{}*{count}", quoted(unit));
        }
    }
    let is_bare = |byte: &u8| byte.is_ascii_alphanumeric() || b"._/#@-".contains(byte);
    let reads_otherwise = bytes.is_empty() || bytes.starts_with(b"seq@");
    if bytes.iter().all(is_bare) && !reads_otherwise {
        return bytes.iter().copied().map(char::from).collect();
    }
    quoted(bytes)
}

/// The one character that `bytes` repeat, and how often.
fn run(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let width = match std::str::from_utf8(bytes) {
        Ok(text) => text.chars().next()?.len_utf8(),
        Err(_) => 1,
    };
    let unit = &bytes[..width];
    let repeats = bytes.chunks(width).all(|chunk| chunk == unit);
    repeats.then_some((unit, bytes.len() / width))
}

fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => write!(out, "\\{c}").unwrap(),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                ' '..='~' => out.push(c),
                '\0'..='\x7f' => write!(out, "\\x{:02x}", u32::from(c)).unwrap(),
                _ => write!(out, "\\u{{{:x}}}", u32::from(c)).unwrap(),
            }
        }
        chunk.invalid().iter().for_each(|byte| write!(out, "\\x{byte:02x}").unwrap());
    }
    out.push('"');
    out
}
