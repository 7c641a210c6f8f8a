//! The reading task of a connection.
//!
//! The loop waits for input, for a wake-up by a thread that wrote to this client, for the session's timeouts,
//! alarms, the stop of the broker, and the end of the writing half. The code between two waits does not
//! block.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use session::{Alive, Session, Traffic};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::auth::User;
use crate::auth::user_slots::UserSlot;
use crate::clock::own_time;
use crate::connection::read_buffer::ReadBuffer;
use crate::connection::relay::{Adopted, Ends, Relay, away};
use crate::limits::{LINGER_TIMEOUT, UNREAD_TIMEOUT, UNSENT_BYTES_MAX};
use crate::node::Node;
use crate::node::alarms::alarm::Alarm;
use crate::node::clients::Client;
use crate::sockets::admission::{Admitted, Ticket};
use crate::sockets::counters::ReadCounters;
use crate::sockets::read_scheduler::ReadBudget;
use crate::sockets::slots::ConnectionSlot;
use crate::sockets::socket::{Reader, Writer};
use crate::sockets::socket_writer::SocketWriter;
use crate::tls::TlsPeer;
use crate::vhost::NotLeading;

/// Serves a client until it is gone, or until another one needs its place before it has opened a vhost.
pub(crate) async fn serve(
    accepted: Accepted,
    peer: SocketAddr,
    node: Arc<Node>,
    admission: Ticket,
) {
    let Accepted { reads, writes, tls } = accepted;
    // A socket without an address is closed already.
    let local = reads.tcp().local_addr().unwrap_or(peer);
    let has_certificate = tls.as_ref().is_some_and(|tls| tls.details.certificate.is_some());
    let session =
        Session::new(Arc::clone(node.sessions.options(has_certificate)), node.clock.time());
    let admitted = Arc::clone(admission.connection());
    let origin =
        Origin { peer, local, tls, user: None, entry: None, admitted, admission: Some(admission) };
    drive(Ends { reads, writes }, node, session, origin, None).await;
}

/// The client of a connection when its session begins.
pub(crate) struct Origin {
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
    /// TLS version, cipher and certificate of the client; none without TLS.
    pub(crate) tls: Option<Box<TlsPeer>>,
    pub(crate) user: Option<Arc<User>>,
    /// Name of the node that the client has connected to; none for this one.
    pub(crate) entry: Option<Arc<str>>,
    pub(crate) admitted: Arc<Admitted>,
    /// The place among the connections without an open vhost; none for a client of another node.
    pub(crate) admission: Option<Ticket>,
}

/// Runs a session until it ends, from `connection.open` of `opening` on if another node has begun it.
pub(crate) async fn drive(
    socket: Ends,
    node: Arc<Node>,
    session: Session,
    origin: Origin,
    opening: Option<String>,
) {
    let Ends { mut reads, writes } = socket;
    let Origin { peer, local, tls, user, entry, admitted, admission } = origin;
    let socket_writer = Arc::new(SocketWriter::default());
    let (opened, open) = watch::channel::<Option<Arc<Client>>>(None);
    let mut writer = {
        let socket_writer = Arc::clone(&socket_writer);
        tokio::spawn(async move {
            // Boxed, because reports are rare and the connection would keep the space all its life.
            let report = |unsent| {
                let opened = open.borrow().clone();
                Box::pin(async move {
                    if let Some(opened) = opened {
                        opened.handle.long_hold_ended().await;
                        opened.handle.report_backlog(opened.id, unsent);
                    }
                })
            };
            socket_writer.write(writes, UNREAD_TIMEOUT, report).await
        })
    };
    let (alarm, stopping) = (node.alarms.current.subscribe(), node.lifecycle.stopping.subscribe());
    let mut connection = Connection {
        node,
        peer,
        local,
        tls,
        entry,
        socket_writer,
        read_counters: Arc::default(),
        session,
        buffer: ReadBuffer::default(),
        read_budget: ReadBudget::default(),
        is_written: false,
        user,
        slot: None,
        opened,
        alarm,
        stopping,
        blocked: None,
        stood_still: own_time::stood_still(),
        written_at_tick: 0,
        unread_at_tick: 0,
        place: None,
        admitted,
        admission,
    };
    let end = match opening {
        None => connection.run(&mut reads, &mut writer).await,
        Some(vhost) => connection.resume(vhost, &mut reads, &mut writer).await,
    };
    let end = match end {
        // Boxed, because most connections are not relayed.
        End::Adopted(adopted) => return Box::pin(connection.relay(*adopted, reads, writer)).await,
        end @ (End::Closed
        | End::Gone
        | End::TimedOut
        | End::Unread
        | End::EntryAway
        | End::Stopped
        | End::Evicted
        | End::Failed(_)
        | End::Deposed(_)) => end,
    };
    connection.long_hold_ended().await;
    connection.end(&end);
    if !matches!(end, End::TimedOut | End::Unread | End::EntryAway | End::Evicted) {
        connection.linger(&mut reads, &mut writer).await;
    }
    if matches!(end, End::EntryAway) {
        // Without a reset, which is sent once and may be lost: the other node must learn that the client has ended.
        writer.abort();
    } else if !writer.is_finished() || matches!(end, End::Unread) {
        // A client that does not read would keep the task forever, and the operating system the bytes.
        writer.abort();
        if let Err(error) = reads.tcp().set_zero_linger() {
            tracing::debug!(%peer, %error, "cannot reset the socket");
        }
    }
}

/// The socket of a client that has connected.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) reads: Reader,
    pub(crate) writes: Writer,
    pub(crate) tls: Option<Box<TlsPeer>>,
}

/// Reason for the end of a connection.
#[derive(Debug)]
pub(super) enum End {
    /// Both sides have agreed to close.
    Closed,
    /// The client closed the socket without closing the connection.
    Gone,
    /// The client sent nothing for too long.
    TimedOut,
    /// The client has read nothing for too long, although bytes wait for it.
    Unread,
    /// The node that the client has connected to is away.
    EntryAway,
    /// The broker stops before the client has opened a vhost.
    Stopped,
    /// Another client needs the place before this one has opened a vhost.
    Evicted,
    /// The socket failed.
    Failed(io::Error),
    /// Another node leads the vhost now: the work of the client may be lost.
    Deposed(NotLeading),
    /// The node that leads the vhost continues the session.
    Adopted(Box<Adopted>),
}

/// The task that writes to the client; it returns the socket if that is handed over.
pub(super) type WriterTask = JoinHandle<io::Result<Option<Writer>>>;

/// The reading half of a connection, with its session.
pub(super) struct Connection {
    pub(super) node: Arc<Node>,
    pub(super) peer: SocketAddr,
    pub(super) local: SocketAddr,
    /// TLS version, cipher and certificate of the client; none without TLS.
    pub(super) tls: Option<Box<TlsPeer>>,
    /// Name of the node that the client has connected to; none for this one.
    pub(super) entry: Option<Arc<str>>,
    pub(super) socket_writer: Arc<SocketWriter>,
    pub(super) read_counters: Arc<ReadCounters>,
    pub(super) session: Session,
    pub(super) buffer: ReadBuffer,
    pub(super) read_budget: ReadBudget,
    /// True if a command since the last check has produced work for the disk.
    pub(super) is_written: bool,
    pub(super) user: Option<Arc<User>>,
    /// The share of the user's limits, while the client is in a vhost.
    pub(super) slot: Option<UserSlot>,
    /// The client in its vhost, once it has opened one.
    pub(super) opened: watch::Sender<Option<Arc<Client>>>,
    pub(super) alarm: watch::Receiver<Option<Alarm>>,
    pub(super) stopping: watch::Receiver<bool>,
    /// The alarm that blocks this publisher.
    pub(super) blocked: Option<Alarm>,
    /// Standstills of this process up to the last tick.
    pub(super) stood_still: Duration,
    pub(super) written_at_tick: u64,
    pub(super) unread_at_tick: u64,
    /// The slot among the connections of the node.
    pub(super) place: Option<ConnectionSlot>,
    pub(super) admitted: Arc<Admitted>,
    /// The place among the connections without an open vhost.
    pub(super) admission: Option<Ticket>,
}

impl Connection {
    /// Passes on the octets of a client that another node has adopted.
    async fn relay(self, adopted: Adopted, reads: Reader, writer: WriterTask) {
        let Adopted { stream, vhost, leader } = adopted;
        self.socket_writer.hand_over();
        let Ok(Ok(Some(writes))) = writer.await else { return };
        let (stream, slot) = match Ends::of_stream(stream) {
            Ok(ends) => ends,
            Err(error) => return tracing::warn!(peer = %self.peer, %error, "cannot relay a client"),
        };
        let Self { node, peer, buffer, session, place, .. } = self;
        let client = Ends { reads, writes };
        let relay = Relay { node, vhost, leader, peer, client, stream, buffer, session };
        relay.run().await;
        drop((slot, place));
    }

    pub(super) async fn run(&mut self, socket: &mut Reader, writer: &mut WriterTask) -> End {
        // Boxed, because most clients have connected to this node.
        let mut entry_away = self.entry.clone().map(|entry| {
            let node = Arc::clone(&self.node);
            Box::pin(async move { away(&node, &entry).await })
        });
        loop {
            // A client in a vhost is closed by the vhost, with a reason.
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
                        // Let tasks that this has woken run first: a publisher that always has more input
                        // would keep the writers of its consumers from this thread. A busy connection yields
                        // when it gets its read permit.
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
                        // The publish at which reading stopped is in the buffer.
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
                () = completed(&mut entry_away) => return End::EntryAway,
                ended = &mut *writer => {
                    return match ended {
                        Ok(Ok(_)) => End::Closed,
                        Ok(Err(error)) if error.kind() == io::ErrorKind::TimedOut => End::Unread,
                        Ok(Err(error)) => End::Failed(error),
                        Err(_) => End::Gone,
                    };
                }
            }
            self.notice_closing();
        }
    }

    /// Time until the session's next timeout.
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.session.next_timeout().map(|time| self.node.clock.until(time))
    }

    /// True if the client is being read. It is not while an alarm blocks it, or while it does not read the
    /// output it has caused. A client that must confirm a close is always read.
    fn listens(&self) -> bool {
        let is_held_back = self.blocked.is_some() || self.socket_writer.unsent() > UNSENT_BYTES_MAX;
        !is_held_back || !self.session.is_running()
    }

    /// Notes that the core has closed the connection; true the first time.
    pub(super) fn notice_closing(&mut self) -> bool {
        let is_new = self.socket_writer.is_closing() && self.session.is_running();
        if is_new {
            self.session.start_closing(self.node.clock.time());
            self.set_blocked(None);
        }
        is_new
    }

    /// Gives the client time to read the last bytes and, unless the broker stops, to close its end. Closing a
    /// socket with unread input resets it, and the client may lose the last bytes sent.
    async fn linger(&mut self, socket: &mut Reader, writer: &mut WriterTask) {
        let (admitted, can_be_evicted) = (Arc::clone(&self.admitted), self.admission.is_some());
        let farewell = async {
            if !writer.is_finished() {
                // The connection ends, whether the writer succeeds or not.
                let _ = writer.await;
            }
            while !*self.stopping.borrow()
                && socket.readable().await.is_ok()
                && self.buffer.discard(socket)
            {}
        };
        tokio::select! {
            _ = tokio::time::timeout(LINGER_TIMEOUT, farewell) => {}
            () = admitted.evicted(), if can_be_evicted => {}
        }
    }

    /// Waits while the lock of the client's vhost is held for long.
    pub(super) async fn long_hold_ended(&self) {
        let handle = self.opened.borrow().as_ref().map(|opened| Arc::clone(&opened.handle));
        if let Some(handle) = handle {
            Box::pin(handle.long_hold_ended()).await;
        }
    }

    fn tick(&mut self, socket: &Reader) -> Alive {
        let (now, stood_still) = (self.node.clock.time(), own_time::stood_still());
        if stood_still > self.stood_still {
            // What the client has sent meanwhile may not be read yet.
            let more = stood_still.saturating_sub(self.stood_still);
            self.session.stood_still(u64::try_from(more.as_micros()).unwrap_or(u64::MAX));
            self.stood_still = stood_still;
        }
        let (written, unread) = (self.socket_writer.written(), unread_bytes(socket));
        let has_written = written != self.written_at_tick;
        // A client that is not read shows that it is alive by the output it reads, and by new input that
        // stays unread.
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
        // A heartbeat sent by the broker does not count as output that the client reads.
        self.written_at_tick += out.len() as u64;
        self.socket_writer.send(&out);
        alive
    }

    /// Sends the output that `write` appends.
    pub(super) fn send_own(&mut self, write: impl FnOnce(&mut Session, &mut Vec<u8>)) {
        let mut out = Vec::new();
        write(&mut self.session, &mut out);
        self.socket_writer.send(&out);
    }

    /// Waits for the disk. Heartbeats are sent meanwhile, and the wait ends if the client sends none.
    pub(super) async fn wait_keeping_alive(
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

    /// Releases everything that the connection holds, and logs the reason.
    fn end(&mut self, end: &End) {
        self.leave_vhost();
        (self.slot, self.place) = (None, None);
        self.socket_writer.set_over();
        let peer = self.peer;
        match end {
            End::Closed => tracing::info!(%peer, "disconnected"),
            End::Gone => tracing::info!(%peer, "client went away without closing"),
            End::TimedOut => tracing::warn!(%peer, "connection timed out"),
            End::Unread => {
                let unsent_bytes = self.socket_writer.unsent();
                tracing::warn!(%peer, unsent_bytes, "disconnected: the client does not read");
            }
            End::EntryAway => {
                let entry = self.entry.as_deref().unwrap_or_default();
                tracing::warn!(%peer, entry, "disconnected: the node that the client has connected to is away");
            }
            End::Evicted => {
                tracing::warn!(%peer, "disconnected before a vhost was opened: others need the place");
            }
            End::Stopped => tracing::info!(%peer, "disconnected because the broker stops"),
            End::Deposed(problem) => tracing::info!(%peer, "disconnected: {problem}"),
            End::Failed(error) => tracing::info!(%peer, %error, "connection lost"),
            End::Adopted(_) => {}
        }
    }
}

/// Completes with a future that is there; never without one.
async fn completed(future: &mut Option<impl Future<Output = ()> + Unpin>) {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

pub(super) async fn sleep(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}

/// Bytes that the client has sent and that are not read yet.
fn unread_bytes(socket: &Reader) -> u64 {
    rustix::io::ioctl_fionread(socket.tcp()).unwrap_or(0)
}
