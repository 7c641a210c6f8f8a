//! Times the promotion of a replica, and the records that it follows:
//! `cargo run --release -p leveret-broker --example promotion`.
//!
//! Each line is a vhost with so many queues, policies and messages. The messages are spread over the queues. The bar is
//! 50 ms per 10,000 queues for the promotion. Times are CPU times.

#![allow(clippy::unwrap_used, reason = "a program to measure ends where something is wrong")]
#![allow(clippy::disallowed_methods, reason = "it looks at its CPU time")]
#![allow(clippy::print_stdout, reason = "that is what it is for")]

use std::time::Duration;

use amqp::properties::Properties;
use amqp::table::{Table, TableBuilder, Value};
use broker::page::{PageRead, PageSelection, PagedMessage, PagedMeta, Pages};
use broker::time::{Now, Time};
use broker::{
    ApplyTo, Command, Content, DeclareQueue, Definition, Effect, Envelopes, Lsn, PageId, Pattern,
    Policy, PolicyKind, PolicyValue, Publish, Record, Replay, Vhost, VhostOptions,
};

const NOW: Now = Now::from_millis(1_000_000);

/// Pages are not used: everything stays in memory.
#[derive(Debug)]
struct NoPages;

impl Pages for NoPages {
    fn write(&mut self, _: PageId, _: Vec<PagedMessage>) {
        panic!("a page is written");
    }

    fn meta(&mut self, _: PageId) -> Vec<PagedMeta> {
        panic!("a page is looked at");
    }

    fn read(&mut self, _: PageId, _: PageSelection) -> PageRead {
        panic!("a page is read");
    }

    fn remove(&mut self, _: PageId) {
        panic!("a page is removed");
    }
}

fn policy(number: usize) -> Policy {
    let value = PolicyValue::Integer(60_000);
    let entries = vec![("message-ttl".to_owned(), value)];
    Policy {
        name: format!("policy-{number}").as_str().into(),
        pattern: Pattern::new(&format!("^queue.*{number}$")).unwrap(),
        apply_to: ApplyTo::Queues,
        priority: f64::from(u32::try_from(number).unwrap()),
        definition: Definition::parse(entries, PolicyKind::User).unwrap(),
    }
}

/// The records that make so many queues, policies and messages.
fn records(queues: usize, policies: usize, messages: usize) -> Vec<(Lsn, u8, Vec<u8>)> {
    let mut vhost = Vhost::new("/", [3; 32], options());
    let mut records = Vec::new();
    let take = |vhost: &mut Vhost, records: &mut Vec<_>| {
        vhost.flush();
        for effect in vhost.drain_effects() {
            if let Effect::Log { lsn, at, record, .. } = effect {
                let mut bytes = Vec::new();
                record.encode(at.on_axis(), &mut bytes);
                records.push((lsn, record.kind(), bytes));
            }
        }
    };
    for number in 0..policies {
        vhost.set_policy(NOW, PolicyKind::User, policy(number));
    }
    let mut arguments = TableBuilder::new();
    arguments.insert("x-queue-type", Value::LongStr(b"quorum"));
    let arguments: Table = arguments.finish();
    for number in 0..queues {
        let declare = DeclareQueue {
            queue: &format!("queue-{number}"),
            passive: false,
            durable: true,
            exclusive: false,
            auto_delete: false,
            nowait: true,
            arguments: arguments.as_ref(),
        };
        vhost.execute(NOW, Command::DeclareQueue(declare)).unwrap();
    }
    take(&mut vhost, &mut records);
    let mut properties = Vec::new();
    Properties { delivery_mode: Some(2), ..Properties::default() }.encode(&mut properties);
    for number in 0..messages {
        let publish = Publish {
            exchange: b"".into(),
            routing_key: format!("queue-{}", number % queues).into_bytes().into(),
            mandatory: false,
            content: Content::Assembled {
                properties: properties.clone().into(),
                body: vec![7; 16].into(),
            },
        };
        vhost.execute(NOW, Command::Publish(publish)).unwrap();
        if number % 1000 == 0 {
            take(&mut vhost, &mut records);
        }
    }
    take(&mut vhost, &mut records);
    records
}

/// The CPU time of this thread, as Linux tells it: other programs do not count.
fn cpu_time() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(told.split(' ').next().unwrap().parse().unwrap())
}

fn options() -> VhostOptions {
    VhostOptions { delivers_after_commit: true, ..VhostOptions::default() }
}

fn main() {
    println!(
        "{:>8} {:>9} {:>9} {:>12} {:>14} {:>18}",
        "queues", "policies", "messages", "us/record", "promotion ms", "ms/10,000 queues"
    );
    let cases = [
        (10_000, 0, 0),
        (10_000, 10, 0),
        (10_000, 10, 100_000),
        (10_000, 100, 0),
        (100_000, 10, 0),
        (10, 10, 1_000_000),
    ];
    for (queues, policies, messages) in cases {
        let records = records(queues, policies, messages);
        let mut promotions = Vec::new();
        let mut following = Duration::MAX;
        for _ in 0..5 {
            let mut replay = Replay::new(Vhost::new("/", [4; 32], options()), Time::default());
            replay.follow(Lsn(0)).unwrap();
            let mut envelopes = Envelopes::default();
            let began = cpu_time();
            for (at, (lsn, kind, bytes)) in records.iter().enumerate() {
                if at % 100 == 0 {
                    replay.set_now(NOW.time);
                }
                let decoded = Record::decode(*kind, bytes, &mut envelopes).unwrap();
                replay.apply(*lsn, decoded, false, &mut NoPages, &mut |_| {}).unwrap();
            }
            following = following.min(cpu_time() - began);
            let last = records.last().unwrap().0;
            replay.end_entry(last).unwrap();
            let began = cpu_time();
            let vhost = replay.finish(NOW, last, &mut NoPages);
            promotions.push(cpu_time() - began);
            assert_eq!(vhost.queues().count(), queues);
        }
        let promotion = promotions.into_iter().min().unwrap().as_secs_f64() * 1000.0;
        let per_record = following.as_secs_f64() * 1e6 / records.len() as f64;
        let per_queues = promotion * 10_000.0 / queues as f64;
        println!(
            "{queues:>8} {policies:>9} {messages:>9} {per_record:>12.2} {promotion:>14.2} {per_queues:>18.2}"
        );
    }
}
