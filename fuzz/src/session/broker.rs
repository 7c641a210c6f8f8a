//! A server without sockets, threads and clock around one vhost: its connections, its log and its pages.
//!
//! Drives the vhost of `crates/replica` as the server does, one thing after the other, and looks after each
//! step whether everything that must hold does.

use std::cell::RefCell;
use std::sync::Arc;

use amqp::method::MethodId;
use amqp::reply_code::ReplyCode;
use broker::page::Paging;
use broker::refusal::Refusal;
use broker::time::{Now, Time};
use broker::{Vhost, VhostOptions};
use replica::{JobProgress, PageJob, Wait};
use session::{Credentials, SessionOptions, Step as Next};
use storage::WriteBatch;

use super::driven::{Log, Paged, local, write_batch};
use super::log::{self, Disk, Replay};
use super::node::{End, Local, Node};
use super::page_store::{PageStore, SMALL_PAGES};
use super::peer::Peer;
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

/// The server.
pub(super) struct Broker {
    pub(super) local: Local,
    pub(super) peers: [Peer; PEERS],
    options: Arc<SessionOptions>,
    setup: Setup,
    now_us: u64,
    pub(super) disk_is_slow: bool,
    log: Log,
    /// Records of the batch that the log has taken.
    records: WriteBatch,
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
            delivers_after_commit: setup.is_replicated(),
            ..VhostOptions::default()
        };
        let session = Arc::new(SessionOptions {
            frame_max: if bit(4) { 8192 } else { 131_072 },
            message_bytes_max: if bit(5) { 100_000 } else { 16 * 1024 * 1024 },
            mechanisms: vec!["AMQPLAIN", "PLAIN"],
            ..SessionOptions::default()
        });
        let begin = Time::from_millis(BEGIN_MS);
        let vhost = Vhost::new("/", [1; 32], options);
        Self {
            local: local(vhost),
            peers: std::array::from_fn(|_| Peer::new(&session, begin)),
            options: session,
            setup,
            now_us: 0,
            disk_is_slow: false,
            log: Log { replay: Replay::default(), disk: Disk::of(&options) },
            records: WriteBatch::default(),
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
            self.local.close(now, connection);
        }
        self.peers[at] = Peer::new(&self.options, now.time);
        self.finish();
    }

    /// A client sends bytes, which arrive in pieces.
    pub(super) fn receive(&mut self, at: usize, bytes: &[u8]) {
        let size = match self.setup.piece() {
            0 => bytes.len().max(1),
            piece => piece,
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
        let mut wire = peer.wire.get_mut();
        let next = peer.session.next(input, wire.outbox.tail());
        match next {
            Next::More => return false,
            Next::PublishBlocked => unreachable!("no alarm is on"),
            Next::Request(request) => {
                drop(wire);
                // Batches of several commands, or of one.
                let is_last = self.setup.bits >> 7 & 1 == 1 || request.command.may_wait();
                let connection = peer.connection.expect("commands come when a vhost is open");
                self.local.apply(now, connection, &mut std::iter::once(request), u64::MAX / 2);
                if is_last {
                    if let Some(Wait::Log(lsn)) = self.end_batch() {
                        self.peers[at].waits_for = Some(lsn);
                    }
                    self.finish();
                }
                self.finish_closing(at);
                return true;
            }
            Next::Login(Credentials { user, password, .. }) => {
                if USERS.iter().any(|(name, _)| *name == user) && password == user.as_bytes() {
                    peer.user = user;
                    peer.session.login_accepted(wire.outbox.tail());
                } else {
                    peer.session.login_refused(now.time, wire.outbox.tail());
                }
            }
            Next::OpenVhost("/") => {
                let pattern =
                    USERS.iter().find(|(name, _)| *name == peer.user).map(|(_, may)| *may);
                let access = access(&peer.user, pattern.expect("a user who has logged in"));
                let cancel_notify = peer.session.client().capabilities.consumer_cancel_notify;
                let end = End { wire: peer.wire.clone(), frame_max: peer.session.frame_max() };
                let id = self.local.open(now, "client", access, cancel_notify, Some(end));
                peer.connection = Some(id);
                peer.session.vhost_opened(now.time, wire.outbox.tail());
            }
            Next::OpenVhost(name) => {
                let refusal = Refusal::not_allowed(format!("vhost {name} not found"));
                peer.session.fail(now.time, &refusal, OPEN, wire.outbox.tail());
            }
            Next::UpdateSecret => peer.session.secret_updated(wire.outbox.tail()),
            Next::Close => {
                drop(wire);
                if let Some(connection) = peer.connection.take() {
                    self.local.close(now, connection);
                }
                self.finish();
                let peer = &mut self.peers[at];
                peer.session.closed(peer.wire.get_mut().outbox.tail());
                self.finish_closing(at);
                return true;
            }
            Next::Over => peer.is_over = true,
        }
        drop(wire);
        self.finish_closing(at);
        true
    }

    /// The session is notified that the core has closed its connection.
    fn finish_closing(&mut self, at: usize) {
        let (now, peer) = (self.now().time, &mut self.peers[at]);
        if peer.wire.get().is_closing && peer.session.is_running() {
            peer.session.start_closing(now);
        }
    }

    /// The socket is closed.
    fn leave(&mut self, at: usize) {
        let now = self.now();
        if let Some(connection) = self.peers[at].connection.take() {
            self.local.close(now, connection);
        }
        self.finish();
    }

    /// Runs an event that no client asked for.
    pub(super) fn happens(&mut self, change: impl FnOnce(&mut Vhost, Now)) {
        let now = self.now();
        change(self.local.serving_mut(), now);
        self.finish();
    }

    /// The broker closes a connection for an operator.
    pub(super) fn force_close(&mut self, at: usize) {
        let Some(connection) = self.peers[at].connection else { return };
        let refusal = Refusal::new(ReplyCode::ConnectionForced, "because");
        self.happens(|vhost, now| vhost.force_close(now, connection, refusal));
    }

    /// Ends a batch. Returns the event that the answer to the last command waits for.
    fn end_batch(&mut self) -> Option<Wait> {
        let now = self.now();
        let mut node = Node { log: RefCell::new(&mut self.log), now };
        self.local.end_batch(&mut node).wait
    }

    /// Ends a batch: the disk takes what waits, pages are written and read, and clients that read take their bytes.
    pub(super) fn finish(&mut self) {
        loop {
            self.end_batch();
            if !self.disk_is_slow {
                self.sync();
            }
            self.do_page_tasks();
            let is_stalled = |peer: &Peer| {
                let wire = peer.wire.get();
                wire.is_stalled && wire.outbox.is_empty()
            };
            for at in 0..PEERS {
                self.finish_closing(at);
                self.peers[at].write(self.setup.piece() * 7 + 1);
            }
            let Some(at) = self.peers.iter().position(is_stalled) else { break };
            self.peers[at].wire.get_mut().is_stalled = false;
            if let Some(connection) = self.peers[at].connection {
                self.local.report_backlog(self.now(), connection, 0);
            }
        }
    }

    /// The disk takes what waits, and clients hear of it.
    fn sync(&mut self) {
        let mut has_more = true;
        while std::mem::take(&mut has_more) {
            has_more = write_batch(&mut self.local, &mut self.records);
            self.end_batch();
        }
        self.peers.iter_mut().for_each(|peer| peer.waits_for = None);
    }

    /// Does page tasks until there are none.
    fn do_page_tasks(&mut self) {
        let mut job = PageJob::default();
        loop {
            let now = self.now();
            let Self { local, page_store, log, .. } = self;
            let Ok(progress) = job.advance(&mut Paged { local, page_store, log, now });
            if progress == JobProgress::Done {
                return;
            }
            self.end_batch();
            job.wake();
        }
    }

    /// Clients whose waiting is over are read again.
    pub(super) fn read_all(&mut self) {
        (0..PEERS).for_each(|at| self.read(at));
    }

    /// Time passes; due work happens in its order.
    pub(super) fn sleep(&mut self, millis: u64) {
        let end_us = self.now_us + millis * 1000;
        let end = Time::from_micros(BEGIN_MS * 1000 + end_us);
        let mut wakes = 0;
        loop {
            let of_peer = |peer: &Peer| peer.session.next_timeout().filter(|_| !peer.is_over);
            let wakes_at =
                self.peers.iter().filter_map(of_peer).chain(self.local.vhost().next_wake()).min();
            let Some(next) = wakes_at.filter(|next| *next <= end) else { break };
            wakes += 1;
            assert!(wakes < WAKES_MAX, "the timer is asked for again and again");
            self.now_us = self.now_us.max(next.as_micros().saturating_sub(BEGIN_MS * 1000));
            let now = self.now();
            if self.local.vhost().next_wake().is_some_and(|wake| wake <= now.time) {
                self.local.tick(now, false);
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
        let (now, vhost) = (self.now(), self.local.vhost());
        let back = self.log.disk.restart(now, vhost);
        self.page_store.assert_same(vhost, &back);
        self.log.disk.compact();
        let back = self.log.disk.restart(now, vhost);
        self.page_store.assert_same(vhost, &back);
        let (vhost, page_store) = back;
        self.local = local(vhost);
        self.page_store = page_store;
        self.finish();
    }

    /// Checks all conditions that hold between two steps.
    pub(super) fn check(&self) {
        let (vhost, Log { replay, disk }) = (self.local.vhost(), &self.log);
        log::check(vhost, Some(&self.page_store), replay, disk, "the last step");
        let connected = self.peers.iter().filter(|peer| peer.connection.is_some()).count();
        assert_eq!(vhost.connections().count(), connected, "connections of nobody");
        self.peers.iter().for_each(Peer::check);
    }
}
