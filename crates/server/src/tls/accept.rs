//! The handshake with a client of AMQP.

use std::net::SocketAddr;

use tokio::net::TcpStream;

use super::{Tls, TlsPeer, TlsReader, TlsWriter, handshake_problem, split};

impl Tls {
    /// Shakes hands, in time; none if that fails, which the log tells.
    pub(crate) async fn accept(
        &self,
        socket: TcpStream,
        peer: SocketAddr,
    ) -> Option<(TlsReader, TlsWriter, TlsPeer)> {
        let handshake = self.acceptor().accept(socket);
        let problem = match tokio::time::timeout(self.handshake_timeout, handshake).await {
            Ok(Ok(stream)) => {
                let tls = TlsPeer::of(stream.get_ref().1);
                let (reads, writes) = split(stream);
                return Some((reads, writes, tls));
            }
            Ok(Err(error)) => handshake_problem(&error),
            Err(_) => "the client takes too long".to_owned(),
        };
        tracing::warn!(%peer, what = self.what, reason = problem, "TLS handshake failed");
        None
    }
}
