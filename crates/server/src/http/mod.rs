//! The HTTP listener: limits on the number of connections and on the time that an idle client keeps one.
//!
//! hyper has no time limits of its own here. One rule covers all cases: a connection to which nothing could
//! be written for a while is closed, whether its client sends its request byte by byte, does not read the
//! answer, or is idle; but not while the client waits for the answer to a request that has arrived whole. A connection
//! is closed earlier if another one needs its place.

pub(crate) mod path_prefix;
pub(crate) mod socket;

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody as _};
use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, CONTENT_TYPE};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures::{StreamExt as _, stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::http::socket::HttpStream;
use crate::limits::HTTP_TIMEOUT;
use crate::sockets::admission::{Admission, Admitted, Ticket};
use crate::sockets::descriptors::http_connections_max;
use crate::sockets::listener::Listener;
use crate::sockets::refusals::Refusals;
use crate::tls::Tls;

/// The reason for which a connection ends that gives way.
const GAVE_WAY: &str =
    r#"{"error":"unavailable","reason":"too many connections: this one gives way to another one"}"#;

/// Accepts HTTP clients, up to a limit.
#[derive(Debug)]
pub(crate) struct HttpListener {
    listener: Listener,
    tls: Option<Arc<Tls>>,
    admission: Arc<Admission>,
    refusals: Arc<Refusals>,
}

impl HttpListener {
    pub(crate) fn new(listener: Listener, tls: Option<Arc<Tls>>, refusals: Arc<Refusals>) -> Self {
        let admission = Arc::new(Admission::new(http_connections_max()));
        Self { listener, tls, admission, refusals }
    }
}

/// The client of a request's connection.
#[derive(Clone, Debug)]
pub(crate) struct HttpPeer {
    address: SocketAddr,
    connection: Arc<Admitted>,
}

impl axum::serve::Listener for HttpListener {
    type Io = HttpSocket;
    type Addr = HttpPeer;

    async fn accept(&mut self) -> (HttpSocket, HttpPeer) {
        loop {
            let (socket, address) = self.listener.accept(&self.admission, &self.refusals).await;
            if self.admission.is_full() {
                // Connections accepted last may read their requests before they are evicted.
                tokio::task::yield_now().await;
            }
            let Some(ticket) = self.admission.admit(address.ip()) else { continue };
            // The time limit of the handshake.
            let timeout = self.tls.as_deref().map_or(HTTP_TIMEOUT, Tls::handshake_timeout);
            let timeout = Box::pin(tokio::time::sleep(timeout));
            let socket = HttpStream::new(socket, self.tls.as_deref(), address);
            let connection = Arc::clone(ticket.connection());
            let evicted = {
                let connection = Arc::clone(&connection);
                Box::pin(async move { connection.evicted().await })
            };
            return (
                HttpSocket { socket, timeout, evicted, ticket },
                HttpPeer { address, connection },
            );
        }
    }

    fn local_addr(&self) -> io::Result<HttpPeer> {
        let address = self.listener.local_addr()?;
        Ok(HttpPeer { address, connection: Arc::new(Admitted::new(address.ip())) })
    }
}

/// Passes the client's address to the routes, and the activity of the connection to the admission.
pub(crate) async fn follow(
    ConnectInfo(HttpPeer { address, connection }): ConnectInfo<HttpPeer>,
    mut request: Request,
    next: Next,
) -> Response {
    connection.progressed();
    request.extensions_mut().insert(Arc::clone(&connection));
    request.extensions_mut().insert(ConnectInfo(address));
    let request = note_arrival(request, &connection);
    let response = tokio::select! {
        response = next.run(request) => response,
        // Fails the connection with its next byte.
        () = connection.evicted() => gave_way(),
    };
    connection.waits_for_client();
    response
}

/// The answer to a request whose connection gives way to another one: 503, and the end of the connection.
fn gave_way() -> Response {
    let headers = [(CONNECTION, "close"), (CONTENT_TYPE, "application/json")];
    (StatusCode::SERVICE_UNAVAILABLE, headers, GAVE_WAY).into_response()
}

/// Notes on the connection of a request when all of it has arrived.
fn note_arrival(request: Request, connection: &Arc<Admitted>) -> Request {
    if request.body().is_end_stream() {
        connection.works();
        return request;
    }
    let connection = Arc::clone(connection);
    let end = stream::poll_fn(move |_| {
        connection.works();
        Poll::Ready(None)
    });
    request.map(|body| Body::from_stream(body.into_data_stream().chain(end)))
}

/// The socket of an HTTP client; fails if the client has not read anything for too long, or another
/// connection needs the place.
pub(crate) struct HttpSocket {
    socket: HttpStream,
    timeout: Pin<Box<Sleep>>,
    /// Completes when another connection needs the place of this one.
    evicted: Pin<Box<dyn Future<Output = ()> + Send>>,
    ticket: Ticket,
}

impl HttpSocket {
    fn socket(&mut self) -> Pin<&mut HttpStream> {
        Pin::new(&mut self.socket)
    }

    /// The result of an attempt; an error if the time is over or the place is taken.
    fn in_time<T>(
        &mut self,
        attempt: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if self.ticket.connection().is_evicted() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        if attempt.is_pending() {
            if self.evicted.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            ready!(self.timeout.as_mut().poll(context));
            if !self.ticket.connection().is_worked_for() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            // A client that waits for the broker is not slow.
            self.timeout.as_mut().reset(Instant::now() + HTTP_TIMEOUT);
            ready!(self.timeout.as_mut().poll(context));
        }
        attempt
    }

    /// The result of an attempt to write; success restarts the time limit.
    fn written(
        &mut self,
        attempt: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if matches!(attempt, Poll::Ready(Ok(_))) {
            self.timeout.as_mut().reset(Instant::now() + HTTP_TIMEOUT);
            self.ticket.connection().progressed();
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
            self.timeout.as_mut().reset(Instant::now() + HTTP_TIMEOUT);
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

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;

    use super::*;

    /// A client that sends nothing, and its connection.
    async fn silent() -> (TcpStream, HttpSocket) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, peer) = listener.accept().await.unwrap();
        let socket = HttpSocket {
            socket: HttpStream::new(socket, None, peer),
            timeout: Box::pin(tokio::time::sleep(HTTP_TIMEOUT)),
            evicted: Box::pin(std::future::pending()),
            ticket: Arc::new(Admission::new(1)).admit(peer.ip()).unwrap(),
        };
        (client, socket)
    }

    #[tokio::test(start_paused = true)]
    async fn client_that_waits_for_the_broker_is_not_slow() {
        let (_client, mut socket) = silent().await;
        let connection = Arc::clone(socket.ticket.connection());
        connection.works();
        let mut octet = [0];
        assert!(timeout(10 * HTTP_TIMEOUT, socket.read(&mut octet)).await.is_err());
        connection.waits_for_client();
        let error = socket.read(&mut octet).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn request_has_arrived_with_the_end_of_its_body() {
        let connection = Arc::new(Admitted::new([127, 0, 0, 1].into()));
        let request = note_arrival(Request::new(Body::from("all of it")), &connection);
        assert!(!connection.is_worked_for());
        assert_eq!(to_bytes(request.into_body(), 100).await.unwrap(), "all of it");
        assert!(connection.is_worked_for());
        connection.waits_for_client();
        note_arrival(Request::new(Body::empty()), &connection);
        assert!(connection.is_worked_for());
    }
}
