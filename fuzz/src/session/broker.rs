//! A server without sockets, threads and clock around one vhost: its connections, its log and its pages.
//!
//! Does with effects and steps what the server does, one thing after the other, and looks after each
//! step whether everything that must hold does.

use std::sync::Arc;

use amqp::method::MethodId;
use amqp::reply_code::ReplyCode;
use broker::page::{PageTask, Paging};
use broker::refusal::Refusal;
use broker::time::{Now, Time};
use broker::{ChannelNumber, ConnectionId, Effect, Outgoing, Request, Vhost, VhostOptions};
use session::{Credentials, SessionOptions, Step as Next, transmit};

use super::log::{self, Disk, Replay};
use super::page_store::{PageStore, SMALL_PAGES};
use super::peer::{Peer, Wait};
use super::steps::{PEERS, Setup};
use super::words::handshake;
use crate::users::access;

/// Beginning of a history, in milliseconds since the epoch.
const BEGIN_MS: u64 = 1_000_000_000;

/// The method that an error in opening a vhost names.
const OPEN: MethodId = MethodId { class_id: 10, method_id: 40 };

/// So often the timer may be asked for at one moment.
const WAKES_MAX: usize = 20_000;

/// Users, each with himself as password, and what they may do.
pub(super) const USERS: [(&str, &str); 2] = [("guest", ".*"), ("bob", "^(b|$|amq\\.)")];

/// An answer that waits for the log.
struct Held {
    connection: ConnectionId,
    channel: ChannelNumber,
    outgoing: Outgoing,
}

/// The server.
pub(super) struct Broker {
    pub(super) vhost: Vhost,
    pub(super) peers: [Peer; PEERS],
    options: Arc<SessionOptions>,
    setup: Setup,
    now_us: u64,
    pub(super) disk_is_slow: bool,
    held: Vec<Held>,
    replay: Replay,
    disk: Disk,
    page_store: PageStore,
}

impl Broker {
    pub(super) fn new(setup: Setup) -> Self {
        let bit = |place: u8| setup.bits >> place & 1 == 1;
        let options = VhostOptions {
            paging: if bit(0) { SMALL_PAGES } else { Paging::default() },
            permits_global_qos: !bit(1),
            consumers_per_channel_max: bit(2).then_some(2),
            queues_max: bit(3).then_some(4),
            ..VhostOptions::default()
        };
        let session = Arc::new(SessionOptions {
            frame_max: if bit(4) { 8192 } else { 131_072 },
            message_bytes_max: if bit(5) { 100_000 } else { 16 * 1024 * 1024 },
            mechanisms: vec!["AMQPLAIN", "PLAIN"],
            ..SessionOptions::default()
        });
        let begin = Time::from_millis(BEGIN_MS);
        Self {
            vhost: Vhost::new("/", [1; 32], options),
            peers: std::array::from_fn(|_| Peer::new(&session, begin)),
            options: session,
            setup,
            now_us: 0,
            disk_is_slow: false,
            held: Vec::new(),
            replay: Replay::default(),
            disk: Disk::default(),
            page_store: PageStore::default(),
        }
    }

    pub(super) fn now(&self) -> Now {
        let time = Time::from_micros(BEGIN_MS * 1000 + self.now_us);
        Now { time, wall_us: BEGIN_MS * 1000 + self.now_us }
    }

    /// The largest frame that clients agree to.
    pub(super) fn frame_max(&self) -> u32 {
        self.options.frame_max
    }

    /// A new client connects in the place of an old one; the last of them is a user with few permissions.
    pub(super) fn connect(&mut self, at: usize) {
        self.cut(at);
        let (user, _) = USERS[usize::from(at + 1 == PEERS)];
        let heartbeat = if self.setup.bits >> 6 & 1 == 1 { 2 } else { 0 };
        let bytes = handshake(user, self.options.frame_max, heartbeat);
        self.receive(at, &bytes);
    }

    /// A connection breaks, and a new client takes its place.
    pub(super) fn cut(&mut self, at: usize) {
        let now = self.now();
        if let Some(connection) = self.peers[at].connection {
            self.vhost.close_connection(now, connection);
        }
        self.peers[at] = Peer::new(&self.options, now.time);
        self.finish();
    }

    /// A client sends bytes, which arrive in pieces.
    pub(super) fn receive(&mut self, at: usize, bytes: &[u8]) {
        let size = match self.setup.pieces {
            0 => bytes.len().max(1),
            pieces => usize::from(pieces),
        };
        for piece in bytes.chunks(size) {
            let now = self.now().time;
            let peer = &mut self.peers[at];
            if peer.is_over {
                return;
            }
            peer.unread.extend_from_slice(piece);
            peer.session.received(now);
            self.read(at);
        }
    }

    /// Understands what one client has sent, as far as the server reads from it.
    fn read(&mut self, at: usize) {
        let buffer = std::mem::take(&mut self.peers[at].unread);
        let mut input = buffer.as_slice();
        while self.peers[at].is_read() && self.read_one(at, &mut input) {}
        self.peers[at].unread = input.to_vec();
        self.finish();
        if self.peers[at].is_over {
            self.leave(at);
        }
    }

    /// Understands the next thing; whether there may be more.
    fn read_one(&mut self, at: usize, input: &mut &[u8]) -> bool {
        let (now, peer) = (self.now(), &mut self.peers[at]);
        match peer.session.next(input, peer.outbox.tail()) {
            Next::More => return false,
            Next::PublishBlocked => unreachable!("no alarm is on"),
            Next::Request(request) => {
                self.apply(at, request);
                // Batches of several commands, or of one.
                if self.setup.bits >> 7 & 1 == 1 || matches!(self.peers[at].wait, Wait::Log(_)) {
                    self.finish();
                }
            }
            Next::Login(Credentials { user, password, .. }) => {
                if USERS.iter().any(|(name, _)| *name == user) && password == user.as_bytes() {
                    peer.user = user;
                    peer.session.login_accepted(peer.outbox.tail());
                } else {
                    peer.session.login_refused(now.time, peer.outbox.tail());
                }
            }
            Next::OpenVhost("/") => {
                let pattern =
                    USERS.iter().find(|(name, _)| *name == peer.user).map(|(_, may)| *may);
                let access = access(&peer.user, pattern.expect("a user who has logged in"));
                let cancel_notify = peer.session.client().capabilities.consumer_cancel_notify;
                peer.connection = Some(self.vhost.open_connection(access, cancel_notify));
                peer.session.vhost_opened(now.time, peer.outbox.tail());
            }
            Next::OpenVhost(name) => {
                let refusal = Refusal::not_allowed(format!("vhost {name} not found"));
                peer.session.fail(now.time, &refusal, OPEN, peer.outbox.tail());
            }
            Next::UpdateSecret => peer.session.secret_updated(peer.outbox.tail()),
            Next::Close => {
                if let Some(connection) = peer.connection.take() {
                    self.vhost.close_connection(now, connection);
                }
                self.finish();
                let peer = &mut self.peers[at];
                peer.session.closed(peer.outbox.tail());
            }
            Next::Over => peer.is_over = true,
        }
        self.finish_closing(at);
        true
    }

    fn apply(&mut self, at: usize, request: Request<'_>) {
        let (now, peer) = (self.now(), &self.peers[at]);
        let connection = peer.connection.expect("commands come when a vhost is open");
        self.vhost.set_backlog(now, connection, peer.outbox.len());
        self.vhost.apply(now, connection, request);
        self.carry_out();
    }

    /// The session is notified that the core has closed its connection.
    fn finish_closing(&mut self, at: usize) {
        let (now, peer) = (self.now().time, &mut self.peers[at]);
        if peer.is_closing && peer.session.is_running() {
            peer.session.start_closing(now);
        }
    }

    /// The socket is closed.
    fn leave(&mut self, at: usize) {
        let now = self.now();
        if let Some(connection) = self.peers[at].connection.take() {
            self.vhost.close_connection(now, connection);
        }
        self.finish();
    }

    /// Runs an event that no client asked for.
    pub(super) fn happens(&mut self, change: impl FnOnce(&mut Vhost, Now)) {
        let now = self.now();
        change(&mut self.vhost, now);
        self.finish();
    }

    /// The broker closes a connection for an operator.
    pub(super) fn force_close(&mut self, at: usize) {
        let Some(connection) = self.peers[at].connection else { return };
        let refusal = Refusal::new(ReplyCode::ConnectionForced, "because");
        self.happens(|vhost, now| vhost.force_close(now, connection, refusal));
    }

    /// Ends a batch: the durable position is reported, clients that read take their bytes.
    pub(super) fn finish(&mut self) {
        loop {
            if !self.disk_is_slow {
                self.vhost.durable(self.vhost.last_lsn());
                self.release();
            }
            self.vhost.flush();
            self.carry_out();
            let is_stalled = |peer: &Peer| peer.is_stalled && peer.outbox.is_empty();
            for at in 0..PEERS {
                self.finish_closing(at);
                self.peers[at].write(usize::from(self.setup.pieces) * 7 + 1);
            }
            let Some(at) = self.peers.iter().position(is_stalled) else { break };
            self.peers[at].is_stalled = false;
            if let Some(connection) = self.peers[at].connection {
                self.vhost.set_backlog(self.now(), connection, 0);
            }
        }
    }

    /// Answers that have waited for the log go out.
    fn release(&mut self) {
        for Held { connection, channel, outgoing } in std::mem::take(&mut self.held) {
            self.send(connection, channel, &outgoing);
        }
        self.peers.iter_mut().for_each(|peer| peer.wait = Wait::Nothing);
    }

    /// Clients whose waiting is over are read again.
    pub(super) fn read_all(&mut self) {
        (0..PEERS).for_each(|at| self.read(at));
    }

    /// Carries out effects until there are none.
    fn carry_out(&mut self) {
        loop {
            let (tasks, asked) = self.hear();
            if tasks.is_empty() && asked.is_empty() {
                return;
            }
            let now = self.now();
            for connection in asked {
                let unsent = self.peer(connection).map_or(0, |peer| peer.outbox.len());
                self.vhost.set_backlog(now, connection, unsent);
            }
            for task in tasks {
                self.page_store.perform(task, &mut self.vhost, now, &mut self.disk);
            }
        }
    }

    /// Takes the effects; work for the pager and questions are left.
    fn hear(&mut self) -> (Vec<PageTask>, Vec<ConnectionId>) {
        let (mut tasks, mut asked) = (Vec::new(), Vec::new());
        let effects: Vec<Effect> = self.vhost.drain_effects().collect();
        for effect in effects {
            match effect {
                Effect::Page(task) => tasks.push(task),
                Effect::AskBacklog(connection) => asked.push(connection),
                Effect::Log { ref record, .. } => {
                    self.replay.apply(record);
                    self.disk.write(&effect);
                }
                Effect::Stalled(connection) => {
                    if let Some(peer) = self.peer(connection) {
                        peer.is_stalled = true;
                    }
                }
                Effect::Send { connection, channel, outgoing } => {
                    self.send(connection, channel, &outgoing);
                }
                Effect::SendDurable { lsn, connection, channel, outgoing } => {
                    if let Some(peer) = self.peer(connection) {
                        peer.wait = Wait::Log(lsn);
                    }
                    self.held.push(Held { connection, channel, outgoing });
                }
                Effect::AwaitGet(_) | Effect::Hold(_) | Effect::Event(_) => {}
            }
        }
        (tasks, asked)
    }

    fn send(&mut self, connection: ConnectionId, channel: ChannelNumber, outgoing: &Outgoing) {
        // A client that is gone gets nothing.
        let Some(peer) = self.peer(connection) else { return };
        transmit(outgoing, channel.0, peer.frame_max(), &mut peer.outbox);
        peer.is_closing |= matches!(outgoing, Outgoing::ConnectionClose { .. });
    }

    fn peer(&mut self, connection: ConnectionId) -> Option<&mut Peer> {
        self.peers.iter_mut().find(|peer| peer.connection == Some(connection))
    }

    /// Time passes; due work happens in its order.
    pub(super) fn sleep(&mut self, millis: u64) {
        let end_us = self.now_us + millis * 1000;
        let end = Time::from_micros(BEGIN_MS * 1000 + end_us);
        let mut wakes = 0;
        loop {
            let of_peer = |peer: &Peer| peer.session.next_timeout().filter(|_| !peer.is_over);
            let wakes_at =
                self.peers.iter().filter_map(of_peer).chain(self.vhost.next_wake()).min();
            let Some(next) = wakes_at.filter(|next| *next <= end) else { break };
            wakes += 1;
            assert!(wakes < WAKES_MAX, "the timer is asked for again and again");
            self.now_us = self.now_us.max(next.as_micros().saturating_sub(BEGIN_MS * 1000));
            let now = self.now();
            if self.vhost.next_wake().is_some_and(|wake| wake <= now.time) {
                self.vhost.tick(now);
                self.finish();
            }
            for at in 0..PEERS {
                if of_peer(&self.peers[at]).is_some_and(|timeout| timeout <= now.time) {
                    self.peers[at].tick(now.time);
                    self.finish();
                    if self.peers[at].is_over {
                        self.leave(at);
                    }
                }
            }
        }
        self.now_us = end_us;
    }

    /// The broker comes back with what is in its log; its clients are gone.
    pub(super) fn restart(&mut self) {
        self.disk_is_slow = false;
        (0..PEERS).for_each(|at| self.cut(at));
        self.check();
        let back = self.disk.restart(self.now(), &self.vhost);
        self.page_store.assert_same(&self.vhost, &back);
        self.disk.compact();
        let back = self.disk.restart(self.now(), &self.vhost);
        self.page_store.assert_same(&self.vhost, &back);
        (self.vhost, self.page_store) = back;
        self.finish();
    }

    /// Checks all conditions that hold between two steps.
    pub(super) fn check(&self) {
        log::check(&self.vhost, Some(&self.page_store), &self.replay, &self.disk, "the last step");
        let connected = self.peers.iter().filter(|peer| peer.connection.is_some()).count();
        assert_eq!(self.vhost.connections().count(), connected, "connections of nobody");
        self.peers.iter().for_each(Peer::check);
    }
}
