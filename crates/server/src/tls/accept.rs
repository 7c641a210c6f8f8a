//! The TLS handshake with an AMQP client.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::handshake_records::open_envelopes;
use super::{Tls, TlsPeer, TlsReader, TlsWriter, handshake_error, split};

impl Tls {
    /// Performs the handshake within the timeout; none if it fails, which is logged.
    pub(crate) async fn accept(
        &self,
        mut socket: TcpStream,
        peer: SocketAddr,
    ) -> Option<(TlsReader, TlsWriter, TlsPeer)> {
        let handshake = shake_hands(self.current(), &mut socket);
        let problem = match tokio::time::timeout(self.handshake_timeout, handshake).await {
            Ok(Ok(connection)) => {
                let tls = TlsPeer::of(&connection);
                let (reads, writes) = split(socket, connection);
                return Some((reads, writes, tls));
            }
            Ok(Err(error)) => handshake_error(&error),
            Err(_) => "the client takes too long".to_owned(),
        };
        tracing::warn!(%peer, what = self.what, reason = problem, "TLS handshake failed");
        None
    }
}

/// Exchanges the handshake messages. Data that the client has sent after them stays in the connection.
///
/// # Errors
/// If the socket fails or the client's messages are invalid; in the second case the client gets an alert.
async fn shake_hands(
    config: Arc<ServerConfig>,
    socket: &mut TcpStream,
) -> io::Result<ServerConnection> {
    let mut connection = ServerConnection::new(config).map_err(io::Error::other)?;
    loop {
        send(&mut connection, socket).await?;
        if !connection.is_handshaking() {
            return Ok(connection);
        }
        socket.readable().await?;
        match connection.read_tls(&mut Received(socket)) {
            Ok(0) => {
                let kind = io::ErrorKind::UnexpectedEof;
                return Err(io::Error::new(kind, "tls handshake eof"));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        }
        if let Err(error) = connection.process_new_packets() {
            // Sends the alert; an error is ignored, because the client may be gone.
            let _ = send(&mut connection, socket).await;
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
    }
}

/// Sends the pending records of the connection.
async fn send(connection: &mut ServerConnection, socket: &mut TcpStream) -> io::Result<()> {
    let (mut records, mut bytes) = (Vec::new(), Vec::new());
    while connection.wants_write() {
        connection.write_tls(&mut records)?;
    }
    open_envelopes(&records, &mut bytes);
    socket.write_all(&bytes).await
}

/// Reads the data that a socket has received, without waiting.
struct Received<'a>(&'a TcpStream);

impl io::Read for Received<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(room)
    }
}
