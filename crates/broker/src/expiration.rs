//! The `expiration` property: a message's own TTL as text.
//!
//! An optional sign and ASCII digits, in the range from 0 to ten years. Every publish is checked, even one
//! that is not routed; the delivered value is the canonical decimal, as in RabbitMQ.

use amqp::erlang_binary::PrintedString;

use crate::limits::TTL_MS_MAX;
use crate::refusal::Refusal;

/// Parses `text` as milliseconds.
///
/// # Errors
/// 406 with RabbitMQ's text if `text` is not a number (`no_integer`), has further characters after the number
/// (`{leftover_string,..}`), or is out of range (`{value_negative,..}`, `{value_too_large,..}`).
pub(crate) fn parse(text: &[u8]) -> Result<u64, Refusal> {
    let refuse = |reason: String| {
        let text = String::from_utf8_lossy(text);
        Refusal::precondition_failed(format!("invalid expiration '{text}': {reason}"))
    };
    let (negative, unsigned) = match text.split_first() {
        Some((b'+', rest)) => (false, rest),
        Some((b'-', rest)) => (true, rest),
        _ => (false, text),
    };
    let digits = unsigned.iter().take_while(|b| b.is_ascii_digit()).count();
    let (digits, leftover) = unsigned.split_at(digits);
    if digits.is_empty() {
        return Err(refuse("no_integer".to_owned()));
    }
    if !leftover.is_empty() {
        return Err(refuse(format!("{{leftover_string,{}}}", PrintedString(leftover))));
    }
    let significant = digits.iter().skip_while(|b| **b == b'0');
    let canonical: String = significant.map(|b| char::from(*b)).collect();
    if canonical.is_empty() {
        return Ok(0);
    }
    if negative {
        return Err(refuse(format!("{{value_negative,-{canonical}}}")));
    }
    match canonical.parse() {
        Ok(millis) if millis <= TTL_MS_MAX => Ok(millis),
        _ => Err(refuse(format!("{{value_too_large,{canonical}}}"))),
    }
}

/// True if `text` is the canonical decimal of `millis`.
pub(crate) fn is_canonical(text: &[u8], millis: u64) -> bool {
    text == millis.to_string().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(text: &str) -> String {
        let explanation = parse(text.as_bytes()).unwrap_err().explanation;
        explanation.strip_prefix(&format!("invalid expiration '{text}': ")).unwrap().to_owned()
    }

    #[test]
    fn decimal_digits_with_an_optional_sign_are_accepted() {
        for (text, millis) in
            [("1000", 1000), ("0", 0), ("00", 0), ("007", 7), ("+5", 5), ("-0", 0)]
        {
            assert_eq!(parse(text.as_bytes()).unwrap(), millis, "{text}");
        }
        assert_eq!(parse(b"315360000000").unwrap(), TTL_MS_MAX);
    }

    #[test]
    fn other_text_is_refused_with_rabbitmqs_reason() {
        for text in ["", "abc", " 5", "\u{ff15}", "+", "-"] {
            assert_eq!(reason(text), "no_integer", "{text}");
        }
        assert_eq!(reason("5 "), "{leftover_string,\" \"}");
        assert_eq!(reason("1.5"), "{leftover_string,\".5\"}");
        assert_eq!(reason("0x10"), "{leftover_string,\"x10\"}");
        assert_eq!(reason("5\u{e9}"), "{leftover_string,\"\u{c3}\u{a9}\"}");
        assert_eq!(reason("-1"), "{value_negative,-1}");
        assert_eq!(reason("315360000001"), "{value_too_large,315360000001}");
        assert_eq!(reason("099999999999999999999"), "{value_too_large,99999999999999999999}");
    }

    #[test]
    fn plain_decimal_is_canonical() {
        assert!(is_canonical(b"50000", 50_000));
        assert!(!is_canonical(b"0050000", 50_000));
        assert!(!is_canonical(b"+50000", 50_000));
    }
}
