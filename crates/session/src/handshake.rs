//! The handshake, from the protocol header to `connection.open`: versions, login, tuning.

use amqp::frame::{FrameType, split_frame};
use amqp::limits::FRAME_MIN_SIZE;
use amqp::method::{
    ConnectionOpen, ConnectionOpenOk, ConnectionSecure, ConnectionSecureOk, ConnectionStart,
    ConnectionStartOk, ConnectionTune, ConnectionTuneOk, Method, MethodId, write_method,
};
use amqp::protocol_header::{self, AMQP_0_9_1, ProtocolHeader};
use amqp::reply_code::ReplyCode;
use amqp::sasl;
use broker::refusal::Refusal;
use broker::time::Time;

use crate::client_properties::Client;
use crate::limits::REFUSED_LOGIN_DELAY_MS;
use crate::login::{ANONYMOUS, CR_DEMO, Credentials, EXTERNAL};
use crate::outgoing::write_connection_close;
use crate::session::{Phase, Session, Step};

impl Session {
    pub(crate) fn protocol_header<'a>(
        &mut self,
        input: &mut &'a [u8],
        out: &mut Vec<u8>,
    ) -> Option<Step<'a>> {
        match protocol_header::parse(input) {
            ProtocolHeader::Incomplete => return Some(Step::More),
            ProtocolHeader::Amqp091 => {
                *input = input.get(AMQP_0_9_1.len()..).unwrap_or_default();
                let mechanisms = self.options.mechanisms.join(" ");
                let start = ConnectionStart {
                    version_major: 0,
                    version_minor: 9,
                    server_properties: self.options.server_properties.as_ref(),
                    mechanisms: mechanisms.as_bytes(),
                    locales: b"en_US",
                };
                write_method(out, 0, &start.into());
                self.phase = Phase::StartOk;
            }
            // COMPAT: protocol header: the answer to a foreign protocol is AMQP 0-9-1, which is all
            // there is; RabbitMQ offers AMQP 1.0.
            ProtocolHeader::OtherAmqp09 | ProtocolHeader::Foreign => {
                out.extend_from_slice(&AMQP_0_9_1);
                self.phase = Phase::Over;
            }
        }
        None
    }

    pub(crate) fn handshake<'a>(
        &mut self,
        input: &mut &'a [u8],
        out: &mut Vec<u8>,
    ) -> Option<Step<'a>> {
        let (frame, used) = match split_frame(input, self.payload_max) {
            Ok(Some(split)) => split,
            Ok(None) => return Some(Step::More),
            Err(error) => {
                let refusal = Refusal::new(ReplyCode::FrameError, error.to_string());
                return self.refuse_handshake(&refusal, MethodId::NONE, out);
            }
        };
        *input = input.get(used..).unwrap_or_default();
        match frame.frame_type {
            FrameType::Heartbeat if frame.channel == 0 => return None,
            FrameType::Method if frame.channel == 0 => {}
            FrameType::Method | FrameType::Header | FrameType::Body | FrameType::Heartbeat => {
                let refusal = Refusal::new(ReplyCode::UnexpectedFrame, frame.to_string());
                return self.refuse_handshake(&refusal, MethodId::NONE, out);
            }
        }
        let method = match Method::decode(frame.payload) {
            Ok(method) => method,
            Err(error) => {
                let text = error.explanation(frame.payload);
                let refusal = Refusal::new(ReplyCode::FrameError, text);
                return self.refuse_handshake(&refusal, error.id.unwrap_or(MethodId::NONE), out);
            }
        };
        let id = method.id();
        let step = match (self.phase, method) {
            (Phase::StartOk, Method::ConnectionStartOk(start_ok)) => self.start_ok(start_ok, out),
            (Phase::SecureOk, Method::ConnectionSecureOk(secure_ok)) => {
                Ok(Some(self.secure_ok(secure_ok)))
            }
            (Phase::TuneOk, Method::ConnectionTuneOk(tune_ok)) => self.tune_ok(tune_ok),
            (Phase::Open, Method::ConnectionOpen(ConnectionOpen { virtual_host })) => {
                self.phase = Phase::Opening;
                Ok(Some(Step::OpenVhost(virtual_host)))
            }
            (_, Method::ConnectionClose(_)) => {
                self.closed(out);
                Ok(None)
            }
            _ => {
                let text = format!("unexpected method in connection state {}", self.phase_name());
                Err(Refusal::new(ReplyCode::ChannelError, text))
            }
        };
        match step {
            Ok(step) => step,
            Err(refusal) => self.refuse_handshake(&refusal, id, out),
        }
    }

    fn phase_name(&self) -> &'static str {
        match self.phase {
            Phase::StartOk => "starting",
            Phase::SecureOk => "securing",
            Phase::TuneOk => "tuning",
            Phase::Open => "opening",
            Phase::ProtocolHeader
            | Phase::Login
            | Phase::Opening
            | Phase::Running
            | Phase::Refused
            | Phase::ClosedByClient
            | Phase::Closing
            | Phase::ClosingDeaf
            | Phase::Over => "running",
        }
    }

    /// Closes the connection because of `refusal`. The client must answer within the rest of the handshake
    /// timeout, so that refusals do not prolong it.
    fn refuse_handshake<'a>(
        &mut self,
        refusal: &Refusal,
        method: MethodId,
        out: &mut Vec<u8>,
    ) -> Option<Step<'a>> {
        write_connection_close(refusal, method, out);
        self.phase = Phase::Closing;
        None
    }

    fn start_ok<'a>(
        &mut self,
        start_ok: ConnectionStartOk<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Step<'a>>, Refusal> {
        self.client = Client::new(start_ok.client_properties);
        let known = self.options.mechanisms.iter().find(|known| **known == start_ok.mechanism);
        let mechanism = *known.ok_or_else(|| {
            let text = format!("unknown authentication mechanism '{}'", start_ok.mechanism);
            Refusal::new(ReplyCode::CommandInvalid, text)
        })?;
        self.mechanism = mechanism;
        let credentials = match mechanism {
            EXTERNAL | ANONYMOUS => return Ok(Some(self.login(&[], &[]))),
            CR_DEMO => {
                self.challenged_user = start_ok.response.into();
                let challenge = sasl::CR_DEMO_CHALLENGE;
                write_method(out, 0, &ConnectionSecure { challenge }.into());
                self.phase = Phase::SecureOk;
                return Ok(None);
            }
            "PLAIN" => sasl::parse_plain(start_ok.response),
            _ => sasl::parse_amqplain(start_ok.response),
        };
        // A response without a user becomes an empty name, which the server refuses like a wrong
        // password.
        Ok(Some(match credentials {
            Ok(credentials) => self.login(credentials.user, credentials.password),
            Err(_) => self.login(&[], &[]),
        }))
    }

    /// Handles the answer to a challenge. One without a password is refused like a wrong password.
    fn secure_ok<'a>(&mut self, secure_ok: ConnectionSecureOk<'_>) -> Step<'a> {
        let user = std::mem::take(&mut self.challenged_user);
        self.login(&user, sasl::parse_cr_demo(secure_ok.response).unwrap_or_default())
    }

    fn login<'a>(&mut self, user: &[u8], password: &[u8]) -> Step<'a> {
        self.phase = Phase::Login;
        Step::Login(Credentials {
            user: String::from_utf8_lossy(user).into_owned(),
            password: password.to_vec(),
            mechanism: self.mechanism,
        })
    }

    /// The login is accepted: appends `connection.tune`, which proposes limits.
    pub fn login_accepted(&mut self, out: &mut Vec<u8>) {
        debug_assert_eq!(self.phase, Phase::Login, "a login was not asked for");
        let tune = ConnectionTune {
            channel_max: self.options.channel_max,
            frame_max: self.options.frame_max,
            heartbeat: self.options.heartbeat_s,
        };
        write_method(out, 0, &tune.into());
        self.phase = Phase::TuneOk;
    }

    /// The login is refused: appends `connection.close` for a client with the capability
    /// `authentication_failure_close`. Any other client gets no answer, and its socket is closed after
    /// [`REFUSED_LOGIN_DELAY_MS`].
    pub fn login_refused(&mut self, now: Time, out: &mut Vec<u8>) {
        debug_assert_eq!(self.phase, Phase::Login, "a login was not asked for");
        if !self.client.capabilities.authentication_failure_close {
            self.phase = Phase::ClosingDeaf;
            self.deadline = Some(now.plus_ms(REFUSED_LOGIN_DELAY_MS));
            return;
        }
        let refusal = Refusal::access_refused(format!(
            "Login was refused using authentication mechanism {}. For details see the broker \
             logfile.",
            self.mechanism
        ));
        self.fail(now, &refusal, MethodId::NONE, out);
    }

    /// Checks the client's limits: none may exceed the proposed one. 0 means unlimited, which exceeds any.
    ///
    /// COMPAT: tune-ok: a violation is answered with 530; RabbitMQ drops the socket after a while.
    fn tune_ok<'a>(&mut self, tune_ok: ConnectionTuneOk) -> Result<Option<Step<'a>>, Refusal> {
        let frame_max = u64::from(self.options.frame_max);
        let channel_max = u64::from(self.options.channel_max);
        let minimum = u64::from(FRAME_MIN_SIZE);
        negotiated("frame_max", u64::from(tune_ok.frame_max), minimum, frame_max)?;
        negotiated("channel_max", u64::from(tune_ok.channel_max), 1, channel_max)?;
        self.payload_max = tune_ok.frame_max;
        self.channel_max = tune_ok.channel_max;
        self.heartbeat_s = tune_ok.heartbeat;
        self.phase = Phase::Open;
        Ok(None)
    }

    /// The vhost is open: appends `connection.open-ok`. The connection is running from now on.
    pub fn vhost_opened(&mut self, now: Time, out: &mut Vec<u8>) {
        debug_assert_eq!(self.phase, Phase::Opening, "a vhost was not asked for");
        write_method(out, 0, &ConnectionOpenOk.into());
        self.start_running(now);
    }
}

/// Checks one limit; 0 on either side means unlimited.
fn negotiated(field: &str, client: u64, min: u64, max: u64) -> Result<(), Refusal> {
    let (is, bound, limit) = match (client, max) {
        (0, 0) => return Ok(()),
        (0, max) => ("greater", "maximum", max),
        (client, _) if client < min => ("lower", "minimum", min),
        (client, max) if max > 0 && client > max => ("greater", "maximum", max),
        _ => return Ok(()),
    };
    Err(Refusal::not_allowed(format!(
        "negotiated {field} = {client} is {is} than the {bound} allowed value ({limit})"
    )))
}
