//! A consumer: counts deliveries, measures their latency, and settles them.

use std::sync::Arc;
use std::time::Duration;

use amqp::content_header::ContentHeader;
use amqp::frame::{Frame, FrameType};
use amqp::method::{BasicAck, BasicConsume, BasicNack, BasicQos, Method, write_method};
use amqp::table::TableRef;
use anyhow::{Result, bail};
use tokio::time::{Instant, sleep_until};

use crate::connection::{CHANNEL, Connection, Incoming, Outgoing};
use crate::dead_letter_check::DeadLetterCheck;
use crate::message_template::{STAMP_BYTES, Stamp};
use crate::metrics::{Metrics, count, record};
use crate::target::Target;

/// Acknowledgement mode of a consumer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AckMode {
    /// Deliveries count as acknowledged when they are sent.
    NoAck,
    /// The consumer acknowledges up to `every` deliveries together.
    Ack { every: u64 },
    /// The consumer rejects up to `every` deliveries together, without requeueing them.
    Reject { every: u64 },
}

/// Options of a consumer.
#[derive(Clone, Debug)]
pub(crate) struct ConsumerOptions {
    pub(crate) ack_mode: AckMode,
    /// Largest number of unsettled deliveries; 0 for no limit.
    pub(crate) prefetch: u16,
    /// Messages per second; `None` for no limit.
    pub(crate) rate: Option<u32>,
    pub(crate) what: DeliveryKind,
}

/// Kind of messages that a consumer gets, and so the latency that is measured.
#[derive(Clone, Debug)]
pub(crate) enum DeliveryKind {
    /// Messages from producers that are at work.
    Messages,
    /// Messages that waited until this consumer started, whose latency is not measured.
    Backlog,
    /// Messages that were rejected.
    Rejected,
    /// Messages that have expired, whose lateness is measured.
    Expired(Arc<DeadLetterCheck>),
}

/// Opens the connection and consumes from all `queues`. The returned future runs until an error.
///
/// # Errors
/// If the broker refuses. The future fails when the connection is lost or the consumer is cancelled.
pub(crate) async fn start(
    target: &Target,
    queues: &[&str],
    options: ConsumerOptions,
    metrics: Arc<Metrics>,
) -> Result<impl Future<Output = Result<()>> + use<>> {
    let mut connection = Connection::with_channel(target).await?;
    if options.prefetch > 0 {
        let qos = BasicQos { prefetch_size: 0, prefetch_count: options.prefetch, global: false };
        connection.call(CHANNEL, qos).await?;
    }
    for (number, queue) in queues.iter().enumerate() {
        let consume = BasicConsume {
            queue,
            consumer_tag: &format!("perf-{number}"),
            no_local: false,
            no_ack: options.ack_mode == AckMode::NoAck,
            exclusive: false,
            nowait: false,
            arguments: TableRef::default(),
        };
        connection.call(CHANNEL, consume).await?;
    }
    let Connection { incoming, outgoing, .. } = connection;
    Ok(consume_all(incoming, outgoing, options, metrics))
}

async fn consume_all(
    mut incoming: Incoming,
    mut outgoing: Outgoing,
    options: ConsumerOptions,
    metrics: Arc<Metrics>,
) -> Result<()> {
    let recorder = match &options.what {
        DeliveryKind::Expired(_) => metrics.lateness.recorder(),
        DeliveryKind::Messages | DeliveryKind::Backlog => metrics.latency.recorder(),
        DeliveryKind::Rejected => metrics.dead_letter_latency.recorder(),
    };
    let (began, mut taken) = (Instant::now(), 0);
    let mut reading = Reading::default();
    let mut answers = Vec::new();
    loop {
        incoming.read().await?;
        let now_ns = metrics.now_ns();
        let mut batch = Batch::default();
        {
            let mut latencies = recorder.lock();
            while let Some(frame) = incoming.next()? {
                let Some(stamp) = reading.take(&frame, &mut batch)? else {
                    continue;
                };
                match &options.what {
                    DeliveryKind::Backlog => {}
                    DeliveryKind::Expired(check) => {
                        check.note(&stamp, now_ns, &mut latencies, &metrics.counters);
                    }
                    DeliveryKind::Messages | DeliveryKind::Rejected => {
                        record(&mut latencies, now_ns.saturating_sub(stamp.sent_ns));
                    }
                }
            }
        }
        settle(&mut reading, &options, &mut answers);
        if !answers.is_empty() {
            outgoing.send(&answers).await?;
            answers.clear();
        }
        if matches!(options.what, DeliveryKind::Messages | DeliveryKind::Backlog) {
            count(&metrics.counters.consumed, batch.messages);
            count(&metrics.counters.consumed_bytes, batch.bytes);
        } else {
            count(&metrics.counters.dead_lettered, batch.messages);
        }
        if matches!(options.ack_mode, AckMode::Reject { .. }) {
            count(&metrics.counters.rejected, batch.messages);
        }
        taken += batch.messages;
        if let Some(rate) = options.rate {
            sleep_until(began + Duration::from_secs_f64(taken as f64 / f64::from(rate))).await;
        }
    }
}

/// Deliveries of one read.
#[derive(Debug, Default)]
struct Batch {
    messages: u64,
    bytes: u64,
}

/// Position in the stream of frames, and the deliveries to settle.
#[derive(Debug, Default)]
struct Reading {
    /// Bytes of the current body that have not come yet.
    body_left: u64,
    /// True if the next body frame is the first of its message.
    is_first: bool,
    /// Tag of the last complete delivery.
    complete: u64,
    /// Tag of the delivery that is coming.
    coming: u64,
    /// Tag of the last settled delivery.
    settled: u64,
}

impl Reading {
    /// Takes a frame. Returns the stamp of the message if the frame holds it.
    fn take(&mut self, frame: &Frame<'_>, batch: &mut Batch) -> Result<Option<Stamp>> {
        match frame.frame_type {
            FrameType::Method => match Method::decode(frame.payload)? {
                Method::BasicDeliver(deliver) => self.coming = deliver.delivery_tag,
                Method::BasicCancel(_) => bail!("the broker has cancelled a consumer"),
                _ => {}
            },
            FrameType::Header => {
                self.body_left = ContentHeader::parse(frame.payload)?.body_size;
                self.is_first = true;
                batch.bytes += self.body_left;
                if self.body_left == 0 {
                    self.end(batch);
                }
            }
            FrameType::Body => {
                self.body_left = self.body_left.saturating_sub(frame.payload.len() as u64);
                if self.body_left == 0 {
                    self.end(batch);
                }
                if std::mem::take(&mut self.is_first) && frame.payload.len() >= STAMP_BYTES {
                    return Ok(Stamp::read(frame.payload));
                }
            }
            FrameType::Heartbeat => {}
        }
        Ok(None)
    }

    fn end(&mut self, batch: &mut Batch) {
        batch.messages += 1;
        self.complete = self.coming;
    }
}

/// Settles all complete deliveries: a batch is not held back until it is full.
fn settle(reading: &mut Reading, options: &ConsumerOptions, answers: &mut Vec<u8>) {
    let every = match options.ack_mode {
        AckMode::NoAck => return,
        AckMode::Ack { every } | AckMode::Reject { every } => every.max(1),
    };
    while reading.settled < reading.complete {
        let delivery_tag = reading.complete.min(reading.settled + every);
        let multiple = delivery_tag > reading.settled + 1;
        let method: Method<'_> = if let AckMode::Reject { .. } = options.ack_mode {
            BasicNack { delivery_tag, multiple, requeue: false }.into()
        } else {
            BasicAck { delivery_tag, multiple }.into()
        };
        write_method(answers, CHANNEL, &method);
        reading.settled = delivery_tag;
    }
}

#[cfg(test)]
mod tests {
    use amqp::frame::split_frame;

    use super::*;

    fn options(ack_mode: AckMode) -> ConsumerOptions {
        ConsumerOptions { ack_mode, prefetch: 0, rate: None, what: DeliveryKind::Messages }
    }

    fn settled(reading: &mut Reading, ack_mode: AckMode) -> Vec<(u64, bool)> {
        let mut bytes = Vec::new();
        settle(reading, &options(ack_mode), &mut bytes);
        let mut rest = &bytes[..];
        let mut found = Vec::new();
        while let Some((frame, length)) = split_frame(rest, 4096).expect("frames") {
            found.push(match Method::decode(frame.payload).expect("a method") {
                Method::BasicAck(ack) => (ack.delivery_tag, ack.multiple),
                Method::BasicNack(nack) => (nack.delivery_tag, nack.multiple),
                other => panic!("{other:?}"),
            });
            rest = &rest[length..];
        }
        found
    }

    #[test]
    fn deliveries_are_settled_in_batches() {
        let mut reading = Reading { complete: 5, ..Reading::default() };
        let every_two = AckMode::Ack { every: 2 };
        assert_eq!(settled(&mut reading, every_two), [(2, true), (4, true), (5, false)]);
        assert_eq!(settled(&mut reading, every_two), []);
        reading.complete = 7;
        assert_eq!(settled(&mut reading, AckMode::Reject { every: 100 }), [(7, true)]);
        reading.complete = 9;
        assert_eq!(settled(&mut reading, AckMode::NoAck), []);
    }
}
