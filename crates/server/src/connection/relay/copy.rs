//! The copy of octets between a client and the leader of its vhost, and the end of it.

use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use amqp::method::MethodId;
use amqp::reply_code::ReplyCode;
use broker::refusal::Refusal;
use replica::limits::{RELAY_CLOSE_TIMEOUT, RELAY_READ_BYTES};
use replica::relay::{FrameTracker, Leader, time_left};
use session::Session;
use tokio::io::Interest;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::ends::{Ends, write_all};
use crate::clock::own_time;
use crate::cluster::Contact;
use crate::cluster::ids::NodeId;
use crate::connection::read_buffer::ReadBuffer;
use crate::connection::socket::{Reader, Writer};
use crate::limits::LINGER_TIMEOUT;
use crate::node::{Node, shutdown_refusal};

/// A client whose vhost another node leads, from its adoption on.
pub(crate) struct Relay {
    pub(crate) node: Arc<Node>,
    pub(crate) vhost: String,
    /// Name of the node that has adopted the client.
    pub(crate) leader: Arc<str>,
    pub(crate) peer: SocketAddr,
    pub(crate) client: Ends,
    pub(crate) stream: Ends,
    /// Octets of the client that were read before the adoption.
    pub(crate) buffer: ReadBuffer,
    /// The session up to `connection.open`; it writes the node's own `connection.close`.
    pub(crate) session: Session,
}

/// The end of a relay.
#[derive(Debug)]
enum RelayEnd {
    /// The leader has ended the connection, after `connection.close` or its answer.
    Closed,
    /// The client is gone, or does not read.
    ClientGone,
    /// The client must be closed; no frame to it is cut.
    Close(Refusal),
    /// The client gets no rest of a frame, so that its socket can only be closed.
    Cut,
    ClientFailed(io::Error),
}

impl Relay {
    /// Passes on octets until one side ends, and closes the client.
    pub(crate) async fn run(mut self) {
        let (peer, vhost, leader) = (self.peer, self.vhost.clone(), Arc::clone(&self.leader));
        tracing::info!(%peer, vhost, %leader, "relayed to the leader of the vhost");
        let node = Arc::clone(&self.node);
        let _relayed = node.clients.relay();
        let (mut up, mut down) = (FrameTracker::default(), FrameTracker::default());
        let end = self.copy(&mut up, &mut down).await;
        match end {
            RelayEnd::Closed => {
                tracing::info!(%peer, "disconnected");
                self.linger().await;
            }
            RelayEnd::ClientGone => tracing::info!(%peer, "client went away without closing"),
            RelayEnd::ClientFailed(error) => tracing::info!(%peer, %error, "connection lost"),
            RelayEnd::Close(refusal) => {
                let reason = refusal.explanation.as_str();
                tracing::info!(%peer, vhost, %leader, reason, "relayed client is closed");
                // The client may be gone.
                drop(timeout(RELAY_CLOSE_TIMEOUT, self.close(&refusal, up)).await);
                self.linger().await;
            }
            RelayEnd::Cut => {
                tracing::info!(%peer, vhost, %leader, "connection lost: the leader is lost within a frame");
            }
        }
    }

    async fn copy(&mut self, up: &mut FrameTracker, down: &mut FrameTracker) -> RelayEnd {
        let lost = lost(&self.vhost);
        let ended = pin!(ended(&self.node, &self.vhost, &self.leader));
        let Self { client, stream, buffer, .. } = self;
        let upwards = pass_up(&mut client.reads, buffer, &mut stream.writes, up);
        let downwards = pass_down(&mut stream.reads, &mut client.writes, down, ended, lost);
        tokio::select! {
            end = downwards => end,
            end = upwards => end,
        }
    }

    /// Sends `connection.close` to the client and waits for its answer.
    async fn close(&mut self, refusal: &Refusal, mut up: FrameTracker) -> io::Result<()> {
        let mut out = Vec::new();
        self.session.fail(self.node.clock.time(), refusal, MethodId::NONE, &mut out);
        write_all(&mut self.client.writes, &out).await?;
        let (reads, buffer) = (&mut self.client.reads, &mut self.buffer);
        while !up.has_close_ok() {
            if !next(reads, buffer).await? {
                break;
            }
            up.pass(buffer.unread());
            buffer.consume_all();
        }
        Ok(())
    }

    /// Gives the client time to read the last octets, and to close its end.
    async fn linger(&mut self) {
        let farewell = async {
            self.client.writes.shutdown().await?;
            let (reads, buffer) = (&mut self.client.reads, &mut self.buffer);
            while !*self.node.lifecycle.stopping.borrow()
                && reads.readable().await.is_ok()
                && buffer.discard(reads)
            {}
            io::Result::Ok(())
        };
        drop(timeout(LINGER_TIMEOUT, farewell).await);
    }
}

/// Reads the next octets into an empty buffer, after a wait; false at the end of the stream. Nothing is lost when the
/// wait is given up.
async fn next(reads: &mut Reader, buffer: &mut ReadBuffer) -> io::Result<bool> {
    loop {
        buffer.park();
        reads.readable().await?;
        match buffer.read(reads, RELAY_READ_BYTES) {
            Ok(read) => return Ok(read.count > 0),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Passes on the octets of the client.
async fn pass_up(
    reads: &mut Reader,
    buffer: &mut ReadBuffer,
    writes: &mut Writer,
    tracker: &mut FrameTracker,
) -> RelayEnd {
    loop {
        tracker.pass(buffer.unread());
        if write_all(writes, buffer.unread()).await.is_err() {
            // The other direction sees that the leader is gone.
            std::future::pending::<()>().await;
        }
        buffer.consume_all();
        yield_now().await;
        match next(reads, buffer).await {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return RelayEnd::ClientFailed(error),
        }
    }
    // The leader ends the connection when it hears that the client is gone.
    drop(writes.shutdown().await);
    sleep(RELAY_CLOSE_TIMEOUT).await;
    RelayEnd::ClientGone
}

/// Passes on the octets of the leader until it ends, or until the client must be closed.
async fn pass_down(
    reads: &mut Reader,
    writes: &mut Writer,
    tracker: &mut FrameTracker,
    mut ended: Pin<&mut impl Future<Output = Refusal>>,
    lost: Refusal,
) -> RelayEnd {
    let (mut buffer, mut reason) = (ReadBuffer::default(), None);
    loop {
        if let Some(refusal) = reason.take_if(|_| tracker.is_at_boundary()) {
            return if tracker.is_closing() { RelayEnd::Closed } else { RelayEnd::Close(refusal) };
        }
        let read = match reason {
            Some(_) => match timeout(RELAY_CLOSE_TIMEOUT, next(reads, &mut buffer)).await {
                Ok(read) => read,
                Err(_) => return RelayEnd::Cut,
            },
            None => tokio::select! {
                biased;
                read = next(reads, &mut buffer) => read,
                refusal = &mut ended => {
                    reason = Some(refusal);
                    continue;
                }
            },
        };
        if !matches!(read, Ok(true)) {
            return match tracker.is_at_boundary() {
                _ if tracker.is_closing() => RelayEnd::Closed,
                true => RelayEnd::Close(reason.unwrap_or(lost)),
                false => RelayEnd::Cut,
            };
        }
        let octets = buffer.unread();
        let count = match reason {
            Some(_) => tracker.pass_frame(octets),
            None => {
                tracker.pass(octets);
                octets.len()
            }
        };
        let written = {
            let mut writing = pin!(write_all(writes, octets.get(..count).unwrap_or_default()));
            tokio::select! {
                biased;
                written = &mut writing => Some(written),
                refusal = &mut ended, if reason.is_none() => {
                    reason = Some(refusal);
                    timeout(RELAY_CLOSE_TIMEOUT, writing).await.ok()
                }
                () = hung_up(reads) => timeout(RELAY_CLOSE_TIMEOUT, writing).await.ok(),
            }
        };
        match written {
            Some(Ok(())) => {}
            Some(Err(error)) => return RelayEnd::ClientFailed(error),
            None => return RelayEnd::ClientGone,
        }
        buffer.consume_all();
        yield_now().await;
    }
}

/// Completes when the leader has ended the stream, which nobody reads while the client reads nothing.
async fn hung_up(reads: &Reader) {
    loop {
        sleep(Duration::from_secs(1)).await;
        let ready = reads.tcp().ready(Interest::READABLE).await;
        if ready.is_ok_and(|ready| ready.is_read_closed()) || ready_error(reads) {
            return;
        }
    }
}

fn ready_error(reads: &Reader) -> bool {
    reads.tcp().take_error().is_ok_and(|error| error.is_some())
}

/// The refusal of a client whose leader is lost.
fn lost(vhost: &str) -> Refusal {
    Refusal::new(ReplyCode::ConnectionForced, format!("leader of vhost '{vhost}' is lost"))
}

/// Completes when a relayed client must be closed, with the reason.
async fn ended(node: &Node, vhost: &str, leader: &str) -> Refusal {
    let mut closing = node.lifecycle.closing_clients.subscribe();
    tokio::select! {
        // The sender lives as long as the node.
        _ = closing.wait_for(|is| *is) => shutdown_refusal(),
        () = leader_lost(node, vhost, leader) => lost(vhost),
        () = away(node, leader) => lost(vhost),
    }
}

/// Completes when another node is away. The leader ends the clients of a node that is away, so that a client that both
/// nodes have lost sight of never goes on.
pub(crate) async fn away(node: &Node, other: &str) {
    match &node.cluster {
        Some(links) => links.peer_away(NodeId::of(other)).await,
        None => std::future::pending().await,
    }
}

/// Completes when another node leads the vhost, or none for long, or the leader is not one of the cluster any more. The old
/// leader closes its clients itself, if it can.
async fn leader_lost(node: &Node, vhost: &str, leader: &str) {
    let contact = node.cluster.as_ref().and_then(|links| links.contact(NodeId::of(leader)));
    let Some(mut contact) = contact else { return };
    loop {
        let handle = node.vhosts.get(vhost);
        let leaders = handle.as_ref().and_then(|handle| handle.leaders());
        // A vhost that is deleted is deleted at the leader, too, which closes its clients.
        let (Some(handle), Some(mut leaders)) = (handle, leaders) else {
            return std::future::pending().await;
        };
        loop {
            let is_linked = *contact.borrow_and_update() == Contact::Linked;
            let known = match &*leaders.borrow_and_update() {
                Some(now) if **now == *leader => Leader::Same,
                Some(_) => Leader::Another,
                None => Leader::None { may_elect: handle.may_elect() },
            };
            // False when the vhost was opened anew.
            let changed = async {
                tokio::select! {
                    changed = leaders.changed() => changed.is_ok(),
                    changed = contact.changed() => changed.is_ok(),
                }
            };
            let is_open = match time_left(known, is_linked) {
                None => changed.await,
                Some(left) => match own_time::timeout(left, changed).await {
                    Ok(is_open) => is_open,
                    Err(_) => return,
                },
            };
            if !is_open {
                break;
            }
        }
    }
}
