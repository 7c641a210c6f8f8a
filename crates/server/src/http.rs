//! The HTTP listener: how many connections there may be, and how long a client may keep one waiting.
//!
//! hyper has no time limits of its own here. One rule stands for all of them: a connection to which
//! nothing could be written for a while is closed, whether its client sends its request drop by drop,
//! does not read the answer, or is idle.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

use crate::http_socket::HttpStream;
use crate::limits::{HTTP_CONNECTIONS_MAX, HTTP_TIMEOUT};
use crate::listener::Listener;
use crate::tls::Tls;

/// Accepts HTTP clients, so many at a time.
#[derive(Debug)]
pub(crate) struct HttpListener {
    listener: Listener,
    tls: Option<Arc<Tls>>,
    slots: Arc<Semaphore>,
}

impl HttpListener {
    pub(crate) fn new(listener: Listener, tls: Option<Arc<Tls>>) -> Self {
        Self { listener, tls, slots: Arc::new(Semaphore::new(HTTP_CONNECTIONS_MAX)) }
    }
}

impl axum::serve::Listener for HttpListener {
    type Io = HttpSocket;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (HttpSocket, SocketAddr) {
        // The semaphore is never closed.
        let slot = Arc::clone(&self.slots).acquire_owned().await.ok();
        let (socket, peer) = self.listener.accept().await;
        // Until the handshake is over.
        let patience = self.tls.as_deref().map_or(HTTP_TIMEOUT, Tls::handshake_timeout);
        let patience = Box::pin(tokio::time::sleep(patience));
        let socket = HttpStream::new(socket, self.tls.as_deref(), peer);
        (HttpSocket { socket, patience, _slot: slot }, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// The socket of an HTTP client; fails when the client has taken nothing for too long.
pub(crate) struct HttpSocket {
    socket: HttpStream,
    patience: Pin<Box<Sleep>>,
    _slot: Option<OwnedSemaphorePermit>,
}

impl HttpSocket {
    fn socket(&mut self) -> Pin<&mut HttpStream> {
        Pin::new(&mut self.socket)
    }

    /// What comes of an attempt, or that the time is over.
    fn in_time<T>(
        &mut self,
        attempt: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if attempt.is_pending() {
            ready!(self.patience.as_mut().poll(context));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        attempt
    }

    /// The same for an attempt to write, which gives the client new time when it succeeds.
    fn written(
        &mut self,
        attempt: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if matches!(attempt, Poll::Ready(Ok(_))) {
            self.patience.as_mut().reset(Instant::now() + HTTP_TIMEOUT);
        }
        self.in_time(attempt, context)
    }
}

impl AsyncRead for HttpSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let was_in_handshake = self.socket.is_in_handshake();
        let attempt = self.socket().poll_read(context, buffer);
        if was_in_handshake && !self.socket.is_in_handshake() {
            self.patience.as_mut().reset(Instant::now() + HTTP_TIMEOUT);
        }
        self.in_time(attempt, context)
    }
}

impl AsyncWrite for HttpSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let attempt = self.socket().poll_write(context, bytes);
        self.written(attempt, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let attempt = self.socket().poll_write_vectored(context, slices);
        self.written(attempt, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket().poll_shutdown(context)
    }
}
