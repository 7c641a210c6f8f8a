//! Frames: the same bytes give the same frames, in any pieces.
//!
//! The first byte chooses how large a payload may be, the second in which pieces the rest arrives.

use amqp::frame::{FrameType, begin_frame, end_frame, frame_len, split_frame, write_body_frames};
use amqp::limits::FRAME_OVERHEAD;

/// Limits for payloads: before the tuning, small, usual, chosen by the client.
const PAYLOADS_MAX: [u32; 4] = [8192, 16, 131_072, u32::MAX];

/// A frame that owns its payload.
type Owned = (FrameType, u16, Vec<u8>);

/// Result of reading a stream.
#[derive(Default, PartialEq, Eq, Debug)]
struct Split {
    frames: Vec<Owned>,
    /// Reason that no more frames follow.
    error: Option<String>,
    /// Bytes that are no whole frame.
    left: usize,
}

/// Checks one stream of bytes.
pub fn check(input: &[u8]) {
    let [max, pieces, stream @ ..] = input else { return };
    let payload_max = PAYLOADS_MAX[usize::from(*max) % PAYLOADS_MAX.len()];
    let mut whole = Split::default();
    let left = split(stream, payload_max, &mut whole);
    whole.left = left.len();
    assert_eq!(in_pieces(stream, payload_max, *pieces), whole);
    for (frame_type, channel, payload) in &whole.frames {
        if *frame_type == FrameType::Body {
            cut_body(*channel, payload, u32::from(*pieces) + 1);
        }
    }
}

/// Splits frames off the front of `stream`; what is left of it.
fn split<'a>(mut stream: &'a [u8], payload_max: u32, split: &mut Split) -> &'a [u8] {
    while split.error.is_none() {
        match split_frame(stream, payload_max) {
            Ok(None) => break,
            Ok(Some((frame, used))) => {
                assert_eq!(frame_len(stream), Some(used));
                assert!(frame.payload.len() as u64 <= u64::from(payload_max));
                let mut written = Vec::new();
                let start = begin_frame(&mut written, frame.frame_type, frame.channel);
                written.extend_from_slice(frame.payload);
                end_frame(&mut written, start);
                assert_eq!(written, stream[..used], "written as it was read");
                split.frames.push((frame.frame_type, frame.channel, frame.payload.to_vec()));
                stream = &stream[used..];
            }
            Err(error) => split.error = Some(error.to_string()),
        }
    }
    stream
}

/// The same, where bytes arrive one piece after the other.
fn in_pieces(stream: &[u8], payload_max: u32, pieces: u8) -> Split {
    let mut found = Split::default();
    let mut unread = Vec::new();
    let mut sizes = 0_usize;
    let mut rest = stream;
    while !rest.is_empty() && found.error.is_none() {
        // Pieces of changing sizes, so that they end everywhere in a frame.
        sizes = (sizes * 5 + usize::from(pieces)) % 61;
        let (piece, after) = rest.split_at(rest.len().min(sizes + 1));
        unread.extend_from_slice(piece);
        rest = after;
        let left = split(&unread, payload_max, &mut found).len();
        unread.drain(..unread.len() - left);
    }
    found.left = unread.len() + rest.len();
    found
}

/// A body that is cut into frames is the same body.
fn cut_body(channel: u16, body: &[u8], payload_max: u32) {
    let mut written = Vec::new();
    write_body_frames(&mut written, channel, body, payload_max);
    let mut found = Split::default();
    let left = split(&written, payload_max, &mut found);
    assert!(left.is_empty() && found.error.is_none());
    assert!(found.frames.iter().all(|(kind, at, _)| (*kind, *at) == (FrameType::Body, channel)));
    assert_eq!(
        found.frames.iter().flat_map(|(_, _, part)| part).copied().collect::<Vec<_>>(),
        body
    );
    assert_eq!(written.len(), body.len() + found.frames.len() * FRAME_OVERHEAD);
}
