//! The copy of octets between a client and the leader of its vhost, and the end of it, as the values of [`replica::relay`]
//! decide.

use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use amqp::method::MethodId;
use broker::refusal::Refusal;
use broker::time::Time;
use replica::limits::RELAY_READ_BYTES;
use replica::relay::{Downwards, End, Farewell, Leader, LeaderWatch, Step, Upwards, leader_lost};
use session::Session;
use tokio::io::Interest;
use tokio::task::yield_now;
use tokio::time::error::Elapsed;
use tokio::time::{sleep, timeout};

use super::ends::{Ends, write_all};
use crate::clock::own_time;
use crate::cluster::Contact;
use crate::connection::read_buffer::ReadBuffer;
use crate::limits::LINGER_TIMEOUT;
use crate::membership::ids::NodeId;
use crate::node::{Node, shutdown_refusal};
use crate::sockets::socket::{Reader, Writer};

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

/// The end of the copy.
#[derive(Debug)]
enum CopyEnd {
    Decided(End),
    ClientFailed(io::Error),
}

impl Relay {
    /// Passes on octets until one side ends, and closes the client.
    pub(crate) async fn run(mut self) {
        let (peer, vhost, leader) = (self.peer, self.vhost.clone(), Arc::clone(&self.leader));
        tracing::info!(%peer, vhost, %leader, "relayed to the leader of the vhost");
        let node = Arc::clone(&self.node);
        let _relayed = node.clients.relay();
        let (mut up, mut down) = (Upwards::default(), Downwards::new(&vhost));
        let end = self.copy(&mut up, &mut down).await;
        match end {
            CopyEnd::Decided(End::Closed) => {
                tracing::info!(%peer, "disconnected");
                self.linger().await;
            }
            CopyEnd::Decided(End::ClientGone) => {
                tracing::info!(%peer, "client went away without closing");
            }
            CopyEnd::Decided(End::Close(refusal)) => {
                let reason = refusal.explanation.as_str();
                tracing::info!(%peer, vhost, %leader, reason, "relayed client is closed");
                // The client may be gone.
                drop(self.close(&refusal, up.farewell(now())).await);
                self.linger().await;
            }
            CopyEnd::Decided(End::Cut) => {
                tracing::info!(%peer, vhost, %leader, "connection lost: the leader is lost within a frame");
            }
            CopyEnd::ClientFailed(error) => tracing::info!(%peer, %error, "connection lost"),
        }
    }

    async fn copy(&mut self, up: &mut Upwards, down: &mut Downwards) -> CopyEnd {
        let ended = pin!(ended(&self.node, &self.vhost, &self.leader));
        let Self { client, stream, buffer, .. } = self;
        // Before anything else, so that whoever closes the client knows where its next frame begins.
        up.read(buffer.unread());
        let upwards = pass_up(&mut client.reads, buffer, &mut stream.writes, up);
        let downwards = pass_down(&mut stream.reads, &mut client.writes, down, ended);
        let end = tokio::select! {
            end = downwards => end,
            end = upwards => end,
        };
        match end {
            CopyEnd::Decided(end) => CopyEnd::Decided(up.end_after(end)),
            end @ CopyEnd::ClientFailed(_) => end,
        }
    }

    /// Sends `connection.close` to the client and waits for its answer.
    async fn close(&mut self, refusal: &Refusal, mut farewell: Farewell) -> io::Result<()> {
        let mut out = Vec::new();
        self.session.fail(self.node.clock.time(), refusal, MethodId::NONE, &mut out);
        let (client, buffer) = (&mut self.client, &mut self.buffer);
        let until = farewell.until();
        let closed = async {
            write_all(&mut client.writes, &out).await?;
            // They were read for the leader, and the farewell knows them.
            buffer.consume_all();
            while !farewell.is_over() && next(&mut client.reads, buffer).await? {
                farewell.read(buffer.unread());
                buffer.consume_all();
            }
            Ok(())
        };
        by(Some(until), closed).await.unwrap_or(Ok(()))
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

/// Passes on the octets of the client, of which the first are in the buffer.
async fn pass_up(
    reads: &mut Reader,
    buffer: &mut ReadBuffer,
    writes: &mut Writer,
    up: &mut Upwards,
) -> CopyEnd {
    loop {
        if write_all(writes, buffer.unread()).await.is_err() {
            // The other direction sees that the leader is gone.
            std::future::pending::<()>().await;
        }
        up.taken();
        buffer.consume_all();
        yield_now().await;
        match next(reads, buffer).await {
            Ok(true) => up.read(buffer.unread()),
            Ok(false) => break,
            Err(error) => return CopyEnd::ClientFailed(error),
        }
    }
    drop(writes.shutdown().await);
    up.client_ended(now());
    loop {
        if let Some(end) = up.end(now()) {
            return CopyEnd::Decided(end);
        }
        drop(by(up.ends_at(), std::future::pending::<()>()).await);
    }
}

/// Passes on the octets of the leader until it ends, or until the client must be closed.
async fn pass_down(
    reads: &mut Reader,
    writes: &mut Writer,
    down: &mut Downwards,
    mut ended: Pin<&mut impl Future<Output = Refusal>>,
) -> CopyEnd {
    let mut buffer = ReadBuffer::default();
    loop {
        let until = match down.step() {
            Step::Read(until) => until,
            Step::End(end) => return CopyEnd::Decided(end),
        };
        let read = tokio::select! {
            biased;
            read = by(until, next(reads, &mut buffer)) => read,
            refusal = &mut ended, if !down.must_close() => {
                down.close(refusal, now());
                continue;
            }
        };
        match read {
            Ok(Ok(true)) => {}
            Ok(Ok(false) | Err(_)) => return CopyEnd::Decided(down.leader_ended()),
            Err(_) => return CopyEnd::Decided(down.read_expired()),
        }
        let count = down.read(buffer.unread());
        let octets = buffer.unread().get(..count).unwrap_or_default();
        if let Err(end) = write_down(octets, writes, reads, down, &mut ended).await {
            return end;
        }
        buffer.consume_all();
        yield_now().await;
    }
}

/// Lets the client take octets, for as long as it may.
async fn write_down(
    octets: &[u8],
    writes: &mut Writer,
    reads: &Reader,
    down: &mut Downwards,
    ended: &mut Pin<&mut impl Future<Output = Refusal>>,
) -> Result<(), CopyEnd> {
    let mut writing = pin!(write_all(writes, octets));
    let written = loop {
        tokio::select! {
            biased;
            written = by(down.write_until(), &mut writing) => break written,
            refusal = &mut *ended, if !down.must_close() => down.close(refusal, now()),
            () = hung_up(reads), if down.write_until().is_none() => down.hung_up(now()),
        }
    };
    match written {
        Ok(Ok(())) => {
            down.taken();
            Ok(())
        }
        Ok(Err(error)) => Err(CopyEnd::ClientFailed(error)),
        Err(_) => Err(CopyEnd::Decided(down.write_expired())),
    }
}

/// The time of relays: that for which this process has run, because it accuses others.
fn now() -> Time {
    Time::from_micros(own_time::now().as_micros())
}

/// Waits for a future, no longer than until a time.
///
/// # Errors
/// If the future has not completed by then.
async fn by<T>(until: Option<Time>, future: impl Future<Output = T>) -> Result<T, Elapsed> {
    match until {
        None => Ok(future.await),
        Some(until) => {
            let left = Duration::from_micros(until.micros_since(now()));
            own_time::timeout(left, future).await
        }
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

/// Completes when a relayed client must be closed, with the reason.
async fn ended(node: &Node, vhost: &str, leader: &str) -> Refusal {
    let mut closing = node.lifecycle.closing_clients.subscribe();
    tokio::select! {
        // The sender lives as long as the node.
        _ = closing.wait_for(|is| *is) => shutdown_refusal(),
        () = superseded(node, vhost, leader) => leader_lost(vhost),
        () = away(node, leader) => leader_lost(vhost),
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
async fn superseded(node: &Node, vhost: &str, leader: &str) {
    let contact = node.cluster.as_ref().and_then(|links| links.contact(NodeId::of(leader)));
    let Some(mut contact) = contact else { return };
    let mut watch = LeaderWatch::default();
    loop {
        let handle = node.vhosts.get(vhost);
        let leaders = handle.as_ref().and_then(|handle| handle.leaders());
        // A vhost that is deleted is deleted at the leader, too, which closes its clients.
        let (Some(handle), Some(mut leaders)) = (handle, leaders) else {
            return std::future::pending().await;
        };
        loop {
            let is_linked = *contact.borrow_and_update() == Contact::Linked;
            let known = leaders.borrow_and_update().clone();
            let known = Leader::beside(leader, known.as_deref(), || handle.may_elect());
            watch.look(known, is_linked, now());
            // False when the vhost was opened anew.
            let changed = async {
                tokio::select! {
                    changed = leaders.changed() => changed.is_ok(),
                    changed = contact.changed() => changed.is_ok(),
                }
            };
            let Ok(is_open) = by(watch.until(), changed).await else { return };
            if !is_open {
                break;
            }
        }
    }
}
