//! The memory of an idle ladder of delays, counted by the allocator.
//!
//! NServiceBus and Celery make delays of any length out of 28 levels, each an exchange and a queue with a TTL. The
//! memory that any queue, exchange or binding takes shows here, and no clock or other program changes the count. A
//! program of its own, because its allocator counts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::System;

use amqp::table::{Table, TableBuilder, Value};
use broker::time::Now;
use broker::{Bind, Command, DeclareExchange, DeclareQueue, Vhost, VhostOptions};
use cap::Cap;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Levels of a ladder: one for each bit of a number of seconds.
const LEVELS: usize = 28;

/// Ladders that are counted, after as many others: tables double, so that one ladder may pay for others.
const LADDERS: usize = 16;

/// Memory of one ladder, in bytes. A process takes half as much again: its allocator rounds, and each queue and exchange
/// has samples for statistics.
const LADDER_BYTES_MAX: usize = 64_000;

struct Broker(Vhost);

impl Broker {
    fn new() -> Self {
        Self(Vhost::new("/", [3; 32], VhostOptions::default()))
    }

    fn execute(&mut self, command: Command<'_>) {
        self.0.execute(Now::from_millis(1000), command).unwrap();
        self.0.durable(self.0.last_lsn());
        self.0.flush();
        self.0.drain_effects();
    }

    fn exchange(&mut self, exchange: &str) {
        self.execute(Command::DeclareExchange(DeclareExchange {
            exchange,
            kind: "topic",
            passive: false,
            durable: true,
            auto_delete: false,
            internal: false,
            nowait: true,
            arguments: Table::default().as_ref(),
        }));
    }

    fn queue(&mut self, queue: &str, arguments: &Table) {
        self.execute(Command::DeclareQueue(DeclareQueue {
            queue,
            passive: false,
            durable: true,
            exclusive: false,
            auto_delete: false,
            nowait: true,
            arguments: arguments.as_ref(),
        }));
    }

    /// The levels as NServiceBus declares them, with names of its length.
    fn ladder(&mut self, number: usize) {
        let no_arguments = Table::default();
        let name = |level: usize| format!("n{number:02}.v2.delay-level-{level:02}");
        let delivery = format!("n{number:02}.v2.delay-delivery");
        let below = |level: usize| level.checked_sub(1).map_or_else(|| delivery.clone(), name);
        let key = |level: usize, bit: u8| format!("{}{bit}.#", "*.".repeat(LEVELS - 1 - level));
        self.exchange(&delivery);
        for level in 0..LEVELS {
            let (name, below) = (name(level), below(level));
            let mut arguments = TableBuilder::new();
            arguments.insert("x-queue-type", Value::LongStr(b"quorum"));
            arguments.insert("x-dead-letter-strategy", Value::LongStr(b"at-least-once"));
            arguments.insert("x-overflow", Value::LongStr(b"reject-publish"));
            arguments.insert("x-message-ttl", Value::I64(1000 << level));
            arguments.insert("x-dead-letter-exchange", Value::LongStr(below.as_bytes()));
            self.exchange(&name);
            self.queue(&name, &arguments.finish());
            let (one, zero) = (key(level, 1), key(level, 0));
            let bind = |destination, routing_key| {
                let arguments = no_arguments.as_ref();
                Bind { destination, source: &name, routing_key, nowait: true, arguments }
            };
            self.execute(Command::BindQueue(bind(&name, &one)));
            self.execute(Command::BindExchange(bind(&below, &zero)));
        }
    }
}

#[test]
fn idle_ladder_of_delays_is_small() {
    let mut broker = Broker::new();
    (0..LADDERS).for_each(|number| broker.ladder(number));
    let before = ALLOCATOR.allocated();
    (LADDERS..2 * LADDERS).for_each(|number| broker.ladder(number));
    let bytes = (ALLOCATOR.allocated() - before) / LADDERS;
    assert!(bytes <= LADDER_BYTES_MAX, "{bytes} bytes");
}
