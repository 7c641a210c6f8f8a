//! Streams: connections of their own between two nodes, beside their link.
//!
//! A stream is made as a link is, on the same listener and with the same proof, and its hello names its purpose. After
//! the handshake its octets belong to whoever has dialed it and to the [`StreamHandler`] of the purpose on the other
//! node. Only nodes of a founded cluster open streams, so that neither side can be a node that has lost its disk; and nodes
//! that ask to join.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::cluster::node_socket::NodeSocket;
use crate::cluster::peer::Peer;
use crate::cluster::purpose::Purpose;
use crate::cluster::refusal::Refusal;
use crate::limits::{
    CLIENT_STREAMS_MAX, HTTP_STREAMS_MAX, JOIN_STREAMS_MAX, SHIPMENT_STREAMS_MAX, STREAMS_MAX,
};
use crate::membership::ids::{DiskId, NodeId};

/// Takes the streams of a purpose that peers open.
pub(crate) trait StreamHandler: Send + Sync {
    /// Takes a stream. Called on the thread of the links: must not wait, and spawns what serves the stream.
    fn accepted(&self, stream: NodeStream);
}

/// The side that opened a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Opened {
    Here,
    ByPeer,
}

/// A group of streams with a limit of its own.
type Kind = (NodeId, Purpose, Opened);

#[derive(Default, Debug)]
struct Counts {
    all: usize,
    by_kind: BTreeMap<Kind, usize>,
}

/// The streams of this node: their numbers, and who takes those of peers.
#[derive(Default)]
pub(crate) struct Streams {
    counts: Arc<Mutex<Counts>>,
    /// By the number of the purpose.
    handlers: [OnceLock<Arc<dyn StreamHandler>>; Purpose::ALL.len()],
}

/// Streams of a purpose that one node may open to another.
const fn streams_max(purpose: Purpose) -> usize {
    match purpose {
        Purpose::Link => 0,
        Purpose::Client => CLIENT_STREAMS_MAX,
        Purpose::Http => HTTP_STREAMS_MAX,
        Purpose::Shipment => SHIPMENT_STREAMS_MAX,
        Purpose::Join => JOIN_STREAMS_MAX,
    }
}

impl Streams {
    /// Takes a place for a stream with a peer.
    ///
    /// # Errors
    /// [`Refusal::Busy`].
    pub(crate) fn take(
        &self,
        peer: NodeId,
        purpose: Purpose,
        opened: Opened,
    ) -> Result<StreamSlot, Refusal> {
        let (kind, max) = ((peer, purpose, opened), streams_max(purpose));
        let mut counts = self.counts.lock();
        if counts.all >= STREAMS_MAX {
            return Err(Refusal::Busy { max: STREAMS_MAX });
        }
        let count = counts.by_kind.entry(kind).or_default();
        if *count >= max {
            return Err(Refusal::Busy { max });
        }
        *count += 1;
        counts.all += 1;
        drop(counts);
        Ok(StreamSlot { counts: Arc::clone(&self.counts), kind })
    }

    /// Lets `handler` take the streams of a purpose that peers open. Until then they are refused.
    ///
    /// # Panics
    /// If the purpose has a handler already.
    pub(crate) fn serve(&self, purpose: Purpose, handler: Arc<dyn StreamHandler>) {
        let place = self.handlers.get(usize::from(purpose.as_u8()));
        let place = place.expect("each purpose has a place");
        assert!(place.set(handler).is_ok(), "a purpose has one handler");
    }

    /// The handler of a purpose.
    pub(crate) fn handler(&self, purpose: Purpose) -> Option<&Arc<dyn StreamHandler>> {
        self.handlers.get(usize::from(purpose.as_u8())).and_then(OnceLock::get)
    }
}

/// The place of a stream, free again when dropped.
pub(crate) struct StreamSlot {
    counts: Arc<Mutex<Counts>>,
    kind: Kind,
}

impl std::fmt::Debug for StreamSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StreamSlot").field(&self.kind).finish()
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        counts.all -= 1;
        if let Some(count) = counts.by_kind.get_mut(&self.kind) {
            *count -= 1;
            if *count == 0 {
                counts.by_kind.remove(&self.kind);
            }
        }
    }
}

/// An open stream.
#[derive(Debug)]
pub(crate) struct NodeStream {
    pub(crate) purpose: Purpose,
    /// The node at the other end, which has proved itself.
    pub(crate) peer: Arc<Peer>,
    /// Disk of that node.
    pub(crate) disk: DiskId,
    /// The newest level of record kinds that it reads.
    pub(crate) record_level: u16,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) socket: NodeSocket,
    pub(crate) slot: StreamSlot,
}

impl AsyncRead for NodeStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, room)
    }
}

impl AsyncWrite for NodeStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

#[cfg(test)]
impl Streams {
    /// Number of open streams of a purpose, in a direction.
    pub(crate) fn count(&self, purpose: Purpose, opened: Opened) -> usize {
        let counts = self.counts.lock();
        let of = |kind: &Kind| kind.1 == purpose && kind.2 == opened;
        counts.by_kind.iter().filter(|(kind, _)| of(kind)).map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_counted_by_peer_purpose_and_side() {
        let (streams, peer) = (Streams::default(), NodeId(1));
        let take = |opened| streams.take(peer, Purpose::Shipment, opened);
        let mut slots: Vec<StreamSlot> =
            (0..SHIPMENT_STREAMS_MAX).map(|_| take(Opened::ByPeer).unwrap()).collect();
        let refused = take(Opened::ByPeer).unwrap_err();
        assert_eq!(refused, Refusal::Busy { max: SHIPMENT_STREAMS_MAX });
        assert_eq!(streams.count(Purpose::Shipment, Opened::ByPeer), SHIPMENT_STREAMS_MAX);
        // Others have room of their own.
        assert!(take(Opened::Here).is_ok());
        assert!(streams.take(NodeId(2), Purpose::Shipment, Opened::ByPeer).is_ok());
        assert!(streams.take(peer, Purpose::Client, Opened::ByPeer).is_ok());
        slots.pop();
        assert!(take(Opened::ByPeer).is_ok());
        drop(slots);
        assert_eq!(streams.counts.lock().all, 0);
        assert!(streams.counts.lock().by_kind.is_empty());
    }
}
