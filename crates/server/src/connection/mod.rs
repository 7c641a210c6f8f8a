//! One client: the task that reads its socket, runs its session and enters its vhost.
//!
//! The loop waits for bytes, a nudge from whoever wrote to this client, the session's own time, the
//! alarms, the end of the broker, and the end of the writing half. Everything between two waits is
//! plain code that blocks nowhere.

pub(crate) mod admission;
mod alarm;
pub(crate) mod counters;
pub(crate) mod listener;
pub(crate) mod read_buffer;
pub(crate) mod read_scheduler;
pub(crate) mod registry;
pub(crate) mod slots;
pub(crate) mod socket;
pub(crate) mod socket_writer;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use amqp::method::MethodId;
use broker::refusal::Refusal;
use broker::{Command, Lsn, Request};
use management::{ClientDescription, Protocol, UserLimit};
use session::{Alive, Credentials, Session, Step, Traffic};
use tokio::sync::{SemaphorePermit, watch};
use tokio::task::JoinHandle;

use crate::auth::user_slots::UserSlot;
use crate::auth::{LoginError, User};
use crate::connection::admission::{Admitted, Ticket};
use crate::connection::counters::{ReadCounters, ReadState, Socket};
use crate::connection::read_buffer::{Read, ReadBuffer};
use crate::connection::read_scheduler::ReadBudget;
use crate::connection::registry::Client;
use crate::connection::slots::{ConnectionSlot, ConnectionSlots};
use crate::connection::socket::{Reader, Writer};
use crate::connection::socket_writer::SocketWriter;
use crate::limits::{COMMANDS_PER_LOCK, LINGER_TIMEOUT, UNSENT_BYTES_MAX};
use crate::node::Node;
use crate::node::alarms::Alarm;
use crate::tls::{self, TlsPeer};
use crate::vhost::{OpenRefused, OpeningClient, VhostHandle, Wait};

/// `connection.open`, which an error in opening the vhost names.
const OPEN: MethodId = MethodId { class_id: 10, method_id: 40 };

/// Serves a client until it is gone, or until its place is needed before it has opened a vhost.
pub(crate) async fn serve(
    accepted: Accepted,
    peer: SocketAddr,
    node: Arc<Node>,
    admission: Ticket,
) {
    let Accepted { mut reads, writes, tls } = accepted;
    // A socket that does not know where it is has gone already.
    let local = reads.tcp().local_addr().unwrap_or(peer);
    let socket_writer = Arc::new(SocketWriter::default());
    let (opened, open) = watch::channel::<Option<Arc<Client>>>(None);
    let mut writer = {
        let socket_writer = Arc::clone(&socket_writer);
        tokio::spawn(async move {
            // Boxed: this is rare, and the connection would keep the room for it all its life.
            let report = |unsent| {
                let opened = open.borrow().clone();
                Box::pin(async move {
                    if let Some(opened) = opened {
                        opened.handle.long_hold_ended().await;
                        opened.handle.report_backlog(opened.id, unsent);
                    }
                })
            };
            socket_writer.write(writes, report).await
        })
    };
    let has_certificate = tls.as_ref().is_some_and(|tls| tls.details.certificate.is_some());
    let session = Session::new(node.session_options(has_certificate), node.clock.time());
    let (alarm, stopping) = (node.alarm.subscribe(), node.stopping.subscribe());
    let mut connection = Connection {
        node,
        peer,
        local,
        tls,
        socket_writer,
        read_counters: Arc::default(),
        session,
        buffer: ReadBuffer::default(),
        read_budget: ReadBudget::default(),
        is_written: false,
        user: None,
        slot: None,
        opened,
        alarm,
        stopping,
        blocked: None,
        written_at_tick: 0,
        unread_at_tick: 0,
        place: None,
        admitted: Arc::clone(admission.connection()),
        admission: Some(admission),
    };
    let end = connection.run(&mut reads, &mut writer).await;
    connection.long_hold_ended().await;
    connection.end(&end);
    if !matches!(end, End::TimedOut | End::Evicted) {
        connection.linger(&mut reads, &mut writer).await;
    }
    if !writer.is_finished() {
        // A client that takes nothing more would keep it for ever, and the system the bytes.
        writer.abort();
        if let Err(error) = reads.tcp().set_zero_linger() {
            tracing::debug!(%peer, %error, "cannot reset the socket");
        }
    }
}

/// A client that has connected.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) reads: Reader,
    pub(crate) writes: Writer,
    pub(crate) tls: Option<Box<TlsPeer>>,
}

/// What the bytes at hand lead to.
enum Next {
    /// Read more.
    Read,
    Login(Credentials),
    OpenVhost(String),
    UpdateSecret,
    /// Nothing more before the log of the vhost is durable up to there.
    Wait(Arc<VhostHandle>, Wait),
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
    TimedOut,
    /// The broker stops before the client has opened a vhost.
    Stopped,
    /// Another client needs its place before it has opened a vhost.
    Evicted,
    /// The socket failed.
    Failed(io::Error),
}

struct Connection {
    node: Arc<Node>,
    peer: SocketAddr,
    local: SocketAddr,
    /// How it speaks TLS, if it does.
    tls: Option<Box<TlsPeer>>,
    socket_writer: Arc<SocketWriter>,
    read_counters: Arc<ReadCounters>,
    session: Session,
    buffer: ReadBuffer,
    read_budget: ReadBudget,
    /// Something of what it did goes to the disk.
    is_written: bool,
    user: Option<Arc<User>>,
    /// What it takes of its user's limits while it is in a vhost.
    slot: Option<UserSlot>,
    /// In its vhost.
    opened: watch::Sender<Option<Arc<Client>>>,
    alarm: watch::Receiver<Option<Alarm>>,
    stopping: watch::Receiver<bool>,
    /// The alarm that keeps this publisher from being read.
    blocked: Option<Alarm>,
    written_at_tick: u64,
    unread_at_tick: u64,
    /// Its place among the connections that the node may have.
    place: Option<ConnectionSlot>,
    admitted: Arc<Admitted>,
    /// Its place among the connections that have not opened a vhost, until it has.
    admission: Option<Ticket>,
}

impl Connection {
    async fn run(&mut self, socket: &mut Reader, writer: &mut JoinHandle<io::Result<()>>) -> End {
        loop {
            // The vhost tells its clients itself.
            if *self.stopping.borrow() && self.opened.borrow().is_none() {
                return End::Stopped;
            }
            let timeout = self.timeout();
            let listens = self.listens();
            tokio::select! {
                ready = socket.readable(), if listens => {
                    if let Err(error) = ready {
                        return End::Failed(error);
                    }
                    match self.read(socket).await {
                        // Those this has woken go first: a publisher that never runs dry would
                        // keep its consumers' writers from this thread. One that has more to say
                        // lets them when it is its turn.
                        Ok(true) if self.read_budget.is_busy() => {}
                        Ok(true) => tokio::task::yield_now().await,
                        Ok(false) => return End::Closed,
                        Err(end) => return end,
                    }
                }
                () = self.socket_writer.reader_woken() => {}
                () = sleep(timeout) => {
                    if self.tick(socket) == Alive::No {
                        let is_closing = self.session.is_closing();
                        return if is_closing { End::Closed } else { End::TimedOut };
                    }
                }
                changed = self.alarm.changed() => {
                    if changed.is_ok() && self.alarm_changed() {
                        // The publish at which the client was stopped has been received.
                        let next = self.process(&mut None).await;
                        match self.follow(socket, next).await {
                            Ok(true) => {}
                            Ok(false) => return End::Closed,
                            Err(end) => return end,
                        }
                    }
                }
                _ = self.stopping.changed() => {}
                () = self.admitted.evicted(), if self.admission.is_some() => return End::Evicted,
                ended = &mut *writer => {
                    return match ended {
                        Ok(Ok(())) => End::Closed,
                        Ok(Err(error)) => End::Failed(error),
                        Err(_) => End::Gone,
                    };
                }
            }
            self.notice_closing();
        }
    }

    /// Until something is due.
    fn timeout(&self) -> Option<Duration> {
        self.session.next_timeout().map(|time| self.node.clock.until(time))
    }

    /// Whether the client is read: not while an alarm keeps it from publishing, nor while it does not
    /// take what it has caused. One that is to agree to a close always is.
    fn listens(&self) -> bool {
        let is_held_back = self.blocked.is_some() || self.socket_writer.unsent() > UNSENT_BYTES_MAX;
        !is_held_back || !self.session.is_running()
    }

    /// Learns that the core has closed the connection; true when that is new.
    fn notice_closing(&mut self) -> bool {
        let is_new = self.socket_writer.is_closing() && self.session.is_running();
        if is_new {
            self.session.start_closing(self.node.clock.time());
            self.set_blocked(None);
        }
        is_new
    }

    /// Gives the client a while to take what is left for it and, unless the broker stops, to leave. A
    /// socket that is closed with bytes of the client unread is reset, which can take from it what it
    /// was told last.
    async fn linger(&mut self, socket: &mut Reader, writer: &mut JoinHandle<io::Result<()>>) {
        let (admitted, is_stranger) = (Arc::clone(&self.admitted), self.admission.is_some());
        let farewell = async {
            if !writer.is_finished() {
                // Whatever comes of it, it is the end.
                let _ = writer.await;
            }
            while !*self.stopping.borrow()
                && socket.readable().await.is_ok()
                && self.buffer.discard(socket)
            {}
        };
        tokio::select! {
            _ = tokio::time::timeout(LINGER_TIMEOUT, farewell) => {}
            () = admitted.evicted(), if is_stranger => {}
        }
    }

    /// Reads and understands what the socket has. False when everything is said.
    async fn read(&mut self, socket: &mut Reader) -> Result<bool, End> {
        let node = self.read_budget.is_busy().then(|| Arc::clone(&self.node));
        let mut turn = match &node {
            Some(node) => node.read_permits.wait().await,
            None => None,
        };
        let began = Instant::now();
        let read = match self.buffer.read(socket, self.read_budget.read_bytes()) {
            Ok(Read { count: 0, .. }) => return Err(End::Gone),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.read_budget.turn_ended(false, began);
                self.let_tls_write(socket);
                return Ok(true);
            }
            Err(error) => return Err(End::Failed(error)),
        };
        self.read_counters.count(read.count);
        self.let_tls_write(socket);
        self.session.received(self.node.clock.time());
        if self.session.is_at_start() && looks_like_tls(self.buffer.unread()) {
            tracing::warn!(peer = %self.peer, "the client speaks TLS on a port without it");
        }
        let next = self.process(&mut turn).await;
        self.read_budget.turn_ended(!read.is_all, began);
        drop(turn);
        self.follow(socket, next).await
    }

    /// Does what the bytes at hand lead to. False when everything is said.
    async fn follow(&mut self, socket: &Reader, mut next: Next) -> Result<bool, End> {
        loop {
            self.buffer.park();
            if let Some(handle) = self.write_backpressure() {
                self.read_counters.set_state(ReadState::Throttled);
                self.wait_keeping_alive(socket, handle.caught_up()).await?;
                self.read_counters.set_state(self.read_state());
            }
            match next {
                Next::Read => return Ok(true),
                Next::Wait(handle, wait) => {
                    self.wait_keeping_alive(socket, handle.wait_for(wait)).await?;
                }
                // Boxed: the connection would keep the room for it all its life.
                Next::Login(credentials) => Box::pin(self.login(credentials)).await?,
                Next::OpenVhost(name) => {
                    if let Some(handle) = self.node.vhosts.get(&name) {
                        Box::pin(handle.long_hold_ended()).await;
                    }
                    self.open_vhost(&name);
                }
                Next::UpdateSecret => self.send_own(|session, out| session.secret_updated(out)),
                Next::Close => {
                    // Whoever has closed may rely on all that he did.
                    self.long_hold_ended().await;
                    if let Some((handle, lsn)) = self.leave_vhost() {
                        self.wait_keeping_alive(socket, handle.durable_at(lsn)).await?;
                    }
                    self.send_own(Session::closed);
                }
                Next::Over => return Ok(false),
            }
            next = self.process(&mut None).await;
        }
    }

    /// The vhost that has so much to write that this client has to wait, because what it does there
    /// has to be written, too.
    fn write_backpressure(&mut self) -> Option<Arc<VhostHandle>> {
        let is_written = std::mem::take(&mut self.is_written);
        let opened = self.opened.borrow();
        let handle = &opened.as_ref()?.handle;
        (is_written && handle.is_behind()).then(|| Arc::clone(handle))
    }

    /// What is read may make TLS itself say something.
    fn let_tls_write(&self, socket: &Reader) {
        if socket.wants_write() {
            self.socket_writer.wake_writer();
        }
    }

    /// Runs the session over the bytes at hand and applies the commands in them, batch by batch. While
    /// somebody else holds the lock of the vhost for long, others have the turn.
    async fn process(&mut self, turn: &mut Option<SemaphorePermit<'_>>) -> Next {
        let mut out = Vec::new();
        loop {
            self.session.set_publishes_blocked(self.alarm.borrow().is_some());
            let mut is_blocked = false;
            let mut input = self.buffer.unread();
            let available = input.len();
            let mut requests = Vec::new();
            let next = loop {
                if requests.len() == COMMANDS_PER_LOCK {
                    break None;
                }
                match self.session.next(&mut input, &mut out) {
                    Step::Request(mut request) => {
                        let channels = (&self.session, &mut self.slot, &self.user);
                        limit_channels(&mut request, channels, &self.node);
                        let may_wait = request.command.may_wait();
                        requests.push(request);
                        if may_wait {
                            break None;
                        }
                    }
                    Step::More => break Some(Next::Read),
                    Step::Login(credentials) => break Some(Next::Login(credentials)),
                    Step::OpenVhost(name) => break Some(Next::OpenVhost(name.to_owned())),
                    Step::UpdateSecret => break Some(Next::UpdateSecret),
                    Step::Close => break Some(Next::Close),
                    Step::PublishBlocked => {
                        is_blocked = true;
                        break None;
                    }
                    Step::Over => break Some(Next::Over),
                }
            };
            let used = available - input.len();
            let mut wait = None;
            while !requests.is_empty() {
                let handle = {
                    let Some(opened) = &*self.opened.borrow() else { break };
                    let handle = &opened.handle;
                    if let Some(applied) = handle.try_apply(opened.id, &mut requests) {
                        self.is_written |= applied.is_written;
                        wait = applied.wait.map(|wait| Next::Wait(Arc::clone(handle), wait));
                        break;
                    }
                    Arc::clone(handle)
                };
                *turn = None;
                Box::pin(handle.long_hold_ended()).await;
            }
            if let Some(slot) = &mut self.slot {
                slot.set_channels(self.session.channel_count(), None);
            }
            self.socket_writer.send(&out);
            out.clear();
            self.buffer.consume(used);
            if self.notice_closing() {
                continue;
            }
            if let Some(next) = wait.or(next) {
                return next;
            }
            if is_blocked && self.block_publisher() {
                return Next::Read;
            }
        }
    }

    /// Waits while somebody holds the lock of the client's vhost for long.
    async fn long_hold_ended(&self) {
        let handle = self.opened.borrow().as_ref().map(|opened| Arc::clone(&opened.handle));
        if let Some(handle) = handle {
            Box::pin(handle.long_hold_ended()).await;
        }
    }

    async fn login(&mut self, mut credentials: Credentials) -> Result<(), End> {
        let mechanism = credentials.mechanism;
        if mechanism == session::ANONYMOUS {
            let configured = &self.node.anonymous_login;
            credentials.user = configured.user.clone().unwrap_or_default();
            credentials.password = configured.password.clone().into_bytes();
        }
        let user = credentials.user.clone();
        // Many may wait for their turn.
        let timeout = self.timeout();
        let accepted = match mechanism {
            session::EXTERNAL => self.accept_certificate(),
            _ => tokio::select! {
                accepted =
                    self.node.auth.login(Protocol::Amqp091, credentials, self.peer.ip()) => accepted,
                () = sleep(timeout) => return Err(End::TimedOut),
                _ = self.stopping.changed() => return Err(End::Stopped),
                () = self.admitted.evicted() => return Err(End::Evicted),
            },
        };
        self.node.auth.counts.count(Protocol::Amqp091, accepted.is_ok());
        match accepted {
            Ok(user) => {
                self.admitted.progressed();
                self.user = Some(user);
                self.send_own(Session::login_accepted);
            }
            Err(reason) => {
                tracing::warn!(peer = %self.peer, user, mechanism, %reason, "login refused");
                let penalty = self.node.auth.penalty(&user, self.peer.ip());
                tokio::select! {
                    () = tokio::time::sleep(penalty) => {}
                    _ = self.stopping.changed() => return Err(End::Stopped),
                    () = self.admitted.evicted() => return Err(End::Evicted),
                }
                let now = self.node.clock.time();
                self.send_own(|session, out| session.login_refused(now, out));
            }
        }
        Ok(())
    }

    /// Who has a certificate that was verified needs no password.
    fn accept_certificate(&self) -> Result<Arc<User>, LoginError> {
        let der = self.tls.as_ref().and_then(|tls| tls.certificate_der.as_deref());
        let name = der.and_then(|der| tls::user_name(der, self.node.certificate_login));
        let user = name.and_then(|name| self.node.auth.user(&name));
        let user = user.ok_or(LoginError::Credentials)?;
        if self.node.auth.is_loopback_only(&user.name)
            && !self.peer.ip().to_canonical().is_loopback()
        {
            return Err(LoginError::NotLoopback);
        }
        Ok(user)
    }

    fn open_vhost(&mut self, name: &str) {
        if let Err(refusal) = self.enter_vhost(name) {
            let reason = refusal.explanation.as_str();
            tracing::warn!(peer = %self.peer, vhost = name, reason, "vhost refused");
            let now = self.node.clock.time();
            self.send_own(|session, out| session.fail(now, &refusal, OPEN, out));
        }
    }

    /// Asks in RabbitMQ's order: has the node room, is there such a vhost, has it room, has the user, may he enter?
    fn enter_vhost(&mut self, name: &str) -> Result<(), Refusal> {
        let login = self.user.as_ref().map(|user| user.name.clone()).unwrap_or_default();
        let open_refused = |open_refused| match open_refused {
            OpenRefused::Deleted => Refusal::not_allowed(format!("vhost {name} not found")),
            OpenRefused::Full(max) => {
                refused(name, &login, &format!(": connection limit ({max}) is reached"))
            }
        };
        self.place = self.node.connection_slots.as_ref().map(ConnectionSlots::take).transpose()?;
        let handle =
            self.node.vhosts.get(name).ok_or_else(|| open_refused(OpenRefused::Deleted))?;
        handle.check_room().map_err(open_refused)?;
        // As he is now, not as he was when he logged in.
        let user = self.node.auth.user(&login).ok_or_else(|| refused(name, &login, ""))?;
        let max = user.maximum(UserLimit::MaxConnections);
        let slot = self.node.user_slots.take(&login, max).ok_or_else(|| {
            let max = max.unwrap_or_default();
            Refusal::not_allowed(format!(
                "connection refused for user '{login}': user connection limit ({max}) is reached"
            ))
        })?;
        let access = user.access(name).ok_or_else(|| refused(name, &login, ""))?;
        let client = self.session.client();
        let cancel_notify = client.capabilities.consumer_cancel_notify;
        let connection_name = client.connection_name.clone().unwrap_or_default();
        let tls = self.tls.as_ref().map(|tls| tls.details.protocol);
        let now = self.node.clock.time();
        let description = Arc::new(self.description(name, &login));
        let socket = Socket {
            writer: Arc::clone(&self.socket_writer),
            read_counters: Arc::clone(&self.read_counters),
        };
        let welcome = || self.send_own(|session, out| session.vhost_opened(now, out));
        let opening = OpeningClient {
            description: Arc::clone(&description),
            socket: socket.clone(),
            access,
            cancel_notify,
        };
        let id = handle.open(opening, welcome).map_err(open_refused)?;
        let peer = self.peer;
        tracing::info!(%peer, user = login, vhost = name, connection_name, tls, "connected");
        self.slot = Some(slot);
        self.admission = None;
        let client = Arc::new(Client { description, handle: Arc::clone(&handle), id, socket });
        self.node.clients.add(&client);
        self.opened.send_replace(Some(client));
        self.node.recheck(&handle, id, &user);
        Ok(())
    }

    /// What is agreed with the client, for whoever looks at it.
    fn description(&self, vhost: &str, user: &str) -> ClientDescription {
        let ends = [self.peer, self.local];
        // A socket of IPv6 that takes IPv4, too, has clients of both.
        let [peer, local] = ends.map(|end| SocketAddr::new(end.ip().to_canonical(), end.port()));
        let client = self.session.client();
        ClientDescription {
            pid: self.node.clients.next_pid(),
            name: management::connection_name(peer, local),
            peer,
            local,
            user: user.to_owned(),
            mechanism: self.session.mechanism(),
            vhost: vhost.to_owned(),
            properties: client.properties.clone(),
            connection_name: client.connection_name.clone(),
            channel_max: self.session.channel_max(),
            frame_max: self.session.frame_max(),
            heartbeat_s: self.session.heartbeat_s(),
            tls: self.tls.as_ref().map(|tls| tls.details.clone()),
            connected_at_ms: self.node.clock.now().wall_ms,
        }
    }

    fn tick(&mut self, socket: &Reader) -> Alive {
        let now = self.node.clock.time();
        let (written, unread) = (self.socket_writer.written(), unread_bytes(socket));
        let has_written = written != self.written_at_tick;
        // A client that is not read shows that it lives by what it takes, and by what it leaves for
        // later.
        if !self.listens() && (has_written || unread != self.unread_at_tick) {
            self.session.received(now);
        }
        (self.written_at_tick, self.unread_at_tick) = (written, unread);
        let traffic = Traffic {
            has_written: has_written || self.socket_writer.unsent() > 0,
            is_read: self.blocked.is_none(),
        };
        let mut out = Vec::new();
        let alive = self.session.tick(now, traffic, &mut out);
        // A heartbeat of our own is no reason to leave out the next one.
        self.written_at_tick += out.len() as u64;
        self.socket_writer.send(&out);
        alive
    }

    /// Sends what the session has to say.
    fn send_own(&mut self, write: impl FnOnce(&mut Session, &mut Vec<u8>)) {
        let mut out = Vec::new();
        write(&mut self.session, &mut out);
        self.socket_writer.send(&out);
    }

    /// Leaves the vhost, with the position up to which its log tells of what happened here.
    fn leave_vhost(&self) -> Option<(Arc<VhostHandle>, Lsn)> {
        let client = self.opened.send_replace(None)?;
        let lsn = client.handle.close(client.id);
        self.node.clients.remove(&client);
        Some((Arc::clone(&client.handle), lsn))
    }

    /// Waits for the disk, but no longer than the client lives.
    async fn wait_keeping_alive(
        &mut self,
        socket: &Reader,
        disk: impl Future<Output = ()>,
    ) -> Result<(), End> {
        let mut disk = std::pin::pin!(disk);
        loop {
            let timeout = self.timeout();
            tokio::select! {
                () = &mut disk => return Ok(()),
                () = sleep(timeout) => {
                    if self.tick(socket) == Alive::No {
                        return Err(End::TimedOut);
                    }
                }
            }
        }
    }

    /// Ends what the client holds, and says why.
    fn end(&mut self, end: &End) {
        self.leave_vhost();
        (self.slot, self.place) = (None, None);
        self.socket_writer.set_over();
        let peer = self.peer;
        match end {
            End::Closed => tracing::info!(%peer, "disconnected"),
            End::Gone => tracing::info!(%peer, "client went away without closing"),
            End::TimedOut => tracing::warn!(%peer, "connection timed out"),
            End::Evicted => {
                tracing::warn!(%peer, "disconnected before a vhost was opened: others need the place");
            }
            End::Stopped => tracing::info!(%peer, "disconnected because the broker stops"),
            End::Failed(error) => tracing::info!(%peer, %error, "connection lost"),
        }
    }
}

/// A vhost that a user may not enter.
fn refused(vhost: &str, user: &str, why: &str) -> Refusal {
    Refusal::not_allowed(format!("access to vhost '{vhost}' refused for user '{user}'{why}"))
}

/// Refuses a channel that is one too many for its user.
fn limit_channels(
    request: &mut Request<'_>,
    (session, slot, user): (&Session, &mut Option<UserSlot>, &Option<Arc<User>>),
    node: &Node,
) {
    let (Command::OpenChannel, Some(slot), Some(user)) = (&request.command, slot, user) else {
        return;
    };
    let user = node.auth.user(&user.name);
    let max = user.as_ref().and_then(|user| user.maximum(UserLimit::MaxChannels));
    if let (false, Some(max)) = (slot.set_channels(session.channel_count(), max), max) {
        let name = user.as_ref().map_or("", |user| user.name.as_str());
        request.method = MethodId::NONE;
        request.command = Command::Refused(Refusal::not_allowed(format!(
            "number of channels opened for user '{name}' has reached the maximum allowed user limit \
             of {max}"
        )));
    }
}

async fn sleep(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}

/// Whether this is how a client begins that speaks TLS.
fn looks_like_tls(bytes: &[u8]) -> bool {
    bytes.starts_with(&[22, 3])
}

/// How much the client has sent that nobody has read.
fn unread_bytes(socket: &Reader) -> u64 {
    rustix::io::ioctl_fionread(socket.tcp()).unwrap_or(0)
}
