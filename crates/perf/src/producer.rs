//! A producer: sends encoded messages as fast as its limits allow.
//!
//! There are four limits: a rate, a window of unconfirmed messages, a bound on messages in flight to
//! consumers, and a number of messages.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use amqp::frame::FrameType;
use amqp::method::{ConfirmSelect, Method};
use anyhow::Result;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::connection::{CHANNEL, Connection, Incoming};
use crate::message_template::{EncodedMessages, MessageTemplate};
use crate::metrics::{Metrics, Recorder, count, record};
use crate::rate::SendRate;
use crate::target::Target;

/// Wait of a producer that is too far ahead of the consumers.
const AHEAD_WAIT: Duration = Duration::from_micros(50);

/// Limits of a producer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    /// Largest rate.
    pub(crate) pace: Option<SendRate>,
    /// Largest number of unconfirmed messages; `None` for a producer without confirms.
    pub(crate) window: Option<u64>,
    /// Largest number of messages in flight from all producers to all consumers.
    pub(crate) in_flight_max: Option<InFlight>,
    /// Number of messages to send.
    pub(crate) messages: Option<u64>,
}

/// A bound on the messages that producers are ahead of consumers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) messages: u64,
    /// Number of deliveries of each message.
    pub(crate) copies: u64,
}

/// State that the sending and the receiving half of a confirming producer share.
#[derive(Debug)]
struct Unconfirmed {
    count: AtomicU64,
    changed: Notify,
    /// The last message of each write and when it was sent, in nanoseconds.
    sent: Mutex<VecDeque<(u64, u64)>>,
}

/// Opens the connection. The returned future sends up to the limit, or until an error.
///
/// # Errors
/// If the broker refuses. The future fails when the connection is lost or the broker closes it.
pub(crate) async fn start(
    target: &Target,
    template: &MessageTemplate,
    limits: Limits,
    seed: u64,
    metrics: Arc<Metrics>,
) -> Result<impl Future<Output = Result<()>> + use<>> {
    let mut connection = Connection::with_channel(target).await?;
    if limits.window.is_some() {
        connection.call(CHANNEL, ConfirmSelect::default()).await?;
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let encoded = EncodedMessages::new(template, connection.payload_max(), &mut random);
    Ok(send_all(connection, encoded, limits, metrics))
}

async fn send_all(
    connection: Connection,
    mut encoded: EncodedMessages,
    limits: Limits,
    metrics: Arc<Metrics>,
) -> Result<()> {
    let Connection { incoming, mut outgoing, .. } = connection;
    let unconfirmed = Arc::new(Unconfirmed {
        count: AtomicU64::new(0),
        changed: Notify::new(),
        sent: Mutex::new(VecDeque::new()),
    });
    let listening = listen(incoming, Arc::clone(&unconfirmed), Arc::clone(&metrics));
    let sending = async {
        let mut allowance = SendAllowance::new(&limits, &metrics, &unconfirmed);
        loop {
            let allowed = allowance.wait().await;
            if allowed == 0 {
                break;
            }
            let now_ns = metrics.now_ns();
            let (bytes, messages) = encoded.next(allowed, now_ns);
            allowance.spend(messages, now_ns);
            outgoing.send(bytes).await?;
            count(&metrics.counters.published, messages);
        }
        unconfirmed.none().await;
        Ok(())
    };
    tokio::select! {
        ended = sending => ended,
        ended = listening => ended,
    }
}

impl Unconfirmed {
    /// Waits until all messages are confirmed.
    async fn none(&self) {
        loop {
            let changed = self.changed.notified();
            if self.count.load(Ordering::Acquire) == 0 {
                return;
            }
            changed.await;
        }
    }

    /// Marks all messages up to `tag` as settled, and records their latency.
    fn settled(&self, tag: u64, now_ns: u64, recorder: &Recorder) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut latencies = recorder.lock();
        while let Some((last, sent_ns)) = sent.front().copied() {
            if last > tag {
                break;
            }
            record(&mut latencies, now_ns.saturating_sub(sent_ns));
            sent.pop_front();
        }
    }
}

/// Number of messages that may be sent now.
struct SendAllowance<'a> {
    limits: &'a Limits,
    metrics: &'a Metrics,
    unconfirmed: &'a Unconfirmed,
    began: Instant,
    sent: u64,
}

impl<'a> SendAllowance<'a> {
    fn new(limits: &'a Limits, metrics: &'a Metrics, unconfirmed: &'a Unconfirmed) -> Self {
        Self { limits, metrics, unconfirmed, began: Instant::now(), sent: 0 }
    }

    /// Waits until messages may be sent, and returns their number; 0 if all are sent.
    async fn wait(&mut self) -> u64 {
        loop {
            let left = self.limits.messages.map_or(u64::MAX, |messages| messages - self.sent);
            if left == 0 {
                return 0;
            }
            let mut due = u64::MAX;
            if let Some(pace) = &self.limits.pace {
                due = pace.due(self.began.elapsed()).saturating_sub(self.sent);
                if due == 0 {
                    pace.tick().await;
                    continue;
                }
            }
            let ahead = self.room_before_consumers();
            if ahead == 0 {
                sleep(AHEAD_WAIT).await;
                continue;
            }
            let changed = self.unconfirmed.changed.notified();
            let room = self.limits.window.map_or(u64::MAX, |window| {
                window.saturating_sub(self.unconfirmed.count.load(Ordering::Acquire))
            });
            if room == 0 {
                changed.await;
                continue;
            }
            return left.min(due).min(ahead).min(room);
        }
    }

    fn room_before_consumers(&self) -> u64 {
        self.limits.in_flight_max.map_or(u64::MAX, |InFlight { messages, copies }| {
            let counts = self.metrics.counters.read();
            let under_way = counts.published.saturating_sub(counts.consumed / copies);
            messages.saturating_sub(under_way)
        })
    }

    /// Counts messages before they are sent, so that the broker cannot confirm uncounted ones.
    fn spend(&mut self, messages: u64, now_ns: u64) {
        self.sent += messages;
        if self.limits.window.is_some() {
            self.unconfirmed.count.fetch_add(messages, Ordering::AcqRel);
            let mut sent = self.unconfirmed.sent.lock().unwrap_or_else(PoisonError::into_inner);
            sent.push_back((self.sent, now_ns));
        }
    }
}

/// Reads confirms, refusals, returns and alarms.
async fn listen(
    mut incoming: Incoming,
    unconfirmed: Arc<Unconfirmed>,
    metrics: Arc<Metrics>,
) -> Result<()> {
    let recorder = metrics.confirm_latency.recorder();
    let mut settled = ConfirmedSet::default();
    loop {
        incoming.read().await?;
        let (mut confirmed, mut refused, mut returned) = (0, 0, 0);
        while let Some(frame) = incoming.next()? {
            if frame.frame_type != FrameType::Method {
                continue;
            }
            match Method::decode(frame.payload)? {
                Method::BasicAck(ack) => confirmed += settled.add(ack.delivery_tag, ack.multiple),
                Method::BasicNack(nack) => refused += settled.add(nack.delivery_tag, nack.multiple),
                Method::BasicReturn(_) => returned += 1,
                Method::ConnectionBlocked(_) => count(&metrics.counters.blocked, 1),
                _ => {}
            }
        }
        count(&metrics.counters.returned, returned);
        count(&metrics.counters.refused, refused);
        count(&metrics.counters.confirmed, confirmed);
        if confirmed + refused > 0 {
            unconfirmed.count.fetch_sub(confirmed + refused, Ordering::AcqRel);
            unconfirmed.settled(settled.all_until, metrics.now_ns(), &recorder);
            unconfirmed.changed.notify_one();
        }
    }
}

/// Messages that are confirmed or refused, in any order.
#[derive(Debug, Default)]
struct ConfirmedSet {
    /// All messages up to this number are settled.
    all_until: u64,
    /// Settled messages beyond `up_to`.
    beyond: std::collections::BTreeSet<u64>,
}

impl ConfirmedSet {
    /// Settles one message, or with `multiple` all up to it. Returns the number of newly settled ones.
    fn add(&mut self, tag: u64, multiple: bool) -> u64 {
        let mut settled = 0;
        if multiple {
            let later = self.beyond.split_off(&tag.saturating_add(1));
            settled = tag.saturating_sub(self.all_until) - self.beyond.len() as u64;
            self.beyond = later;
            self.all_until = self.all_until.max(tag);
        } else if Some(tag) == self.all_until.checked_add(1) {
            (self.all_until, settled) = (tag, 1);
        } else if tag > self.all_until && self.beyond.insert(tag) {
            settled = 1;
        }
        while self.beyond.remove(&self.all_until.saturating_add(1)) {
            self.all_until += 1;
        }
        settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confirms_in_any_order_are_counted_once() {
        let mut settled = ConfirmedSet::default();
        let steps = [
            (1, false, 1, 1),
            (3, false, 1, 1),
            (5, false, 1, 1),
            (2, false, 1, 3),
            (5, true, 1, 5),
            (5, true, 0, 5),
            (9, true, 4, 9),
            (11, false, 1, 9),
            (12, true, 2, 12),
        ];
        for (tag, multiple, expected, all_until) in steps {
            assert_eq!(settled.add(tag, multiple), expected, "{tag} {multiple}");
            assert_eq!(settled.all_until, all_until, "{tag} {multiple}");
        }
        assert!(settled.beyond.is_empty());
    }
}
