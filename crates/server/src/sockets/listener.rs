//! Listening sockets, bound before the broker reports its start.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::limits::{ACCEPT_PAUSE, ACCEPT_WARNING_INTERVAL, EVICTION_PAUSE, LISTEN_BACKLOG};
use crate::snapshot::condition::ConnectionRefusal;
use crate::sockets::admission::Admission;
use crate::sockets::amqp_listeners::ListenerState;
use crate::sockets::descriptors;
use crate::sockets::refusals::Refusals;

/// The reason why nothing listens on an address.
#[derive(thiserror::Error, Debug)]
#[error("cannot listen for {what} on {address}: {error}")]
pub(crate) struct ListenError {
    what: &'static str,
    address: SocketAddr,
    pub(crate) error: io::Error,
}

/// A listening socket that recovers from failures to accept.
#[derive(Debug)]
pub(crate) struct Listener {
    what: &'static str,
    socket: TcpListener,
    /// True if the listener leaves the descriptors that HTTP needs.
    leaves_room_for_http: bool,
    warned: Option<Instant>,
}

impl Listener {
    /// Listens on `address` for the protocol `what`.
    ///
    /// # Errors
    /// If the address is in use or not local; the error names the address.
    pub(crate) fn bind(what: &'static str, address: SocketAddr) -> Result<Self, ListenError> {
        let socket = match listen(address) {
            // On a machine without IPv6, listen on all IPv4 addresses.
            Err(error)
                if address.is_ipv6()
                    && address.ip().is_unspecified()
                    && error.kind() != io::ErrorKind::AddrInUse =>
            {
                listen(SocketAddr::from(([0, 0, 0, 0], address.port())))
            }
            result => result,
        };
        let socket = socket.map_err(|error| ListenError { what, address, error })?;
        Ok(Self::on(what, socket))
    }

    fn on(what: &'static str, socket: TcpListener) -> Self {
        Self { what, socket, leaves_room_for_http: what.starts_with("AMQP"), warned: None }
    }

    /// The protocol of the listener, for log lines.
    pub(crate) fn what(&self) -> &'static str {
        self.what
    }

    /// The address of the listener.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Closes the listener while `state` requests it, and then listens again. None if the node is gone.
    pub(crate) async fn closed_while_suspended(
        self,
        state: &mut ListenerState<'_>,
    ) -> Option<Self> {
        let (what, address) = (self.what, self.local_addr().ok()?);
        drop(self);
        // The operating system gives the port to no other process that asks for any.
        let mut kept = bound(address).ok();
        tracing::warn!("{what} listener on {address} suspended");
        state.set_suspended(true);
        loop {
            state.requested.wait_for(|suspended| !suspended).await.ok()?;
            let again = match kept.take() {
                Some(socket) => socket.listen(LISTEN_BACKLOG),
                None => listen(address),
            };
            match again {
                Ok(socket) => {
                    tracing::warn!("{what} listener on {address} resumed");
                    state.set_suspended(false);
                    return Some(Self::on(what, socket));
                }
                Err(error) => {
                    let error = ListenError { what, address, error }.to_string();
                    tracing::error!("{error}");
                    state.failed(error);
                }
            }
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }

    /// Accepts the next client. If no descriptor is left for it, connections are closed that `admission`
    /// gives up.
    pub(crate) async fn accept(
        &mut self,
        admission: &Admission,
        refusals: &Refusals,
    ) -> (TcpStream, SocketAddr) {
        let mut is_counted = false;
        let mut count = |what| {
            if !std::mem::replace(&mut is_counted, true) {
                refusals.connection(ConnectionRefusal::Descriptors, what, Instant::now());
            }
        };
        loop {
            match self.socket.accept().await {
                Ok(accepted) => {
                    // Clients that leave free their descriptors.
                    while !self.has_room() {
                        count(self.what);
                        let pause =
                            if admission.make_room() { EVICTION_PAUSE } else { ACCEPT_PAUSE };
                        self.pause(&"the last file descriptors are for the log", pause).await;
                    }
                    return accepted;
                }
                // Most likely, no file descriptor is free.
                Err(error) => {
                    count(self.what);
                    self.pause(&error, ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// True if enough file descriptors are left for the log and, if this is no HTTP listener, for HTTP. The
    /// operating system assigns the lowest free descriptor.
    fn has_room(&self) -> bool {
        let mut for_clients = descriptors::for_clients();
        if self.leaves_room_for_http {
            for_clients -= descriptors::http_connections_max() as u64;
        }
        let lowest = rustix::io::fcntl_dupfd_cloexec(&self.socket, 0);
        lowest.is_ok_and(|free| u64::try_from(free.as_raw_fd()).is_ok_and(|fd| fd < for_clients))
    }

    async fn pause(&mut self, reason: &(dyn std::fmt::Display + Sync), duration: Duration) {
        if self.warned.is_none_or(|at| at.elapsed() >= ACCEPT_WARNING_INTERVAL) {
            self.warned = Some(Instant::now());
            tracing::warn!("cannot accept {} connections: {reason}", self.what);
        }
        tokio::time::sleep(duration).await;
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    bound(address)?.listen(LISTEN_BACKLOG)
}

/// A socket with the address, which does not listen yet.
fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A restart need not wait until the operating system has forgotten the earlier connections.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sockets::amqp_listeners::AmqpListeners;

    #[tokio::test]
    async fn suspended_listener_keeps_its_port() {
        let listeners = AmqpListeners::new();
        let mut state = listeners.add();
        let first = Listener::bind("AMQP", SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = first.local_addr().unwrap();
        let suspend_and_resume = async {
            listeners.set_suspended(true).await.unwrap();
            let refused = TcpStream::connect(address).await.unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
            // As for a process that asks for any port: without SO_REUSEADDR.
            let taken = TcpSocket::new_v4().unwrap().bind(address).unwrap_err();
            assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
            listeners.set_suspended(false).await.unwrap();
            TcpStream::connect(address).await.unwrap();
        };
        let follow = async {
            assert!(*state.requested.wait_for(|suspended| *suspended).await.unwrap());
            first.closed_while_suspended(&mut state).await
        };
        let (again, ()) = tokio::join!(follow, suspend_and_resume);
        assert_eq!(again.unwrap().local_addr().unwrap(), address);
    }

    #[tokio::test]
    async fn bind_does_not_replace_a_taken_ipv6_port_by_ipv4() {
        let any = |address: [u16; 8], port| SocketAddr::from((address, port));
        // A machine without IPv6 cannot run this test.
        let Ok(taken) = listen(any([0, 0, 0, 0, 0, 0, 0, 1], 0)) else { return };
        let address = any([0; 8], taken.local_addr().unwrap().port());
        let error = Listener::bind("AMQP", address).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot listen for AMQP on {address}: ")), "{error}");
    }
}
