//! One client: the task that reads its socket, runs its session and enters its vhost.
//!
//! The loop waits for four things: bytes, a nudge from whoever wrote to this client, the session's
//! own time, and the alarms. Everything between two waits is plain code that blocks nowhere.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use amqp::method::MethodId;
use broker::ConnectionId;
use broker::refusal::Refusal;
use session::{Alive, Credentials, Session, Step};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::alarms::Alarm;
use crate::auth::User;
use crate::limits::{COMMANDS_PER_LOCK, REFUSED_LOGIN_DELAY, UNSENT_BYTES_MAX};
use crate::node::Node;
use crate::read_buffer::ReadBuffer;
use crate::vhosts::VhostCell;
use crate::wire::Wire;

/// `connection.open`, which an error in opening the vhost names.
const OPEN: MethodId = MethodId { class_id: 10, method_id: 40 };

/// Serves a client until it is gone.
pub(crate) async fn serve(socket: TcpStream, peer: SocketAddr, node: Arc<Node>) {
    // Batches decide what goes out together.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%peer, %error, "cannot set TCP_NODELAY");
    }
    let (reads, writes) = socket.into_split();
    let wire = Arc::new(Wire::default());
    let (opened, open) = watch::channel::<Option<Opened>>(None);
    let writer = {
        let wire = Arc::clone(&wire);
        tokio::spawn(async move {
            let report = |unsent| {
                if let Some(opened) = &*open.borrow() {
                    opened.cell.report_backlog(opened.id, unsent);
                }
            };
            wire.write(writes, report).await
        })
    };
    let session = Session::new(Arc::clone(&node.session_options), node.clock.time());
    let alarm = node.alarm.subscribe();
    let mut connection = Connection {
        node,
        peer,
        wire,
        session,
        buffer: ReadBuffer::default(),
        user: None,
        opened,
        alarm,
        blocked: None,
        written_at_tick: 0,
    };
    let end = connection.run(&reads, writer).await;
    connection.end(end);
}

/// Where a connection is in its vhost.
#[derive(Clone, Debug)]
struct Opened {
    cell: Arc<VhostCell>,
    id: ConnectionId,
}

/// What the bytes at hand lead to.
enum Next {
    /// Read more.
    Read,
    Login(Credentials),
    OpenVhost(String),
    UpdateSecret,
    Close,
    Over,
}

/// Why a connection ended.
#[derive(Debug)]
enum End {
    /// As the protocol wants it.
    Closed,
    /// The client went away without a word.
    Gone,
    /// The client kept silent too long.
    Silent,
    /// The socket failed.
    Failed(io::Error),
}

struct Connection {
    node: Arc<Node>,
    peer: SocketAddr,
    wire: Arc<Wire>,
    session: Session,
    buffer: ReadBuffer,
    user: Option<Arc<User>>,
    opened: watch::Sender<Option<Opened>>,
    alarm: watch::Receiver<Option<Alarm>>,
    /// The alarm that keeps this publisher from being read.
    blocked: Option<Alarm>,
    written_at_tick: u64,
}

impl Connection {
    async fn run(&mut self, socket: &OwnedReadHalf, mut writer: JoinHandle<io::Result<()>>) -> End {
        loop {
            let timeout = self.session.next_timeout();
            let timeout = timeout.map(|time| self.node.clock.until(time));
            let reads = self.blocked.is_none() && self.wire.unsent() <= UNSENT_BYTES_MAX;
            tokio::select! {
                ready = socket.readable(), if reads => {
                    if let Err(error) = ready {
                        return End::Failed(error);
                    }
                    match self.read(socket).await {
                        // Those this has woken go first: a publisher that never runs dry would
                        // keep its consumers' writers from this thread.
                        Ok(true) => tokio::task::yield_now().await,
                        Ok(false) => break,
                        Err(end) => return end,
                    }
                }
                () = self.wire.reader_woken() => {}
                () = sleep(timeout) => {
                    if self.tick(reads) == Alive::No {
                        return End::Silent;
                    }
                }
                changed = self.alarm.changed() => {
                    if changed.is_ok() {
                        self.alarm_changed();
                    }
                }
                ended = &mut writer => {
                    return match ended {
                        Ok(Ok(())) => End::Closed,
                        Ok(Err(error)) => End::Failed(error),
                        Err(_) => End::Gone,
                    };
                }
            }
            if self.wire.is_closing() && self.session.is_running() {
                self.session.start_closing(self.node.clock.time());
            }
        }
        // What is left to say is said before the socket closes.
        self.wire.set_over();
        match tokio::time::timeout(REFUSED_LOGIN_DELAY, writer).await {
            Ok(Ok(Err(error))) => End::Failed(error),
            _ => End::Closed,
        }
    }

    /// Reads and understands what the socket has. False when everything is said.
    async fn read(&mut self, socket: &OwnedReadHalf) -> Result<bool, End> {
        match self.buffer.read(socket) {
            Ok(0) => return Err(End::Gone),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(End::Failed(error)),
        }
        self.session.received(self.node.clock.time());
        loop {
            match self.process() {
                Next::Read => return Ok(true),
                Next::Login(credentials) => self.login(credentials).await,
                Next::OpenVhost(name) => self.open_vhost(&name),
                Next::UpdateSecret => {
                    let mut out = Vec::new();
                    session::write_update_secret_ok(&mut out);
                    self.wire.send(&out);
                }
                Next::Close => {
                    self.leave_vhost();
                    let mut out = Vec::new();
                    self.session.closed(&mut out);
                    self.wire.send(&out);
                }
                Next::Over => return Ok(false),
            }
        }
    }

    /// Runs the session over the bytes at hand and applies the commands in them, batch by batch.
    fn process(&mut self) -> Next {
        let mut out = Vec::new();
        loop {
            let mut input = self.buffer.unread();
            let available = input.len();
            let mut requests = Vec::new();
            let next = loop {
                if requests.len() == COMMANDS_PER_LOCK {
                    break None;
                }
                match self.session.next(&mut input, &mut out) {
                    Step::Request(request) => requests.push(request),
                    Step::More => break Some(Next::Read),
                    Step::Login(credentials) => break Some(Next::Login(credentials)),
                    Step::OpenVhost(name) => break Some(Next::OpenVhost(name.to_owned())),
                    Step::UpdateSecret => break Some(Next::UpdateSecret),
                    Step::Close => break Some(Next::Close),
                    Step::Over => break Some(Next::Over),
                }
            };
            let used = available - input.len();
            if !requests.is_empty()
                && let Some(opened) = &*self.opened.borrow()
            {
                opened.cell.apply(opened.id, requests.into_iter());
            }
            self.wire.send(&out);
            out.clear();
            self.buffer.consume(used);
            if self.wire.is_closing() && self.session.is_running() {
                self.session.start_closing(self.node.clock.time());
                continue;
            }
            self.block_publisher();
            if let Some(next) = next {
                return next;
            }
        }
    }

    async fn login(&mut self, credentials: Credentials) {
        let user = credentials.user.clone();
        let mechanism = credentials.mechanism;
        let accepted = self.node.auth.login(credentials, self.peer.ip()).await;
        let mut out = Vec::new();
        match accepted {
            Ok(user) => {
                self.user = Some(user);
                self.session.login_accepted(&mut out);
            }
            Err(reason) => {
                tracing::warn!(peer = %self.peer, %user, mechanism, %reason, "login refused");
                self.session.login_refused(self.node.clock.time(), &mut out);
                if out.is_empty() {
                    tokio::time::sleep(REFUSED_LOGIN_DELAY).await;
                }
            }
        }
        self.wire.send(&out);
    }

    fn open_vhost(&mut self, name: &str) {
        let mut out = Vec::new();
        match self.find_vhost(name) {
            Ok((cell, access)) => {
                let client = self.session.client();
                let cancel_notify = client.capabilities.consumer_cancel_notify;
                let frame_max = self.session.frame_max();
                let id = cell.open(access, cancel_notify, &self.wire, frame_max);
                let user = self.user.as_ref().map(|user| user.name.clone()).unwrap_or_default();
                let connection_name = client.connection_name.as_deref().unwrap_or_default();
                tracing::info!(peer = %self.peer, user, vhost = name, connection_name, "connected");
                self.opened.send_replace(Some(Opened { cell, id }));
                self.session.vhost_opened(self.node.clock.time(), &mut out);
            }
            Err(refusal) => {
                tracing::warn!(peer = %self.peer, vhost = name, %refusal, "vhost refused");
                self.session.fail(self.node.clock.time(), &refusal, OPEN, &mut out);
            }
        }
        self.wire.send(&out);
    }

    fn find_vhost(
        &self,
        name: &str,
    ) -> Result<(Arc<VhostCell>, Arc<broker::access::Access>), Refusal> {
        let cell = self.node.vhosts.get(name);
        let cell = cell.ok_or_else(|| Refusal::not_allowed(format!("vhost {name} not found")))?;
        let user = self.user.as_deref();
        let access = user.and_then(|user| user.access(name)).ok_or_else(|| {
            let user = user.map(|user| user.name.as_str()).unwrap_or_default();
            Refusal::not_allowed(format!("access to vhost '{name}' refused for user '{user}'"))
        })?;
        Ok((cell, access))
    }

    fn tick(&mut self, reads: bool) -> Alive {
        let written = self.wire.written();
        let wrote = written != self.written_at_tick || self.wire.unsent() > 0;
        self.written_at_tick = written;
        let mut out = Vec::new();
        let alive = self.session.tick(self.node.clock.time(), wrote, reads, &mut out);
        // A heartbeat of our own is no reason to leave out the next one.
        self.written_at_tick += out.len() as u64;
        self.wire.send(&out);
        alive
    }

    /// While an alarm is on, whoever publishes is not read any more.
    fn block_publisher(&mut self) {
        let alarm = *self.alarm.borrow();
        if self.blocked.is_some() || alarm.is_none() || !self.session.take_published() {
            return;
        }
        self.blocked = alarm;
        if let Some(alarm) = alarm
            && self.session.client().capabilities.connection_blocked
        {
            let mut out = Vec::new();
            session::write_blocked(alarm.reason(), &mut out);
            self.wire.send(&out);
        }
    }

    fn alarm_changed(&mut self) {
        let alarm = *self.alarm.borrow_and_update();
        if alarm.is_none() && self.blocked.take().is_some() {
            if self.session.client().capabilities.connection_blocked {
                let mut out = Vec::new();
                session::write_unblocked(&mut out);
                self.wire.send(&out);
            }
        } else if alarm.is_none() {
            self.session.take_published();
        }
    }

    fn leave_vhost(&self) {
        if let Some(opened) = self.opened.send_replace(None) {
            opened.cell.close(opened.id);
        }
    }

    fn end(&self, end: End) {
        self.leave_vhost();
        self.wire.set_over();
        let peer = self.peer;
        match end {
            End::Closed => tracing::info!(%peer, "disconnected"),
            End::Gone => tracing::info!(%peer, "client went away without closing"),
            End::Silent => tracing::warn!(%peer, "client kept silent too long"),
            End::Failed(error) => tracing::info!(%peer, %error, "connection lost"),
        }
    }
}

async fn sleep(duration: Option<std::time::Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}
