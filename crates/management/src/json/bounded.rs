//! Reading JSON that somebody has sent.
//!
//! A value takes up to eighty times the memory of its text, and time: what ten mebibytes of brackets would
//! take is not for everybody to take. So values are counted before they are made.

use serde_json::Value;

use crate::http::answer::ApiError;

/// Why octets are not the JSON that was expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JsonError {
    /// It has more values than this.
    TooManyValues(usize),
    /// It is none.
    Malformed,
}

impl JsonError {
    /// In words, which are `malformed` if it is no JSON.
    pub(crate) fn reason(self, malformed: &str) -> String {
        match self {
            Self::TooManyValues(max) => format!("more than {max} values"),
            Self::Malformed => malformed.to_owned(),
        }
    }

    /// The same as a refusal: 400.
    pub(crate) fn refused(self, malformed: &str) -> ApiError {
        ApiError::bad_request(self.reason(malformed))
    }
}

/// Reads JSON of at most so many values.
pub(crate) fn read(octets: &[u8], values_max: usize) -> Result<Value, JsonError> {
    if values(octets) > values_max {
        return Err(JsonError::TooManyValues(values_max));
    }
    serde_json::from_slice(octets).map_err(|_| JsonError::Malformed)
}

/// How many values there are, or more: an empty list counts as one that has something in it.
fn values(octets: &[u8]) -> usize {
    let mut values = 1;
    let mut is_in_text = false;
    let mut is_escaped = false;
    for octet in octets {
        if is_in_text {
            is_in_text = is_escaped || *octet != b'"';
            is_escaped = !is_escaped && *octet == b'\\';
        } else {
            is_in_text = *octet == b'"';
            values += usize::from(matches!(octet, b',' | b'[' | b'{'));
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_and_what_stands_in_texts_is_not() {
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
    fn what_is_too_much_is_told_from_what_is_no_json() {
        assert_eq!(read(b"[1,2]", 2), Err(JsonError::TooManyValues(2)));
        assert_eq!(read(b"[1,2", 3), Err(JsonError::Malformed));
        assert!(read(b"[1,2]", 3).is_ok());
        let reason = |error: JsonError| error.refused("not_json").reason().to_owned();
        assert_eq!(reason(JsonError::Malformed), "not_json");
        assert_eq!(reason(JsonError::TooManyValues(2)), "more than 2 values");
    }
}
