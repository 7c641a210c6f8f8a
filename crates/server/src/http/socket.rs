//! The socket of an HTTP client, with or without TLS.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::Accept;
use tokio_rustls::server::TlsStream;

use crate::tls::{Tls, handshake_error};

/// A socket. The TLS handshake is a part of the first read, so that it delays no other client.
pub(crate) enum HttpStream {
    Tcp(TcpStream),
    Handshake { accept: Box<Accept<TcpStream>>, what: &'static str, peer: SocketAddr },
    Tls(Box<TlsStream<TcpStream>>),
}

impl HttpStream {
    /// Creates the stream for an accepted socket.
    pub(crate) fn new(socket: TcpStream, tls: Option<&Tls>, peer: SocketAddr) -> Self {
        match tls {
            None => Self::Tcp(socket),
            Some(tls) => Self::Handshake {
                accept: Box::new(tls.acceptor().accept(socket)),
                what: tls.what(),
                peer,
            },
        }
    }

    /// True while the TLS handshake is not complete.
    pub(crate) const fn is_in_handshake(&self) -> bool {
        matches!(self, Self::Handshake { .. })
    }

    /// Drives the handshake, if there is one.
    fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self::Handshake { accept, what, peer } = self else { return Poll::Ready(Ok(())) };
        match ready!(Pin::new(&mut **accept).poll(context)) {
            Ok(stream) => {
                *self = Self::Tls(Box::new(stream));
                Poll::Ready(Ok(()))
            }
            Err(error) => {
                let reason = handshake_error(&error);
                tracing::warn!(%peer, what, reason, "TLS handshake failed");
                Poll::Ready(Err(error))
            }
        }
    }
}

impl AsyncRead for HttpStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_handshake(context))?;
        match &mut *self {
            Self::Tcp(socket) => Pin::new(socket).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_read(context, buffer),
            Self::Handshake { .. } => Poll::Pending,
        }
    }
}

impl AsyncWrite for HttpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_handshake(context))?;
        match &mut *self {
            Self::Tcp(socket) => Pin::new(socket).poll_write_vectored(context, slices),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write_vectored(context, slices),
            Self::Handshake { .. } => Poll::Pending,
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tcp(socket) => Pin::new(socket).poll_flush(context),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_flush(context),
            Self::Handshake { .. } => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tcp(socket) => Pin::new(socket).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_shutdown(context),
            Self::Handshake { .. } => Poll::Ready(Ok(())),
        }
    }
}
