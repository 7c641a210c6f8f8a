//! A vhost with a publisher and a consumer, which take commands as values: what the core costs alone.
//!
//! Effects are taken and dropped, but records, which are put where the server puts them.

use std::hint::black_box;
use std::sync::Arc;

use amqp::method::MethodId;
use amqp::table::{Table, TableBuilder, Value};
use broker::access::Access;
use broker::time::Now;
use broker::{
    Bind, ChannelNumber, Command, ConnectionId, Consume, DeclareQueue, DeliveryTag, Effect, Lsn,
    Outcome, Outgoing, Publish, Request, Vhost, VhostOptions,
};
use storage::{Flags, NewRecord, WriteQueue};

use crate::samples::Sample;

/// Commands that are applied before effects are taken.
pub(crate) const BATCH: u64 = 64;

/// A vhost with who uses it.
pub(crate) struct Core {
    vhost: Vhost,
    now_ms: u64,
    publisher: ConnectionId,
    consumer: ConnectionId,
    pending: WriteQueue,
    /// The last delivery that was settled.
    settled: u64,
}

impl Core {
    pub(crate) fn new() -> Self {
        let mut vhost = Vhost::new("/", [7; 32], VhostOptions::default());
        let publisher = vhost.open_connection(everything(), true);
        let consumer = vhost.open_connection(everything(), true);
        let pending = WriteQueue::default();
        let mut core = Self { vhost, now_ms: 1_000_000, publisher, consumer, pending, settled: 0 };
        core.apply(publisher, Command::OpenChannel);
        core.apply(consumer, Command::OpenChannel);
        core.end_batch();
        core
    }

    fn now(&self) -> Now {
        Now::from_millis(self.now_ms)
    }

    fn apply(&mut self, connection: ConnectionId, command: Command<'_>) {
        let request = Request { channel: ChannelNumber(1), method: MethodId::NONE, command };
        self.vhost.apply(self.now(), connection, request);
    }

    // ---- what is there ----

    pub(crate) fn queue(&mut self, queue: &str, arguments: &Table) {
        self.declare(queue, false, arguments);
    }

    pub(crate) fn durable_queue(&mut self, queue: &str) {
        self.declare(queue, true, &Table::default());
    }

    fn declare(&mut self, queue: &str, durable: bool, arguments: &Table) {
        let declare = DeclareQueue {
            queue,
            passive: false,
            durable,
            exclusive: false,
            auto_delete: false,
            nowait: true,
            arguments: arguments.as_ref(),
        };
        self.apply(self.consumer, Command::DeclareQueue(declare));
        self.end_batch();
    }

    pub(crate) fn bind(&mut self, source: &str, routing_key: &str, destination: &str) {
        let arguments = Table::default();
        let arguments = arguments.as_ref();
        let bind = Bind { destination, source, routing_key, nowait: true, arguments };
        self.apply(self.consumer, Command::BindQueue(bind));
    }

    pub(crate) fn consume(&mut self, queue: &str, no_ack: bool) {
        let arguments = Table::default();
        let consume = Consume {
            queue,
            consumer_tag: queue,
            no_ack,
            exclusive: false,
            nowait: true,
            arguments: arguments.as_ref(),
        };
        self.apply(self.consumer, Command::Consume(consume));
        self.end_batch();
    }

    pub(crate) fn select_confirms(&mut self) {
        self.apply(self.publisher, Command::ConfirmSelect { nowait: true });
        self.end_batch();
    }

    // ---- what happens ----

    pub(crate) fn publish(&mut self, exchange: &str, routing_key: &str, sample: &Sample) {
        let publish = Publish {
            exchange: exchange.as_bytes().into(),
            routing_key: routing_key.as_bytes().into(),
            mandatory: false,
            content: sample.content(),
        };
        self.apply(self.publisher, Command::Publish(publish));
    }

    /// Settles the next `count` deliveries one by one, or all at once.
    pub(crate) fn settle(&mut self, count: u64, multiple: bool, outcome: Outcome) {
        let last = self.settled + count;
        if !multiple {
            for tag in self.settled + 1..last {
                let tag = DeliveryTag(tag);
                self.apply(self.consumer, Command::Settle { tag, multiple, outcome });
            }
        }
        let tag = DeliveryTag(last);
        self.apply(self.consumer, Command::Settle { tag, multiple, outcome });
        self.settled = last;
        self.end_batch();
    }

    /// Takes what is to be done, as the server does it before it gives back the lock.
    pub(crate) fn end_batch(&mut self) {
        self.vhost.flush();
        for effect in self.vhost.drain_effects() {
            match effect {
                Effect::Log { lsn, at, about, ended, record, is_joined } => {
                    ended.iter().for_each(|lsn| {
                        self.pending.release(storage::Lsn(lsn.0));
                    });
                    let releases = if about == Lsn(0) { Flags::NONE } else { Flags::RELEASES };
                    let new = NewRecord {
                        lsn: storage::Lsn(lsn.0),
                        target: storage::Lsn(about.0),
                        kind: record.kind(),
                        flags: releases,
                        references: record.references(),
                        format_version: record.format_version(),
                        is_joined,
                    };
                    self.pending.push(new, |bytes| record.encode(at, bytes));
                }
                Effect::Send { outgoing, .. } => {
                    let is_error = matches!(
                        outgoing,
                        Outgoing::ChannelClose { .. } | Outgoing::ConnectionClose { .. }
                    );
                    assert!(!is_error, "{outgoing:?}");
                    black_box(outgoing);
                }
                other => drop(black_box(other)),
            }
        }
    }

    /// The sockets have taken what was sent.
    pub(crate) fn write(&mut self) {
        for connection in [self.publisher, self.consumer] {
            self.vhost.set_backlog(self.now(), connection, 0);
        }
    }

    /// The disk has all that was logged.
    pub(crate) fn sync(&mut self) {
        let last = self.vhost.last_lsn();
        self.vhost.durable(last);
        self.pending.clear();
        self.end_batch();
    }

    /// Time passes, and what is due by then happens.
    pub(crate) fn pass(&mut self, milliseconds: u64) {
        self.now_ms += milliseconds;
        let now = self.now();
        while self.vhost.next_wake().is_some_and(|wake| wake <= now.time) {
            self.vhost.tick(now);
            self.end_batch();
        }
    }

    /// True if the history of dead letters has a death.
    pub(crate) fn has_recorded_deaths(&self) -> bool {
        !self.vhost.recorded_deaths(self.now(), None, 1).deaths.is_empty()
    }

    /// Number of messages that wait in a queue for their delivery time.
    pub(crate) fn delayed(&self, queue: &str) -> u64 {
        self.vhost.queue(queue).map_or(0, |queue| queue.delayed_count())
    }

    /// Number of messages that wait in a queue.
    pub(crate) fn waiting(&self, queue: &str) -> u64 {
        self.vhost.queue(queue).map_or(0, |queue| queue.ready_count())
    }
}

/// Arguments of a queue that dead-letters into `queue`.
pub(crate) fn dead_letters_to(queue: &str, more: &[(&str, i64)]) -> Table {
    let mut arguments = TableBuilder::new();
    arguments.insert("x-dead-letter-exchange", Value::LongStr(b""));
    arguments.insert("x-dead-letter-routing-key", Value::LongStr(queue.as_bytes()));
    for (key, value) in more {
        arguments.insert(key, Value::I64(*value));
    }
    arguments.finish()
}

/// A user with all permissions.
pub(crate) fn everything() -> Arc<Access> {
    Arc::new(Access::matching("guest".into(), ".*").expect("a pattern"))
}
