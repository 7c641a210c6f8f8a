//! The bytes of one connection that are read and not understood yet.
//!
//! A buffer is only held while there is something in it: idle connections have none. Buffers come
//! from and go back to a small pool of each worker thread.

use std::cell::RefCell;
use std::io;

use tokio::net::tcp::OwnedReadHalf;

use crate::limits::{POOLED_BUFFERS_MAX, READ_BYTES};

thread_local! {
    static POOL: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes between what was read and what was understood.
#[derive(Default, Debug)]
pub(crate) struct ReadBuffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl ReadBuffer {
    /// Reads what the socket has, as far as it fits; the number of bytes, 0 at the end of the stream.
    pub(crate) fn read(&mut self, socket: &OwnedReadHalf) -> io::Result<usize> {
        self.make_room();
        let room = self.bytes.get_mut(self.end..).unwrap_or_default();
        match socket.try_read(room) {
            Ok(count) => {
                self.end += count;
                Ok(count)
            }
            Err(error) => {
                self.release_if_empty();
                Err(error)
            }
        }
    }

    /// What is not understood yet.
    pub(crate) fn unread(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// The first `count` bytes are understood.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = self.end.min(self.start + count);
        self.release_if_empty();
    }

    fn make_room(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = POOL.with_borrow_mut(Vec::pop).unwrap_or_else(|| vec![0; READ_BYTES]);
        }
        if self.end < self.bytes.len() {
            return;
        }
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        } else {
            // What waits is larger than the buffer: a frame with its content. The session bounds it.
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
    }

    fn release_if_empty(&mut self) {
        if self.start < self.end {
            return;
        }
        self.start = 0;
        self.end = 0;
        if self.bytes.is_empty() {
            return;
        }
        let bytes = std::mem::take(&mut self.bytes);
        if bytes.len() == READ_BYTES {
            POOL.with_borrow_mut(|pool| {
                if pool.len() < POOLED_BUFFERS_MAX {
                    pool.push(bytes);
                }
            });
        }
    }
}
