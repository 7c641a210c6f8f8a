//! The read and write halves of a TLS connection, each used by a task of its own.
//!
//! The halves share the state of the connection behind a lock, which is held while bytes are encrypted or
//! decrypted and never while a task waits for the socket.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::Connection;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use crate::limits::{TLS_READ_BYTES, UNREAD_TIMEOUT};

/// Splits a connection after its handshake.
pub(crate) fn split(
    socket: TcpStream,
    connection: impl Into<Connection>,
) -> (TlsReader, TlsWriter) {
    let (reads, writes) = socket.into_split();
    let connection = Arc::new(Mutex::new(connection.into()));
    let reader = TlsReader {
        socket: reads,
        connection: Arc::clone(&connection),
        enciphered: Vec::new(),
        start: 0,
        // The client may have sent data together with the end of its handshake.
        has_more: true,
        has_ended: false,
    };
    (reader, TlsWriter { socket: writes, connection, enciphered: Vec::new() })
}

/// The read half of a TLS connection.
#[derive(Debug)]
pub(crate) struct TlsReader {
    socket: OwnedReadHalf,
    connection: Arc<Mutex<Connection>>,
    /// Bytes from the socket; those from `start` on are not decrypted yet.
    enciphered: Vec<u8>,
    start: usize,
    /// True if there may be data to read without the socket.
    has_more: bool,
    has_ended: bool,
}

impl TlsReader {
    /// The underlying socket.
    pub(crate) fn socket(&self) -> &OwnedReadHalf {
        &self.socket
    }

    /// Waits until there may be data to read.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        if self.has_more { Ok(()) } else { self.socket.readable().await }
    }

    /// Reads available data into `room` and returns its length; 0 at the end of the stream. Reading may
    /// produce output for the writer.
    pub(crate) fn try_read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        let mut connection = self.connection.lock();
        loop {
            let left = room.get_mut(filled..).unwrap_or_default();
            if left.is_empty() {
                self.has_more = true;
                return Ok(filled);
            }
            match connection.reader().read(left) {
                Ok(0) => self.has_ended = true,
                Ok(count) => {
                    filled += count;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The client closed the socket without `close_notify`, as many do.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => self.has_ended = true,
                Err(error) => return Err(error),
            }
            if self.has_ended {
                self.has_more = true;
                return Ok(filled);
            }
            if self.start == self.enciphered.len() {
                self.enciphered.resize(TLS_READ_BYTES, 0);
                let read = self.socket.try_read(&mut self.enciphered);
                self.start = 0;
                self.enciphered.truncate(*read.as_ref().unwrap_or(&0));
                match read {
                    Ok(0) => self.has_ended = true,
                    Ok(_) => {}
                    Err(error) => {
                        self.has_more = false;
                        self.enciphered = Vec::new();
                        let is_over = error.kind() == io::ErrorKind::WouldBlock && filled > 0;
                        return if is_over { Ok(filled) } else { Err(error) };
                    }
                }
            }
            let mut input = self.enciphered.get(self.start..).unwrap_or_default();
            self.start += connection.read_tls(&mut input)?;
            connection
                .process_new_packets()
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }

    /// True if the connection has output of its own to send, such as an alert.
    pub(crate) fn wants_write(&self) -> bool {
        self.connection.lock().wants_write()
    }
}

/// The write half of a TLS connection.
#[derive(Debug)]
pub(crate) struct TlsWriter {
    socket: OwnedWriteHalf,
    connection: Arc<Mutex<Connection>>,
    enciphered: Vec<u8>,
}

impl TlsWriter {
    /// Encrypts some of the bytes and returns their number.
    pub(crate) fn encipher(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.connection.lock().writer().write_vectored(slices)
    }

    /// Sends the encrypted bytes and the connection's own output.
    ///
    /// # Errors
    /// If the socket fails, or takes nothing for [`UNREAD_TIMEOUT`] ([`io::ErrorKind::TimedOut`]).
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        {
            let mut connection = self.connection.lock();
            while connection.wants_write() {
                connection.write_tls(&mut self.enciphered)?;
            }
        }
        if !self.enciphered.is_empty() {
            let mut unsent = self.enciphered.as_slice();
            // Each write that takes something is progress, however slowly the peer reads.
            while !unsent.is_empty() {
                let count = timeout(UNREAD_TIMEOUT, self.socket.write(unsent)).await??;
                match unsent.get(count..) {
                    Some(rest) if count > 0 => unsent = rest,
                    _ => return Err(io::ErrorKind::WriteZero.into()),
                }
            }
            self.enciphered.clear();
        }
        Ok(())
    }

    /// Shrinks the buffer after a burst.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        self.enciphered.shrink_to(bytes);
    }

    /// Sends `close_notify` and closes the write side.
    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        self.connection.lock().send_close_notify();
        self.flush().await?;
        self.socket.shutdown().await
    }
}
