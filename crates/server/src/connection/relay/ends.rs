//! The two sockets of a relay.

use std::io::{self, IoSlice};
use std::sync::Arc;

use rustix::net::sockopt;
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

use crate::cluster::{NodeSocket, NodeStream, StreamSlot};
use crate::limits::{STREAM_PROBE_AFTER, STREAM_PROBE_INTERVAL, STREAM_PROBES_MAX};
use crate::sockets::socket::{Reader, Writer};
use crate::tls;

/// A client that the leader of its vhost has adopted.
#[derive(Debug)]
pub(crate) struct Adopted {
    pub(crate) stream: NodeStream,
    pub(crate) vhost: String,
    /// Name of the leader.
    pub(crate) leader: Arc<str>,
}

/// One of the two sockets of a relay.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) reads: Reader,
    pub(crate) writes: Writer,
}

impl Ends {
    /// Both halves of a stream, which belong to the runtime of the caller from now on.
    ///
    /// # Errors
    /// If the socket cannot be registered with the runtime.
    pub(crate) fn of_stream(stream: NodeStream) -> io::Result<(Self, StreamSlot)> {
        let NodeStream { socket, slot, .. } = stream;
        let here = |socket: TcpStream| {
            probe(&socket)?;
            TcpStream::from_std(socket.into_std()?)
        };
        let ends = match socket {
            NodeSocket::Plain(socket) => {
                let (reads, writes) = here(socket)?.into_split();
                Self { reads: Reader::Tcp(reads), writes: Writer::Tcp(writes) }
            }
            NodeSocket::Tls(stream) => {
                let (reads, writes) = match *stream {
                    TlsStream::Client(stream) => {
                        let (socket, session) = stream.into_inner();
                        tls::split(here(socket)?, session)
                    }
                    TlsStream::Server(stream) => {
                        let (socket, session) = stream.into_inner();
                        tls::split(here(socket)?, session)
                    }
                };
                Self { reads: Reader::Tls(Box::new(reads)), writes: Writer::Tls(Box::new(writes)) }
            }
        };
        Ok((ends, slot))
    }
}

/// Lets the operating system ask the other end whether it is there, when nothing passes.
fn probe(socket: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, STREAM_PROBE_AFTER)?;
    sockopt::set_tcp_keepintvl(socket, STREAM_PROBE_INTERVAL)?;
    Ok(sockopt::set_tcp_keepcnt(socket, STREAM_PROBES_MAX)?)
}

/// Writes all octets.
pub(super) async fn write_all(writes: &mut Writer, mut octets: &[u8]) -> io::Result<()> {
    while !octets.is_empty() {
        match writes.try_write_vectored(&[IoSlice::new(octets)]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => octets = octets.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => writes.writable().await?,
            Err(error) => return Err(error),
        }
        writes.flush().await?;
    }
    Ok(())
}
