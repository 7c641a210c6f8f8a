//! Connections without sockets: bytes in, bytes out, a vhost between them.
//!
//! What the server does with what it has read, but the reading, the locks and the writing: the session
//! makes commands of bytes, up to 64 at a time, the vhost applies them, and its effects become bytes
//! in the outboxes of their connections, which are then forgotten as if they were written.

use std::io::IoSlice;
use std::sync::Arc;

use amqp::method::{
    BasicAck, BasicConsume, ChannelOpen, ConfirmSelect, ConnectionOpen, ConnectionStartOk,
    ConnectionTuneOk, Method, QueueDeclare, write_method,
};
use amqp::protocol_header::AMQP_0_9_1;
use amqp::table::Table;
use broker::time::Now;
use broker::{ConnectionId, Effect, Request, Vhost, VhostOptions};
use session::{Outbox, Session, SessionOptions, Step, transmit};

use crate::commands::everything;
use crate::samples::FRAME_MAX;

/// Commands that are applied at once.
const COMMANDS: usize = 64;

/// A client's connection.
struct Peer {
    session: Session,
    id: ConnectionId,
    outbox: Outbox,
    out: Vec<u8>,
}

/// A vhost with its connections.
pub(crate) struct Clients {
    vhost: Vhost,
    peers: Vec<Peer>,
}

impl Clients {
    /// With so many connections, each with channel 1.
    pub(crate) fn new(peers: usize) -> Self {
        let mut clients =
            Self { vhost: Vhost::new("/", [7; 32], VhostOptions::default()), peers: Vec::new() };
        for _ in 0..peers {
            clients.connect();
        }
        clients
    }

    fn connect(&mut self) {
        let now = now();
        let mut session = Session::new(Arc::new(SessionOptions::default()), now.time);
        let mut out = Vec::new();
        let mut hear = |session: &mut Session, bytes: &[u8]| {
            let mut input = bytes;
            match session.next(&mut input, &mut out) {
                Step::Login(_) => session.login_accepted(&mut out),
                Step::OpenVhost(_) => session.vhost_opened(now.time, &mut out),
                Step::More => {}
                other => panic!("{other:?}"),
            }
        };
        hear(&mut session, &AMQP_0_9_1);
        let properties = Table::default();
        let start = ConnectionStartOk {
            client_properties: properties.as_ref(),
            mechanism: "PLAIN",
            response: b"\0guest\0guest",
            locale: "en_US",
        };
        hear(&mut session, &frame(0, start));
        let tune = ConnectionTuneOk { channel_max: 2047, frame_max: FRAME_MAX, heartbeat: 0 };
        hear(&mut session, &frame(0, tune));
        hear(&mut session, &frame(0, ConnectionOpen { virtual_host: "/" }));
        assert!(session.is_running(), "the handshake is over");
        let id = self.vhost.open_connection(everything(), true);
        self.peers.push(Peer { session, id, outbox: Outbox::default(), out: Vec::new() });
        self.receive(self.peers.len() - 1, &frame(1, ChannelOpen));
    }

    /// Declares a queue over a connection.
    pub(crate) fn queue(&mut self, peer: usize, queue: &str) {
        let arguments = Table::default();
        let declare = QueueDeclare {
            queue,
            passive: false,
            durable: false,
            exclusive: false,
            auto_delete: false,
            nowait: true,
            arguments: arguments.as_ref(),
        };
        self.receive(peer, &frame(1, declare));
    }

    /// Consumes over a connection.
    pub(crate) fn consume(&mut self, peer: usize, queue: &str, no_ack: bool) {
        let arguments = Table::default();
        let consume = BasicConsume {
            queue,
            consumer_tag: "amq.ctag-x0Y9-fJ0b8KcbO2sVZ6a1w",
            no_local: false,
            no_ack,
            exclusive: false,
            nowait: true,
            arguments: arguments.as_ref(),
        };
        self.receive(peer, &frame(1, consume));
    }

    /// Wants confirms over a connection.
    pub(crate) fn select_confirms(&mut self, peer: usize) {
        self.receive(peer, &frame(1, ConfirmSelect { nowait: true }));
    }

    /// The incoming half of a connection.
    pub(crate) fn session(&mut self, peer: usize) -> &mut Session {
        &mut self.peers.get_mut(peer).expect("a connection").session
    }

    /// A connection's bytes, up to the last.
    pub(crate) fn receive(&mut self, peer: usize, bytes: &[u8]) {
        let mut input = bytes;
        let now = now();
        while !input.is_empty() {
            let Some(Peer { session, id, out, .. }) = self.peers.get_mut(peer) else { return };
            let mut requests: Vec<Request<'_>> = Vec::new();
            while requests.len() < COMMANDS {
                match session.next(&mut input, out) {
                    Step::Request(request) => requests.push(request),
                    Step::More => break,
                    other => panic!("{other:?}"),
                }
            }
            for request in requests {
                self.vhost.apply(now, *id, request);
            }
            self.transmit();
        }
    }

    /// Effects become bytes in outboxes.
    fn transmit(&mut self) {
        self.vhost.flush();
        for effect in self.vhost.drain_effects() {
            let Effect::Send { connection, channel, outgoing } = effect else {
                panic!("{effect:?}");
            };
            if let Some(peer) = self.peers.iter_mut().find(|peer| peer.id == connection) {
                transmit(&outgoing, channel.0, FRAME_MAX, &mut peer.outbox);
            }
        }
    }

    /// The sockets take everything; how many bytes that was.
    pub(crate) fn write(&mut self) -> usize {
        let mut written = 0;
        for Peer { id, outbox, .. } in &mut self.peers {
            while !outbox.is_empty() {
                let mut slices = [IoSlice::new(&[]); 64];
                let filled = outbox.slices(&mut slices);
                let count = slices.iter().take(filled).map(|slice| slice.len()).sum();
                outbox.consume(count);
                written += count;
            }
            self.vhost.set_backlog(now(), *id, 0);
        }
        written
    }
}

fn now() -> Now {
    Now::from_millis(1_000_000)
}

/// A frame with a method.
fn frame<'a>(channel: u16, method: impl Into<Method<'a>>) -> Vec<u8> {
    let mut out = Vec::new();
    write_method(&mut out, channel, &method.into());
    out
}

/// `basic.ack` of the deliveries from `first` on, one by one.
pub(crate) fn acks(first: u64, count: u64) -> Vec<u8> {
    let ack = |delivery_tag| frame(1, BasicAck { delivery_tag, multiple: false });
    (first..first + count).flat_map(ack).collect()
}
