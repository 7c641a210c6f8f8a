//! Bytes that wait to be written to a client, in order.
//!
//! Most bytes are copied into one growing buffer. Long bodies are not copied: they are written from their
//! message.

mod held;

use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::Range;

use broker::Message;

use crate::limits::RELEASED_COPY_BYTES_MAX;

pub use held::{HeldOutbox, Released};

/// Bytes that wait for a socket.
#[derive(Default, Debug)]
pub struct Outbox {
    /// Parts that are complete, oldest first.
    parts: VecDeque<Part>,
    /// Bytes in `parts`.
    parts_len: u64,
    /// The buffer to append to; it is written last.
    tail: Vec<u8>,
    /// Number of bytes of the first part that are written.
    written: usize,
}

#[derive(Debug)]
enum Part {
    Bytes(Vec<u8>),
    Body(Message, Range<usize>),
}

impl Part {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Body(message, range) => message.body().get(range.clone()).unwrap_or_default(),
        }
    }
}

impl Outbox {
    /// Number of bytes that wait.
    pub fn len(&self) -> u64 {
        self.parts_len - self.written as u64 + self.tail.len() as u64
    }

    /// True if no bytes wait.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The buffer to append to.
    pub fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.tail
    }

    /// Appends a part of a message's body without copying it.
    pub fn push_body(&mut self, message: &Message, range: Range<usize>) {
        self.close_tail();
        self.push(Part::Body(message.clone(), range));
    }

    fn push(&mut self, part: Part) {
        self.parts_len += part.bytes().len() as u64;
        self.parts.push_back(part);
    }

    fn close_tail(&mut self) {
        if !self.tail.is_empty() {
            let tail = std::mem::take(&mut self.tail);
            self.push(Part::Bytes(tail));
        }
    }

    /// Moves all bytes into `writing`, and keeps its buffer to append to.
    ///
    /// # Panics
    /// If `writing` is not empty: its bytes would be written out of order.
    pub fn take_into(&mut self, writing: &mut Self) {
        assert!(writing.is_empty(), "bytes that were taken before are not written");
        std::mem::swap(self, writing);
    }

    /// Appends all bytes of `other`, in order, and leaves `other` empty.
    ///
    /// # Panics
    /// If a part of `other` was written.
    pub(crate) fn append(&mut self, other: &mut Self) {
        assert!(other.written == 0, "bytes of an outbox that is being written are moved");
        if other.parts.is_empty() && other.tail.len() <= RELEASED_COPY_BYTES_MAX {
            self.tail.extend_from_slice(&other.tail);
            other.tail.clear();
            return;
        }
        self.close_tail();
        for part in other.parts.drain(..) {
            self.push(part);
        }
        other.parts_len = 0;
        // The buffer goes with its bytes: `other` is seldom used again.
        self.tail = std::mem::take(&mut other.tail);
    }

    /// Fills `slices` with the next bytes to write. Returns the number of filled slices.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let parts = self.parts.iter().map(Part::bytes).chain([self.tail.as_slice()]);
        let mut skip = self.written;
        let mut filled = 0;
        for (slice, bytes) in slices.iter_mut().zip(parts.filter(|bytes| !bytes.is_empty())) {
            *slice = IoSlice::new(bytes.get(skip..).unwrap_or_default());
            skip = 0;
            filled += 1;
        }
        filled
    }

    /// Removes the next `count` bytes, which were written.
    ///
    /// # Panics
    /// If fewer bytes wait.
    pub fn consume(&mut self, count: usize) {
        assert!(count as u64 <= self.len(), "{count} of {} bytes are written", self.len());
        self.written += count;
        while let Some(part) = self.parts.front()
            && part.bytes().len() <= self.written
        {
            let len = part.bytes().len();
            self.written -= len;
            self.parts_len -= len as u64;
            self.parts.pop_front();
        }
        if self.parts.is_empty() && self.written > 0 {
            if self.written == self.tail.len() {
                self.tail.clear();
                self.written = 0;
            } else {
                // Rare: the socket took part of the tail. The rest becomes a part of its own.
                let tail = std::mem::take(&mut self.tail);
                self.push(Part::Bytes(tail));
            }
        }
    }

    /// Frees memory that only a burst needed, down to `bytes` bytes of buffer.
    pub fn shrink(&mut self, bytes: usize) {
        if self.is_empty() {
            self.parts.shrink_to(8);
            self.tail.shrink_to(bytes);
        }
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use std::sync::Arc;

    use broker::{Content, Envelope, MessageMeta};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const BODY: &[u8] = b"a body that is written from its message";

    fn message() -> Message {
        let envelope = Arc::new(Envelope::new("".into(), "q".into()));
        let content = Content::Framed { bytes: BODY, properties_len: 0, body_start: 0 };
        Message::new(envelope, MessageMeta::default(), content, None)
    }

    /// The next bytes of `outbox` in at most `slices` slices.
    fn next(outbox: &Outbox, slices: usize) -> Vec<u8> {
        let mut buffers = vec![IoSlice::new(&[]); slices];
        let filled = outbox.slices(&mut buffers);
        assert!(buffers[..filled].iter().all(|slice| !slice.is_empty()), "an empty slice");
        buffers[..filled].iter().flat_map(|slice| slice.to_vec()).collect()
    }

    #[derive(Clone, Debug)]
    enum Step {
        Append(Vec<u8>),
        Body(Range<usize>),
        /// A socket takes a part of what so many slices offer.
        Write(usize, prop::sample::Index),
        Shrink(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => vec(any::<u8>(), 0..40).prop_map(Step::Append),
            2 => (0..BODY.len(), 1..20_usize)
                .prop_map(|(start, len)| Step::Body(start..BODY.len().min(start + len))),
            4 => (1..5_usize, any::<prop::sample::Index>())
                .prop_map(|(slices, part)| Step::Write(slices, part)),
            1 => (0..64_usize).prop_map(Step::Shrink),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// A socket that takes any number of bytes at a time gets the appended bytes once and in order.
        #[test]
        fn outbox_writes_all_bytes_once_and_in_order(steps in vec(step(), 0..60)) {
            let message = message();
            let (mut filling, mut writing) = (Outbox::default(), Outbox::default());
            let (mut appended, mut written) = (Vec::new(), Vec::new());
            let write = |filling: &mut Outbox, writing: &mut Outbox, slices, part: &dyn Fn(usize) -> usize| {
                if writing.is_empty() {
                    filling.take_into(writing);
                    assert!(filling.is_empty(), "everything is taken");
                }
                let offered = next(writing, slices);
                let taken = offered[..part(offered.len())].to_vec();
                let before = writing.len();
                writing.consume(taken.len());
                assert_eq!(writing.len(), before - taken.len() as u64);
                taken
            };
            for step in steps {
                match step {
                    Step::Append(bytes) => {
                        filling.tail().extend_from_slice(&bytes);
                        appended.extend(bytes);
                    }
                    Step::Body(range) => {
                        filling.push_body(&message, range.clone());
                        appended.extend_from_slice(&BODY[range]);
                    }
                    Step::Write(slices, part) => {
                        let part = |len: usize| part.index(len + 1);
                        written.extend(write(&mut filling, &mut writing, slices, &part));
                    }
                    Step::Shrink(bytes) => {
                        filling.shrink(bytes);
                        writing.shrink(bytes);
                    }
                }
                let waiting = filling.len() + writing.len();
                prop_assert_eq!(waiting, (appended.len() - written.len()) as u64);
            }
            while filling.len() + writing.len() > 0 {
                written.extend(write(&mut filling, &mut writing, 8, &|len| len));
            }
            prop_assert_eq!(appended, written);
        }
    }

    #[test]
    fn outbox_writes_a_body_from_its_message() {
        let message = message();
        let mut outbox = Outbox::default();
        outbox.push_body(&message, 2..6);
        let mut slices = [IoSlice::new(&[])];
        assert_eq!(outbox.slices(&mut slices), 1);
        assert!(std::ptr::eq(slices[0].as_ptr(), message.body()[2..].as_ptr()), "it was copied");
    }

    #[test]
    fn outbox_keeps_its_buffer() {
        let (mut filling, mut writing) = (Outbox::default(), Outbox::default());
        filling.tail().extend_from_slice(&[7; 100]);
        let buffer = filling.tail().as_ptr();
        filling.take_into(&mut writing);
        writing.consume(100);
        filling.take_into(&mut writing);
        assert!(std::ptr::eq(buffer, filling.tail().as_ptr()), "a new buffer");
    }
}
