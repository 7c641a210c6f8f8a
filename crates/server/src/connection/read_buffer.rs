//! The bytes of a connection that are read but not parsed yet.
//!
//! A connection holds a large buffer only while its socket delivers data; a waiting connection keeps only the
//! beginning of the next frame. Each worker thread has a small pool of buffers.

use std::cell::RefCell;
use std::io;

use crate::limits::{PARKED_BYTES_MAX, POOLED_BUFFERS_MAX, READ_BYTES};
use crate::sockets::socket::Reader;

thread_local! {
    static POOL: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes that are read but not parsed.
#[derive(Default, Debug)]
pub(crate) struct ReadBuffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

/// The result of a read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    /// The number of bytes; zero at the end of the stream.
    pub(crate) count: usize,
    /// True if the socket had no more data.
    pub(crate) is_all: bool,
}

impl ReadBuffer {
    /// Reads available data that fits into the buffer, up to `max` bytes.
    pub(crate) fn read(&mut self, socket: &mut Reader, max: usize) -> io::Result<Read> {
        self.make_room();
        let room_end = self.bytes.len().min(self.end + max);
        let room = self.bytes.get_mut(self.end..room_end).unwrap_or_default();
        match socket.try_read(room) {
            Ok(count) => {
                self.end += count;
                Ok(Read { count, is_all: self.end < room_end })
            }
            Err(error) => {
                self.park();
                Err(error)
            }
        }
    }

    /// The bytes not parsed yet.
    pub(crate) fn unread(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// Marks the first `count` bytes as parsed.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = self.end.min(self.start + count);
    }

    /// Marks all bytes as parsed.
    pub(crate) fn consume_all(&mut self) {
        self.start = self.end;
    }

    /// Reads and discards available data; false at the end of the stream.
    pub(crate) fn discard(&mut self, socket: &mut Reader) -> bool {
        let result = self.read(socket, READ_BYTES);
        self.consume_all();
        self.park();
        match result {
            Ok(read) => read.count > 0,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }

    /// Returns the buffer to the pool if few bytes are not parsed yet, because the next read may be far away.
    pub(crate) fn park(&mut self) {
        let unread = self.unread();
        if unread.len() > PARKED_BYTES_MAX || self.bytes.len() < READ_BYTES {
            return;
        }
        let parked = unread.to_vec();
        self.start = 0;
        self.end = parked.len();
        let bytes = std::mem::replace(&mut self.bytes, parked);
        if bytes.len() == READ_BYTES {
            POOL.with_borrow_mut(|pool| {
                if pool.len() < POOLED_BUFFERS_MAX {
                    pool.push(bytes);
                }
            });
        }
    }

    fn make_room(&mut self) {
        if self.bytes.len() < READ_BYTES {
            let parked = std::mem::take(&mut self.bytes);
            self.bytes = POOL.with_borrow_mut(Vec::pop).unwrap_or_else(|| vec![0; READ_BYTES]);
            if let Some(front) = self.bytes.get_mut(..parked.len()) {
                front.copy_from_slice(&parked);
            }
        }
        if self.end < self.bytes.len() {
            return;
        }
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        } else {
            // A frame with its content is larger than the buffer; the session bounds its size.
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// Reads until the buffer holds `len` bytes.
    async fn read_until(buffer: &mut ReadBuffer, socket: &mut Reader, len: usize) {
        while buffer.unread().len() < len {
            socket.readable().await.unwrap();
            let result = buffer.read(socket, READ_BYTES);
            assert!(result.is_ok() || result.unwrap_err().kind() == io::ErrorKind::WouldBlock);
        }
    }

    #[tokio::test]
    async fn read_buffer_parks_partial_frames_in_little_memory() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, _) = listener.accept().await.unwrap();
        let (socket, _writes) = socket.into_split();
        let mut socket = Reader::Tcp(socket);
        let mut buffer = ReadBuffer::default();

        client.write_all(b"understood, and a ha").await.unwrap();
        read_until(&mut buffer, &mut socket, 20).await;
        buffer.consume(12);
        buffer.park();
        assert_eq!((buffer.unread(), buffer.bytes.len()), (&b"and a ha"[..], 8));
        client.write_all(b"lf").await.unwrap();
        read_until(&mut buffer, &mut socket, 10).await;
        assert_eq!((buffer.unread(), buffer.bytes.len()), (&b"and a half"[..], READ_BYTES));
        buffer.consume(10);
        buffer.park();
        assert!(buffer.bytes.is_empty());

        let large = vec![7; PARKED_BYTES_MAX + 1];
        client.write_all(&large).await.unwrap();
        read_until(&mut buffer, &mut socket, large.len()).await;
        buffer.park();
        assert_eq!((buffer.unread(), buffer.bytes.len()), (large.as_slice(), READ_BYTES));

        drop(client);
        assert!(!buffer.discard(&mut socket), "the stream has ended");
    }
}
