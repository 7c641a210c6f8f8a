//! Parsing of JSON from clients, with limits on the number of values and on lists inside lists.

use serde_json::Value;

use crate::http::answer::ApiError;

/// The reason why bytes are not the expected JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JsonError {
    /// More values than this maximum.
    TooManyValues(usize),
    /// More than this maximum of lists and objects inside each other.
    TooDeep(usize),
    /// Not JSON.
    Malformed,
}

impl JsonError {
    /// The error as text; `malformed` is the text for bytes that are not JSON.
    pub(crate) fn reason(self, malformed: &str) -> String {
        match self {
            Self::TooManyValues(max) => format!("more than {max} values"),
            Self::TooDeep(max) => format!("more than {max} lists and objects inside each other"),
            Self::Malformed => malformed.to_owned(),
        }
    }

    /// The error as an answer with status 400.
    pub(crate) fn refused(self, malformed: &str) -> ApiError {
        ApiError::bad_request(self.reason(malformed))
    }
}

/// Parses JSON with at most `values_max` values, and at most `depth_max` lists and objects inside each other.
pub(crate) fn read(bytes: &[u8], values_max: usize, depth_max: usize) -> Result<Value, JsonError> {
    let (values, depth) = extent(bytes);
    if values > values_max {
        return Err(JsonError::TooManyValues(values_max));
    }
    if depth > depth_max {
        return Err(JsonError::TooDeep(depth_max));
    }
    serde_json::from_slice(bytes).map_err(|_| JsonError::Malformed)
}

/// The number of values in JSON, or more.
pub(crate) fn count_values(bytes: &[u8]) -> usize {
    extent(bytes).0
}

/// The number of values, or more: an empty list counts as a list with one item; and how many lists and objects lie
/// inside each other.
fn extent(bytes: &[u8]) -> (usize, usize) {
    let (mut values, mut depth, mut depth_max) = (1, 0_usize, 0);
    let mut is_in_text = false;
    let mut is_escaped = false;
    for byte in bytes {
        if is_in_text {
            is_in_text = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
        } else {
            is_in_text = *byte == b'"';
            values += usize::from(matches!(byte, b',' | b'[' | b'{'));
            match byte {
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth_max = depth_max.max(depth);
        }
    }
    (values, depth_max)
}

#[cfg(test)]
mod tests {
    use server::json::depth::json_depth;

    use super::*;

    #[test]
    fn extent_ignores_text_in_strings() {
        for (text, expected) in [
            ("5", (1, 0)),
            (r#"{"a": 1, "b": [1, 2]}"#, (5, 2)),
            ("[[], []]", (5, 2)),
            (r#""[,{\"[,{""#, (1, 0)),
            (r#"["\\", 1]"#, (3, 1)),
            (r#""no end [,"#, (1, 0)),
            ("]]]][", (2, 1)),
        ] {
            assert_eq!(extent(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn depth_of_what_is_read_is_bounded() {
        let nested = |depth| ["[".repeat(depth), "]".repeat(depth)].concat();
        let deepest = read(nested(100).as_bytes(), 1000, 100).unwrap();
        assert_eq!(json_depth(&deepest), 100);
        assert_eq!(read(nested(101).as_bytes(), 1000, 100), Err(JsonError::TooDeep(100)));
        // Closed by nothing, and far deeper than any stack.
        assert_eq!(read(&[b'['; 1 << 20], usize::MAX, 100), Err(JsonError::TooDeep(100)));
    }

    #[test]
    fn read_distinguishes_too_many_values_from_malformed_json() {
        assert_eq!(read(b"[1,2]", 2, 1), Err(JsonError::TooManyValues(2)));
        assert_eq!(read(b"[1,2", 3, 1), Err(JsonError::Malformed));
        assert!(read(b"[1,2]", 3, 1).is_ok());
        let reason = |error: JsonError| error.refused("not_json").reason().to_owned();
        assert_eq!(reason(JsonError::Malformed), "not_json");
        assert_eq!(reason(JsonError::TooManyValues(2)), "more than 2 values");
    }
}
