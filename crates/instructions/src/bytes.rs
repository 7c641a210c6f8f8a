//! Connections without sockets: bytes in, bytes out, a vhost between them.
//!
//! What the server does with what it has read, but the reading, the locks and the writing: the session
//! makes commands of bytes, up to 64 at a time, the vhost of `crates/replica` applies them, and its effects become bytes
//! in the outboxes of their connections, which are then forgotten as if they were written.

use std::io::IoSlice;
use std::sync::Arc;

use amqp::method::{
    BasicAck, BasicConsume, ChannelOpen, ConfirmSelect, ConnectionOpen, ConnectionStartOk,
    ConnectionTuneOk, Method, QueueDeclare, write_method,
};
use amqp::protocol_header::AMQP_0_9_1;
use amqp::table::Table;
use broker::page::PageTask;
use broker::time::Now;
use broker::{ConnectionId, Effect, Outgoing, Request, Vhost, VhostOptions};
use replica::{ClientEnd, Contents, LocalVhost, NoPages, Surroundings};
use session::{Outbox, Session, SessionOptions, Step};
use storage::{WriteBatch, Written};

use crate::commands::everything;
use crate::samples::FRAME_MAX;

/// Commands that are applied at once.
const COMMANDS: usize = 64;

/// A client's connection.
struct Peer {
    session: Session,
    id: ConnectionId,
    out: Vec<u8>,
}

/// The end of a connection, whose socket takes everything when it is asked.
#[derive(Default, Debug)]
struct End(Outbox);

impl ClientEnd for End {
    fn frame_max(&self) -> u32 {
        FRAME_MAX
    }

    fn append<T>(&mut self, append: impl FnOnce(&mut Outbox) -> T) -> T {
        append(&mut self.0)
    }

    fn set_closing(&mut self) {
        panic!("no case closes a connection");
    }

    fn is_closing(&self) -> bool {
        false
    }

    fn set_stalled(&mut self) {}

    fn unsent(&self) -> u64 {
        self.0.len()
    }
}

/// The surroundings of a vhost of a node alone.
struct Node;

impl Surroundings for Node {
    type Effects<'v> = std::vec::Drain<'v, Effect>;

    fn effects<'v>(&self, vhost: &'v mut Vhost) -> Self::Effects<'v> {
        vhost.drain_effects()
    }

    fn send_internal(&mut self, _: ConnectionId, outgoing: Outgoing) {
        panic!("{outgoing:?} for no client");
    }

    fn page_task(&mut self, task: &PageTask) {
        panic!("{task:?} although nothing limits the memory");
    }

    fn now(&self) -> Now {
        now()
    }
}

/// A vhost with its connections.
pub(crate) struct Clients {
    local: LocalVhost<End, NoPages>,
    peers: Vec<Peer>,
    /// Records of the batch that the log has taken.
    records: WriteBatch,
}

impl Clients {
    /// With so many connections, each with channel 1.
    pub(crate) fn new(peers: usize) -> Self {
        let vhost = Vhost::new("/", [7; 32], VhostOptions::default());
        let local = LocalVhost::alone(Contents::Leads(Box::new(vhost)));
        let mut clients = Self { local, peers: Vec::new(), records: WriteBatch::default() };
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
        let id = self.local.open(now, "client", everything(), true, Some(End::default()));
        self.peers.push(Peer { session, id, out: Vec::new() });
        self.receive(self.peers.len() - 1, &frame(1, ChannelOpen));
    }

    /// Declares a queue over a connection.
    pub(crate) fn queue(&mut self, peer: usize, queue: &str, durable: bool) {
        let arguments = Table::default();
        let declare = QueueDeclare {
            queue,
            passive: false,
            durable,
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
            let mut requests = requests.into_iter();
            let is_much = self.local.apply(now, *id, &mut requests, u64::MAX / 2);
            assert!(!is_much, "all of them are applied");
            self.local.end_batch(&mut Node);
        }
    }

    /// The log takes what waits, and has it on disk.
    pub(crate) fn sync(&mut self) {
        let mut has_more = true;
        while std::mem::take(&mut has_more) {
            has_more = self.local.take_batch(&mut self.records);
            let durable = self.records.last();
            let written = Written { durable, bytes: self.records.bytes() as u64, records: 0 };
            self.records.clear();
            self.local.batch_durable(written);
            self.local.end_batch(&mut Node);
        }
    }

    /// The sockets take everything; how many bytes that was.
    pub(crate) fn write(&mut self) -> usize {
        let mut written = 0;
        for Peer { id, .. } in &self.peers {
            let Some(link) = self.local.clients_mut().get_mut(*id) else { continue };
            let End(outbox) = &mut link.end;
            while !outbox.is_empty() {
                let mut slices = [IoSlice::new(&[]); 64];
                let filled = outbox.slices(&mut slices);
                let count = slices.iter().take(filled).map(|slice| slice.len()).sum();
                outbox.consume(count);
                written += count;
            }
            self.local.report_backlog(now(), *id, 0);
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
