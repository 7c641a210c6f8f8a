//! The boundaries of frames in octets that are passed on.
//!
//! A relay knows no AMQP but this: where a frame ends, so that a frame of its own can follow, and whether
//! `connection.close` or its answer has passed. It reads the headers of frames, and the method of those on channel 0.

/// Octets of a frame's header: type, channel, length of the payload.
const HEADER_BYTES: usize = 7;

/// Octets of a method's id, the beginning of its payload.
const METHOD_BYTES: usize = 4;

/// The frame's end, behind the payload.
const END_BYTES: u64 = 1;

/// Type of a frame with a method.
const METHOD: u8 = 1;

const CONNECTION_CLOSE: [u8; METHOD_BYTES] = [0, 10, 0, 50];
const CONNECTION_CLOSE_OK: [u8; METHOD_BYTES] = [0, 10, 0, 51];

/// The place in a stream of frames.
#[derive(Clone, Copy, Default, Debug)]
pub struct FrameTracker {
    head: [u8; HEADER_BYTES + METHOD_BYTES],
    /// Octets in `head`.
    head_bytes: usize,
    /// Octets of the frame that are not looked at.
    left: u64,
    has_close: bool,
    has_close_ok: bool,
}

impl FrameTracker {
    /// True if the next octet begins a frame.
    #[must_use]
    pub fn is_at_boundary(&self) -> bool {
        self.head_bytes == 0 && self.left == 0
    }

    /// True if `connection.close` or `connection.close-ok` has passed.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.has_close || self.has_close_ok
    }

    /// True if `connection.close-ok` has passed.
    #[must_use]
    pub fn has_close_ok(&self) -> bool {
        self.has_close_ok
    }

    /// Passes octets.
    pub fn pass(&mut self, mut octets: &[u8]) {
        while !octets.is_empty() {
            let used = self.pass_frame(octets);
            octets = octets.get(used..).unwrap_or_default();
        }
    }

    /// Passes octets up to the end of a frame, and returns their number.
    pub fn pass_frame(&mut self, octets: &[u8]) -> usize {
        let mut used = 0;
        while self.left == 0 && used < octets.len() {
            let wanted = self.head_wanted();
            let more = (wanted - self.head_bytes).min(octets.len() - used);
            let room = self.head.get_mut(self.head_bytes..self.head_bytes + more);
            if let (Some(room), Some(from)) = (room, octets.get(used..used + more)) {
                room.copy_from_slice(from);
            }
            self.head_bytes += more;
            used += more;
            if self.head_bytes == self.head_wanted() {
                self.begin_rest();
            }
        }
        let rest = u64::try_from(octets.len() - used).unwrap_or(u64::MAX).min(self.left);
        self.left -= rest;
        used + usize::try_from(rest).unwrap_or(usize::MAX)
    }

    /// Octets of the frame that are looked at, as far as known.
    fn head_wanted(&self) -> usize {
        let [kind, channel @ .., _, _, _, _] = *self.header();
        let is_method = kind == METHOD && channel == [0, 0];
        let has_method = self.payload_bytes() >= METHOD_BYTES as u64;
        match self.head_bytes >= HEADER_BYTES && is_method && has_method {
            true => HEADER_BYTES + METHOD_BYTES,
            false => HEADER_BYTES,
        }
    }

    fn header(&self) -> &[u8; HEADER_BYTES] {
        self.head.first_chunk().expect("the head is longer than a header")
    }

    fn payload_bytes(&self) -> u64 {
        let [_, _, _, length @ ..] = *self.header();
        u32::from_be_bytes(length).into()
    }

    /// The head is complete: the rest of the frame follows.
    fn begin_rest(&mut self) {
        let method_bytes = self.head_bytes - HEADER_BYTES;
        if method_bytes == METHOD_BYTES {
            let method = self.head.last_chunk::<METHOD_BYTES>();
            self.has_close |= method == Some(&CONNECTION_CLOSE);
            self.has_close_ok |= method == Some(&CONNECTION_CLOSE_OK);
        }
        self.left = self.payload_bytes() - method_bytes as u64 + END_BYTES;
        self.head_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap();
        let header = [&[kind][..], &channel.to_be_bytes(), &length.to_be_bytes()].concat();
        [&header, payload, &[0xce]].concat()
    }

    #[test]
    fn closing_is_seen_on_channel_0_only() {
        let close = [0, 10, 0, 50, 1, 64, 0];
        for (octets, closing, is_answer) in [
            (frame(1, 0, &close), true, false),
            (frame(1, 0, &CONNECTION_CLOSE_OK), true, true),
            (frame(1, 1, &close), false, false),
            (frame(3, 0, &close), false, false),
            (frame(1, 0, &[0, 10, 0]), false, false),
            (frame(8, 0, &[]), false, false),
        ] {
            let mut tracker = FrameTracker::default();
            tracker.pass(&octets);
            assert!(tracker.is_at_boundary());
            assert_eq!((tracker.is_closing(), tracker.has_close_ok()), (closing, is_answer));
        }
    }

    #[test]
    fn frame_of_any_length_takes_no_memory() {
        let mut tracker = FrameTracker::default();
        tracker.pass(&[3, 0, 1, 0xff, 0xff, 0xff, 0xff, 1, 2, 3]);
        assert!(!tracker.is_at_boundary());
        assert_eq!(tracker.left, u64::from(u32::MAX) + 1 - 3);
    }

    proptest! {
        #[test]
        fn boundaries_are_found_in_any_pieces(
            frames in proptest::collection::vec((1_u8..9, 0_u16..2, 0_usize..300), 1..8),
            piece in 1_usize..50,
        ) {
            let mut octets = Vec::new();
            let mut ends = Vec::new();
            for (kind, channel, length) in frames {
                octets.extend(frame(kind, channel, &vec![7; length]));
                ends.push(octets.len());
            }
            let (mut tracker, mut at, mut found) = (FrameTracker::default(), 0, Vec::new());
            while at < octets.len() {
                let until = (at + piece).min(octets.len());
                at += tracker.pass_frame(&octets[at..until]);
                if tracker.is_at_boundary() {
                    found.push(at);
                }
            }
            prop_assert_eq!(found, ends);
        }
    }
}
