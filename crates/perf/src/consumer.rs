//! A consumer: counts what comes, measures how long it took, and settles it.

use std::sync::Arc;
use std::time::Duration;

use amqp::content_header::ContentHeader;
use amqp::frame::{Frame, FrameType};
use amqp::method::{BasicAck, BasicConsume, BasicNack, BasicQos, Method, write_method};
use amqp::table::TableRef;
use anyhow::{Result, bail};
use tokio::time::{Instant, sleep_until};

use crate::arrivals::Arrivals;
use crate::connection::{CHANNEL, Connection, Incoming, Outgoing};
use crate::meters::{Meters, count, record};
use crate::tape::{STAMP_OCTETS, Stamp};
use crate::target::Target;

/// What a consumer does with a delivery.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Settling {
    /// Nothing: deliveries count as acknowledged.
    NoAck,
    /// It acknowledges up to so many together.
    Ack { every: u64 },
    /// It rejects up to so many together, without putting them back.
    Reject { every: u64 },
}

/// How a consumer consumes.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    pub(crate) settling: Settling,
    /// 0 for no limit.
    pub(crate) prefetch: u16,
    /// Messages a second.
    pub(crate) rate: Option<u32>,
    pub(crate) what: What,
}

/// What comes to a consumer.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// Messages from producers that are at work.
    Messages,
    /// Messages that waited until this consumer began: how long that was is no latency.
    Backlog,
    /// Messages that were rejected.
    Rejected,
    /// Messages that have expired, whose lateness is measured.
    Expired(Arc<Arrivals>),
}

/// Opens the connection and starts to consume from all the queues; what it returns goes on for ever.
///
/// # Errors
/// When the broker refuses; the rest fails when the connection is lost or the consumer cancelled.
pub(crate) async fn start(
    target: &Target,
    queues: &[&str],
    manner: Manner,
    meters: Arc<Meters>,
) -> Result<impl Future<Output = Result<()>> + use<>> {
    let mut connection = Connection::with_channel(target).await?;
    if manner.prefetch > 0 {
        let qos = BasicQos { prefetch_size: 0, prefetch_count: manner.prefetch, global: false };
        connection.call(CHANNEL, qos).await?;
    }
    for (number, queue) in queues.iter().enumerate() {
        let consume = BasicConsume {
            queue,
            consumer_tag: &format!("perf-{number}"),
            no_local: false,
            no_ack: manner.settling == Settling::NoAck,
            exclusive: false,
            nowait: false,
            arguments: TableRef::default(),
        };
        connection.call(CHANNEL, consume).await?;
    }
    let Connection { incoming, outgoing, .. } = connection;
    Ok(consume_all(incoming, outgoing, manner, meters))
}

async fn consume_all(
    mut incoming: Incoming,
    mut outgoing: Outgoing,
    manner: Manner,
    meters: Arc<Meters>,
) -> Result<()> {
    let recorder = match &manner.what {
        What::Expired(_) => meters.lateness.recorder(),
        What::Messages | What::Backlog => meters.latency.recorder(),
        What::Rejected => meters.dead_letter_latency.recorder(),
    };
    let (began, mut taken) = (Instant::now(), 0);
    let mut reading = Reading::default();
    let mut answers = Vec::new();
    loop {
        incoming.read().await?;
        let now_ns = meters.now_ns();
        let mut batch = Batch::default();
        {
            let mut latencies = recorder.lock();
            while let Some(frame) = incoming.next()? {
                let Some(stamp) = reading.take(&frame, &mut batch)? else {
                    continue;
                };
                match &manner.what {
                    What::Backlog => {}
                    What::Expired(arrivals) => {
                        arrivals.note(&stamp, now_ns, &mut latencies, &meters.counters);
                    }
                    What::Messages | What::Rejected => {
                        record(&mut latencies, now_ns.saturating_sub(stamp.sent_ns));
                    }
                }
            }
        }
        settle(&mut reading, &manner, &mut answers);
        if !answers.is_empty() {
            outgoing.send(&answers).await?;
            answers.clear();
        }
        if matches!(manner.what, What::Messages | What::Backlog) {
            count(&meters.counters.consumed, batch.messages);
            count(&meters.counters.consumed_bytes, batch.octets);
        } else {
            count(&meters.counters.dead_lettered, batch.messages);
        }
        if matches!(manner.settling, Settling::Reject { .. }) {
            count(&meters.counters.rejected, batch.messages);
        }
        taken += batch.messages;
        if let Some(rate) = manner.rate {
            sleep_until(began + Duration::from_secs_f64(taken as f64 / f64::from(rate))).await;
        }
    }
}

/// What one read brought.
#[derive(Debug, Default)]
struct Batch {
    messages: u64,
    octets: u64,
}

/// Where in a message the stream is, and what is not settled.
#[derive(Debug, Default)]
struct Reading {
    /// Octets of the current body that are still to come.
    body_left: u64,
    /// Whether the next body frame is the first of its message.
    is_first: bool,
    /// The last delivery that is complete.
    complete: u64,
    /// The delivery that is coming.
    coming: u64,
    /// The last delivery that was settled.
    settled: u64,
}

impl Reading {
    /// Takes a frame; the message's stamp with the frame that has it.
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
                batch.octets += self.body_left;
                if self.body_left == 0 {
                    self.end(batch);
                }
            }
            FrameType::Body => {
                self.body_left = self.body_left.saturating_sub(frame.payload.len() as u64);
                if self.body_left == 0 {
                    self.end(batch);
                }
                if std::mem::take(&mut self.is_first) && frame.payload.len() >= STAMP_OCTETS {
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

/// Writes what settles everything that came: nobody waits for the rest of a batch.
fn settle(reading: &mut Reading, manner: &Manner, answers: &mut Vec<u8>) {
    let every = match manner.settling {
        Settling::NoAck => return,
        Settling::Ack { every } | Settling::Reject { every } => every.max(1),
    };
    while reading.settled < reading.complete {
        let delivery_tag = reading.complete.min(reading.settled + every);
        let multiple = delivery_tag > reading.settled + 1;
        let method: Method<'_> = if let Settling::Reject { .. } = manner.settling {
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

    fn manner(settling: Settling) -> Manner {
        Manner { settling, prefetch: 0, rate: None, what: What::Messages }
    }

    fn settled(reading: &mut Reading, settling: Settling) -> Vec<(u64, bool)> {
        let mut octets = Vec::new();
        settle(reading, &manner(settling), &mut octets);
        let mut rest = &octets[..];
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
    fn everything_that_came_is_settled_in_batches() {
        let mut reading = Reading { complete: 5, ..Reading::default() };
        let every_two = Settling::Ack { every: 2 };
        assert_eq!(settled(&mut reading, every_two), [(2, true), (4, true), (5, false)]);
        assert_eq!(settled(&mut reading, every_two), []);
        reading.complete = 7;
        assert_eq!(settled(&mut reading, Settling::Reject { every: 100 }), [(7, true)]);
        reading.complete = 9;
        assert_eq!(settled(&mut reading, Settling::NoAck), []);
    }
}
