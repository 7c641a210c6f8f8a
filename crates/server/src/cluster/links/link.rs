//! A link whose handshake is done: one task that reads and writes until one of the two ends.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::yield_now;

use super::registry::{Links, stopped};
use super::shake::ProvedSocket;
use crate::clock::own_time::timeout;
use crate::cluster::frames::control::{Control, Ping};
use crate::cluster::frames::wire::{Channel, FrameReader, WireError};
use crate::cluster::handshake::hello::Hello;
use crate::cluster::node_socket::WriteHalf;
use crate::cluster::peer::events::LostCause;
use crate::cluster::peer::link_output::{LinkOutput, Remaining};
use crate::cluster::peer::{OpenLink, Peer};
use crate::cluster::refusal::Refusal;
use crate::cluster::remote_end::RemoteEnd;
use crate::limits::{
    LINK_CLOSE_TIMEOUT, LINK_PING_ALONE_INTERVAL, LINK_PING_INTERVAL, LINK_READ_BYTES,
    LINK_SILENCE, LINK_STALL,
};

/// Runs a link until it ends. True if the peer introduced itself, so that the link was in use.
pub(crate) async fn run(links: &Links, proved: ProvedSocket) -> bool {
    let ProvedSocket { socket, local, remote, peer, hello, slot: _ } = proved;
    let (reads, writes) = socket.split();
    let output = LinkOutput::new(writes.shared(), Arc::clone(&peer.traffic));
    let addresses = (local, remote);
    let link = Arc::new(OpenLink::new(links.number(), addresses, hello.record_level, output));
    link.tell(&Control::Introduction(links.introduction()));
    let mut reading = Reading { links, peer: &peer, link: &link, hello, is_introduced: false };
    let mut stopping = links.stopping.subscribe();
    let mut writer = pin!(write(links, &link, writes));
    let (cause, can_write) = {
        let mut reader = pin!(reading.run(reads));
        tokio::select! {
            cause = &mut reader => (cause, true),
            error = &mut writer => (last_word(of_error(&error), reader).await, false),
            () = link.closing.notified() => {
                (link.cause.lock().clone().unwrap_or(LostCause::Replaced), true)
            }
            () = stopped(&mut stopping) => (LostCause::Stopping, true),
        }
    };
    let is_introduced = reading.is_introduced;
    links.lost(&peer, link.number, &cause);
    let last = match &cause {
        LostCause::Stopping => Some(Control::Goodbye),
        LostCause::Refused(refusal) => {
            links.note_refusal(RemoteEnd::Node(&peer.node.name), refusal);
            (!matches!(refusal, Refusal::FromPeer(_))).then(|| Control::Refused(refusal.code()))
        }
        LostCause::Closed(_)
        | LostCause::Silent
        | LostCause::Stalled
        | LostCause::Damaged(_)
        | LostCause::Replaced
        | LostCause::PeerStops => None,
    };
    if let Some(last) = last.filter(|_| can_write) {
        link.tell(&last);
        link.finish();
        // The peer may be gone.
        drop(timeout(LINK_CLOSE_TIMEOUT, writer).await);
    }
    if !is_introduced && !matches!(cause, LostCause::Refused(_) | LostCause::Stopping) {
        links.note_problem(RemoteEnd::Node(&peer.node.name), &cause.to_string());
    }
    is_introduced
}

/// The reason why a link is lost that cannot be written to: a peer that has closed it may have said why, in octets that
/// have arrived and are not read yet.
async fn last_word(closed: LostCause, reader: impl Future<Output = LostCause>) -> LostCause {
    if !matches!(closed, LostCause::Closed(_)) {
        return closed;
    }
    match timeout(LINK_CLOSE_TIMEOUT, reader).await {
        Err(_) | Ok(LostCause::Closed(_)) => closed,
        Ok(said) => said,
    }
}

fn of_error(error: &io::Error) -> LostCause {
    if error.kind() == io::ErrorKind::TimedOut {
        LostCause::Stalled
    } else if error.kind() == io::ErrorKind::UnexpectedEof {
        LostCause::Closed("the peer closed it".to_owned())
    } else {
        LostCause::Closed(error.to_string())
    }
}

/// The reading half.
struct Reading<'a> {
    links: &'a Links,
    peer: &'a Arc<Peer>,
    link: &'a Arc<OpenLink>,
    hello: Hello,
    is_introduced: bool,
}

impl Reading<'_> {
    async fn run(&mut self, mut reads: impl AsyncRead + Unpin) -> LostCause {
        let mut reader = FrameReader::default();
        loop {
            reader.bytes.reserve(LINK_READ_BYTES);
            let count = match timeout(LINK_SILENCE, reads.read_buf(&mut reader.bytes)).await {
                Err(_) => return LostCause::Silent,
                Ok(Err(error)) => return of_error(&error),
                Ok(Ok(0)) => return of_error(&io::ErrorKind::UnexpectedEof.into()),
                Ok(Ok(count)) => count,
            };
            let now_us = self.links.clock.time().as_micros();
            self.peer.traffic.received_bytes.fetch_add(count as u64, Ordering::Relaxed);
            if let Err(cause) = self.take(&mut reader, now_us) {
                return cause;
            }
            // The other half has a turn: pings must leave while a long frame arrives.
            yield_now().await;
        }
    }

    /// Takes what has arrived. Frames that follow each other are passed on together: their receiver wakes up once.
    fn take(&mut self, reader: &mut FrameReader, now_us: u64) -> Result<(), LostCause> {
        let mut frames = Vec::new();
        loop {
            let next = reader.next();
            if let Ok(Some((Channel::Ordered | Channel::Bulk, frame))) = next {
                if !self.is_introduced {
                    return Err(LostCause::Damaged(WireError::Control));
                }
                frames.push(frame);
                continue;
            }
            if !frames.is_empty() {
                let frames = std::mem::take(&mut frames);
                self.call(|events| events.frames(self.peer.id, frames));
            }
            match next {
                Ok(Some((_, frame))) => self.control(&frame, now_us)?,
                Ok(None) => return Ok(()),
                Err(error) => return Err(LostCause::Damaged(error)),
            }
        }
    }

    /// Calls the receiver of events, unless another link has taken the place of this one.
    fn call(&self, call: impl FnOnce(&dyn crate::cluster::peer::events::LinkEvents)) {
        let _in_order = self.peer.calls.lock();
        let is_current = {
            let state = self.peer.state.lock();
            state.current.as_ref().is_some_and(|link| link.number == self.link.number)
        };
        if let Some(events) = self.links.events.get().filter(|_| is_current) {
            call(&**events);
        }
    }

    fn control(&mut self, frame: &[u8], now_us: u64) -> Result<(), LostCause> {
        let damaged = |_| LostCause::Damaged(WireError::Control);
        match Control::decode(frame).map_err(damaged)? {
            Some(Control::Ping(ping)) => self.ping(ping, now_us),
            Some(Control::Introduction(introduction)) => {
                let heard = self.links.hear(self.peer, self.link, self.hello.disk, introduction);
                heard.map_err(LostCause::Refused)?;
                if !self.is_introduced {
                    self.is_introduced = true;
                    self.links.connected(self.peer, self.link);
                    self.link.tell(&Control::Followed(self.links.followed.load(Ordering::Acquire)));
                    if let Some(nodes) = self.links.told_nodes() {
                        self.link.tell(&nodes);
                    }
                    self.links.tell_users_on(self.link);
                }
            }
            Some(Control::Facts(facts)) => {
                let is_changed = self.peer.state.lock().note_facts(facts);
                if let Some(local) = self.links.local.get().filter(|_| is_changed) {
                    local.alarm_told();
                }
            }
            Some(Control::Users(users)) => self.peer.state.lock().users = users,
            Some(Control::Refused(code)) => {
                return Err(LostCause::Refused(Refusal::FromPeer(code)));
            }
            Some(Control::Goodbye) => return Err(LostCause::PeerStops),
            Some(Control::Followed(position)) => {
                if let Some(local) = self.links.local.get() {
                    local.followed(self.peer.id, position);
                }
            }
            Some(Control::Nodes(position, nodes)) if self.is_introduced => {
                let set = self.links.set_nodes(&nodes, position);
                let is_new =
                    set.map_err(|error| LostCause::Refused(Refusal::OwnFile(error.to_string())))?;
                if let Some(local) = self.links.local.get().filter(|_| is_new) {
                    local.nodes_told();
                }
            }
            Some(Control::Nodes(..)) => return Err(LostCause::Damaged(WireError::Control)),
            // Of a later version.
            None => {}
        }
        Ok(())
    }

    fn ping(&self, ping: Ping, now_us: u64) {
        let Ping { sent_us, wall_ms, echo } = ping;
        *self.link.heard.lock() = Some((sent_us, now_us));
        if !self.is_introduced {
            return;
        }
        let skew_ms = {
            let mut state = self.peer.state.lock();
            if let Some((ours_us, held_us)) = echo {
                // A peer that holds a ping longer than it takes has no clock.
                state.note_rtt(now_us.saturating_sub(ours_us).saturating_sub(held_us));
            }
            let skew_ms = state.skew.note(wall_ms, self.links.clock.now().wall_ms());
            if state.skew.is_newly_large() {
                tracing::warn!(
                    peer = %self.peer.node.name,
                    skew_ms,
                    "the system's clock of the peer differs from this node's: set both by NTP"
                );
            }
            skew_ms
        };
        self.call(|events| events.clock(self.peer.id, sent_us, now_us, skew_ms));
    }
}

/// The writing half. Ends with an error, or when the link finishes.
async fn write(links: &Links, link: &OpenLink, mut writes: WriteHalf) -> io::Error {
    loop {
        let interval = match link.output.bytes() {
            0 => LINK_PING_ALONE_INTERVAL,
            _ => LINK_PING_INTERVAL,
        };
        let since_ping = link.ping_after(interval, &links.clock);
        let is_finishing = link.is_finishing();
        match write_waiting(&link.output, &mut writes).await {
            Err(error) => return error,
            // The other half has a turn.
            Ok(Remaining::Frames | Remaining::Bytes) => yield_now().await,
            Ok(Remaining::Nothing) if is_finishing => {
                let closed = match &mut writes {
                    WriteHalf::Plain(_) => Ok(()),
                    WriteHalf::Tls(socket) => socket.shutdown().await,
                };
                return closed.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into());
            }
            Ok(Remaining::Nothing) => {
                let until = LINK_PING_ALONE_INTERVAL.saturating_sub(since_ping);
                let until = until.max(Duration::from_millis(1));
                drop(timeout(until, link.output.wakes.notified()).await);
            }
        }
    }
}

/// Writes waiting frames. Waits until the socket takes something, [`LINK_STALL`] at the most.
async fn write_waiting(output: &LinkOutput, writes: &mut WriteHalf) -> io::Result<Remaining> {
    let stalled = || io::Error::from(io::ErrorKind::TimedOut);
    match writes {
        WriteHalf::Plain(socket) => {
            let left = output.write(socket)?;
            if left == Remaining::Bytes {
                timeout(LINK_STALL, socket.writable()).await.map_err(|_| stalled())??;
            }
            Ok(left)
        }
        WriteHalf::Tls(socket) => {
            let mut out = BytesMut::new();
            output.take(&mut out);
            if out.is_empty() {
                return Ok(Remaining::Nothing);
            }
            while !out.is_empty() {
                let written = timeout(LINK_STALL, socket.write_buf(&mut out));
                let written = written.await.map_err(|_| stalled())??;
                if written == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                output.sent(written);
            }
            timeout(LINK_STALL, socket.flush()).await.map_err(|_| stalled())??;
            Ok(Remaining::Frames)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn peer_that_closes_a_link_has_the_last_word() {
        let broken = || LostCause::Closed("broken pipe".to_owned());
        assert_eq!(last_word(broken(), ready(LostCause::PeerStops)).await, LostCause::PeerStops);
        let end = LostCause::Closed("the peer closed it".to_owned());
        assert_eq!(last_word(broken(), ready(end)).await, broken());
        assert_eq!(last_word(LostCause::Stalled, pending()).await, LostCause::Stalled);
    }
}
