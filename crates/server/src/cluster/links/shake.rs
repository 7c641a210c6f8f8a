//! The connection between two nodes, from the dial to the end of the handshake.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::{TcpStream, lookup_host};

use super::registry::Links;
use super::streams::{NodeStream, Opened, StreamSlot};
use crate::cluster::handshake::hello::{Hello, Side};
use crate::cluster::handshake::{HandshakeError, Own, shake_hands};
use crate::cluster::node_socket::NodeSocket;
use crate::cluster::peer::Peer;
use crate::cluster::purpose::Purpose;
use crate::cluster::refusal::Refusal;
use crate::membership::ids::NodeId;
use crate::sockets::descriptors::leaves_room;
use crate::tls::links as link_tls;

/// A socket whose handshake is done.
#[derive(Debug)]
pub(crate) struct ProvedSocket {
    pub(crate) socket: NodeSocket,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) peer: Arc<Peer>,
    /// The peer's hello, which is proved.
    pub(crate) hello: Hello,
    /// The place of a stream; none for a link.
    pub(crate) slot: Option<StreamSlot>,
}

impl ProvedSocket {
    /// The stream whose handshake is done.
    ///
    /// # Panics
    /// For a link.
    pub(crate) fn into_stream(self) -> NodeStream {
        let Self { socket, local, remote, peer, hello, slot } = self;
        let slot = slot.expect("an admitted stream has a place");
        let Hello { purpose, disk, record_level, .. } = hello;
        NodeStream { purpose, disk, record_level, peer, local, remote, socket, slot }
    }
}

/// Shakes hands over a socket, as the dialer of a node for a purpose or as the acceptor.
///
/// # Errors
/// [`HandshakeError`]. The peer is told the reason of a refusal.
pub(crate) async fn shake(
    links: &Links,
    socket: TcpStream,
    dialed: Option<(&Peer, Purpose)>,
) -> Result<ProvedSocket, HandshakeError> {
    // Batching already decides what is sent together.
    socket.set_nodelay(true)?;
    let (local, remote) = (socket.local_addr()?, socket.peer_addr()?);
    let has_room = leaves_room(&socket);
    let refused = |text: String| HandshakeError::Refused(Refusal::Tls(text));
    let (mut socket, exporter) = match links.tls.get() {
        None => (NodeSocket::Plain(socket), None),
        Some(tls) => {
            let stream = match dialed {
                Some((peer, _)) => {
                    link_tls::connect(&links.options.tls, socket, &peer.node.host).await
                }
                None => tls.accept_link(socket).await,
            };
            let stream = stream.map_err(refused)?;
            let exporter = link_tls::exporter(&stream).map_err(refused)?;
            (NodeSocket::Tls(Box::new(stream)), Some(exporter))
        }
    };
    let (side, opened) = match dialed {
        Some(_) => (Side::Dialer, Opened::Here),
        None => (Side::Acceptor, Opened::ByPeer),
    };
    let purpose = dialed.map_or(Purpose::Link, |(_, purpose)| purpose);
    let hello = links.hello(side, purpose).map_err(|error| Refusal::OwnFile(error.to_string()))?;
    let (peers, nodes, slot) = (links.peers(), links.nodes(), Mutex::new(None));
    let admit = |peer: &Hello| {
        if peer.purpose != Purpose::Link {
            *slot.lock() = Some(admit_stream(links, peer, opened, has_room)?);
        }
        Ok(())
    };
    let own = Own {
        side,
        hello: &hello,
        secret: &links.secret,
        exporter,
        known: links.known((&peers, &nodes), dialed.map(|(peer, _)| &peer.node)),
        admit: &admit,
    };
    let (hello, peer) = shake_hands(&mut socket, own).await?;
    Ok(ProvedSocket { socket, local, remote, peer, hello, slot: slot.into_inner() })
}

/// Takes a place for a stream with a node that has proved itself.
fn admit_stream(
    links: &Links,
    peer: &Hello,
    opened: Opened,
    has_room: bool,
) -> Result<StreamSlot, Refusal> {
    if opened == Opened::ByPeer && links.streams.handler(peer.purpose).is_none() {
        return Err(Refusal::Purpose(peer.purpose.as_u8()));
    }
    // One that joins is no member yet.
    if peer.purpose != Purpose::Join {
        links.check_member(peer)?;
    }
    if !has_room {
        return Err(Refusal::Descriptors);
    }
    links.streams.take(NodeId::of(&peer.name), peer.purpose, opened)
}

/// Connects to the first address of a peer that answers.
///
/// # Errors
/// A sentence.
pub(crate) async fn connect(peer: &Peer) -> Result<TcpStream, String> {
    let address = peer.node.address();
    let resolved = lookup_host(&address).await;
    let resolved =
        resolved.map_err(|error| format!("cannot find the address of {address}: {error}"))?;
    let mut problem = format!("{address} has no address");
    for one in resolved {
        match TcpStream::connect(one).await {
            Ok(socket) => return Ok(socket),
            Err(error) => problem = format!("cannot connect to {address}: {error}"),
        }
    }
    Err(problem)
}
