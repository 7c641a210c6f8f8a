//! The vhost of a node with its clients: what the server has behind the lock of a vhost.

use std::collections::BTreeMap;

use amqp::reply_code::ReplyCode;
use broker::refusal::Refusal;
use broker::time::{Now, Time};
use broker::{ChannelNumber, ConnectionId, Lsn, Outgoing, Request, Vhost};
use session::{HeldOutbox, Outbox, Session, Step, transmit};
use storage::WriteBatch;
use vhost_log::LogQueue;

use crate::clients::handshake::{FRAME_MAX, everything, session};
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

/// A client's connection, as the server sees it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) client: usize,
    session: Session,
    input: Vec<u8>,
    free: Outbox,
    held: HeldOutbox,
    /// The position that the answer to the last command waits for.
    wait: Option<Lsn>,
    is_closing: bool,
}

impl Link {
    fn append(&mut self, channel: ChannelNumber, outgoing: &Outgoing) {
        let is_close = matches!(outgoing, Outgoing::ConnectionClose { .. });
        if self.held.is_holding() {
            self.held.append(|outbox| transmit(outgoing, channel.0, FRAME_MAX, outbox));
            if is_close {
                self.held.set_closing();
            }
        } else {
            transmit(outgoing, channel.0, FRAME_MAX, &mut self.free);
            self.is_closing |= is_close;
        }
    }
}

/// An answer that waits for the log.
#[derive(Debug)]
pub(crate) struct Deferred {
    pub(crate) lsn: Lsn,
    pub(crate) connection: ConnectionId,
    pub(crate) channel: ChannelNumber,
    pub(crate) outgoing: Outgoing,
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
    pub(super) links: BTreeMap<ConnectionId, Link>,
    pub(super) log: LogQueue,
    pub(super) deferred: Vec<Deferred>,
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
            links: BTreeMap::new(),
            log: LogQueue::on_axis(),
            deferred: Vec::new(),
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
        let link = Link {
            client,
            session,
            input: Vec::new(),
            free: Outbox::default(),
            held: HeldOutbox::default(),
            wait: None,
            is_closing: false,
        };
        self.links.insert(id, link);
        Some(id)
    }

    /// The client is gone.
    pub(crate) fn disconnect(&mut self, connection: ConnectionId, now: Now) {
        if self.links.remove(&connection).is_some()
            && let Some(vhost) = self.leading()
        {
            vhost.close_connection(now, connection);
            self.finish(now, &[]);
        }
    }

    /// Octets of a client.
    pub(crate) fn receive(&mut self, connection: ConnectionId, bytes: &[u8], now: Now) {
        let Some(link) = self.links.get_mut(&connection) else { return };
        link.input.extend_from_slice(bytes);
        self.process(connection, now);
    }

    /// Applies the commands of a client, up to the first whose answer waits.
    fn process(&mut self, connection: ConnectionId, now: Now) {
        loop {
            if self.is_frozen {
                return;
            }
            let durable = self.durable;
            let Some(link) = self.links.get_mut(&connection) else { return };
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
            let wait = self.finish(now, &[]);
            if let Some(link) = self.links.get_mut(&connection) {
                link.input = rest;
                link.wait = wait;
            }
        }
    }

    /// The sockets of stalled connections have taken everything: each report is a batch of its own.
    pub(crate) fn sockets_have_room(&mut self, now: Now) {
        for connection in std::mem::take(&mut self.stalled) {
            let backlog = self.backlog(connection);
            if self.links.contains_key(&connection) {
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
            self.finish(now, &[]);
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
            self.finish(now, &[]);
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
        let waiting: Vec<ConnectionId> = self.links.keys().copied().collect();
        waiting.into_iter().for_each(|connection| self.process(connection, now));
    }

    /// Takes the next batch. True if more records wait.
    pub(crate) fn take_batch(&mut self, batch: &mut WriteBatch) -> bool {
        self.log.take_batch(batch)
    }

    /// A majority has everything up to `durable`.
    pub(crate) fn batch_durable(&mut self, durable: Lsn, now: Now) {
        let Some(vhost) = self.leading() else { return };
        vhost.durable(durable);
        let is_durable = |reply: &mut Deferred| reply.lsn <= durable;
        let replies: Vec<Deferred> = self.deferred.extract_if(.., is_durable).collect();
        self.durable = self.durable.max(durable);
        self.finish(now, &replies);
        let waiting: Vec<ConnectionId> = self.links.keys().copied().collect();
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
        self.finish(now, &[]);
    }

    /// Closes all clients and gives the contents up.
    pub(crate) fn depose(&mut self, now: Now) {
        let sends_held = self.sabotage == Some(Sabotage::SendHeldWhenDeposed);
        let refusal = Refusal::new(ReplyCode::ConnectionForced, "the leader has changed");
        let connections: Vec<ConnectionId> = self.links.keys().copied().collect();
        for connection in connections {
            let Some(link) = self.links.get_mut(&connection) else { continue };
            if sends_held {
                let _ = link.held.release(Lsn(u64::MAX), &mut link.free);
            }
            link.held.clear();
            if let Some(vhost) = self.leading() {
                vhost.force_close(now, connection, refusal.clone());
            }
        }
        if self.leading().is_some() {
            self.finish(now, &[]);
        }
        for link in std::mem::take(&mut self.links).into_values() {
            self.departed.push(Departed { client: link.client, bytes: Vec::new(), is_last: true });
        }
        self.deferred.clear();
        self.log = LogQueue::on_axis();
        self.brain = Brain::Gone;
    }

    /// Sends the answers that waited, in front of everything else.
    pub(super) fn answer(&mut self, replies: &[Deferred]) {
        for reply in replies {
            if let Some(link) = self.links.get_mut(&reply.connection) {
                link.append(reply.channel, &reply.outgoing);
            }
        }
    }

    /// Sends a method to a client.
    pub(super) fn send(
        &mut self,
        connection: ConnectionId,
        channel: ChannelNumber,
        outgoing: &Outgoing,
    ) {
        if let Some(link) = self.links.get_mut(&connection) {
            link.append(channel, outgoing);
        }
    }

    pub(super) fn hold(&mut self, connection: ConnectionId) {
        if self.sabotage == Some(Sabotage::DeliverBeforeCommit) {
            return;
        }
        if let Some(link) = self.links.get_mut(&connection) {
            link.held.hold();
        }
    }

    /// The backlog to tell the core: sockets take everything at once.
    pub(super) fn backlog(&self, connection: ConnectionId) -> u64 {
        self.links.get(&connection).map_or(0, |link| link.held.backlog(0))
    }

    pub(super) fn holds_with_room(&self, connection: ConnectionId) -> bool {
        let link = self.links.get(&connection);
        link.is_some_and(|link| !link.held.is_holding() || link.held.has_room())
    }

    /// Frees what is durable behind a batch that ends at `last`. Returns connections that the core must be told of.
    pub(super) fn release(&mut self, last: Lsn) -> Vec<ConnectionId> {
        let mut told = Vec::new();
        for (connection, link) in &mut self.links {
            if !link.held.is_holding() {
                continue;
            }
            link.held.end_batch(last);
            let released = link.held.release(self.durable, &mut link.free);
            link.is_closing |= released.is_closing;
            if released.has_room_again {
                told.push(*connection);
            }
        }
        told
    }

    /// Takes what leaves for the clients.
    pub(super) fn depart(&mut self, now: Now) {
        let mut closed = Vec::new();
        for (connection, link) in &mut self.links {
            let bytes = take(&mut link.free);
            if bytes.is_empty() {
                continue;
            }
            let is_last = link.is_closing;
            if is_last {
                closed.push(*connection);
            }
            self.departed.push(Departed { client: link.client, bytes, is_last });
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
