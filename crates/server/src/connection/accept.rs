//! Accepts clients from a listener until the broker stops.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::connection::task::{self, Accepted};
use crate::node::Node;
use crate::sockets::admission::{Admission, Admitted};
use crate::sockets::descriptors;
use crate::sockets::listener::Listener;
use crate::sockets::socket::{Reader, Writer};
use crate::tls::Tls;

/// Accepts AMQP clients until the broker stops. Each connection holds a clone of `alive` until it ends.
pub(crate) async fn accept_amqp(
    mut listener: Listener,
    tls: Option<Arc<Tls>>,
    node: Arc<Node>,
    alive: mpsc::Sender<()>,
) {
    let admission = Arc::new(Admission::new(descriptors::amqp_handshakes_max()));
    let mut stopping = node.lifecycle.stopping.subscribe();
    let mut state = node.lifecycle.listeners.add();
    while !*stopping.borrow() {
        if *state.requested.borrow_and_update() {
            tokio::select! {
                again = listener.closed_while_suspended(&mut state) => match again {
                    Some(again) => listener = again,
                    None => return,
                },
                _ = stopping.changed() => return,
            }
        }
        tokio::select! {
            (socket, peer) = listener.accept(&admission, &node.refusals) => {
                if admission.is_full() {
                    tokio::task::yield_now().await;
                }
                // There is no local administrator over AMQP, so a place is always found.
                let Some(ticket) = admission.admit(peer.ip()) else { continue };
                let (tls, node, alive) = (tls.clone(), Arc::clone(&node), alive.clone());
                tokio::spawn(async move {
                    let admitted = ticket.connection();
                    if let Some(client) = prepare(socket, peer, tls.as_deref(), admitted).await {
                        task::serve(client, peer, node, ticket).await;
                    }
                    drop(alive);
                });
            }
            _ = stopping.changed() => {}
            _ = state.requested.changed() => {}
        }
    }
}

/// The client of a socket, after the TLS handshake if there is one.
async fn prepare(
    socket: TcpStream,
    peer: SocketAddr,
    tls: Option<&Tls>,
    admitted: &Admitted,
) -> Option<Accepted> {
    // Batching already decides what is sent together.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%peer, %error, "cannot set TCP_NODELAY");
    }
    let Some(tls) = tls else {
        let (reads, writes) = socket.into_split();
        return Some(Accepted {
            reads: Reader::Tcp(reads),
            writes: Writer::Tcp(writes),
            tls: None,
        });
    };
    // Boxed, because the connection would keep the space all its life.
    let handshake = Box::pin(tls.accept(socket, peer));
    let (reads, writes, tls) = tokio::select! {
        accepted = handshake => accepted?,
        () = admitted.evicted() => return None,
    };
    let (reads, writes) = (Reader::Tls(Box::new(reads)), Writer::Tls(Box::new(writes)));
    Some(Accepted { reads, writes, tls: Some(Box::new(tls)) })
}
