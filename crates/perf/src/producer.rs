//! A producer: a tape, sent as fast as its limits allow.
//!
//! Knows four limits: a rate, a window of unconfirmed messages, a bound on what is under way to
//! consumers, and how many messages it has to send.

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
use crate::meters::{Meters, Recorder, count, record};
use crate::pace::Pace;
use crate::tape::{Recipe, Tape};
use crate::target::Target;

/// How long a producer waits that is too far ahead of the consumers.
const AHEAD_WAIT: Duration = Duration::from_micros(50);

/// How much a producer may send, and when.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    /// How fast it sends at most.
    pub(crate) pace: Option<Pace>,
    /// Messages that are not confirmed yet; without it nothing is confirmed.
    pub(crate) window: Option<u64>,
    /// Messages under way from all producers to all consumers.
    pub(crate) in_flight_max: Option<InFlight>,
    /// Messages to send.
    pub(crate) messages: Option<u64>,
}

/// A bound on what producers are ahead of consumers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) messages: u64,
    /// How many deliveries a message becomes.
    pub(crate) copies: u64,
}

/// What the two halves of a confirming producer share.
#[derive(Debug)]
struct Unconfirmed {
    count: AtomicU64,
    changed: Notify,
    /// The last message of each write and when it was sent, in nanoseconds.
    sent: Mutex<VecDeque<(u64, u64)>>,
}

/// Opens the connection; what it returns sends until its limit, or for ever.
///
/// # Errors
/// When the broker refuses; the rest fails when the connection is lost or the broker closes it.
pub(crate) async fn start(
    target: &Target,
    recipe: &Recipe,
    limits: Limits,
    seed: u64,
    meters: Arc<Meters>,
) -> Result<impl Future<Output = Result<()>> + use<>> {
    let mut connection = Connection::with_channel(target).await?;
    if limits.window.is_some() {
        connection.call(CHANNEL, ConfirmSelect::default()).await?;
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let tape = Tape::new(recipe, connection.payload_max(), &mut random);
    Ok(send_all(connection, tape, limits, meters))
}

async fn send_all(
    connection: Connection,
    mut tape: Tape,
    limits: Limits,
    meters: Arc<Meters>,
) -> Result<()> {
    let Connection { incoming, mut outgoing, .. } = connection;
    let unconfirmed = Arc::new(Unconfirmed {
        count: AtomicU64::new(0),
        changed: Notify::new(),
        sent: Mutex::new(VecDeque::new()),
    });
    let listening = listen(incoming, Arc::clone(&unconfirmed), Arc::clone(&meters));
    let sending = async {
        let mut allowance = Allowance::new(&limits, &meters, &unconfirmed);
        loop {
            let allowed = allowance.wait().await;
            if allowed == 0 {
                break;
            }
            let now_ns = meters.now_ns();
            let (octets, messages) = tape.next(allowed, now_ns);
            allowance.spend(messages, now_ns);
            outgoing.send(octets).await?;
            count(&meters.counters.published, messages);
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
    /// Waits until everything is confirmed.
    async fn none(&self) {
        loop {
            let changed = self.changed.notified();
            if self.count.load(Ordering::Acquire) == 0 {
                return;
            }
            changed.await;
        }
    }

    /// Everything up to this number is settled; how long ago it was sent goes to the recorder.
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

/// How many messages may be sent now.
struct Allowance<'a> {
    limits: &'a Limits,
    meters: &'a Meters,
    unconfirmed: &'a Unconfirmed,
    began: Instant,
    sent: u64,
}

impl<'a> Allowance<'a> {
    fn new(limits: &'a Limits, meters: &'a Meters, unconfirmed: &'a Unconfirmed) -> Self {
        Self { limits, meters, unconfirmed, began: Instant::now(), sent: 0 }
    }

    /// Waits until something may be sent; 0 when nothing is left to send.
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
            let counts = self.meters.counters.read();
            let under_way = counts.published.saturating_sub(counts.consumed / copies);
            messages.saturating_sub(under_way)
        })
    }

    /// Notes what is about to be sent, before the broker can confirm it.
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
    meters: Arc<Meters>,
) -> Result<()> {
    let recorder = meters.confirm_latency.recorder();
    let mut settled = Settled::default();
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
                Method::ConnectionBlocked(_) => count(&meters.counters.blocked, 1),
                _ => {}
            }
        }
        count(&meters.counters.returned, returned);
        count(&meters.counters.refused, refused);
        count(&meters.counters.confirmed, confirmed);
        if confirmed + refused > 0 {
            unconfirmed.count.fetch_sub(confirmed + refused, Ordering::AcqRel);
            unconfirmed.settled(settled.all_until, meters.now_ns(), &recorder);
            unconfirmed.changed.notify_one();
        }
    }
}

/// Which messages are confirmed or refused, when they may be in any order.
#[derive(Debug, Default)]
struct Settled {
    /// Every message up to this number is.
    all_until: u64,
    /// Those beyond it that are.
    beyond: std::collections::BTreeSet<u64>,
}

impl Settled {
    /// One message, or with `multiple` all up to it; how many were settled by this.
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
        let mut settled = Settled::default();
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
