//! JSON on a command line, also in the forms that shells leave of it.
//!
//! A line of documentation for Windows, `"{""message-ttl"":60000}"`, reaches a program as
//! `{"message-ttl":60000}` on Windows and as `{message-ttl:60000}` elsewhere; `"{\"a\":1}"` in single
//! quotes keeps its backslashes. None of these forms has another meaning, so each is accepted.

use serde_json::Value;

use crate::failure::{Failure, UNAVAILABLE};
use crate::term::quoted;

/// Reads a JSON document.
///
/// # Errors
/// The text of RabbitMQ's tool for a malformed document.
// COMPAT: JSON without its quotes: ctl reads what a shell has left of the quotes of another's.
pub(crate) fn parse(text: &str) -> Result<Value, Failure> {
    let readings = [text.to_owned(), text.replace("\"\"", "\""), text.replace("\\\"", "\"")];
    let read = readings.iter().find_map(|text| serde_json::from_str(text).ok());
    let read = read.or_else(|| serde_json::from_str(&with_quotes(text)?).ok());
    read.ok_or_else(|| Failure::error_lines(UNAVAILABLE, not_json(text).lines()))
}

/// An object with its bare words in quotes; None if it has quotes, or is no object.
fn with_quotes(text: &str) -> Option<String> {
    let is_object = text.trim().starts_with('{') && text.trim().ends_with('}');
    if !is_object || text.contains('"') {
        return None;
    }
    let mut quoted = String::new();
    let mut word = String::new();
    for c in text.chars() {
        if matches!(c, '{' | '}' | '[' | ']' | ':' | ',') {
            quoted.push_str(&element(word.trim()));
            word.clear();
            quoted.push(c);
        } else {
            word.push(c);
        }
    }
    Some(quoted)
}

/// A word as JSON: unchanged if it is JSON, else in quotes.
fn element(word: &str) -> String {
    let is_json = word.is_empty() || serde_json::from_str::<Value>(word).is_ok();
    if is_json { word.to_owned() } else { Value::from(word).to_string() }
}

/// An Erlang term behind these words, in lines of 80 columns.
fn not_json(text: &str) -> String {
    const WORDS: &str = "Could not parse JSON document: ";
    let text = if text.is_empty() { String::new() } else { quoted(text) };
    let flat = format!("{WORDS}{{error,{{failed_to_decode_json,<<{text}>>}}}}");
    if flat.chars().count() <= 80 {
        return flat;
    }
    let indent = " ".repeat(WORDS.len() + 4);
    format!("{WORDS}{{error,\n{indent}{{failed_to_decode_json,\n{indent}    <<{text}>>}}}}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_documents_in_every_shell_form() {
        for text in [
            r#"{"message-ttl":60000,"dead-letter-exchange":"my-dlx"}"#,
            r#"{""message-ttl"":60000,""dead-letter-exchange"":""my-dlx""}"#,
            r#"{\"message-ttl\":60000, \"dead-letter-exchange\":\"my-dlx\"}"#,
            r"{message-ttl:60000,dead-letter-exchange:my-dlx}",
            r" { message-ttl : 60000 , dead-letter-exchange : my-dlx }",
        ] {
            let expected = json!({"message-ttl": 60000, "dead-letter-exchange": "my-dlx"});
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        assert_eq!(parse(r#"{"a":""}"#), Ok(json!({"a": ""})));
        assert_eq!(parse("{a:true,b:[x,1]}"), Ok(json!({"a": true, "b": ["x", 1]})));
    }

    #[test]
    fn malformed_json_is_reported_as_by_rabbitmq() {
        let told = |text| match parse(text) {
            Err(Failure::Message { text, code: 69, .. }) => text,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            told(""),
            "Error:\nCould not parse JSON document: {error,{failed_to_decode_json,<<>>}}"
        );
        assert_eq!(
            told("{\"message-ttl\":"),
            "Error:\nCould not parse JSON document: {error,\n                                   \
             {failed_to_decode_json,\n                                       \
             <<\"{\\\"message-ttl\\\":\">>}}"
        );
    }
}
