//! The messages of a handshake: a type, a length, and the content. Each type has a small bound, and one side sends at
//! most a hello and a proof before it has proved itself.

use super::PROOF_BYTES;
use crate::cluster::refusal::RefusalCode;
use crate::limits::{HANDSHAKE_BYTES_MAX, HELLO_BYTES_MAX};
use crate::membership::fields::FieldWriter;

const HELLO: u8 = 1;
const PROOF: u8 = 2;
const REFUSAL: u8 = 3;
const HEADER_BYTES: usize = 3;
/// First byte of a TLS handshake.
const TLS: u8 = 0x16;

const _: () = assert!(2 * HEADER_BYTES + HELLO_BYTES_MAX + PROOF_BYTES <= HANDSHAKE_BYTES_MAX);

/// A message of a handshake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Message {
    /// The bytes of a hello.
    Hello(Vec<u8>),
    Proof([u8; PROOF_BYTES]),
    /// The sender closes the connection for this reason.
    Refusal(RefusalCode),
}

/// The reason why the bytes of a peer are not a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MessageError {
    /// The peer speaks TLS, and this side does not.
    Tls,
    /// The first byte is of no message.
    NotALink,
    /// A message is longer than any of its type.
    TooLong,
    Malformed,
}

impl Message {
    /// The bytes of the message.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, content) = match self {
            Self::Hello(bytes) => (HELLO, bytes.clone()),
            Self::Proof(proof) => (PROOF, proof.to_vec()),
            Self::Refusal(code) => (REFUSAL, vec![code.as_u8()]),
        };
        let length = u16::try_from(content.len()).expect("a message has at most 64 KiB");
        let mut out = FieldWriter::default();
        out.u8(kind).u16(length).bytes(&content);
        out.into_bytes()
    }
}

/// The message that tells a peer why it is refused.
pub(crate) fn refusal_message(code: RefusalCode) -> Vec<u8> {
    Message::Refusal(code).encode()
}

/// The largest content of a type of message; none for other types.
pub(super) const fn type_bytes_max(kind: u8) -> Option<usize> {
    match kind {
        HELLO => Some(HELLO_BYTES_MAX),
        PROOF => Some(PROOF_BYTES),
        REFUSAL => Some(1),
        _ => None,
    }
}

/// Splits the bytes of a peer into messages.
#[derive(Default, Debug)]
pub(crate) struct MessageReader {
    bytes: Vec<u8>,
}

impl MessageReader {
    /// Adds bytes from the socket.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Number of bytes to read next: the rest of the header or of the content, never more, so that the bytes behind
    /// the handshake stay in the socket.
    ///
    /// # Errors
    /// [`MessageError`], as soon as the header is wrong.
    pub(crate) fn missing(&self) -> Result<usize, MessageError> {
        let Some(kind) = self.bytes.first() else { return Ok(HEADER_BYTES) };
        let max = type_bytes_max(*kind).ok_or(match *kind {
            TLS => MessageError::Tls,
            _ => MessageError::NotALink,
        })?;
        let Some(header) = self.bytes.first_chunk::<HEADER_BYTES>() else {
            return Ok(HEADER_BYTES - self.bytes.len());
        };
        let [_, low, high] = *header;
        let length = usize::from(u16::from_le_bytes([low, high]));
        if length > max {
            return Err(MessageError::TooLong);
        }
        Ok((HEADER_BYTES + length).saturating_sub(self.bytes.len()))
    }

    /// The message, if it is complete.
    ///
    /// # Errors
    /// [`MessageError`].
    pub(crate) fn next(&mut self) -> Result<Option<Message>, MessageError> {
        if self.missing()? > 0 {
            return Ok(None);
        }
        let bytes = std::mem::take(&mut self.bytes);
        let (header, content) = bytes.split_at(HEADER_BYTES);
        match header.first() {
            Some(&HELLO) => Ok(Some(Message::Hello(content.to_vec()))),
            Some(&PROOF) => {
                let proof = content.try_into().map_err(|_| MessageError::Malformed)?;
                Ok(Some(Message::Proof(proof)))
            }
            _ => {
                let code = content.first().and_then(|code| RefusalCode::from_u8(*code));
                Ok(Some(Message::Refusal(code.ok_or(MessageError::Malformed)?)))
            }
        }
    }
}
