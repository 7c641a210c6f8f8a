//! A client: it publishes and waits for confirms, or consumes and settles, over octets of AMQP.

use std::collections::VecDeque;

use amqp::content_header::{ContentHeader, write_content_header};
use amqp::frame::{FrameType, split_frame, write_body_frames};
use amqp::method::{
    BasicAck, BasicConsume, BasicNack, BasicPublish, BasicQos, BasicReject, ChannelOpen,
    ConfirmSelect, Method, QueueDelete, QueuePurge,
};
use amqp::properties::Properties;
use amqp::table::{Table, TableBuilder, Value};
use broker::ConnectionId;
use broker::redrive::redrive_count_in;
use simdisk::Random;

use crate::checks::book::{Book, Emptied, Handed, MessageFacts};
use crate::clients::confirms::Confirms;
use crate::clients::handshake::{FRAME_MAX, frame};
use crate::clients::operations::{OPERATIONS_CHANNEL, Operations};
use crate::clients::schedules;
use crate::clients::topology::{CLEAN, END, HOP, REJECT, RULED, WAIT, WORK};

/// The deletion of the queue `clean`.
const DELETE_CLEAN: QueueDelete<'_> =
    QueueDelete { queue: "clean", if_unused: false, if_empty: false, nowait: false };

/// The part of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// Declares all queues.
    Declares,
    Publishes,
    Consumes,
    /// Publishes messages that wait, and operates on them.
    Schedules,
}

/// An answer that a client waits for.
#[derive(Debug)]
enum Ask {
    /// No matter what it is.
    Any,
    /// A queue is there, behind so many deletions in doubt.
    Declared(usize, u64),
    /// Behind it, these messages are settled.
    Sync(Vec<u64>),
    /// The queue `clean` is empty, except for later messages.
    Purged(Vec<u64>),
    /// The queue `clean` was deleted, and is there again, without these messages.
    Recreated(Vec<u64>),
}

/// A delivery with a client.
/// A delivery whose body is not whole.
#[derive(Debug)]
struct OpenDelivery {
    tag: u64,
    queue: usize,
    redelivered: bool,
    redrives: u64,
    body_size: u64,
    body: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Unacked {
    tag: u64,
    id: u64,
    queue: usize,
}

/// The place of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) node: usize,
    pub(crate) run: u64,
    pub(crate) connection: ConnectionId,
}

/// The source of octets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) node: usize,
    pub(crate) term: u64,
    pub(crate) stale_ticks: Option<u64>,
}

/// A client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) part: Part,
    pub(crate) place: Option<Place>,
    /// The relay to the leader, from the search for it on.
    pub(crate) relay: Option<u64>,
    /// Number of the connection.
    pub(crate) epoch: u64,
    /// Time at which the newest octets arrive at the node.
    pub(crate) newest_us: u64,
    input: Vec<u8>,
    asked: VecDeque<Ask>,
    confirms: Confirms,
    operations: Operations,
    unacked: VecDeque<Unacked>,
    /// Acknowledged, and no answer behind it.
    acked: Vec<u64>,
    /// A delivery whose body is not whole.
    open: Option<OpenDelivery>,
    /// The consumer of the queue `clean` was cancelled.
    is_cancelled: bool,
    /// The queues that it consumes.
    pub(crate) consumes: Vec<usize>,
    pub(crate) declared: usize,
    /// True while the run is drained: everything is acknowledged.
    pub(crate) drains: bool,
}

impl Client {
    pub(crate) fn new(part: Part, consumes: Vec<usize>) -> Self {
        Self {
            part,
            place: None,
            relay: None,
            epoch: 0,
            newest_us: 0,
            input: Vec::new(),
            asked: VecDeque::new(),
            confirms: Confirms::default(),
            operations: Operations::default(),
            unacked: VecDeque::new(),
            acked: Vec::new(),
            open: None,
            is_cancelled: false,
            consumes,
            declared: 0,
            drains: false,
        }
    }

    /// Begins on a new connection. Returns the first octets.
    pub(crate) fn connected(
        &mut self,
        place: Place,
        book: &mut Book,
        random: &mut Random,
    ) -> Vec<u8> {
        self.disconnected(book);
        self.place = Some(place);
        self.epoch += 1;
        let mut out = frame(1, ChannelOpen);
        self.asked.push_back(Ask::Any);
        match self.part {
            Part::Declares => {
                self.declared = 0;
                for method in book.topology.declare_schedules() {
                    out.extend(method);
                    self.asked.push_back(Ask::Any);
                }
                for queue in 0..book.topology.queues.len() {
                    out.extend(book.topology.declare(queue, false));
                    self.asked.push_back(Ask::Declared(queue, book.doubts));
                }
            }
            Part::Publishes => {
                out.extend(frame(1, ConfirmSelect { nowait: false }));
                self.asked.push_back(Ask::Any);
            }
            Part::Schedules => {
                out.extend(frame(1, ConfirmSelect { nowait: false }));
                self.asked.push_back(Ask::Any);
                out.extend(Operations::begin());
            }
            Part::Consumes => {
                let count = u16::try_from(1 + random.below(20)).unwrap_or(1);
                let qos = BasicQos { prefetch_size: 0, prefetch_count: count, global: false };
                out.extend(frame(1, qos));
                self.asked.push_back(Ask::Any);
                for queue in self.consumes.clone() {
                    out.extend(consume(book.topology.queues[queue].name));
                    self.asked.push_back(Ask::Any);
                }
            }
        }
        out
    }

    /// The connection is gone, and what was not answered is unknown.
    pub(crate) fn disconnected(&mut self, book: &mut Book) {
        self.place = None;
        self.input.clear();
        for ask in &self.asked {
            book.open_purges -= usize::from(matches!(ask, Ask::Purged(_) | Ask::Recreated(_)));
            book.doubts += u64::from(matches!(ask, Ask::Recreated(_)));
        }
        self.asked.clear();
        self.confirms = Confirms::default();
        self.operations = Operations::default();
        self.unacked.clear();
        self.acked.clear();
        self.open = None;
        self.is_cancelled = false;
    }

    /// Takes the purges and deletions that are not answered, and may still be done: their number, and that of the deletions.
    pub(crate) fn take_doubts(&mut self) -> (usize, u64) {
        let asked = std::mem::take(&mut self.asked);
        let is_purge = |ask: &&Ask| matches!(ask, Ask::Purged(_) | Ask::Recreated(_));
        let deletions = asked.iter().filter(|ask| matches!(ask, Ask::Recreated(_))).count();
        (asked.iter().filter(is_purge).count(), deletions as u64)
    }

    /// Does something. Returns octets to send.
    pub(crate) fn act(
        &mut self,
        book: &mut Book,
        next_id: &mut u64,
        (now_us, root): (u64, u64),
        random: &mut Random,
    ) -> Vec<u8> {
        match self.part {
            Part::Declares => Vec::new(),
            Part::Publishes | Part::Schedules if self.drains => Vec::new(),
            Part::Publishes => self.publish(book, next_id, (now_us, root), random),
            Part::Consumes => self.settle(book, random),
            Part::Schedules => {
                let channels = (&mut self.confirms, &mut self.operations);
                schedules::act(channels, book, next_id, (now_us, root), random)
            }
        }
    }

    fn publish(
        &mut self,
        book: &mut Book,
        next_id: &mut u64,
        (published_us, root): (u64, u64),
        random: &mut Random,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        if random.percent(3) {
            out.extend(book.topology.declare(WORK[0], true));
            self.asked.push_back(Ask::Any);
        }
        if random.percent(4) {
            let by = if random.percent(30) { Emptied::Deleted } else { Emptied::Purged };
            let gone = book.purges(CLEAN, by);
            if by == Emptied::Deleted {
                out.extend(frame(1, DELETE_CLEAN));
                self.asked.push_back(Ask::Any);
                out.extend(book.topology.declare(CLEAN, false));
                self.asked.push_back(Ask::Recreated(gone));
            } else {
                out.extend(frame(1, QueuePurge { queue: "clean", nowait: false }));
                self.asked.push_back(Ask::Purged(gone));
            }
        }
        for _ in 0..1 + random.below(6) {
            *next_id += 1;
            self.confirms.sends(*next_id);
            let queues = [WORK[0], WORK[0], WORK[1], WAIT, WAIT, HOP, REJECT, CLEAN, RULED];
            let first = queues[usize::try_from(random.below(9)).unwrap_or(0)];
            let own_ms = (first == WAIT && random.percent(40)).then(|| random.below(2_500));
            let is_work = WORK.contains(&first);
            let delay_ms = if is_work && random.percent(15) { random.below(2_000) } else { 0 };
            let facts = MessageFacts {
                own_ms,
                delay_ms,
                emptied: match first == CLEAN && book.is_clean_in_doubt() {
                    true => Emptied::Deleted,
                    false => Emptied::Never,
                },
                ..MessageFacts::published(first, (published_us, root))
            };
            book.messages.insert(*next_id, facts);
            let len = match random.below(20) {
                0 => 3_000,
                _ => usize::try_from(random.below(200)).unwrap_or(0),
            };
            let name = book.topology.queues[first].name;
            book.note(format_args!("message {next_id} is published to '{name}'"));
            out.extend(message(*next_id, name, own_ms, delay_ms, len));
        }
        out
    }

    fn settle(&mut self, book: &mut Book, random: &mut Random) -> Vec<u8> {
        let mut out = Vec::new();
        if self.is_cancelled && !book.is_clean_in_doubt() {
            self.is_cancelled = false;
            out.extend(consume(book.topology.queues[CLEAN].name));
            self.asked.push_back(Ask::Any);
        }
        let count = match self.drains {
            true => self.unacked.len(),
            false => usize::try_from(random.below(self.unacked.len() as u64 + 1)).unwrap_or(0),
        };
        for _ in 0..count {
            let at = match self.drains {
                true => 0,
                false => usize::try_from(random.below(self.unacked.len() as u64)).unwrap_or(0),
            };
            let Some(Unacked { tag, id, queue }) = self.unacked.remove(at) else { break };
            let draw = if self.drains { 0 } else { random.below(100) };
            match draw {
                85..90 if queue == REJECT => {
                    out.extend(frame(1, BasicReject { delivery_tag: tag, requeue: false }));
                }
                90..95 => out.extend(frame(1, BasicReject { delivery_tag: tag, requeue: true })),
                95..100 => {
                    let nack = BasicNack { delivery_tag: tag, multiple: false, requeue: true };
                    out.extend(frame(1, nack));
                }
                _ => {
                    book.acked(id);
                    self.acked.push(id);
                    out.extend(frame(1, BasicAck { delivery_tag: tag, multiple: false }));
                }
            }
        }
        if !self.acked.is_empty() && random.percent(40) {
            out.extend(book.topology.declare(END, true));
            self.asked.push_back(Ask::Sync(std::mem::take(&mut self.acked)));
        }
        out
    }

    /// Octets that a node sends. False if they end the connection.
    pub(crate) fn heard(
        &mut self,
        bytes: &[u8],
        source: Source,
        book: &mut Book,
        now_us: u64,
    ) -> bool {
        self.input.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.input);
        let mut rest = input.as_slice();
        while let Ok(Some((frame, used))) = split_frame(rest, FRAME_MAX) {
            rest = &rest[used..];
            if frame.channel == OPERATIONS_CHANNEL {
                self.operations.heard(&frame, book);
                continue;
            }
            let goes_on = match frame.frame_type {
                FrameType::Method => match Method::decode(frame.payload) {
                    Ok(method) => self.method(&method, book, now_us),
                    Err(error) => {
                        book.violation(format!("a client gets a method that is none: {error}"));
                        false
                    }
                },
                FrameType::Header => {
                    if let (Ok(header), Some(open)) =
                        (ContentHeader::parse(frame.payload), &mut self.open)
                    {
                        open.body_size = header.body_size;
                        let headers =
                            Properties::parse(header.properties).unwrap_or_default().headers;
                        open.redrives = headers.map_or(0, redrive_count_in);
                    }
                    true
                }
                FrameType::Body => {
                    if let Some(open) = &mut self.open {
                        open.body.extend_from_slice(frame.payload);
                    }
                    true
                }
                FrameType::Heartbeat => true,
            };
            self.take_whole(source, book, now_us);
            if !goes_on {
                return false;
            }
        }
        self.input = rest.to_vec();
        true
    }

    fn take_whole(&mut self, source: Source, book: &mut Book, now_us: u64) {
        let whole = self.open.take_if(|open| open.body.len() as u64 >= open.body_size);
        let Some(OpenDelivery { tag, queue, redelivered, redrives, body, .. }) = whole else {
            return;
        };
        let id = body.first_chunk::<8>().map_or(0, |id| u64::from_le_bytes(*id));
        let Source { node, term, stale_ticks } = source;
        if self.relay.is_none() {
            let handed = Handed { id, queue, redelivered, redrives, node, term, stale_ticks };
            book.handed(handed, now_us);
        }
        self.unacked.push_back(Unacked { tag, id, queue });
    }

    fn method(&mut self, method: &Method<'_>, book: &mut Book, now_us: u64) -> bool {
        match method {
            Method::BasicDeliver(deliver) => {
                let queue = book.topology.number(deliver.consumer_tag).unwrap_or(0);
                // The length comes with the header; until then the body is not whole.
                self.open = Some(OpenDelivery {
                    tag: deliver.delivery_tag,
                    queue,
                    redelivered: deliver.redelivered,
                    redrives: 0,
                    body_size: u64::MAX,
                    body: Vec::new(),
                });
            }
            Method::BasicAck(ack) => {
                let confirmed = self.confirms.take(ack.delivery_tag, ack.multiple);
                confirmed.into_iter().for_each(|id| book.confirmed(id));
            }
            Method::BasicNack(nack) => {
                self.confirms.take(nack.delivery_tag, false);
            }
            // The consumer comes before the queue is there again.
            Method::ChannelClose(close) if close.reply_text.contains("no queue 'clean'") => {
                return false;
            }
            Method::ChannelClose(close) => {
                book.violation(format!("a channel is closed: {}", close.reply_text));
                return false;
            }
            Method::ConnectionClose(_) => return false,
            // The queue is gone, or the leader closes all clients, and cancels their consumers before.
            Method::BasicCancel(cancel) => self.is_cancelled |= cancel.consumer_tag == "clean",
            _ => match self.asked.pop_front() {
                Some(Ask::Any) | None => {}
                Some(Ask::Declared(queue, doubts)) => {
                    self.declared += 1;
                    if queue == CLEAN {
                        book.clean_declared(doubts);
                    }
                }
                Some(Ask::Sync(ids)) => book.settled(&ids, now_us),
                Some(Ask::Purged(ids) | Ask::Recreated(ids)) => {
                    book.open_purges -= 1;
                    let is_untouched = |id: &u64| {
                        let message = book.messages.get(id);
                        // A message on its way to a client is not purged, though none has seen it yet.
                        message.is_some_and(|message| message.handed.is_empty())
                            && !book.ledger.was_kept(*id)
                    };
                    let gone: Vec<u64> = ids.into_iter().filter(is_untouched).collect();
                    book.settled(&gone, now_us);
                }
            },
        }
        true
    }
}

fn consume(queue: &str) -> Vec<u8> {
    let arguments = Table::default();
    let consume = BasicConsume {
        queue,
        consumer_tag: queue,
        no_local: false,
        no_ack: false,
        exclusive: false,
        nowait: false,
        arguments: arguments.as_ref(),
    };
    frame(1, consume)
}

/// A publish with its content; the body begins with the number of the message.
fn message(id: u64, queue: &str, own_ms: Option<u64>, delay_ms: u64, len: usize) -> Vec<u8> {
    let publish = BasicPublish {
        exchange: b"",
        routing_key: queue.as_bytes(),
        mandatory: false,
        immediate: false,
    };
    let mut out = frame(1, publish);
    let expiration = own_ms.map(|ms| ms.to_string());
    let mut headers = TableBuilder::new();
    if delay_ms > 0 {
        let delay_ms = i64::try_from(delay_ms).unwrap_or(0);
        headers.insert("x-opt-delivery-delay", Value::I64(delay_ms));
    }
    let headers: Table = headers.finish();
    let properties = Properties {
        headers: (delay_ms > 0).then(|| headers.as_ref()),
        delivery_mode: Some(2),
        expiration: expiration.as_ref().map(|text| text.as_bytes()),
        ..Properties::default()
    };
    let mut encoded = Vec::new();
    properties.encode(&mut encoded);
    let mut body = id.to_le_bytes().to_vec();
    body.resize(8 + len, 7);
    write_content_header(&mut out, 1, body.len() as u64, &encoded);
    write_body_frames(&mut out, 1, &body, FRAME_MAX - 8);
    out
}
