//! Events that no client causes: time, policies, an operator.

use broker::{
    ApplyTo, Command, Definition, DeleteQueue, Pattern, Policy, PolicyChange, PolicyKind,
    PolicyValue,
};

use super::broker::Broker;
use super::steps::PEERS;
use crate::users::access;

/// From here on a number is seconds, below it milliseconds.
const SECONDS_FROM: u16 = 0x8000;

/// Longest sleep of many seconds.
const SECONDS_MAX: u64 = 600;

/// Time that a step sleeps.
pub(super) fn millis(time: u16) -> u64 {
    match time.checked_sub(SECONDS_FROM) {
        Some(seconds) => u64::from(seconds) % SECONDS_MAX * 1000,
        None => u64::from(time),
    }
}

/// Sets one of several policies, or clears it.
pub(super) fn policy(broker: &mut Broker, key: u8, choice: u8) {
    let name = ["one", "two", "three"][usize::from(key) % 3];
    let kind = if key & 0x40 == 0 { PolicyKind::User } else { PolicyKind::Operator };
    if key & 0x80 != 0 {
        let clear = PolicyChange::Clear(name.into());
        return broker.happens(|vhost, now| {
            let _ = vhost.dry_run(now, kind, clear);
            vhost.clear_policy(now, kind, name);
        });
    }
    let integer = |value: u8| PolicyValue::Integer(i64::from(value));
    let text = |value: &str| PolicyValue::Text(value.to_owned());
    let value = choice >> 4;
    let (key_name, value) = match choice % 12 {
        0 => ("message-ttl", integer(value * 4)),
        1 => ("max-length", integer(value / 4)),
        2 => ("max-length-bytes", integer(value)),
        3 => (
            "overflow",
            text(["drop-head", "reject-publish", "reject-publish-dlx"][usize::from(value % 3)]),
        ),
        4 => ("dead-letter-exchange", text(["", "e0", "amq.fanout"][usize::from(value % 3)])),
        5 => ("dead-letter-routing-key", text(["q0", "q1", "q2"][usize::from(value % 3)])),
        6 => ("expires", integer(value * 8 + 1)),
        7 => ("delivery-limit", integer(value % 4)),
        8 => ("alternate-exchange", text(["e0", "amq.fanout"][usize::from(value % 2)])),
        9 => (
            "dead-letter-strategy",
            text(["at-most-once", "at-least-once"][usize::from(value % 2)]),
        ),
        10 => ("consumer-timeout", integer(value * 8 + 1)),
        _ => ("expiry-order", text(["head", "deadline"][usize::from(value % 2)])),
    };
    let Ok(definition) = Definition::parse(vec![(key_name.to_owned(), value)], kind) else {
        return;
    };
    let policy = Policy {
        name: name.into(),
        pattern: Pattern::new([".*", "^q", "q0"][usize::from(key / 3) % 3]).expect("a pattern"),
        apply_to: [ApplyTo::All, ApplyTo::Queues, ApplyTo::QuorumQueues][usize::from(key / 9) % 3],
        priority: f64::from(key % 4),
        definition,
    };
    broker.happens(|vhost, now| {
        let _ = vhost.dry_run(now, kind, PolicyChange::Set(policy.clone()));
        vhost.set_policy(now, kind, policy);
    });
}

/// An action of an operator.
pub(super) fn operate(broker: &mut Broker, action: u8, choice: u8) {
    let peer = usize::from(choice) % PEERS;
    let queue = ["q0", "q1", "q2", "b0"][usize::from(choice) % 4];
    match action % 9 {
        0 => broker.happens(|vhost, _| vhost.set_tracing(choice & 1 == 1)),
        1 => broker.happens(|vhost, now| vhost.cancel_consumers(now)),
        2 => broker.force_close(peer),
        3 => {
            let pattern = ["^$", ".*", "^q"][usize::from(choice / 3) % 3];
            if let Some(connection) = broker.peers[peer].connection {
                broker.happens(|vhost, now| {
                    vhost.set_access(now, connection, access("guest", pattern))
                });
            }
        }
        4 => broker.happens(|vhost, _| {
            vhost.set_queues_max((choice > 8).then_some(u64::from(choice % 8)))
        }),
        5 => {
            let (if_unused, if_empty) = (choice & 8 != 0, choice & 16 != 0);
            let delete = DeleteQueue { queue, if_unused, if_empty, nowait: false };
            // It may not be there, or not be empty.
            broker.happens(|vhost, now| drop(vhost.execute(now, Command::DeleteQueue(delete))));
        }
        6 => {
            let purge = Command::PurgeQueue { queue, nowait: false };
            broker.happens(|vhost, now| drop(vhost.execute(now, purge)));
        }
        7 => {
            let out = &mut broker.peers[peer];
            let mut wire = out.wire.get_mut();
            if out.session.is_running() && !wire.is_closing {
                match choice & 4 {
                    0 => out.session.unblocked(wire.outbox.tail()),
                    _ => out.session.blocked("low on memory", wire.outbox.tail()),
                }
            }
            drop(wire);
            broker.finish();
        }
        _ => {
            let vhost = broker.local.vhost();
            let _ = (vhost.explain_queue(queue), vhost.explain_exchange("e0"));
        }
    }
}
