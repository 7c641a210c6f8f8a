//! The socket of an AMQP client, with or without TLS, in two halves.

use std::io::{self, IoSlice};

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::tls::{TlsReader, TlsWriter};

/// The half that is read.
#[derive(Debug)]
pub(crate) enum Reader {
    Tcp(OwnedReadHalf),
    /// Boxed: most connections are without it.
    Tls(Box<TlsReader>),
}

impl Reader {
    /// Waits until there may be something to read.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.readable().await,
            Self::Tls(socket) => socket.readable().await,
        }
    }

    /// Reads what there is, as far as it fits; 0 at the end of the stream.
    pub(crate) fn try_read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.try_read(room),
            Self::Tls(socket) => socket.try_read(room),
        }
    }

    /// Whether reading has left something for the writer to send.
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

/// The half that is written.
#[derive(Debug)]
pub(crate) enum Writer {
    Tcp(OwnedWriteHalf),
    Tls(Box<TlsWriter>),
}

impl Writer {
    /// Takes some of the octets, if it can without waiting; how many.
    pub(crate) fn try_write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.try_write_vectored(slices),
            Self::Tls(socket) => socket.encipher(slices),
        }
    }

    /// Waits until it may take some.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.writable().await,
            Self::Tls(_) => Ok(()),
        }
    }

    /// Sends what it has taken, and what the socket itself has to say.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(_) => Ok(()),
            Self::Tls(socket) => socket.flush().await,
        }
    }

    /// Gives back what a burst has made a buffer grow to.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        match self {
            Self::Tcp(_) => {}
            Self::Tls(socket) => socket.shrink(bytes),
        }
    }

    /// Says that nothing more will come.
    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.shutdown().await,
            Self::Tls(socket) => socket.shutdown().await,
        }
    }
}
