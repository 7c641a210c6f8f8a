//! Parsing of JSON from clients, with a limit on the number of values.

use serde_json::Value;

use crate::http::answer::ApiError;

/// The reason why bytes are not the expected JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JsonError {
    /// More values than this maximum.
    TooManyValues(usize),
    /// Not JSON.
    Malformed,
}

impl JsonError {
    /// The error as text; `malformed` is the text for bytes that are not JSON.
    pub(crate) fn reason(self, malformed: &str) -> String {
        match self {
            Self::TooManyValues(max) => format!("more than {max} values"),
            Self::Malformed => malformed.to_owned(),
        }
    }

    /// The error as an answer with status 400.
    pub(crate) fn refused(self, malformed: &str) -> ApiError {
        ApiError::bad_request(self.reason(malformed))
    }
}

/// Parses JSON with at most `values_max` values.
pub(crate) fn read(bytes: &[u8], values_max: usize) -> Result<Value, JsonError> {
    if values(bytes) > values_max {
        return Err(JsonError::TooManyValues(values_max));
    }
    serde_json::from_slice(bytes).map_err(|_| JsonError::Malformed)
}

/// The number of values, or more: an empty list counts as a list with one item.
fn values(bytes: &[u8]) -> usize {
    let mut values = 1;
    let mut is_in_text = false;
    let mut is_escaped = false;
    for byte in bytes {
        if is_in_text {
            is_in_text = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
        } else {
            is_in_text = *byte == b'"';
            values += usize::from(matches!(byte, b',' | b'[' | b'{'));
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_count_ignores_text_in_strings() {
        for (text, expected) in [
            ("5", 1),
            (r#"{"a": 1, "b": [1, 2]}"#, 5),
            ("[[], []]", 5),
            (r#""[,{\"[,{""#, 1),
            (r#"["\\", 1]"#, 3),
            (r#""no end [,"#, 1),
        ] {
            assert_eq!(values(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn read_distinguishes_too_many_values_from_malformed_json() {
        assert_eq!(read(b"[1,2]", 2), Err(JsonError::TooManyValues(2)));
        assert_eq!(read(b"[1,2", 3), Err(JsonError::Malformed));
        assert!(read(b"[1,2]", 3).is_ok());
        let reason = |error: JsonError| error.refused("not_json").reason().to_owned();
        assert_eq!(reason(JsonError::Malformed), "not_json");
        assert_eq!(reason(JsonError::TooManyValues(2)), "more than 2 values");
    }
}
