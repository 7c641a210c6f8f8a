//! The socket between two nodes.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio_rustls::TlsStream;

/// A socket between two nodes, with or without TLS.
#[derive(Debug)]
pub(crate) enum NodeSocket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The writing half of a socket between two nodes.
#[derive(Debug)]
pub(crate) enum WriteHalf {
    /// Any thread may write to it, as far as it takes something at once.
    Plain(Arc<OwnedWriteHalf>),
    Tls(tokio::io::WriteHalf<Box<TlsStream<TcpStream>>>),
}

impl WriteHalf {
    /// The socket, if any thread may write to it.
    pub(crate) fn shared(&self) -> Weak<OwnedWriteHalf> {
        match self {
            Self::Plain(socket) => Arc::downgrade(socket),
            Self::Tls(_) => Weak::new(),
        }
    }
}

impl NodeSocket {
    /// The two halves of the socket.
    pub(crate) fn split(self) -> (Box<dyn AsyncRead + Unpin + Send>, WriteHalf) {
        match self {
            Self::Plain(socket) => {
                let (reads, writes) = socket.into_split();
                (Box::new(reads), WriteHalf::Plain(Arc::new(writes)))
            }
            Self::Tls(socket) => {
                let (reads, writes) = tokio::io::split(socket);
                (Box::new(reads), WriteHalf::Tls(writes))
            }
        }
    }
}

impl AsyncRead for NodeSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_read(context, room),
            Self::Tls(socket) => Pin::new(socket).poll_read(context, room),
        }
    }
}

impl AsyncWrite for NodeSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write(context, bytes),
            Self::Tls(socket) => Pin::new(socket).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_flush(context),
            Self::Tls(socket) => Pin::new(socket).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(context),
            Self::Tls(socket) => Pin::new(socket).poll_shutdown(context),
        }
    }
}
