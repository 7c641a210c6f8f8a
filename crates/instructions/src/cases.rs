//! The table of cases: what is counted.
//!
//! The names are what `docs/internals/instructions.md` and people refer to. A case handles messages in batches
//! of 64, as the server enters a vhost once per read.

use amqp::table::{Table, TableBuilder, Value};
use broker::Outcome;

use crate::case::{Case, Run};
use crate::commands::{BATCH, Core, dead_letters_to};
use crate::samples::Sample;
use crate::{codec, whole};

/// All cases.
pub(crate) const CASES: &[Case] = &[
    Case::new("codec: decode a publish of 16 B", || codec::decode_publish(&Sample::small())),
    Case::new("codec: decode a publish of 1 KB with headers", || {
        codec::decode_publish(&Sample::large())
    }),
    Case::new("codec: encode a delivery of 16 B", || codec::encode_deliver(Sample::small())),
    Case::new("codec: encode a delivery of 1 KB with headers", || {
        codec::encode_deliver(Sample::large())
    }),
    Case::new("session: bytes of a publish of 16 B to a command", || {
        whole::session_publish(&Sample::small())
    }),
    Case::new("core: publish without a consumer", || publish(Sample::small())),
    Case::new("core: publish and deliver without ack", || delivered(Sample::small())),
    Case::new("core: publish and deliver 1 KB with headers without ack", || {
        delivered(Sample::large())
    }),
    Case::new("core: publish, deliver, ack", || settled(false, Outcome::Ack)),
    Case::new("core: publish, deliver, ack 64 at once", || settled(true, Outcome::Ack)),
    Case::new("core: publish, deliver, put back", || {
        settled(true, Outcome::Requeue { failed: false })
    }),
    Case::new("core: publish to 10 queues, deliver without ack", fan_out),
    Case::new("core: topic, 10000 bindings, the same key again", || topic(1)),
    Case::new("core: topic, 10000 bindings, another key each time", || topic(1000)),
    Case::new("core: publish, expire into nothing", || expire(&Table::default(), ttl_of_queue)),
    Case::new("core: publish, expire into a queue", || {
        expire(&dead_letters_to("dead", &[]), ttl_of_queue)
    }),
    Case::new("core: publish with random TTLs, expire into a queue", || {
        expire(&dead_letters_to("dead", &[]), random_ttl)
    }),
    Case::new("core: publish, deliver, reject into a queue", || settled(true, Outcome::Reject)),
    Case::new("core: publish, overflow into a queue", || overflow(Sample::small())),
    Case::new("core: publish with a message_id, overflow into a queue", || {
        overflow(Sample::with_id())
    }),
    Case::new("core: publish with random delivery times", delayed),
    Case::new("core: publish persistently, log, confirm", persistent),
    Case::new("core: the same, deliver, ack, log", persistent_with_ack),
    Case::new("bytes to bytes: 16 B without ack", || whole::through(&Sample::small())),
    Case::new("bytes to bytes: 1 KB with headers without ack", || whole::through(&Sample::large())),
    Case::new("bytes to bytes: 16 B, confirm, ack", || {
        whole::through_with_acks(&Sample::small(), false)
    }),
    Case::new("bytes to bytes: 16 B persistently, log, confirm, ack", || {
        whole::through_with_acks(&Sample::persistent(), true)
    }),
];

/// Publishes wait in their queue.
fn publish(sample: Sample) -> Run {
    let mut core = Core::new();
    core.queue("q", &Table::default());
    Box::new(move |messages| {
        for _ in 0..messages / BATCH {
            publish_batch(&mut core, &sample);
        }
        assert!(core.waiting("q") >= messages, "they wait");
    })
}

fn publish_batch(core: &mut Core, sample: &Sample) {
    for _ in 0..BATCH {
        core.publish("", "q", sample);
    }
    core.end_batch();
}

fn delivered(sample: Sample) -> Run {
    let mut core = Core::new();
    core.queue("q", &Table::default());
    core.consume("q", true);
    Box::new(move |messages| {
        for _ in 0..messages / BATCH {
            publish_batch(&mut core, &sample);
            core.write();
        }
        assert!(core.waiting("q") == 0, "all of them are delivered");
    })
}

fn settled(multiple: bool, outcome: Outcome) -> Run {
    let mut core = Core::new();
    core.queue("dead", &Table::default());
    core.queue("q", &dead_letters_to("dead", &[]));
    core.consume("q", false);
    let sample = Sample::small();
    Box::new(move |messages| {
        for _ in 0..messages / BATCH {
            publish_batch(&mut core, &sample);
            core.write();
            core.settle(BATCH, multiple, outcome);
            if matches!(outcome, Outcome::Requeue { .. }) {
                // They have been delivered once more.
                core.write();
                core.settle(BATCH, true, Outcome::Ack);
            }
        }
        let dead = core.waiting("dead") >= messages;
        assert!(dead == (outcome == Outcome::Reject), "what is rejected is dead");
        assert!(core.waiting("q") == 0, "all of them are settled");
    })
}

fn fan_out() -> Run {
    let mut core = Core::new();
    for queue in 0..10 {
        let queue = format!("q{queue}");
        core.queue(&queue, &Table::default());
        core.bind("amq.fanout", "", &queue);
        core.consume(&queue, true);
    }
    let sample = Sample::small();
    Box::new(move |messages| {
        for _ in 0..messages / BATCH {
            for _ in 0..BATCH {
                core.publish("amq.fanout", "", &sample);
            }
            core.end_batch();
            core.write();
        }
    })
}

/// A publish goes to the one of a hundred queues that its key is bound to, and to one more.
fn topic(keys: usize) -> Run {
    let mut core = Core::new();
    for queue in 0..100 {
        let name = format!("q{queue}");
        core.queue(&name, &Table::default());
        core.consume(&name, true);
        for binding in 0..100 {
            let key = match binding % 3 {
                0 => format!("orders.{queue}.{binding}"),
                1 => format!("orders.*.{queue}.{binding}"),
                _ => format!("#.{queue}.{binding}"),
            };
            core.bind("amq.topic", &key, &name);
        }
        core.end_batch();
    }
    let name = |key: usize| match key % 2 {
        0 => format!("orders.{}.{}", key % 100, key % 33 * 3),
        _ => format!("orders.eu.{}.{}", key % 100, key % 33 * 3 + 1),
    };
    let keys: Vec<String> = (0..keys).map(name).collect();
    let sample = Sample::small();
    let mut next = 0;
    Box::new(move |messages| {
        for _ in 0..messages / BATCH {
            for _ in 0..BATCH {
                let key = keys.get(next % keys.len()).map_or("", String::as_str);
                core.publish("amq.topic", key, &sample);
                next += 1;
            }
            core.end_batch();
            core.write();
        }
    })
}

/// As if the queue's TTL were the message's.
fn ttl_of_queue(_: u64) -> u64 {
    60_000
}

/// Up to a minute, by a generator of Lehmer's kind.
fn random_ttl(number: u64) -> u64 {
    1 + number.wrapping_mul(48_271) % 2_147_483_647 % 60_000
}

/// Publishes expire, all of them before the next come.
fn expire(arguments: &Table, ttl_ms: fn(u64) -> u64) -> Run {
    let mut core = Core::new();
    let mut with_ttl = TableBuilder::new();
    for (key, value) in arguments.as_ref() {
        with_ttl.insert(key, value);
    }
    with_ttl.insert("x-message-ttl", Value::I64(60_000));
    core.queue("dead", &Table::default());
    core.queue("q", &with_ttl.finish());
    let samples: Vec<Sample> = (0..512)
        .map(|number| match ttl_ms(number) {
            60_000 => Sample::small(),
            milliseconds => Sample::expiring(milliseconds),
        })
        .collect();
    let kept = !arguments.as_ref().is_empty();
    Box::new(move |messages| {
        for _ in 0..messages / samples.len() as u64 {
            for batch in samples.chunks(64) {
                for sample in batch {
                    core.publish("", "q", sample);
                }
                core.end_batch();
            }
            for _ in 0..61 {
                core.pass(1000);
            }
            assert!(core.waiting("q") == 0, "they have expired");
        }
        assert!(kept == (core.waiting("dead") >= messages), "dead letters are kept");
    })
}

/// Publishes that are delivered later, at random times in the next hour, wait in their queue.
fn delayed() -> Run {
    let mut core = Core::new();
    core.queue("q", &Table::default());
    let mut sample = Sample::delayed();
    let mut number = 0_u64;
    Box::new(move |messages| {
        for _ in 0..messages / BATCH {
            for _ in 0..BATCH {
                number += 1;
                // The high half of a product with an odd constant is spread evenly.
                let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
                sample.set_delay(1 + i64::try_from(spread % 3_600_000).unwrap_or_default());
                core.publish("", "q", &sample);
            }
            core.end_batch();
        }
        assert!(core.delayed("q") == number, "they wait");
    })
}

/// Publishes push older ones out of their queue; the history of dead letters is on.
fn overflow(sample: Sample) -> Run {
    let mut core = Core::new();
    core.queue("dead", &Table::default());
    core.queue("q", &dead_letters_to("dead", &[("x-max-length", 100)]));
    Box::new(move |messages| {
        for _ in 0..messages / BATCH {
            publish_batch(&mut core, &sample);
        }
        assert!(core.waiting("dead") + 100 >= messages, "what is too much is dead");
        assert!(core.has_recorded_deaths(), "deaths are in the history");
    })
}

fn persistent() -> Run {
    let mut core = Core::new();
    core.durable_queue("q");
    core.select_confirms();
    let sample = Sample::persistent();
    Box::new(move |messages| {
        for _ in 0..messages / BATCH {
            publish_batch(&mut core, &sample);
            core.sync();
        }
    })
}

fn persistent_with_ack() -> Run {
    let mut core = Core::new();
    core.durable_queue("q");
    core.consume("q", false);
    core.select_confirms();
    let sample = Sample::persistent();
    Box::new(move |messages| {
        for _ in 0..messages / BATCH {
            publish_batch(&mut core, &sample);
            core.sync();
            core.write();
            core.settle(BATCH, false, Outcome::Ack);
            core.sync();
        }
    })
}
