//! JSON files that the broker reads again at its next start: one object with the number of its format and a checksum,
//! which covers the bytes in the file.
//!
//! The member `sha256` of the object is the hash of its text without that member and without white space between tokens.
//! A reader hashes what stands in the file, not a text that it makes of the values: a number that is written in another
//! way by another build would otherwise pass for damage, or damage for a number.

use std::io;
use std::ops::RangeInclusive;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Key of the number of the format.
const FORMAT: &str = "format";
/// Key of the checksum.
const CHECKSUM: &str = "sha256";

/// The reason why the text of a file cannot be used, as the rest of a sentence about the file.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub(crate) enum SealedError {
    #[error("is damaged: {0}")]
    Damaged(String),
    #[error("has format version {version}, but this Leveret knows version {known}")]
    Version { version: u64, known: u64 },
    /// The checksum is right: a member that is unknown, or missing, is no damage.
    #[error("is whole, but another version of Leveret has written it: {0}; start that version")]
    Content(String),
}

/// The object of a file, without its checksum.
#[derive(Serialize, Debug)]
pub(crate) struct SealedObject<'a, T> {
    pub(crate) format: u64,
    #[serde(flatten)]
    pub(crate) content: &'a T,
}

/// The text of a file with an object and its checksum. With lines that are indented, an operator can read it; a value of
/// many short parts has many times its bytes then.
pub(crate) fn text(object: &impl Serialize, is_indented: bool) -> String {
    let mut root = serde_json::to_value(object).expect("objects have members with names");
    let checksum = hash(root.to_string().as_bytes());
    root[CHECKSUM] = Value::String(checksum);
    if is_indented { format!("{root:#}\n") } else { format!("{root}\n") }
}

/// Reads the text of a file: the number of its format, which must be one of `known`, and the other members.
///
/// # Errors
/// [`SealedError`].
pub(crate) fn open<T: DeserializeOwned>(
    text: &[u8],
    known: RangeInclusive<u64>,
) -> Result<(u64, T), SealedError> {
    let root = serde_json::from_slice(text);
    let mut root: Map<String, Value> =
        root.map_err(|error| SealedError::Damaged(error.to_string()))?;
    // First, because a later format may have another checksum.
    let version = root.remove(FORMAT).and_then(|format| format.as_u64());
    let version = version.ok_or_else(|| SealedError::Damaged(format!("'{FORMAT}' is missing")))?;
    if !known.contains(&version) {
        return Err(SealedError::Version { version, known: *known.end() });
    }
    // Before the members, of which a damaged one would pass for one of another version.
    let stored = root.remove(CHECKSUM);
    if stored != Some(Value::String(hash(&sealed_bytes(text)))) {
        return Err(SealedError::Damaged(format!("'{CHECKSUM}' does not fit what it says")));
    }
    let content = T::deserialize(Value::Object(root));
    content
        .map(|content| (version, content))
        .map_err(|error| SealedError::Content(error.to_string()))
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
        for content in [
            json!({}),
            json!({"z": 1}),
            json!({"a": "x, \"sha256\": \"y\" \\\" {", "b": {"sha256": "c"}, "z": [1.5, null, {}]}),
        ] {
            let object = SealedObject { format: 7, content: &content };
            for text in [text(&object, false), text(&object, true)] {
                let sealed = serde_json::to_string(&object).unwrap();
                assert_eq!(sealed_bytes(text.as_bytes()), sealed.into_bytes());
                assert_eq!(open(text.as_bytes(), 6..=7), Ok((7, content.clone())));
                let version = Err(SealedError::Version { version: 7, known: 6 });
                assert_eq!(open::<Value>(text.as_bytes(), 1..=6), version);
            }
        }
    }

    #[test]
    fn numbers_are_not_written_anew() {
        // A build that writes the same number in another way.
        let text = r#"{"format":1,"a":1.50e0,"b":-0}"#;
        let checksum = hash(text.as_bytes());
        let sealed = format!(r#"{{"format": 1, "a": 1.50e0, "sha256": "{checksum}", "b": -0}}"#);
        assert!(open::<Value>(sealed.as_bytes(), 1..=1).is_ok());
    }

    #[test]
    fn every_changed_bit_is_seen() {
        let root = json!({"format": 2, "name": "q w", "users": [{"limits": {"a": 1}}], "x": true});
        let text = text(&root, true);
        for (at, byte) in text.bytes().enumerate().filter(|(_, byte)| !byte.is_ascii_whitespace()) {
            for bit in 0..8 {
                let mut changed = text.clone().into_bytes();
                changed[at] = byte ^ (1 << bit);
                assert!(open::<Value>(&changed, 0..=9).is_err(), "byte {at}, bit {bit}");
            }
        }
        for other in [&b"[]"[..], b"{}", b"{\"format\": -1}"] {
            assert!(matches!(open::<Value>(other, 0..=9), Err(SealedError::Damaged(_))));
        }
    }
}
