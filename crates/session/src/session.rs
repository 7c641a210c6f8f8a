//! The incoming half of a connection: which phase it is in, what the next bytes mean, and when its
//! patience ends.
//!
//! The phases follow each other once: protocol header, start-ok, login, tune-ok, open, running, then
//! closing or over. Handshake methods are decided in `handshake`, everything later in `running`.

use std::collections::BTreeMap;
use std::sync::Arc;

use amqp::frame::{FrameError, frame_len, split_frame, write_heartbeat};
use amqp::method::{
    ConnectionBlocked, ConnectionCloseOk, ConnectionUnblocked, ConnectionUpdateSecretOk, Method,
    MethodId, write_method,
};
use amqp::table::Table;
use broker::Request;
use broker::refusal::Refusal;
use broker::time::Time;

use crate::client_properties::Client;
use crate::content_assembly::ChannelContent;
use crate::handshake::Credentials;
use crate::limits::{
    CLOSE_TIMEOUT_MS, HANDSHAKE_PAYLOAD_MAX, HANDSHAKE_TIMEOUT_MS, HEARTBEAT_MISSED_HALVES,
};
use crate::outgoing::write_connection_close;

/// What a node offers its clients.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Largest frame, in bytes; `frame_max`.
    pub frame_max: u32,
    /// Channels of one connection; `channel_max`. 0 is unlimited.
    pub channel_max: u16,
    /// Suggested heartbeat interval, in seconds; `heartbeat`. 0 is none.
    pub heartbeat_s: u16,
    /// Largest message body, in bytes; `max_message_size`.
    pub message_bytes_max: u64,
    /// From the accepted socket to `connection.open`, in milliseconds; `handshake_timeout`.
    pub handshake_timeout_ms: u64,
    /// What clients may log in with: names from [`MECHANISMS`].
    pub mechanisms: Vec<&'static str>,
    /// What the broker says of itself.
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

/// What the caller has to do next.
#[derive(Clone, Debug)]
pub enum Step<'a> {
    /// Read more bytes.
    More,
    /// Apply a command.
    Request(Request<'a>),
    /// Check a login and call [`Session::login_accepted`] or [`Session::login_refused`]. No further
    /// bytes are looked at before.
    Login(Credentials),
    /// Open a vhost and call [`Session::vhost_opened`] or [`Session::fail`]. No further bytes are
    /// looked at before.
    OpenVhost(&'a str),
    /// The client has new credentials, accepted already, for a password does not change with them:
    /// apply what came before, then answer with [`Session::secret_updated`].
    UpdateSecret,
    /// The client closes: end everything, then call [`Session::closed`].
    Close,
    /// The client publishes, which it may not do now (see [`Session::set_publishes_blocked`]). Nothing
    /// of the publish has been read from the input.
    PublishBlocked,
    /// Nothing more is said to or heard from this client: write what is left and close the socket.
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

/// Whether a connection still lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alive {
    /// It does.
    Yes,
    /// Its client has kept silent too long, or has not gone in time: close the socket.
    No,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    ProtocolHeader,
    StartOk,
    /// The client was challenged.
    SecureOk,
    /// The server checks a login.
    Login,
    TuneOk,
    Open,
    /// The server opens the vhost.
    Opening,
    Running,
    /// The client has sent what is no AMQP; the core closes the connection before more is read.
    Refused,
    /// The client has asked to close; the server ends what it holds.
    ClosedByClient,
    /// The broker has asked to close; only the client's agreement matters.
    Closing,
    /// The same, but nothing is heard: where the next frame begins is lost, or the login was refused.
    /// The client goes by itself, or its time ends; a socket closed before that could take the reason
    /// for it from the client.
    ClosingDeaf,
    Over,
}

/// The incoming half of one connection.
#[derive(Debug)]
pub struct Session {
    pub(crate) options: Arc<SessionOptions>,
    pub(crate) phase: Phase,
    pub(crate) client: Client,
    pub(crate) mechanism: &'static str,
    /// The name that a client has given before it was challenged.
    pub(crate) challenged_user: Box<[u8]>,
    /// Largest frame payload that is read.
    pub(crate) payload_max: u32,
    pub(crate) channel_max: u16,
    pub(crate) channels: BTreeMap<u16, ChannelContent>,
    /// Bytes of bodies that are half received.
    pub(crate) assembling_bytes: u64,
    pub(crate) publishes_blocked: bool,
    pub(crate) heartbeat_s: u16,
    /// When the handshake or the closing must be over.
    pub(crate) patience: Option<Time>,
    last_received: Time,
    /// When something was last seen to have been written.
    last_sent: Time,
    /// When to see whether a heartbeat is needed.
    next_look: Time,
}

impl Session {
    /// A session for a socket accepted at `now`.
    pub fn new(options: Arc<SessionOptions>, now: Time) -> Self {
        let patience = Some(now.plus_ms(options.handshake_timeout_ms));
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
            patience,
            last_received: now,
            last_sent: now,
            next_look: Time::MAX,
        }
    }

    /// Reads the next step from the front of `input`, which is advanced past what was understood.
    /// What the session itself has to say is appended to `out`.
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

    /// The client, as far as it has introduced itself.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Largest frame this client takes, in bytes; known once it is running.
    pub fn frame_max(&self) -> u32 {
        self.payload_max
    }

    /// Channels that this client may open; 0 is unlimited. Known once it is running.
    pub fn channel_max(&self) -> u16 {
        self.channel_max
    }

    /// How it has logged in; known once it is running.
    pub fn mechanism(&self) -> &'static str {
        self.mechanism
    }

    /// The agreed heartbeat interval, in seconds; 0 is none.
    pub fn heartbeat_s(&self) -> u16 {
        self.heartbeat_s
    }

    /// How many channels are open, as far as the client has said.
    pub fn channel_count(&self) -> u64 {
        self.channels.len() as u64
    }

    /// From now on the next `basic.publish` is answered with [`Step::PublishBlocked`], or is not. A
    /// message whose method was read before is read to its end (docs/alarms of RabbitMQ: a connection is
    /// blocked when it publishes, not before).
    pub fn set_publishes_blocked(&mut self, publishes_blocked: bool) {
        self.publishes_blocked = publishes_blocked;
    }

    /// Whether it is open, as far as it knows: call [`Session::start_closing`] when the core has closed
    /// it.
    pub fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running | Phase::Refused)
    }

    /// Whether the client has not yet said which protocol it speaks.
    pub fn is_at_start(&self) -> bool {
        matches!(self.phase, Phase::ProtocolHeader)
    }

    /// Whether the broker has closed it and waits for the client to agree or to go.
    pub fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing | Phase::ClosingDeaf)
    }

    /// Bytes have come.
    pub fn received(&mut self, now: Time) {
        self.last_received = now;
    }

    /// Closes the connection because of `refusal`, before it belongs to a vhost.
    pub fn fail(&mut self, now: Time, refusal: &Refusal, method: MethodId, out: &mut Vec<u8>) {
        write_connection_close(refusal, method, out);
        self.start_closing(now);
    }

    /// `connection.close` has been sent; the client has a while to agree.
    pub fn start_closing(&mut self, now: Time) {
        self.phase = Phase::Closing;
        self.patience = Some(now.plus_ms(CLOSE_TIMEOUT_MS));
        self.next_look = Time::MAX;
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

    /// Everything that the client held has ended, as it asked.
    pub fn closed(&mut self, out: &mut Vec<u8>) {
        write_method(out, 0, &ConnectionCloseOk.into());
        self.phase = Phase::Over;
    }

    pub(crate) fn start_running(&mut self, now: Time) {
        self.phase = Phase::Running;
        self.patience = None;
        self.last_received = now;
        self.last_sent = now;
        self.next_look = self.look_after(now);
    }

    /// A part of the heartbeat interval, in milliseconds.
    fn interval_ms(&self, parts: u64) -> u64 {
        u64::from(self.heartbeat_s) * 1000 / parts
    }

    /// Whether a heartbeat is needed is looked at four times per interval.
    fn look_after(&self, now: Time) -> Time {
        if self.heartbeat_s == 0 { Time::MAX } else { now.plus_ms(self.interval_ms(4)) }
    }

    /// When the peer counts as dead if nothing comes until then.
    fn dead_at(&self) -> Time {
        match self.heartbeat_s {
            0 => Time::MAX,
            seconds => {
                self.last_received.plus_ms(u64::from(seconds) * 500 * HEARTBEAT_MISSED_HALVES)
            }
        }
    }

    /// When `tick` must be called the next time.
    pub fn next_timeout(&self) -> Option<Time> {
        let times = [self.patience.unwrap_or(Time::MAX), self.next_look, self.dead_at()];
        times.into_iter().min().filter(|time| *time < Time::MAX)
    }

    /// Performs what is due at `now`: appends a heartbeat if nothing was written for half an interval,
    /// or reports that the client has been silent for too long.
    pub fn tick(&mut self, now: Time, traffic: Traffic, out: &mut Vec<u8>) -> Alive {
        if self.patience.is_some_and(|patience| patience <= now) {
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
        if self.next_look <= now {
            if self.last_sent.plus_ms(self.interval_ms(2)) <= now {
                write_heartbeat(out);
                self.last_sent = now;
            }
            self.next_look = self.look_after(now);
        }
        Alive::Yes
    }

    /// The broker has closed: everything is ignored but the client's agreement, or its own close.
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
