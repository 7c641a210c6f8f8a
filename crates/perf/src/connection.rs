//! One connection to a broker: login, calls with answers, then bytes in both directions.
//!
//! The load is decided elsewhere. A broker that closes the connection or a channel ends the run with the
//! broker's reply text.

use std::time::Duration;

use amqp::frame::{Frame, FrameType, split_frame};
use amqp::limits::{FRAME_MIN_SIZE_AMQP, FRAME_OVERHEAD};
use amqp::method::{
    ChannelOpen, ConnectionClose, ConnectionOpen, ConnectionStartOk, ConnectionTuneOk, Method,
    MethodId, write_method,
};
use amqp::protocol_header::AMQP_0_9_1;
use amqp::table::{TableBuilder, Value};
use anyhow::{Context as _, Result, bail, ensure};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::target::Target;

/// Size of one read, in bytes.
const READ_BYTES: usize = 256 * 1024;

/// The largest frame that is read before a smaller one is agreed on.
const FRAME_MAX: u32 = 1024 * 1024;

/// Longest wait for `connection.close-ok`.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// The one channel that a connection works on.
pub(crate) const CHANNEL: u16 = 1;

/// The incoming half of a connection.
pub(crate) struct Incoming {
    half: Box<dyn AsyncRead + Send + Unpin>,
    bytes: Vec<u8>,
    taken: usize,
}

impl Incoming {
    /// Waits for more bytes.
    ///
    /// # Errors
    /// When the connection is lost.
    pub(crate) async fn read(&mut self) -> Result<()> {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.reserve(READ_BYTES);
        let count = self.half.read_buf(&mut self.bytes).await.context("connection lost")?;
        ensure!(count > 0, "the broker has closed the connection without a word");
        Ok(())
    }

    /// The next whole frame, if one was read.
    ///
    /// # Errors
    /// When the broker does not speak AMQP, or closes the connection or the channel.
    pub(crate) fn next(&mut self) -> Result<Option<Frame<'_>>> {
        let bytes = self.bytes.get(self.taken..).unwrap_or_default();
        let Some((frame, length)) = split_frame(bytes, FRAME_MAX)? else {
            return Ok(None);
        };
        self.taken += length;
        refuse_close(&frame)?;
        Ok(Some(frame))
    }
}

/// Fails with the broker's reason when the frame closes the connection or a channel.
fn refuse_close(frame: &Frame<'_>) -> Result<()> {
    if frame.frame_type != FrameType::Method
        || !matches!(frame.payload, [0, 10, 0, 50, ..] | [0, 20, 0, 40, ..])
    {
        return Ok(());
    }
    match Method::decode(frame.payload)? {
        Method::ConnectionClose(close) => {
            bail!("the broker closed the connection: {} {}", close.reply_code, close.reply_text)
        }
        Method::ChannelClose(close) => {
            bail!("the broker closed the channel: {} {}", close.reply_code, close.reply_text)
        }
        other => bail!("the broker sent {}", other.name()),
    }
}

/// The outgoing half of a connection.
pub(crate) struct Outgoing {
    half: Box<dyn AsyncWrite + Send + Unpin>,
}

impl Outgoing {
    /// Sends bytes; waits while the broker does not read.
    ///
    /// # Errors
    /// When the connection is lost.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.half.write_all(bytes).await.context("connection lost")?;
        self.half.flush().await.context("connection lost")
    }
}

/// An open connection, at first for calls.
pub(crate) struct Connection {
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
    frame_max: u32,
    /// Product and version of the broker.
    pub(crate) product: String,
}

impl Connection {
    /// Connects, logs in and opens the vhost.
    ///
    /// # Errors
    /// When the broker cannot be reached or does not let us in.
    pub(crate) async fn open(target: &Target) -> Result<Self> {
        let (read, write) = target.connect().await?;
        let incoming = Incoming { half: read, bytes: Vec::new(), taken: 0 };
        let outgoing = Outgoing { half: write };
        let mut connection =
            Self { incoming, outgoing, frame_max: FRAME_MAX, product: String::new() };
        connection.shake_hands(target).await.with_context(|| format!("{target}"))?;
        Ok(connection)
    }

    /// As [`Connection::open`], with channel 1 open.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub(crate) async fn with_channel(target: &Target) -> Result<Self> {
        let mut connection = Self::open(target).await?;
        connection.call(CHANNEL, ChannelOpen).await?;
        Ok(connection)
    }

    async fn shake_hands(&mut self, target: &Target) -> Result<()> {
        self.outgoing.send(&AMQP_0_9_1).await?;
        let start = self.method().await?;
        let Method::ConnectionStart(start) = Method::decode(&start)? else {
            bail!("the broker does not begin with connection.start");
        };
        let said = |key| match start.server_properties.get(key) {
            Some(Value::LongStr(text)) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        };
        // Leveret calls itself RabbitMQ towards clients that go by it.
        self.product = match said("leveret_version") {
            Some(version) => format!("Leveret {version}"),
            None => {
                let or_unknown = |key| said(key).unwrap_or_else(|| "?".to_owned());
                format!("{} {}", or_unknown("product"), or_unknown("version"))
            }
        };
        let mut properties = TableBuilder::new();
        properties.insert("product", Value::LongStr(b"leveret-perf"));
        properties.table("capabilities", |capabilities| {
            for name in
                ["connection.blocked", "consumer_cancel_notify", "authentication_failure_close"]
            {
                capabilities.insert(name, Value::Bool(true));
            }
        });
        let tune = self
            .call(
                0,
                ConnectionStartOk {
                    client_properties: properties.finish().as_ref(),
                    mechanism: "PLAIN",
                    response: format!("\0{}\0{}", target.user, target.password).as_bytes(),
                    locale: "en_US",
                },
            )
            .await?;
        let Method::ConnectionTune(tune) = Method::decode(&tune)? else {
            bail!("the broker does not propose limits");
        };
        self.frame_max =
            if tune.frame_max == 0 { FRAME_MAX } else { tune.frame_max.min(FRAME_MAX) };
        ensure!(
            self.frame_max >= FRAME_MIN_SIZE_AMQP,
            "the broker wants frames of {} bytes, AMQP knows none below {FRAME_MIN_SIZE_AMQP}",
            self.frame_max
        );
        // No heartbeats: while there is load there is traffic, and a broker that stops is seen.
        let settled = ConnectionTuneOk {
            channel_max: tune.channel_max,
            frame_max: self.frame_max,
            heartbeat: 0,
        };
        self.tell(0, settled).await?;
        self.call(0, ConnectionOpen { virtual_host: &target.vhost }).await?;
        Ok(())
    }

    /// Largest payload of a body frame, in bytes.
    pub(crate) fn payload_max(&self) -> u32 {
        self.frame_max.saturating_sub(u32::try_from(FRAME_OVERHEAD).unwrap_or(u32::MAX))
    }

    /// Sends a method that is not answered.
    ///
    /// # Errors
    /// When the connection is lost.
    pub(crate) async fn tell<'a>(
        &mut self,
        channel: u16,
        method: impl Into<Method<'a>>,
    ) -> Result<()> {
        let mut bytes = Vec::new();
        write_method(&mut bytes, channel, &method.into());
        self.outgoing.send(&bytes).await
    }

    /// Sends a method and waits for its answer, whose payload is returned.
    ///
    /// # Errors
    /// When the broker refuses it, with the broker's reason.
    pub(crate) async fn call<'a>(
        &mut self,
        channel: u16,
        method: impl Into<Method<'a>>,
    ) -> Result<Vec<u8>> {
        let method = method.into();
        self.tell(channel, method).await?;
        let answer = answer_to(&method);
        loop {
            let payload = self.method().await.with_context(|| method.name())?;
            if payload.starts_with(&answer) {
                return Ok(payload);
            }
        }
    }

    /// The payload of the next method frame from the broker.
    async fn method(&mut self) -> Result<Vec<u8>> {
        loop {
            while let Some(frame) = self.incoming.next()? {
                if frame.frame_type == FrameType::Method {
                    return Ok(frame.payload.to_vec());
                }
            }
            self.incoming.read().await?;
        }
    }

    /// Closes the connection, and waits a limited time for the broker's answer.
    ///
    /// # Errors
    /// When the connection is lost before.
    pub(crate) async fn close(mut self) -> Result<()> {
        let close =
            ConnectionClose { reply_code: 200, reply_text: "done", class_id: 0, method_id: 0 };
        timeout(CLOSE_WAIT, self.call(0, close)).await.map_or(Ok(()), |answer| answer.map(drop))
    }
}

/// First bytes of the payload of the answer: in AMQP the number of an answer is that of its method plus
/// one.
fn answer_to(method: &Method<'_>) -> [u8; 4] {
    let MethodId { class_id, method_id } = match method {
        Method::ConnectionStartOk(_) => MethodId { class_id: 10, method_id: 30 },
        _ => MethodId { method_id: method.id().method_id + 1, ..method.id() },
    };
    let ([class_high, class_low], [high, low]) = (class_id.to_be_bytes(), method_id.to_be_bytes());
    [class_high, class_low, high, low]
}

#[cfg(test)]
mod tests {
    use amqp::method::{BasicConsume, QueueDeclare};

    use super::*;

    #[test]
    fn answers_follow_their_methods() {
        assert_eq!(answer_to(&QueueDeclare::default().into()), [0, 50, 0, 11]);
        assert_eq!(answer_to(&BasicConsume::default().into()), [0, 60, 0, 21]);
        assert_eq!(answer_to(&ConnectionStartOk::default().into()), [0, 10, 0, 30]);
    }

    #[test]
    fn close_methods_are_errors_with_the_reply_text() {
        let mut payload = Vec::new();
        let close = amqp::method::ChannelClose {
            reply_code: 404,
            reply_text: "NOT_FOUND - no queue 'q'",
            class_id: 50,
            method_id: 10,
        };
        Method::from(close).encode(&mut payload);
        let frame = Frame { frame_type: FrameType::Method, channel: 1, payload: &payload };
        let error = refuse_close(&frame).expect_err("a channel that is closed ends the run");
        assert_eq!(
            error.to_string(),
            "the broker closed the channel: 404 NOT_FOUND - no queue 'q'"
        );
    }
}
