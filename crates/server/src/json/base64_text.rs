//! Bytes as base64 in JSON.

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine};

/// The bytes of a text in base64. White space between its characters does not count, as in RabbitMQ: many programs
/// break base64 into lines.
///
/// # Errors
/// When the rest is not base64 with its padding.
pub fn bytes_from_base64(text: &str) -> Result<Vec<u8>, DecodeError> {
    let is_counted = |character: &char| !character.is_ascii_whitespace();
    STANDARD.decode(text.chars().filter(is_counted).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_may_have_white_space() {
        for text in ["aGVsbG8=", "aGVs\nbG8=", "aGVs\r\nbG8=\r\n", " aGV sbG8=\t"] {
            assert_eq!(bytes_from_base64(text).as_deref(), Ok(&b"hello"[..]), "{text:?}");
        }
        for text in ["aGVsbG8", "aGVs-bG8=", "a"] {
            assert!(bytes_from_base64(text).is_err(), "{text:?}");
        }
    }
}
