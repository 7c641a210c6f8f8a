//! JSON files that the broker reads again at its next start: one object with a checksum, which covers the bytes in the
//! file.
//!
//! The member `sha256` of the object is the hash of its text without that member and without white space between tokens.
//! A reader hashes what stands in the file, not a text that it makes of the values: a number that is written in another
//! way by another build would otherwise pass for damage, or damage for a number.

use std::io;
use std::path::Path;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Key of the checksum.
const CHECKSUM: &str = "sha256";

/// Adds the checksum to an object.
fn seal(root: &mut Value) {
    let checksum = hash(root.to_string().as_bytes());
    root[CHECKSUM] = Value::String(checksum);
}

/// The text of a file with an object and its checksum. With lines that are indented, an operator can read it; a value of
/// many short parts has many times its bytes then.
pub(crate) fn text(mut root: Value, is_indented: bool) -> String {
    seal(&mut root);
    if is_indented { format!("{root:#}\n") } else { format!("{root}\n") }
}

/// The object of a text, whose checksum was not compared yet.
#[derive(Debug)]
pub(crate) struct SealedObject<'a> {
    text: &'a [u8],
    root: Map<String, Value>,
}

impl<'a> SealedObject<'a> {
    /// Parses a text.
    ///
    /// # Errors
    /// A sentence: the text is no object.
    pub(crate) fn parse(text: &'a [u8]) -> Result<Self, String> {
        let root = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        Ok(Self { text, root })
    }

    /// The format of the file, to look at first: a later one may have another checksum.
    ///
    /// # Errors
    /// A sentence: there is none.
    pub(crate) fn format(&self) -> Result<u64, String> {
        let format = self.root.get("format").and_then(Value::as_u64);
        format.ok_or_else(|| "'format' is missing".to_owned())
    }

    /// The object without its checksum.
    ///
    /// # Errors
    /// A sentence: the checksum is missing or another one.
    pub(crate) fn open(mut self) -> Result<Map<String, Value>, String> {
        let stored = self.root.remove(CHECKSUM);
        if stored != Some(Value::String(hash(&sealed_bytes(self.text)))) {
            return Err(format!("'{CHECKSUM}' does not fit what it says"));
        }
        Ok(self.root)
    }
}

/// The object of a text, without its checksum.
///
/// # Errors
/// A sentence: the text is no object, or its checksum is missing or another one.
pub(crate) fn open(text: &[u8]) -> Result<Map<String, Value>, String> {
    SealedObject::parse(text)?.open()
}

/// Reads a file; none if there is none.
///
/// # Errors
/// The system's error.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of an object that its checksum covers.
fn sealed_bytes(text: &[u8]) -> Vec<u8> {
    let key = [b"\"", CHECKSUM.as_bytes(), b"\":"].concat();
    let mut bytes: Vec<u8> = Vec::with_capacity(text.len());
    let (mut depth, mut is_string, mut is_escaped) = (0_usize, false, false);
    // Begin of the member of the object that comes now, and range of the checksum.
    let (mut member, mut checksum) = (0, None);
    for byte in text {
        if is_string {
            is_string = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
        } else if byte.is_ascii_whitespace() {
            continue;
        } else {
            let ends_member = depth == 1 && matches!(byte, b',' | b'}');
            if ends_member && bytes.get(member..).is_some_and(|it| it.starts_with(&key)) {
                checksum = Some((member, bytes.len()));
            }
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b'"' => is_string = true,
                _ => {}
            }
            if depth == 1 && matches!(byte, b'{' | b',') {
                member = bytes.len() + 1;
            }
        }
        bytes.push(*byte);
    }
    if let Some((begin, end)) = checksum {
        // With one of the commas around it.
        if bytes.get(end) == Some(&b',') {
            bytes.drain(begin..=end);
        } else {
            let begin = if bytes.get(begin - 1) == Some(&b',') { begin - 1 } else { begin };
            bytes.drain(begin..end);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn checksum_covers_the_bytes_without_white_space() {
        for root in [
            json!({}),
            json!({"z": 1}),
            json!({"a": "x, \"sha256\": \"y\" \\\" {", "b": {"sha256": "c"}, "z": [1.5, null, {}]}),
        ] {
            for text in [text(root.clone(), false), text(root.clone(), true)] {
                assert_eq!(sealed_bytes(text.as_bytes()), root.to_string().into_bytes());
                assert_eq!(open(text.as_bytes()).map(Value::Object), Ok(root.clone()));
            }
        }
    }

    #[test]
    fn numbers_are_not_written_anew() {
        // A build that writes the same number in another way.
        let text = r#"{"a":1.50e0,"b":-0}"#;
        let sealed = format!(r#"{{"a": 1.50e0, "sha256": "{}", "b": -0}}"#, hash(text.as_bytes()));
        assert!(open(sealed.as_bytes()).is_ok());
    }

    #[test]
    fn every_changed_bit_is_seen() {
        let root = json!({"format": 2, "name": "q w", "users": [{"limits": {"a": 1}}], "x": true});
        let text = text(root, true);
        for (at, byte) in text.bytes().enumerate().filter(|(_, byte)| !byte.is_ascii_whitespace()) {
            for bit in 0..8 {
                let mut changed = text.clone().into_bytes();
                changed[at] = byte ^ (1 << bit);
                assert!(open(&changed).is_err(), "byte {at}, bit {bit}");
            }
        }
        assert!(open(b"[]").is_err() && open(b"{}").is_err());
    }
}
