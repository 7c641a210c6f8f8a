//! The two halves of a TLS connection, each used by a task of its own.
//!
//! They share the state of the connection behind a lock that is held while octets are enciphered or
//! deciphered, and never while the socket is waited for.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::ServerConnection;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::limits::TLS_READ_BYTES;

/// The halves of a connection whose handshake is over.
pub(crate) fn split(socket: TcpStream, connection: ServerConnection) -> (TlsReader, TlsWriter) {
    let (reads, writes) = socket.into_split();
    let connection = Arc::new(Mutex::new(connection));
    let reader = TlsReader {
        socket: reads,
        connection: Arc::clone(&connection),
        enciphered: Vec::new(),
        start: 0,
        // The client may have sent something with the end of its handshake.
        has_more: true,
        has_ended: false,
    };
    (reader, TlsWriter { socket: writes, connection, enciphered: Vec::new() })
}

/// What the client sends.
#[derive(Debug)]
pub(crate) struct TlsReader {
    socket: OwnedReadHalf,
    connection: Arc<Mutex<ServerConnection>>,
    /// Octets of the socket, from `start` on not yet deciphered.
    enciphered: Vec<u8>,
    start: usize,
    /// There may be something to read without the socket.
    has_more: bool,
    has_ended: bool,
}

impl TlsReader {
    /// The socket below.
    pub(crate) fn socket(&self) -> &OwnedReadHalf {
        &self.socket
    }

    /// Waits until there may be something to read.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        if self.has_more { Ok(()) } else { self.socket.readable().await }
    }

    /// Reads what there is, as far as it fits; 0 at the end of the stream. It may leave something for the
    /// writer to send.
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
                // The client has gone without a word, as many do.
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

    /// Whether the connection itself has something to say.
    pub(crate) fn wants_write(&self) -> bool {
        self.connection.lock().wants_write()
    }
}

/// What the client is sent.
#[derive(Debug)]
pub(crate) struct TlsWriter {
    socket: OwnedWriteHalf,
    connection: Arc<Mutex<ServerConnection>>,
    enciphered: Vec<u8>,
}

impl TlsWriter {
    /// Takes some of the octets; how many.
    pub(crate) fn encipher(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.connection.lock().writer().write_vectored(slices)
    }

    /// Sends what is enciphered, and what the connection itself has to say.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        {
            let mut connection = self.connection.lock();
            while connection.wants_write() {
                connection.write_tls(&mut self.enciphered)?;
            }
        }
        if !self.enciphered.is_empty() {
            self.socket.write_all(&self.enciphered).await?;
            self.enciphered.clear();
        }
        Ok(())
    }

    /// Gives back what a burst has made the buffer grow to.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        self.enciphered.shrink_to(bytes);
    }

    /// Says that nothing more will come.
    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        self.connection.lock().send_close_notify();
        self.flush().await?;
        self.socket.shutdown().await
    }
}
