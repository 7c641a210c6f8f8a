//! Methods: what is decoded is encoded as it was, and what is refused is refused in a sentence.

use amqp::frame::split_frame;
use amqp::method::{METHODS, Method, write_method};

/// Methods in which every byte counts: no reserved field, no bits.
const EXACT: &[&str] = &[
    "connection.start",
    "connection.start-ok",
    "connection.tune",
    "connection.tune-ok",
    "connection.close",
    "connection.close-ok",
    "connection.blocked",
    "connection.unblocked",
    "connection.update-secret",
    "connection.update-secret-ok",
    "channel.close",
    "channel.close-ok",
    "queue.declare-ok",
    "queue.purge-ok",
    "queue.delete-ok",
    "basic.consume-ok",
    "basic.return",
    "tx.select",
    "tx.commit",
    "tx.rollback",
];

/// Longest explanation: what does not fit into a reply text is cut later.
const EXPLANATION_BYTES_MAX: usize = 1000;

/// Checks the payload of one method frame.
pub fn check(payload: &[u8]) {
    let method = match Method::decode(payload) {
        Ok(method) => method,
        Err(error) => {
            let explanation = error.explanation(payload);
            assert!(!explanation.is_empty() && explanation.len() <= EXPLANATION_BYTES_MAX);
            return;
        }
    };
    assert!(METHODS.contains(&(method.id(), method.name())), "{}", method.name());
    let encoded = encode(&method);
    let again = Method::decode(&encoded).expect("what was encoded is a method");
    assert_eq!(again, method);
    assert_eq!(encode(&again), encoded, "one form for each method");
    if EXACT.contains(&method.name()) {
        assert_eq!(encoded, payload, "{} is written as it was read", method.name());
    }
    let mut frame = Vec::new();
    write_method(&mut frame, 7, &method);
    let (frame, _) = split_frame(&frame, u32::MAX).unwrap().expect("a whole frame");
    assert_eq!(frame.payload, encoded);
    for cut in 0..encoded.len().min(64) {
        assert!(Method::decode(&encoded[..cut]).is_err(), "{} cut at {cut}", method.name());
    }
}

fn encode(method: &Method<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    method.encode(&mut out);
    out
}
