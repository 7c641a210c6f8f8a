//! Processing of input: runs the session over the bytes read and applies the commands in the vhost.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use amqp::method::MethodId;
use broker::refusal::Refusal;
use broker::{Command, Request};
use replica::Wait;
use session::{Credentials, Session, Step};
use tokio::sync::SemaphorePermit;

use crate::auth::User;
use crate::auth::user_slots::{ClientCounts, UserSlot};
use crate::connection::read_buffer::Read;
use crate::connection::task::{Connection, End, WriterTask};
use crate::limits::COMMANDS_PER_LOCK;
use crate::requests::UserLimit;
use crate::sockets::counters::ReadState;
use crate::sockets::socket::Reader;
use crate::vhost::VhostHandle;

/// The next step after the available bytes.
pub(super) enum Next {
    /// Read more input.
    Read,
    Login(Credentials),
    OpenVhost(String),
    UpdateSecret,
    /// Wait for this event in the vhost before processing more.
    Wait(Arc<VhostHandle>, Wait),
    Close,
    Over,
}

impl Connection {
    /// Reads from the socket and processes the bytes. False at the end of the connection.
    pub(super) async fn read(&mut self, socket: &mut Reader) -> Result<bool, End> {
        let node = self.read_budget.is_busy().then(|| Arc::clone(&self.node));
        let mut permit = match &node {
            Some(node) => Some(node.permits.reads.acquire().await),
            None => None,
        };
        let began = Instant::now();
        let read = match self.buffer.read(socket, self.read_budget.read_bytes()) {
            Ok(Read { count: 0, .. }) => return Err(End::Gone),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.read_budget.read_ended(false, began);
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
        let next = self.process(&mut permit).await;
        self.read_budget.read_ended(!read.is_all, began);
        drop(permit);
        self.follow(socket, next).await
    }

    /// Opens the vhost that the client has asked another node for, and runs the session.
    pub(super) async fn resume(
        &mut self,
        vhost: String,
        socket: &mut Reader,
        writer: &mut WriterTask,
    ) -> End {
        match self.follow(socket, Next::OpenVhost(vhost)).await {
            Ok(true) => self.run(socket, writer).await,
            Ok(false) => End::Closed,
            Err(end) => end,
        }
    }

    /// Takes the steps that follow from the available bytes. False at the end of the connection.
    pub(super) async fn follow(&mut self, socket: &Reader, mut next: Next) -> Result<bool, End> {
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
                // Boxed, because the connection would keep the space all its life.
                Next::Login(credentials) => Box::pin(self.login(credentials)).await?,
                Next::OpenVhost(name) => {
                    let node = Arc::clone(&self.node);
                    let settled = node.vhosts.leader_settled(&name);
                    self.wait_keeping_alive(socket, Box::pin(settled)).await?;
                    // A client of another node is passed on by that node only.
                    if self.entry.is_none() {
                        match Box::pin(self.adopt_elsewhere(socket, &name)).await? {
                            Ok(None) => {}
                            Ok(Some(adopted)) => return Err(End::Adopted(Box::new(adopted))),
                            Err(refusal) => {
                                self.refuse_vhost(&name, &refusal);
                                next = self.process(&mut None).await;
                                continue;
                            }
                        }
                    }
                    if let Some(handle) = self.node.vhosts.get(&name) {
                        Box::pin(handle.long_hold_ended()).await;
                    }
                    self.open_vhost(&name);
                }
                Next::UpdateSecret => self.send_own(|session, out| session.secret_updated(out)),
                Next::Close => {
                    // A client that gets `connection.close-ok` may rely on everything it did.
                    self.long_hold_ended().await;
                    if let Some((handle, lsn)) = self.leave_vhost() {
                        let mut durable = Ok(());
                        let wait = async { durable = handle.durable_at(lsn).await };
                        self.wait_keeping_alive(socket, wait).await?;
                        durable.map_err(End::Deposed)?;
                    }
                    self.send_own(Session::closed);
                }
                Next::Over => return Ok(false),
            }
            next = self.process(&mut None).await;
        }
    }

    /// The vhost that the client must wait for, because its disk is behind and the client adds to it.
    fn write_backpressure(&mut self) -> Option<Arc<VhostHandle>> {
        let is_written = std::mem::take(&mut self.is_written);
        let opened = self.opened.borrow();
        let handle = &opened.as_ref()?.handle;
        (is_written && handle.is_behind()).then(|| Arc::clone(handle))
    }

    /// Wakes the writer if reading has produced TLS output.
    fn let_tls_write(&self, socket: &Reader) {
        if socket.wants_write() {
            self.socket_writer.wake_writer();
        }
    }

    /// Runs the session over the available bytes and applies the commands, batch by batch. While the lock of
    /// the vhost is held for long, the read permit goes to another connection.
    pub(super) async fn process(&mut self, permit: &mut Option<SemaphorePermit<'_>>) -> Next {
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
                        if let Command::OpenChannel = request.command
                            && let (Some(slot), Some(user)) = (&mut self.slot, &self.user)
                        {
                            let user = self.node.auth.user(&user.name);
                            let count = self.session.channel_count();
                            let elsewhere =
                                user.as_ref().map(|user| self.node.clients_elsewhere(user));
                            let elsewhere = elsewhere.unwrap_or_default();
                            limit_channels(&mut request, count, user.as_deref(), (slot, elsewhere));
                        }
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
                let (handle, is_applied) = {
                    let Some(opened) = &*self.opened.borrow() else { break };
                    let handle = &opened.handle;
                    let applied = handle.try_apply(opened.id, &mut requests);
                    if let Some(applied) = applied {
                        self.is_written |= applied.is_written;
                        wait = applied.wait.map(|wait| Next::Wait(Arc::clone(handle), wait));
                        if !applied.is_much {
                            break;
                        }
                    }
                    (Arc::clone(handle), applied.is_some())
                };
                // The permit is released before the wait, so that other connections can be read.
                *permit = None;
                if is_applied {
                    Box::pin(handle.let_others()).await;
                } else {
                    Box::pin(handle.long_hold_ended()).await;
                }
            }
            if let Some(slot) = &mut self.slot {
                slot.set_channels(self.session.channel_count(), None, ClientCounts::default());
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
}

/// Refuses to open a channel above the user's current limit; `user` is none if the user is deleted.
fn limit_channels(
    request: &mut Request<'_>,
    channel_count: u64,
    user: Option<&User>,
    (slot, elsewhere): (&mut UserSlot, ClientCounts),
) {
    let max = user.and_then(|user| user.maximum(UserLimit::MaxChannels));
    if let (false, Some(max)) = (slot.set_channels(channel_count, max, elsewhere), max) {
        let name = user.map_or("", |user| user.name.as_str());
        request.method = MethodId::NONE;
        request.command = Command::Refused(Refusal::not_allowed(format!(
            "number of channels opened for user '{name}' has reached the maximum allowed user limit \
             of {max}"
        )));
    }
}

/// True if the bytes look like a TLS handshake.
fn looks_like_tls(bytes: &[u8]) -> bool {
    bytes.starts_with(&[22, 3])
}
