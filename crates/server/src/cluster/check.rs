//! Checks of the readers of links, for fuzzing.

use super::frames::control::Control;
use super::frames::wire::{Channel, FrameReader};
use super::handshake::hello::{Hello, Message, MessageReader};
use super::joining::join::{JoinAnswer, JoinQuestion};
use crate::limits::{CHUNK_BYTES_MAX, HELLO_BYTES_MAX};

/// Reads bytes in pieces. Returns what was read, and the error if there is one.
///
/// # Panics
/// When something that was read is not written again as it was, or a reader keeps more than it may.
pub(crate) fn check_bytes(reader: u8, bytes: &[u8], piece_bytes: usize) -> Vec<String> {
    match reader {
        0 => handshake(bytes, piece_bytes),
        1 => link(bytes, piece_bytes),
        3 => join(bytes),
        _ => control(bytes),
    }
}

/// A question or an answer about joining.
fn join(message: &[u8]) -> Vec<String> {
    let (question, answer) = (JoinQuestion::decode(message), JoinAnswer::decode(message));
    if let Ok(question) = &question {
        assert_eq!(JoinQuestion::decode(&question.encode()).as_ref(), Ok(question));
    }
    if let Ok(answer) = &answer {
        assert_eq!(JoinAnswer::decode(&answer.encode()).as_ref(), Ok(answer));
    }
    vec![format!("{question:?}"), format!("{answer:?}")]
}

fn control(frame: &[u8]) -> Vec<String> {
    let decoded = Control::decode(frame);
    if let Ok(Some(control)) = &decoded {
        let again = Control::decode(&control.encode());
        assert_eq!(again.as_ref(), Ok(&Some(control.clone())), "a frame is written as it was read");
    }
    vec![format!("{decoded:?}")]
}

fn handshake(mut bytes: &[u8], piece_bytes: usize) -> Vec<String> {
    let (mut reader, mut told) = (MessageReader::default(), Vec::new());
    loop {
        match reader.next() {
            Ok(Some(message)) => {
                if let Message::Hello(bytes) = &message
                    && let Ok(hello) = Hello::decode(bytes)
                {
                    assert!(
                        bytes.starts_with(&hello.encode()),
                        "a hello is written as it was read"
                    );
                }
                told.push(format!("{message:?}"));
                continue;
            }
            Ok(None) => {}
            Err(error) => {
                told.push(format!("{error:?}"));
                return told;
            }
        }
        let missing = reader.missing().expect("the reader has told its error");
        assert!(0 < missing && missing <= HELLO_BYTES_MAX, "{missing} bytes are missing");
        let (piece, rest) = bytes.split_at(missing.min(piece_bytes).min(bytes.len()));
        if piece.is_empty() {
            return told;
        }
        reader.add(piece);
        bytes = rest;
    }
}

fn link(bytes: &[u8], piece_bytes: usize) -> Vec<String> {
    let (mut reader, mut told) = (FrameReader::default(), Vec::new());
    let mut pieces = bytes.chunks(piece_bytes.clamp(1, CHUNK_BYTES_MAX));
    loop {
        match reader.next() {
            Ok(Some((channel, frame))) => {
                if channel == Channel::Control {
                    told.extend(control(&frame));
                }
                told.push(format!("{channel:?} {frame:?}"));
            }
            Ok(None) => match pieces.next() {
                Some(piece) => reader.bytes.extend_from_slice(piece),
                None => return told,
            },
            Err(error) => {
                told.push(format!("{error:?}"));
                return told;
            }
        }
    }
}
