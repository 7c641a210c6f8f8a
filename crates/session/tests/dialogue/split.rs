//! The pieces in which a client's bytes come make no difference: generated streams of frames, some
//! of them damaged, are heard whole and in generated pieces, and get the same answers.

use proptest::collection::vec;
use proptest::prelude::*;
use session::SessionOptions;

use crate::by_channel;
use crate::peer::{BATCH, Heard, Peer};
use crate::say;
use crate::words::{Words, shown};
use crate::world::handshake;

/// Input of a generated client.
const LINES: &[&str] = &[
    "queue.declare queue=q arguments={x-max-priority=I:3}",
    "2 queue.declare queue=q passive",
    "queue.declare queue=r durable arguments={x-message-ttl=S:sixty}",
    "exchange.declare exchange=x type=fanout",
    "queue.bind queue=q exchange=x routing-key=k arguments={h=F:{a=A:[t:1 V]}}",
    "confirm.select",
    "2 confirm.select",
    "publish exchange=x routing-key=k body=\"hello\" priority=2 headers={n=I:1}",
    "2 publish exchange=\"\" routing-key=q body=\"hello\" expiration=60000",
    "publish exchange=\"\" routing-key=nowhere mandatory body=\"\"",
    "2 publish exchange=missing routing-key=k body=\"lost\"",
    "basic.consume queue=q consumer-tag=c",
    "2 basic.consume queue=q consumer-tag=c no-ack",
    "basic.qos prefetch-count=2",
    "basic.get queue=q",
    "2 basic.get queue=q no-ack",
    "basic.ack delivery-tag=1",
    "basic.nack delivery-tag=0 multiple requeue",
    "basic.cancel consumer-tag=c",
    "basic.recover requeue",
    "2 tx.select",
    "2 tx.commit",
    "heartbeat",
    "connection.update-secret new-secret=s reason=r",
    "3 channel.open",
    "3 channel.close reply-code=200 reply-text=bye class-id=0 method-id=0",
    "channel.close-ok",
    "method class-id=60 method-id=99 arguments=hex:00",
    "header size=5",
    "body \"hello\"",
    "connection.close reply-code=200 reply-text=bye class-id=0 method-id=0",
];

/// Bytes that a failed test shows as text.
#[derive(Clone)]
struct Bytes(Vec<u8>);

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

/// Frames of a connected client, of which some bytes were changed on the way.
fn stream() -> impl Strategy<Value = Bytes> {
    let damage = vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    let damaged = prop_oneof![4 => Just(Vec::new()), 1 => damage];
    (vec(prop::sample::select(LINES), 0..24), damaged).prop_map(|(lines, damaged)| {
        let mut frame_max = 131_072;
        let connected = handshake("connect", &mut Words::new(" channels=1-2"), &mut frame_max);
        let lines = connected.iter().map(String::as_str).chain(lines);
        let mut bytes: Vec<u8> = lines.flat_map(|line| say::bytes(line, frame_max)).collect();
        for (at, byte) in damaged {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        Bytes(bytes)
    })
}

/// Output for a client that sends `bytes` in these pieces, and true if its socket is closed.
fn answers(bytes: &[u8], pieces: &[usize], batch: usize) -> (Vec<u8>, bool) {
    let server_properties = session::server_properties(session::ServerIdentity {
        product: "Product",
        version: "1.2.3",
        leveret_version: "0.0.1",
        cluster_name: "split",
    });
    let options = SessionOptions { server_properties, ..SessionOptions::default() };
    let mut peer = Peer::new(&options, batch);
    let mut rest = bytes;
    let mut sizes = pieces.iter().cycle();
    while !rest.is_empty() {
        let size = sizes.next().copied().unwrap_or(rest.len()).clamp(1, rest.len());
        let (piece, behind) = rest.split_at(size);
        peer.receive(piece);
        rest = behind;
    }
    let mut heard = Vec::new();
    let mut is_closed = false;
    for one in peer.take_heard() {
        match one {
            Heard::Bytes(bytes) => heard.extend(bytes),
            Heard::Question(_) => {}
            Heard::Closed => is_closed = true,
        }
    }
    (heard, is_closed)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn session_does_not_depend_on_the_chunks_of_the_input(Bytes(bytes) in stream(), pieces in vec(1_usize..400, 1..12)) {
        let (whole, whole_closed) = answers(&bytes, &[], 1);
        let (cut, cut_closed) = answers(&bytes, &pieces, 1);
        prop_assert_eq!(by_channel(&whole), by_channel(&cut));
        prop_assert_eq!(whole_closed, cut_closed);
        let (batched, batched_closed) = answers(&bytes, &pieces, BATCH);
        prop_assert_eq!(by_channel(&whole), by_channel(&batched));
        prop_assert_eq!(whole_closed, batched_closed);
    }
}
