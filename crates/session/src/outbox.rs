//! Bytes on their way to a client, in order.
//!
//! Most of them are copied into one growing buffer. Long bodies are not: they stay in their message
//! and are written from there.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::Range;

use broker::Message;

/// Bytes that wait for a socket.
#[derive(Default, Debug)]
pub struct Outbox {
    /// Closed parts, first to write in front.
    parts: VecDeque<Part>,
    /// Bytes in `parts`.
    parts_len: u64,
    /// What is appended to; written last.
    tail: Vec<u8>,
    /// Bytes of the first part that are written.
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
    /// How many bytes wait.
    pub fn len(&self) -> u64 {
        self.parts_len - self.written as u64 + self.tail.len() as u64
    }

    /// Whether nothing waits.
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

    /// Moves everything into `writing`, which must be empty, and keeps its buffer to append to.
    pub fn take_into(&mut self, writing: &mut Self) {
        debug_assert!(writing.is_empty(), "what was taken before is written");
        std::mem::swap(self, writing);
    }

    /// Fills `slices` with what to write next and returns how many it filled.
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

    /// Forgets the next `count` bytes: they are written.
    pub fn consume(&mut self, count: usize) {
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

    /// Gives memory back that only a burst needed.
    pub fn shrink(&mut self, bytes: usize) {
        if self.is_empty() {
            self.parts.shrink_to(8);
            self.tail.shrink_to(bytes);
        }
    }
}
