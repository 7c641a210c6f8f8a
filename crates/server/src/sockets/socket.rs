//! The socket of an AMQP client, with or without TLS, split into two halves.

use std::io::{self, IoSlice};

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::tls::{TlsReader, TlsWriter};

/// The read half.
#[derive(Debug)]
pub(crate) enum Reader {
    Tcp(OwnedReadHalf),
    /// Boxed, because most connections do not use TLS.
    Tls(Box<TlsReader>),
}

impl Reader {
    /// Waits until there may be data to read.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.readable().await,
            Self::Tls(socket) => socket.readable().await,
        }
    }

    /// Reads available data into `room` and returns its length; 0 at the end of the stream.
    pub(crate) fn try_read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.try_read(room),
            Self::Tls(socket) => socket.try_read(room),
        }
    }

    /// True if reading produced output for the writer, such as a TLS alert.
    pub(crate) fn wants_write(&self) -> bool {
        match self {
            Self::Tcp(_) => false,
            Self::Tls(socket) => socket.wants_write(),
        }
    }

    /// The TCP socket.
    pub(crate) fn tcp(&self) -> &TcpStream {
        match self {
            Self::Tcp(socket) => socket.as_ref(),
            Self::Tls(socket) => socket.socket().as_ref(),
        }
    }
}

/// The write half.
#[derive(Debug)]
pub(crate) enum Writer {
    Tcp(OwnedWriteHalf),
    Tls(Box<TlsWriter>),
}

impl Writer {
    /// Accepts some of the bytes without waiting, and returns their number.
    pub(crate) fn try_write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.try_write_vectored(slices),
            Self::Tls(socket) => socket.encipher(slices),
        }
    }

    /// Waits until the socket may accept bytes.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.writable().await,
            Self::Tls(_) => Ok(()),
        }
    }

    /// Sends the accepted bytes, and the socket's own output.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(_) => Ok(()),
            Self::Tls(socket) => socket.flush().await,
        }
    }

    /// Shrinks the buffer after a burst.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        match self {
            Self::Tcp(_) => {}
            Self::Tls(socket) => socket.shrink(bytes),
        }
    }

    /// Closes the write side.
    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.shutdown().await,
            Self::Tls(socket) => socket.shutdown().await,
        }
    }
}
