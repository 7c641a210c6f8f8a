//! The vhost of a node with its clients: what the server has behind the lock of a vhost.

use amqp::reply_code::ReplyCode;
use broker::refusal::Refusal;
use broker::time::{Now, Time};
use broker::{ConnectionId, Lsn, Request, Vhost};
use replica::{ClientEnd, DeferredReply, VhostOutputs, Wait, close_all};
use session::{Outbox, Session, Step};
use storage::WriteBatch;
use vhost_log::LogQueue;

use crate::clients::handshake::{FRAME_MAX, everything, session};
use crate::cluster::effects::Sabotaged;
use crate::cluster::follower::Follower;
use crate::faults::sabotage::Sabotage;

/// Commands that are applied at once.
const COMMANDS_MAX: usize = 64;

/// The state machine of the vhost on a node.
#[derive(Debug)]
pub(crate) enum Brain {
    Leads(Box<Vhost>),
    Follows(Box<Follower>),
    /// The contents are given up.
    Gone,
}

/// The end of a client's connection, with the client's octets that wait for their turn.
#[derive(Debug)]
pub(crate) struct SimEnd {
    pub(crate) client: usize,
    session: Session,
    input: Vec<u8>,
    free: Outbox,
    /// The position that the answer to the last command waits for.
    wait: Option<Lsn>,
    is_closing: bool,
    is_stalled: bool,
}

impl ClientEnd for SimEnd {
    fn frame_max(&self) -> u32 {
        FRAME_MAX
    }

    fn append<T>(&mut self, append: impl FnOnce(&mut Outbox) -> T) -> T {
        append(&mut self.free)
    }

    fn set_closing(&mut self) {
        self.is_closing = true;
    }

    fn is_closing(&self) -> bool {
        self.is_closing
    }

    fn set_stalled(&mut self) {
        self.is_stalled = true;
    }

    /// Sockets take everything at once.
    fn unsent(&self) -> u64 {
        0
    }
}

/// Octets that leave for a client.
#[derive(Debug)]
pub(crate) struct Departed {
    pub(crate) client: usize,
    pub(crate) bytes: Vec<u8>,
    /// The connection is over behind them.
    pub(crate) is_last: bool,
}

/// The vhost of a node.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) brain: Brain,
    outputs: VhostOutputs<SimEnd>,
    pub(crate) durable: Lsn,
    /// Octets that leave, in order.
    pub(crate) departed: Vec<Departed>,
    /// Connections whose sockets report that they have room.
    pub(super) stalled: Vec<ConnectionId>,
    /// True once the replicator must take records.
    pub(crate) wakes: bool,
    /// True while another node is to lead: commands of clients and due work wait.
    pub(crate) is_frozen: bool,
    pub(super) sabotage: Option<Sabotage>,
}

impl Serving {
    pub(crate) fn new(follower: Follower, durable: Lsn, sabotage: Option<Sabotage>) -> Self {
        Self {
            brain: Brain::Follows(Box::new(follower)),
            outputs: VhostOutputs::new(LogQueue::on_axis()),
            durable,
            departed: Vec::new(),
            stalled: Vec::new(),
            wakes: false,
            is_frozen: false,
            sabotage,
        }
    }

    pub(crate) fn leading(&mut self) -> Option<&mut Vhost> {
        match &mut self.brain {
            Brain::Leads(vhost) => Some(vhost),
            Brain::Follows(_) | Brain::Gone => None,
        }
    }

    pub(super) fn vhost(&mut self) -> &mut Vhost {
        self.leading().expect("a vhost has clients only on the node that leads it")
    }

    /// Opens a connection of a client. `None` if the node does not lead the vhost.
    pub(crate) fn connect(&mut self, client: usize, now: Now) -> Option<ConnectionId> {
        let vhost = self.leading()?;
        let id = vhost.open_connection(everything(), true);
        let session = session(now.time);
        let end = SimEnd {
            client,
            session,
            input: Vec::new(),
            free: Outbox::default(),
            wait: None,
            is_closing: false,
            is_stalled: false,
        };
        self.outputs.links.insert(id, end);
        Some(id)
    }

    /// The client is gone.
    pub(crate) fn disconnect(&mut self, connection: ConnectionId, now: Now) {
        if self.outputs.links.remove(connection).is_some()
            && let Some(vhost) = self.leading()
        {
            vhost.close_connection(now, connection);
            self.finish(now, Vec::new());
        }
    }

    /// Octets of a client.
    pub(crate) fn receive(&mut self, connection: ConnectionId, bytes: &[u8], now: Now) {
        let Some(link) = self.outputs.links.get_mut(connection) else { return };
        link.end.input.extend_from_slice(bytes);
        self.process(connection, now);
    }

    /// Applies the commands of a client, up to the first whose answer waits.
    fn process(&mut self, connection: ConnectionId, now: Now) {
        loop {
            if self.is_frozen {
                return;
            }
            let durable = self.durable;
            let Some(link) = self.outputs.links.get_mut(connection) else { return };
            let link = &mut link.end;
            if link.wait.is_some_and(|lsn| lsn > durable) {
                return;
            }
            link.wait = None;
            let taken = std::mem::take(&mut link.input);
            let mut input = taken.as_slice();
            let mut requests: Vec<Request<'_>> = Vec::new();
            let mut out = Vec::new();
            while requests.len() < COMMANDS_MAX {
                match link.session.next(&mut input, &mut out) {
                    Step::Request(request) => {
                        let may_wait = request.command.may_wait();
                        requests.push(request);
                        if may_wait {
                            break;
                        }
                    }
                    Step::More | Step::Over => break,
                    step => panic!("a client of the simulation asks for {step:?}"),
                }
            }
            if requests.is_empty() {
                link.input = input.to_vec();
                return;
            }
            let Some(vhost) = self.leading() else { return };
            for request in requests {
                vhost.apply(now, connection, request);
            }
            let rest = input.to_vec();
            let wait = self.finish(now, Vec::new());
            if let Some(link) = self.outputs.links.get_mut(connection) {
                link.end.input = rest;
                link.end.wait = wait;
            }
        }
    }

    /// The sockets of stalled connections have taken everything: each report is a batch of its own.
    pub(crate) fn sockets_have_room(&mut self, now: Now) {
        for connection in std::mem::take(&mut self.stalled) {
            if let Some(link) = self.outputs.links.get(connection) {
                let backlog = link.backlog(0);
                self.write(now, |vhost| vhost.set_backlog(now, connection, backlog));
            }
        }
    }

    /// Does what is due.
    pub(crate) fn tick(&mut self, now: Now) {
        while !self.is_frozen
            && let Some(vhost) = self.leading()
        {
            vhost.tick(now);
            let is_due = vhost.next_wake().is_some_and(|wake| wake <= now.time);
            self.finish(now, Vec::new());
            if !is_due {
                return;
            }
        }
    }

    pub(crate) fn next_wake(&mut self) -> Option<Time> {
        self.leading()?.next_wake()
    }

    /// A change of the vhost from within the node.
    pub(crate) fn write(&mut self, now: Now, change: impl FnOnce(&mut Vhost)) {
        if let Some(vhost) = self.leading() {
            change(vhost);
            self.finish(now, Vec::new());
        }
    }

    /// Lets everything wait, because another node is to lead.
    pub(crate) fn freeze(&mut self, now: Now) {
        self.is_frozen = true;
        self.write(now, |vhost| vhost.hand_over(now));
    }

    /// Goes on after all.
    pub(crate) fn resume(&mut self, now: Now) {
        self.is_frozen = false;
        self.write(now, |vhost| vhost.deliver_again(now));
        let waiting = self.connections();
        waiting.into_iter().for_each(|connection| self.process(connection, now));
    }

    /// Takes the next batch. True if more records wait.
    pub(crate) fn take_batch(&mut self, batch: &mut WriteBatch) -> bool {
        self.outputs.log.take_batch(batch)
    }

    /// A majority has everything up to `durable`.
    pub(crate) fn batch_durable(&mut self, durable: Lsn, now: Now) {
        let Some(vhost) = self.leading() else { return };
        vhost.durable(durable);
        let replies = self.outputs.take_durable(durable);
        self.durable = self.durable.max(durable);
        self.finish(now, replies);
        let waiting = self.connections();
        waiting.into_iter().for_each(|connection| self.process(connection, now));
    }

    /// Makes a vhost of the replica, which has applied everything up to `last`.
    pub(crate) fn promote(&mut self, now: Now, last: storage::Lsn) {
        let Brain::Follows(follower) = std::mem::replace(&mut self.brain, Brain::Gone) else {
            panic!("a vhost is promoted that leads already");
        };
        let marks = self.sabotage != Some(Sabotage::MarksForgotten);
        let mut vhost = follower.promote(now, last, marks);
        vhost.log_digest(now);
        self.brain = Brain::Leads(Box::new(vhost));
        self.durable = Lsn(last.0);
        self.finish(now, Vec::new());
    }

    /// Closes all clients and gives the contents up.
    pub(crate) fn depose(&mut self, now: Now) {
        let sends_held = self.sabotage == Some(Sabotage::SendHeldWhenDeposed);
        let refusal = Refusal::new(ReplyCode::ConnectionForced, "the leader has changed");
        if let Brain::Leads(vhost) = &mut self.brain {
            if sends_held {
                self.outputs.links.release(vhost.last_lsn(), Lsn(u64::MAX), &mut |_, _, _| ());
            }
            close_all(vhost, now, &refusal);
            self.finish(now, Vec::new());
            self.outputs.abandon(&refusal);
            self.depart(now);
        }
        let outputs = VhostOutputs::new(LogQueue::on_axis());
        for (_, link) in std::mem::replace(&mut self.outputs, outputs).links.iter() {
            let client = link.end.client;
            self.departed.push(Departed { client, bytes: Vec::new(), is_last: true });
        }
        self.brain = Brain::Gone;
    }

    fn connections(&self) -> Vec<ConnectionId> {
        self.outputs.links.iter().map(|(connection, _)| connection).collect()
    }

    /// Ends a batch: sends `replies`, applies all effects, and frees what is durable. Returns the position that the
    /// answer to the last command waits for.
    fn finish(&mut self, now: Now, replies: Vec<DeferredReply>) -> Option<Lsn> {
        let Brain::Leads(vhost) = &mut self.brain else {
            panic!("a vhost has clients only on the node that leads it")
        };
        let mut surroundings = Sabotaged { sabotage: self.sabotage, now };
        let batch = self.outputs.end_batch(vhost, replies, Some(self.durable), &mut surroundings);
        for connection in batch.touched {
            let Some(link) = self.outputs.links.get_mut(connection) else { continue };
            if std::mem::take(&mut link.end.is_stalled) {
                self.stalled.push(connection);
            }
        }
        self.wakes |= self.outputs.log.wakes_writer();
        self.depart(now);
        batch.wait.map(|wait| match wait {
            Wait::Log(lsn) => lsn,
            Wait::Page(_) => panic!("a page is read although nothing limits the memory"),
        })
    }

    /// Takes what leaves for the clients.
    fn depart(&mut self, now: Now) {
        let mut closed = Vec::new();
        for connection in self.connections() {
            let Some(link) = self.outputs.links.get_mut(connection) else { continue };
            let bytes = take(&mut link.end.free);
            if bytes.is_empty() {
                continue;
            }
            let (client, is_last) = (link.end.client, link.end.is_closing);
            if is_last {
                closed.push(connection);
            }
            self.departed.push(Departed { client, bytes, is_last });
        }
        for connection in closed {
            self.disconnect(connection, now);
        }
    }
}

/// Takes everything that is free.
fn take(free: &mut Outbox) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !free.is_empty() {
        let mut slices = [std::io::IoSlice::new(&[]); 8];
        let filled = free.slices(&mut slices);
        let before = bytes.len();
        slices.iter().take(filled).for_each(|slice| bytes.extend_from_slice(slice));
        free.consume(bytes.len() - before);
    }
    bytes
}
