//! The memory of an idle ladder of delays, counted by the allocator.
//!
//! Frameworks make delays of any length out of 28 levels, each an exchange and a queue with a TTL. Memory that every
//! queue, exchange and binding takes shows here. A program of its own, because its allocator counts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::System;

use amqp::table::{Table, TableBuilder, Value};
use broker::time::{Now, Time};
use broker::{Bind, Command, DeclareExchange, DeclareQueue, Effect, Vhost, VhostOptions};
use cap::Cap;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

const LEVELS: usize = 28;

/// Memory of one ladder, in bytes.
const LADDER_BYTES_MAX: usize = 70_000;

/// Ladders that are declared before the count, so that the tables that grow by doubling are large, and counted ones.
const LADDERS: usize = 16;

struct Broker(Vhost);

impl Broker {
    fn new() -> Self {
        Self(Vhost::new("/", [3; 32], VhostOptions::default()))
    }

    fn execute(&mut self, command: Command<'_>) {
        let now = Now { time: Time::from_micros(1_000_000), wall_ms: 1000 };
        self.0.execute(now, command).unwrap();
        self.0.flush();
        // The records are on disk, and the disk tells so.
        self.0.durable(self.0.last_lsn());
        self.0.drain_effects().for_each(drop::<Effect>);
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

    fn bind(&mut self, source: &str, key: &str, destination: &str, is_queue: bool) {
        let arguments = Table::default();
        let (routing_key, arguments) = (key, arguments.as_ref());
        let bind = Bind { destination, source, routing_key, nowait: true, arguments };
        self.execute(match is_queue {
            true => Command::BindQueue(bind),
            false => Command::BindExchange(bind),
        });
    }

    /// The levels as NServiceBus declares them.
    fn ladder(&mut self, ladder: usize) {
        let name = |level: usize| format!("nsb{ladder:03}.delay-level-{level:02}");
        let delivery = format!("nsb{ladder:03}.delay-delivery");
        let below = |level: usize| level.checked_sub(1).map_or_else(|| delivery.clone(), name);
        let key = |level: usize, bit: char| format!("{}{bit}.#", "*.".repeat(LEVELS - 1 - level));
        for level in (0..LEVELS).rev() {
            let name = name(level);
            let mut arguments = TableBuilder::new();
            arguments.insert("x-queue-type", Value::LongStr(b"quorum"));
            arguments.insert("x-dead-letter-strategy", Value::LongStr(b"at-least-once"));
            arguments.insert("x-overflow", Value::LongStr(b"reject-publish"));
            arguments.insert("x-message-ttl", Value::I64(1000 << level));
            arguments.insert("x-dead-letter-exchange", Value::LongStr(below(level).as_bytes()));
            self.exchange(&name);
            self.queue(&name, &arguments.finish());
            self.bind(&name, &key(level, '1'), &name, true);
        }
        self.exchange(&delivery);
        for level in (0..LEVELS).rev() {
            self.bind(&name(level), &key(level, '0'), &below(level), false);
        }
    }
}

#[test]
fn idle_ladder_of_delays_is_small() {
    let mut broker = Broker::new();
    (0..LADDERS).for_each(|ladder| broker.ladder(ladder));
    let before = ALLOCATOR.allocated();
    (LADDERS..2 * LADDERS).for_each(|ladder| broker.ladder(ladder));
    let bytes = (ALLOCATOR.allocated() - before) / LADDERS;
    println!("{bytes} bytes");
    assert!(bytes <= LADDER_BYTES_MAX, "{bytes} bytes");
}
