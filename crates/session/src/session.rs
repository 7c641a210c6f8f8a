//! The incoming half of a connection: its phase, the meaning of the next bytes, and its timeouts.
//!
//! A connection passes the phases once: protocol header, start-ok, login, tune-ok, open, running, then
//! closing or over. `handshake` handles the methods before `connection.open`, `frames` all later ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use amqp::frame::{FrameError, frame_len, split_frame, write_heartbeat};
use amqp::method::{
    ConnectionBlocked, ConnectionCloseOk, ConnectionUnblocked, ConnectionUpdateSecretOk, Method,
    MethodId, write_method,
};
use amqp::table::{Table, TableRef};
use broker::Request;
use broker::refusal::Refusal;
use broker::time::Time;

use crate::client_properties::Client;
use crate::content_assembly::ChannelContent;
use crate::limits::{
    CLOSE_TIMEOUT_MS, HANDSHAKE_PAYLOAD_MAX, HANDSHAKE_TIMEOUT_MS, HEARTBEAT_MISSED_HALVES,
};
use crate::login::Credentials;
use crate::outgoing::write_connection_close;

/// Limits and properties that a node offers its clients.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Largest frame, in bytes; `frame_max`.
    pub frame_max: u32,
    /// Largest number of channels of one connection; `channel_max`. 0 is unlimited.
    pub channel_max: u16,
    /// Suggested heartbeat interval, in seconds; `heartbeat`. 0 is none.
    pub heartbeat_s: u16,
    /// Largest message body, in bytes; `max_message_size`.
    pub message_bytes_max: u64,
    /// Time from the accepted socket to `connection.open`, in milliseconds; `handshake_timeout`.
    pub handshake_timeout_ms: u64,
    /// Login mechanisms on offer: names from [`MECHANISMS`](crate::MECHANISMS).
    pub mechanisms: Vec<&'static str>,
    /// Properties of the server in `connection.start`.
    pub server_properties: Table,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            frame_max: 131_072,
            channel_max: 2047,
            heartbeat_s: 60,
            message_bytes_max: 16 * 1024 * 1024,
            handshake_timeout_ms: HANDSHAKE_TIMEOUT_MS,
            mechanisms: vec!["AMQPLAIN", "PLAIN"],
            server_properties: Table::default(),
        }
    }
}

/// The facts of a connection that were agreed before its vhost is opened.
#[derive(Clone, Copy, Debug)]
pub struct Resumed<'a> {
    /// The table that the client sent in `connection.start-ok`.
    pub client_properties: TableRef<'a>,
    /// Mechanism of the login.
    pub mechanism: &'static str,
    /// Largest frame, in bytes; 0 is unlimited.
    pub frame_max: u32,
    /// Largest number of channels; 0 is unlimited.
    pub channel_max: u16,
    /// Heartbeat interval, in seconds; 0 is none.
    pub heartbeat_s: u16,
}

/// The next task of the caller.
#[derive(Clone, Debug)]
pub enum Step<'a> {
    /// Read more bytes.
    More,
    /// Apply a command.
    Request(Request<'a>),
    /// Check a login, then call [`Session::login_accepted`] or [`Session::login_refused`]. No more input
    /// is read before.
    Login(Credentials),
    /// Open a vhost, then call [`Session::vhost_opened`] or [`Session::fail`]. No more input is read
    /// before.
    OpenVhost(&'a str),
    /// Apply all earlier requests, then call [`Session::secret_updated`]. The client has sent a new
    /// secret, which is always accepted: a user with a password keeps the login.
    UpdateSecret,
    /// The client closes the connection: end its channels and consumers, then call [`Session::closed`].
    Close,
    /// The client publishes while publishes are blocked (see [`Session::set_publishes_blocked`]). The
    /// publish has not been taken from the input.
    PublishBlocked,
    /// The connection is over: write the rest of the output and close the socket.
    Over,
}

/// Traffic on the socket since the last [`Session::tick`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// Bytes other than heartbeats were written to the client.
    pub has_written: bool,
    /// The broker reads from the client. While it does not, a silent client is not taken for dead.
    pub is_read: bool,
}

/// Result of [`Session::tick`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alive {
    /// The connection is alive.
    Yes,
    /// The client was silent for too long, or has not closed in time: close the socket.
    No,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    ProtocolHeader,
    StartOk,
    /// The client was challenged and must answer.
    SecureOk,
    /// The server checks a login.
    Login,
    TuneOk,
    Open,
    /// The server opens the vhost.
    Opening,
    Running,
    /// The client has sent bytes that are no AMQP; the core closes the connection before more is read.
    Refused,
    /// The client has asked to close; the server ends its channels and consumers.
    ClosedByClient,
    /// The broker has asked to close and waits for the client's `close-ok`.
    Closing,
    /// As `Closing`, but all input is discarded: the boundary of frames is lost, or the login was
    /// refused. The socket stays open until the client or the timeout closes it, because closing it
    /// earlier could discard the reason before the client has read it.
    ClosingDeaf,
    Over,
}

/// The incoming half of one connection.
///
/// The methods are of four kinds:
///
/// * **Input.** After each read from the socket the caller calls [`Session::received`], then
///   [`Session::next`] in a loop. Each [`Step`] is performed before the next call; the loop ends with
///   [`Step::More`], [`Step::PublishBlocked`] or [`Step::Over`].
/// * **Answers.** A step that asks a question is answered once, before the next call of `next`:
///   [`Step::Login`] by [`Session::login_accepted`] or [`Session::login_refused`], [`Step::OpenVhost`]
///   by [`Session::vhost_opened`] or [`Session::fail`], [`Step::UpdateSecret`] by
///   [`Session::secret_updated`], [`Step::Close`] by [`Session::closed`].
/// * **Events of the broker**, at any time while the connection is running:
///   [`Session::set_publishes_blocked`], [`Session::blocked`], [`Session::unblocked`], and
///   [`Session::start_closing`] when the core has closed the connection.
/// * **Time.** The caller calls [`Session::tick`] when [`Session::next_timeout`] has come. Other calls
///   change the timeout, so it is read again after each.
///
/// A method with an argument `out` appends bytes to it, which the caller writes to the socket in order.
#[derive(Debug)]
pub struct Session {
    pub(crate) options: Arc<SessionOptions>,
    pub(crate) phase: Phase,
    pub(crate) client: Client,
    pub(crate) mechanism: &'static str,
    /// Name that the client gave before it was challenged.
    pub(crate) challenged_user: Box<[u8]>,
    /// Largest frame payload that is accepted, in bytes.
    pub(crate) payload_max: u32,
    pub(crate) channel_max: u16,
    pub(crate) channels: BTreeMap<u16, ChannelContent>,
    /// Bytes of bodies that are incomplete, of all channels.
    pub(crate) assembling_bytes: u64,
    pub(crate) publishes_blocked: bool,
    pub(crate) heartbeat_s: u16,
    /// End of the time for the handshake or for closing.
    pub(crate) deadline: Option<Time>,
    last_received: Time,
    /// Time of the last tick that saw written bytes.
    last_sent: Time,
    /// Time of the next check if a heartbeat is needed.
    next_heartbeat_check: Time,
}

impl Session {
    /// A session for a socket that was accepted at `now`.
    pub fn new(options: Arc<SessionOptions>, now: Time) -> Self {
        let deadline = Some(now.plus_ms(options.handshake_timeout_ms));
        Self {
            options,
            phase: Phase::ProtocolHeader,
            client: Client::default(),
            mechanism: "",
            challenged_user: Box::default(),
            payload_max: HANDSHAKE_PAYLOAD_MAX,
            channel_max: 0,
            channels: BTreeMap::new(),
            assembling_bytes: 0,
            publishes_blocked: false,
            heartbeat_s: 0,
            deadline,
            last_received: now,
            last_sent: now,
            next_heartbeat_check: Time::MAX,
        }
    }

    /// A session that another node has brought as far as `connection.open`; the client waits for the answer of
    /// [`Session::vhost_opened`] or [`Session::fail`].
    pub fn resumed(options: Arc<SessionOptions>, now: Time, resumed: Resumed<'_>) -> Self {
        let Resumed { client_properties, mechanism, frame_max, channel_max, heartbeat_s } = resumed;
        Self {
            phase: Phase::Opening,
            client: Client::new(client_properties),
            mechanism,
            payload_max: frame_max,
            channel_max,
            heartbeat_s,
            ..Self::new(options, now)
        }
    }

    /// Reads the next step from the front of `input`, and advances `input` past the bytes that were read.
    /// Appends the session's own answers to `out`.
    pub fn next<'a>(&mut self, input: &mut &'a [u8], out: &mut Vec<u8>) -> Step<'a> {
        loop {
            let step = match self.phase {
                Phase::ProtocolHeader => self.protocol_header(input, out),
                Phase::StartOk | Phase::SecureOk | Phase::TuneOk | Phase::Open => {
                    self.handshake(input, out)
                }
                Phase::Running => self.running(input),
                Phase::Closing => self.closing(input, out),
                Phase::Login | Phase::Opening | Phase::Refused => Some(Step::More),
                Phase::ClosingDeaf => {
                    *input = &[];
                    Some(Step::More)
                }
                Phase::ClosedByClient | Phase::Over => {
                    *input = &[];
                    Some(Step::Over)
                }
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    /// Properties of the client; empty before `connection.start-ok`.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Largest frame that the client accepts, in bytes; known once the connection is running.
    pub fn frame_max(&self) -> u32 {
        self.payload_max
    }

    /// Largest number of channels; 0 is unlimited. Known once the connection is running.
    pub fn channel_max(&self) -> u16 {
        self.channel_max
    }

    /// Mechanism of the login; known once the connection is running.
    pub fn mechanism(&self) -> &'static str {
        self.mechanism
    }

    /// The agreed heartbeat interval, in seconds; 0 is none.
    pub fn heartbeat_s(&self) -> u16 {
        self.heartbeat_s
    }

    /// Number of channels that the client has opened and not closed.
    pub fn channel_count(&self) -> u64 {
        self.channels.len() as u64
    }

    /// Blocks or unblocks publishes. While they are blocked, the next `basic.publish` gives
    /// [`Step::PublishBlocked`]; a message whose method was read before is read to its end. RabbitMQ also
    /// blocks a connection when it publishes, not before.
    pub fn set_publishes_blocked(&mut self, publishes_blocked: bool) {
        self.publishes_blocked = publishes_blocked;
    }

    /// True while the connection is open. The session does not know that the core has closed it until
    /// [`Session::start_closing`] is called.
    pub fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running | Phase::Refused)
    }

    /// True until the client has sent its protocol header.
    pub fn is_at_start(&self) -> bool {
        matches!(self.phase, Phase::ProtocolHeader)
    }

    /// True if the broker has closed the connection and waits for the client's `close-ok`.
    pub fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing | Phase::ClosingDeaf)
    }

    /// Bytes were read from the client, which therefore is alive.
    pub fn received(&mut self, now: Time) {
        self.last_received = now;
    }

    /// Notes that the caller stood still for so many microseconds: it is not the client that was silent then.
    pub fn stood_still(&mut self, us: u64) {
        self.last_received = self.last_received.plus_micros(us);
        self.deadline = self.deadline.map(|deadline| deadline.plus_micros(us));
    }

    /// Closes a connection that has no vhost yet because of `refusal`: appends `connection.close`.
    pub fn fail(&mut self, now: Time, refusal: &Refusal, method: MethodId, out: &mut Vec<u8>) {
        write_connection_close(refusal, method, out);
        self.start_closing(now);
    }

    /// `connection.close` was sent: discards all input until the client agrees or [`CLOSE_TIMEOUT_MS`]
    /// ends.
    pub fn start_closing(&mut self, now: Time) {
        self.phase = Phase::Closing;
        self.deadline = Some(now.plus_ms(CLOSE_TIMEOUT_MS));
        self.next_heartbeat_check = Time::MAX;
        self.channels.clear();
        self.assembling_bytes = 0;
    }

    /// An alarm has begun and publishers are not read: appends `connection.blocked` for a client that
    /// has announced the capability `connection.blocked`, nothing for another one.
    pub fn blocked(&self, reason: &str, out: &mut Vec<u8>) {
        if self.client.capabilities.connection_blocked {
            write_method(out, 0, &ConnectionBlocked { reason }.into());
        }
    }

    /// The alarm is over: appends `connection.unblocked`, to the same clients as [`Session::blocked`].
    pub fn unblocked(&self, out: &mut Vec<u8>) {
        if self.client.capabilities.connection_blocked {
            write_method(out, 0, &ConnectionUnblocked.into());
        }
    }

    /// The new secret is accepted: appends `connection.update-secret-ok`.
    pub fn secret_updated(&self, out: &mut Vec<u8>) {
        write_method(out, 0, &ConnectionUpdateSecretOk.into());
    }

    /// The channels and consumers have ended, as the client asked: appends `connection.close-ok`.
    pub fn closed(&mut self, out: &mut Vec<u8>) {
        write_method(out, 0, &ConnectionCloseOk.into());
        self.phase = Phase::Over;
    }

    pub(crate) fn start_running(&mut self, now: Time) {
        self.phase = Phase::Running;
        self.deadline = None;
        self.last_received = now;
        self.last_sent = now;
        self.next_heartbeat_check = self.next_check_after(now);
    }

    /// A part of the heartbeat interval, in milliseconds.
    fn interval_ms(&self, parts: u64) -> u64 {
        u64::from(self.heartbeat_s) * 1000 / parts
    }

    /// Time of the next check if a heartbeat is needed: four checks per interval.
    fn next_check_after(&self, now: Time) -> Time {
        if self.heartbeat_s == 0 { Time::MAX } else { now.plus_ms(self.interval_ms(4)) }
    }

    /// Time at which the client counts as dead if no byte comes until then.
    fn dead_at(&self) -> Time {
        match self.heartbeat_s {
            0 => Time::MAX,
            seconds => {
                self.last_received.plus_ms(u64::from(seconds) * 500 * HEARTBEAT_MISSED_HALVES)
            }
        }
    }

    /// Time of the next call of [`Session::tick`]; `None` if none is needed.
    pub fn next_timeout(&self) -> Option<Time> {
        let times = [self.deadline.unwrap_or(Time::MAX), self.next_heartbeat_check, self.dead_at()];
        times.into_iter().min().filter(|time| *time < Time::MAX)
    }

    /// Performs what is due at `now`: appends a heartbeat if nothing was written for half an interval,
    /// or reports that the client has been silent for too long.
    pub fn tick(&mut self, now: Time, traffic: Traffic, out: &mut Vec<u8>) -> Alive {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            return Alive::No;
        }
        if !traffic.is_read {
            self.last_received = now;
        }
        if self.dead_at() <= now {
            return Alive::No;
        }
        if traffic.has_written {
            self.last_sent = now;
        }
        if self.next_heartbeat_check <= now {
            if self.last_sent.plus_ms(self.interval_ms(2)) <= now {
                write_heartbeat(out);
                self.last_sent = now;
            }
            self.next_heartbeat_check = self.next_check_after(now);
        }
        Alive::Yes
    }

    /// Reads frames after the broker has closed: all are ignored except the client's `close-ok` and its own
    /// `close`.
    fn closing<'a>(&mut self, input: &mut &'a [u8], out: &mut Vec<u8>) -> Option<Step<'a>> {
        let (frame, used) = match split_frame(input, self.payload_max) {
            Ok(Some(split)) => split,
            Ok(None) => return Some(Step::More),
            Err(FrameError::TooLarge { .. }) => {
                self.phase = Phase::ClosingDeaf;
                return None;
            }
            Err(_) => {
                *input = frame_len(input).and_then(|len| input.get(len..)).unwrap_or_default();
                return None;
            }
        };
        *input = input.get(used..).unwrap_or_default();
        if frame.channel != 0 {
            return None;
        }
        match Method::decode(frame.payload) {
            Ok(Method::ConnectionCloseOk(_)) => self.phase = Phase::Over,
            Ok(Method::ConnectionClose(_)) => {
                write_method(out, 0, &ConnectionCloseOk.into());
                self.phase = Phase::Over;
            }
            _ => {}
        }
        None
    }
}
