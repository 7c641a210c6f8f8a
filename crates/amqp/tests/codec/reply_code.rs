//! Reply codes, their names, and where a text is cut.

use amqp::reply_code::ReplyCode;
use proptest::prelude::*;

#[test]
fn reply_codes_have_the_numbers_and_names_of_rabbitmq() {
    let channel: [(u16, &str); 8] = [
        (200, "REPLY_SUCCESS"),
        (311, "CONTENT_TOO_LARGE"),
        (312, "NO_ROUTE"),
        (313, "NO_CONSUMERS"),
        (403, "ACCESS_REFUSED"),
        (404, "NOT_FOUND"),
        (405, "RESOURCE_LOCKED"),
        (406, "PRECONDITION_FAILED"),
    ];
    let connection: [(u16, &str); 11] = [
        (320, "CONNECTION_FORCED"),
        (402, "INVALID_PATH"),
        (501, "FRAME_ERROR"),
        (502, "SYNTAX_ERROR"),
        (503, "COMMAND_INVALID"),
        (504, "CHANNEL_ERROR"),
        (505, "UNEXPECTED_FRAME"),
        (506, "RESOURCE_ERROR"),
        (530, "NOT_ALLOWED"),
        (540, "NOT_IMPLEMENTED"),
        (541, "INTERNAL_ERROR"),
    ];
    let of = |is_connection_error| {
        ReplyCode::ALL
            .into_iter()
            .filter(move |code| code.is_connection_error() == is_connection_error)
            .map(|code| (code.code(), code.name()))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(false), channel);
    assert_eq!(of(true), connection);
    assert!(ReplyCode::ALL.is_sorted_by_key(|code| code.code()));
    assert_eq!(ReplyCode::NotFound.to_string(), "404 NOT_FOUND");
}

/// The texts of RabbitMQ 4.3.6, the cut one for a queue name of 225 bytes.
#[test]
fn reply_texts_are_those_of_rabbitmq() {
    assert_eq!(
        ReplyCode::NotFound.text("no queue 'q' in vhost '/'"),
        "NOT_FOUND - no queue 'q' in vhost '/'"
    );
    assert_eq!(ReplyCode::InternalError.text(""), "INTERNAL_ERROR");
    let name = "n".repeat(225);
    let text = ReplyCode::NotFound.text(&format!("no queue '{name}' in vhost '/'"));
    assert_eq!(text, format!("NOT_FOUND - no queue '{name}' in ..."));
    assert_eq!(text.len(), 255);
}

#[test]
fn reply_text_of_255_bytes_is_not_cut() {
    let prefix = "NOT_FOUND - ".len();
    assert_eq!(ReplyCode::NotFound.text(&"e".repeat(255 - prefix)).len(), 255);
    assert!(!ReplyCode::NotFound.text(&"e".repeat(255 - prefix)).ends_with("..."));
    assert!(ReplyCode::NotFound.text(&"e".repeat(256 - prefix)).ends_with("e..."));
}

proptest! {
    #[test]
    fn reply_text_fits_into_a_short_string(explanation in "\\PC{0,300}") {
        let text = ReplyCode::PreconditionFailed.text(&explanation);
        let whole = format!("PRECONDITION_FAILED - {explanation}");
        prop_assert!(text.len() <= 255);
        if explanation.is_empty() {
            prop_assert_eq!(text, "PRECONDITION_FAILED");
        } else if whole.len() <= 255 {
            prop_assert_eq!(text, whole);
        } else {
            prop_assert!(whole.starts_with(text.strip_suffix("...").unwrap()));
            prop_assert!(text.len() > 255 - 4, "not more than a character is lost");
        }
    }
}
