//! Opening of streams to other nodes.

use std::io;

use tokio::time::timeout;

use super::registry::Links;
use super::shake::{connect, shake};
use super::streams::NodeStream;
use crate::cluster::handshake::HandshakeError;
use crate::cluster::peer::Peer;
use crate::cluster::purpose::Purpose;
use crate::cluster::refusal::Refusal;
use crate::cluster::remote_end::RemoteEnd;
use crate::limits::{LINK_CONNECT_TIMEOUT, LINK_HANDSHAKE_TIMEOUT, STREAM_DIAL_TIMEOUT};
use crate::membership::ids::NodeId;

/// The reason why a stream cannot be opened.
#[derive(thiserror::Error, Debug)]
pub(crate) enum DialError {
    #[error("the node is not in the list of nodes")]
    Unknown,
    #[error("this node stops, or has not started its links")]
    NotRunning,
    #[error("the node does not answer in time")]
    Timeout,
    #[error("{0}")]
    Connect(String),
    #[error("{0}")]
    Refused(Refusal),
    #[error("the connection was closed during the handshake: {0}")]
    Io(io::Error),
}

impl From<Refusal> for DialError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Links {
    /// Opens a stream to a node. The stream belongs to the runtime of the caller. Takes
    /// [`STREAM_DIAL_TIMEOUT`] at the most.
    ///
    /// # Errors
    /// [`DialError`], a sentence without a subject about the node.
    pub(crate) async fn dial(
        &self,
        node: NodeId,
        purpose: Purpose,
    ) -> Result<NodeStream, DialError> {
        let dialing = timeout(STREAM_DIAL_TIMEOUT, self.dial_in_turn(node, purpose));
        dialing.await.unwrap_or(Err(DialError::Timeout))
    }

    async fn dial_in_turn(&self, node: NodeId, purpose: Purpose) -> Result<NodeStream, DialError> {
        assert!(purpose != Purpose::Link, "links are dialed by the thread of the links");
        if self.events.get().is_none() || *self.stopping.borrow() {
            return Err(DialError::NotRunning);
        }
        let peer = self.peer(node).ok_or(DialError::Unknown)?;
        self.dial_peer(&peer, purpose).await
    }

    /// Opens a stream to a peer, which need not be in the list.
    ///
    /// # Errors
    /// [`DialError`].
    pub(crate) async fn dial_peer(
        &self,
        peer: &Peer,
        purpose: Purpose,
    ) -> Result<NodeStream, DialError> {
        // A crowd of dials would push each other out of the places of handshakes at the peer.
        let _turn = peer.dials.acquire().await.map_err(|_| DialError::NotRunning)?;
        let connecting = timeout(LINK_CONNECT_TIMEOUT, connect(peer));
        let socket = connecting.await.map_err(|_| DialError::Timeout)?;
        let socket = socket.map_err(DialError::Connect)?;
        let shaking = shake(self, socket, Some((peer, purpose)));
        let proved = timeout(LINK_HANDSHAKE_TIMEOUT, shaking).await;
        let proved = proved.unwrap_or(Err(HandshakeError::Refused(Refusal::Timeout)));
        match proved {
            Ok(proved) => Ok(proved.into_stream()),
            Err(HandshakeError::Refused(refusal)) => {
                self.note_refusal(RemoteEnd::Node(&peer.node.name), &refusal);
                Err(refusal.into())
            }
            Err(HandshakeError::Io(error)) => Err(DialError::Io(error)),
        }
    }
}
