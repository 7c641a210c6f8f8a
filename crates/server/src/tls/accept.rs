//! The handshake with a client of AMQP.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::handshake_records::open_envelopes;
use super::{Tls, TlsPeer, TlsReader, TlsWriter, handshake_error, split};

impl Tls {
    /// Shakes hands, in time; none if that fails, which the log tells.
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

/// Exchanges the messages of a handshake. What the client has sent behind them waits in the connection.
///
/// # Errors
/// What is wrong with the socket or with what the client says. The client is told of the latter.
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
            // The alert that says so; a client that is gone does not read it.
            let _ = send(&mut connection, socket).await;
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
    }
}

/// Sends what the connection has to say.
async fn send(connection: &mut ServerConnection, socket: &mut TcpStream) -> io::Result<()> {
    let (mut records, mut octets) = (Vec::new(), Vec::new());
    while connection.wants_write() {
        connection.write_tls(&mut records)?;
    }
    open_envelopes(&records, &mut octets);
    socket.write_all(&octets).await
}

/// What a socket has received, without waiting for more.
struct Received<'a>(&'a TcpStream);

impl io::Read for Received<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(room)
    }
}
