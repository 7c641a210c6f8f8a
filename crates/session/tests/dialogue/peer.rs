//! A server without sockets around one session: a vhost, an outbox, a clock that is set.
//!
//! Bytes of the client go in; what the session asks and what the client gets comes out, in order.
//! Requests are applied in batches, effects are transmitted and the session's own words follow them,
//! as a server does it. Knows two users, `guest` and `bob`, and the vhost `/`, which is guest's.

use std::io::IoSlice;
use std::sync::Arc;

use amqp::method::MethodId;
use broker::access::Access;
use broker::refusal::Refusal;
use broker::time::{Now, Time};
use broker::{Command, ConnectionId, Effect, Outgoing, Request, Vhost, VhostOptions};
use session::{Alive, Credentials, Outbox, Session, SessionOptions, Step, Traffic, transmit};

/// The method that an error in opening a vhost names.
const OPEN: MethodId = MethodId { class_id: 10, method_id: 40 };

/// Begin of the connection, in milliseconds since the epoch.
const BEGIN_MS: u64 = 1_000_000_000;

/// Requests that a server applies at once; with 1 each is applied before the next byte is read.
pub(crate) const BATCH: usize = 256;

/// Output of the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Heard {
    /// Bytes for the client.
    Bytes(Vec<u8>),
    /// The session asks the server a question, or reports to it.
    Question(String),
    /// The server closes the socket.
    Closed,
}

/// A question of the session that is not answered.
enum Question {
    Login(Credentials),
    Open(String),
    UpdateSecret,
}

/// Client and server in one.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the two")]
pub(crate) struct Peer {
    pub(crate) session: Session,
    pub(crate) vhost: Vhost,
    connection: Option<ConnectionId>,
    outbox: Outbox,
    unread: Vec<u8>,
    heard: Vec<Heard>,
    batch: usize,
    frame_max: u32,
    user: String,
    /// The vhost has sent `connection.close`.
    is_closing: bool,
    now_us: u64,
    wrote: bool,
    question: Option<Question>,
    /// Questions are not answered until the dialogue says so.
    pub(crate) holds_answers: bool,
    /// The server reads from this client.
    pub(crate) listens: bool,
    /// An alarm keeps this client from publishing.
    publishes_blocked: bool,
    pub(crate) is_over: bool,
}

impl Peer {
    pub(crate) fn new(options: &SessionOptions, batch: usize) -> Self {
        let session = Session::new(Arc::new(options.clone()), Time::from_millis(BEGIN_MS));
        Self {
            session,
            vhost: Vhost::new("/", [7; 32], VhostOptions::default()),
            connection: None,
            outbox: Outbox::default(),
            unread: Vec::new(),
            heard: Vec::new(),
            batch,
            frame_max: options.frame_max,
            user: String::new(),
            is_closing: false,
            now_us: 0,
            wrote: false,
            question: None,
            holds_answers: false,
            listens: true,
            publishes_blocked: false,
            is_over: false,
        }
    }

    /// The output since the last call.
    pub(crate) fn take_heard(&mut self) -> Vec<Heard> {
        std::mem::take(&mut self.heard)
    }

    pub(crate) fn now(&self) -> Now {
        let time = Time::from_micros(BEGIN_MS * 1000 + self.now_us);
        Now { time, wall_us: BEGIN_MS * 1000 + self.now_us }
    }

    /// The client sends bytes.
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        if self.is_over {
            return;
        }
        self.unread.extend_from_slice(bytes);
        self.session.received(self.now().time);
        self.process();
        let most = 3 * (u64::from(self.session.frame_max()) + 8);
        let waits = self.question.is_some() || self.publishes_blocked;
        let unread = u64::try_from(self.unread.len()).unwrap();
        assert!(waits || unread < most, "{unread} bytes are not understood");
        let broken = self.vhost.broken_invariants();
        assert!(broken.is_empty(), "{broken:?}");
    }

    fn process(&mut self) {
        let buffer = std::mem::take(&mut self.unread);
        let mut input = buffer.as_slice();
        while !self.is_over && self.run_batch(&mut input) {}
        self.unread = input.to_vec();
    }

    /// Understands a batch; whether there may be more.
    fn run_batch(&mut self, input: &mut &[u8]) -> bool {
        let mut out = Vec::new();
        let mut requests = Vec::new();
        let mut asked = None;
        let mut closes = false;
        let goes_on = loop {
            if requests.len() == self.batch {
                break true;
            }
            match self.session.next(input, &mut out) {
                Step::Request(request) => {
                    let is_commit = matches!(request.command, Command::TxCommit);
                    requests.push(request);
                    if is_commit {
                        break true;
                    }
                }
                Step::More => break false,
                Step::PublishBlocked => {
                    assert!(self.publishes_blocked, "the client may publish");
                    break false;
                }
                Step::Login(credentials) => {
                    asked = Some(Question::Login(credentials));
                    break true;
                }
                Step::OpenVhost(name) => {
                    asked = Some(Question::Open(name.to_owned()));
                    break true;
                }
                Step::UpdateSecret => {
                    asked = Some(Question::UpdateSecret);
                    break true;
                }
                Step::Close => {
                    closes = true;
                    break true;
                }
                Step::Over => {
                    self.is_over = true;
                    break false;
                }
            }
        };
        let mut goes_on = goes_on;
        for request in requests {
            self.apply(request);
        }
        self.say(&out);
        if self.is_closing && self.session.is_running() {
            self.session.start_closing(self.now().time);
            return true;
        }
        if closes {
            self.close();
        }
        if let Some(question) = asked {
            self.ask(question);
            goes_on = self.question.is_none();
        }
        if self.is_over {
            assert!(input.is_empty(), "whoever is over reads everything");
            self.heard.push(Heard::Closed);
        }
        goes_on
    }

    fn apply(&mut self, request: Request<'_>) {
        let connection = self.connection.expect("commands come when a vhost is open");
        self.vhost.apply(self.now(), connection, request);
        self.finish();
    }

    /// Ends a batch as a server does it: what is durable is confirmed, effects are transmitted.
    fn finish(&mut self) {
        self.vhost.durable(self.vhost.last_lsn());
        self.vhost.flush();
        for effect in self.vhost.drain_effects() {
            if let Effect::Send { channel, outgoing, .. }
            | Effect::SendDurable { channel, outgoing, .. } = effect
            {
                transmit(&outgoing, channel.0, self.frame_max, &mut self.outbox);
                self.is_closing |= matches!(outgoing, Outgoing::ConnectionClose { .. });
            }
        }
        self.write();
    }

    /// Appends what the session itself says.
    fn say(&mut self, out: &[u8]) {
        self.outbox.tail().extend_from_slice(out);
        self.write();
    }

    /// A socket that takes everything.
    fn write(&mut self) {
        while !self.outbox.is_empty() {
            let mut slices = [IoSlice::new(&[]); 8];
            let filled = self.outbox.slices(&mut slices);
            let bytes =
                slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect::<Vec<u8>>();
            self.outbox.consume(bytes.len());
            self.heard.push(Heard::Bytes(bytes));
            self.wrote = true;
        }
    }

    fn ask(&mut self, question: Question) {
        let shown = match &question {
            Question::Login(Credentials { user, password, mechanism }) => {
                let password = crate::words::shown(password);
                format!("login {} {password} by {mechanism}", crate::words::shown(user.as_bytes()))
            }
            Question::Open(name) => format!("open {}", crate::words::shown(name.as_bytes())),
            Question::UpdateSecret => "update secret".to_owned(),
        };
        self.heard.push(Heard::Question(shown));
        self.question = Some(question);
        if !self.holds_answers {
            self.answer();
        }
    }

    /// Answers what the session has asked.
    fn answer(&mut self) {
        let (mut out, now) = (Vec::new(), self.now().time);
        match self.question.take().expect("a question") {
            Question::Login(Credentials { user, password, .. }) => {
                let is_known = ["guest", "bob"].contains(&user.as_str());
                if is_known && password == user.as_bytes() {
                    self.user = user;
                    self.session.login_accepted(&mut out);
                } else {
                    self.session.login_refused(now, &mut out);
                }
            }
            Question::UpdateSecret => self.session.secret_updated(&mut out),
            Question::Open(name) => match self.vhost_refusal(&name) {
                Some(refusal) => self.session.fail(now, &refusal, OPEN, &mut out),
                None => {
                    let cancel_notify = self.session.client().capabilities.consumer_cancel_notify;
                    let id = self.vhost.open_connection(access(&self.user), cancel_notify);
                    self.connection = Some(id);
                    self.frame_max = self.session.frame_max();
                    self.session.vhost_opened(now, &mut out);
                }
            },
        }
        self.say(&out);
    }

    /// Answers what was held back, and reads on.
    pub(crate) fn answer_held(&mut self) {
        self.answer();
        self.process();
    }

    fn vhost_refusal(&self, name: &str) -> Option<Refusal> {
        let text = match (name, self.user.as_str()) {
            ("/", "guest") => return None,
            ("/", user) => format!("access to vhost '/' refused for user '{user}'"),
            (name, _) => format!("vhost {name} not found"),
        };
        Some(Refusal::not_allowed(text))
    }

    /// The client closes: its consumers and deliveries end, then close-ok is sent.
    fn close(&mut self) {
        if let Some(id) = self.connection.take() {
            self.vhost.close_connection(self.now(), id);
            self.finish();
        }
        let mut out = Vec::new();
        self.session.closed(&mut out);
        self.say(&out);
    }

    /// Changes the vhost without a request of this client.
    pub(crate) fn happens(&mut self, change: impl FnOnce(&mut Vhost, Now, ConnectionId)) {
        let (now, connection) = (self.now(), self.connection.expect("an open vhost"));
        change(&mut self.vhost, now, connection);
        self.finish();
        if self.is_closing && self.session.is_running() {
            self.session.start_closing(now.time);
        }
    }

    /// From now on the client may publish, or may not.
    pub(crate) fn block_publishes(&mut self, publishes_blocked: bool) {
        self.publishes_blocked = publishes_blocked;
        self.session.set_publishes_blocked(publishes_blocked);
        if !publishes_blocked {
            self.process();
        }
    }

    /// The node has something to say on this connection.
    pub(crate) fn say_of_node(&mut self, write: impl FnOnce(&Session, &mut Vec<u8>)) {
        let mut out = Vec::new();
        write(&self.session, &mut out);
        self.say(&out);
    }

    /// The node commands something for itself.
    pub(crate) fn execute(&mut self, command: Command<'_>) {
        self.happens(|vhost, now, _| vhost.execute(now, command).expect("the node may do it"));
    }

    /// Lets time pass until `until_us` after the beginning, as far as the next thing that is due;
    /// true while there may be more.
    pub(crate) fn pass(&mut self, until_us: u64) -> bool {
        let until = Time::from_micros(BEGIN_MS * 1000 + until_us);
        let session = self.session.next_timeout().filter(|_| !self.is_over);
        let vhost = self.vhost.next_wake();
        let next = [session, vhost].into_iter().flatten().min().filter(|next| *next <= until);
        let Some(next) = next else {
            self.now_us = until_us;
            return false;
        };
        self.now_us = self.now_us.max(next.as_micros() - BEGIN_MS * 1000);
        let now = self.now();
        if vhost.is_some_and(|wake| wake <= next) {
            self.vhost.tick(now);
            self.finish();
        }
        if session.is_some_and(|timeout| timeout <= next) {
            self.tick();
        }
        true
    }

    /// Calls the session when its time has come.
    pub(crate) fn tick(&mut self) {
        let mut out = Vec::new();
        let has_written = std::mem::take(&mut self.wrote);
        let traffic = Traffic { has_written, is_read: self.listens };
        let alive = self.session.tick(self.now().time, traffic, &mut out);
        self.say(&out);
        self.wrote = false;
        if alive == Alive::No {
            self.is_over = true;
            self.heard.push(Heard::Closed);
        }
    }
}

fn access(user: &str) -> Arc<Access> {
    Arc::new(Access::matching(user.into(), ".*").unwrap())
}
