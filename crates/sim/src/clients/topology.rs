//! The queues of a run, and the earliest time at which a message may be delivered from each.

use amqp::method::QueueDeclare;
use amqp::table::{Table, TableBuilder, Value};
use broker::{ApplyTo, Definition, Pattern, Policy, PolicyKind, PolicyValue};
use simdisk::Random;

use crate::clients::handshake::frame;

/// A queue of the run.
#[derive(Clone, Debug)]
pub(crate) struct QueueSpec {
    pub(crate) name: &'static str,
    pub(crate) is_quorum: bool,
    /// `x-message-ttl`, in milliseconds.
    pub(crate) ttl_ms: Option<u64>,
    /// The queue to which its dead letters go.
    pub(crate) dead_letters_to: Option<&'static str>,
}

pub(crate) const WORK: [usize; 2] = [0, 1];
pub(crate) const WAIT: usize = 2;
pub(crate) const HOP: usize = 3;
pub(crate) const END: usize = 4;
pub(crate) const REJECT: usize = 5;
pub(crate) const CLEAN: usize = 6;
pub(crate) const RULED: usize = 7;
/// The queue in which messages wait for their delivery time, in runs that have it.
pub(crate) const LATER: usize = 8;

/// Name of that queue.
pub(crate) const SCHEDULE_QUEUE: &str = "later";

/// Name of the queue in which dead letters end.
pub(crate) const DEAD_LETTERS: &str = "end";

/// Shortest time to live that the policy of the queue `ruled` gives, in milliseconds.
pub(crate) const RULED_TTL_MS_MIN: u64 = 400;

/// The queues of a run.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    pub(crate) queues: Vec<QueueSpec>,
}

impl Topology {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let mut spec = |name, ttl_ms, dead_letters_to| QueueSpec {
            name,
            is_quorum: random.percent(60),
            ttl_ms,
            dead_letters_to,
        };
        let mut queues = vec![
            spec("work-a", None, None),
            spec("work-b", None, None),
            spec("wait", Some(0), Some("hop")),
            spec("hop", Some(0), Some(DEAD_LETTERS)),
            spec(DEAD_LETTERS, None, None),
            spec("reject", None, Some(DEAD_LETTERS)),
            spec("clean", None, None),
            spec("ruled", None, None),
        ];
        queues[0].is_quorum = true;
        queues[1].is_quorum = random.percent(20);
        queues[WAIT].ttl_ms = Some(50 + random.below(3_000));
        queues[HOP].ttl_ms = Some(20 + random.below(1_500));
        Self { queues }
    }

    /// `queue.declare` of a queue.
    pub(crate) fn declare(&self, queue: usize, passive: bool) -> Vec<u8> {
        let spec = &self.queues[queue];
        let mut arguments = TableBuilder::new();
        if let Some(to) = spec.dead_letters_to {
            arguments.insert("x-dead-letter-exchange", Value::LongStr(b""));
            arguments.insert("x-dead-letter-routing-key", Value::LongStr(to.as_bytes()));
        }
        if let Some(ttl_ms) = spec.ttl_ms {
            let ttl_ms = i64::try_from(ttl_ms).unwrap_or(i64::MAX);
            arguments.insert("x-message-ttl", Value::I64(ttl_ms));
        }
        if spec.is_quorum {
            arguments.insert("x-delivery-limit", Value::I64(100_000));
        }
        let kind: &[u8] = if spec.is_quorum { b"quorum" } else { b"classic" };
        arguments.insert("x-queue-type", Value::LongStr(kind));
        let arguments: Table = arguments.finish();
        let declare = QueueDeclare {
            queue: spec.name,
            passive,
            durable: true,
            exclusive: false,
            auto_delete: false,
            nowait: false,
            arguments: arguments.as_ref(),
        };
        frame(1, declare)
    }

    /// The policy of the queue `ruled`: its messages die into the queue `end`.
    pub(crate) fn policy(ttl_ms: u64) -> Policy {
        let ttl_ms = i64::try_from(ttl_ms).unwrap_or(i64::MAX);
        let entries = vec![
            ("message-ttl".to_owned(), PolicyValue::Integer(ttl_ms)),
            ("dead-letter-exchange".to_owned(), PolicyValue::Text(String::new())),
            ("dead-letter-routing-key".to_owned(), PolicyValue::Text(DEAD_LETTERS.to_owned())),
        ];
        Policy {
            name: "ruled".into(),
            pattern: Pattern::new("^ruled$").expect("a valid pattern"),
            apply_to: ApplyTo::Queues,
            priority: 0.0,
            definition: Definition::parse(entries, PolicyKind::User).expect("a valid policy"),
        }
    }

    /// Shortest time from the publish of a message into `first` to its delivery from `from`, in milliseconds, if it
    /// was not rejected. `None` if it cannot come there.
    pub(crate) fn earliest_ms(
        &self,
        first: usize,
        own_ms: Option<u64>,
        from: usize,
    ) -> Option<u64> {
        let ttl = |queue: usize| self.queues[queue].ttl_ms.unwrap_or(0);
        let wait = own_ms.unwrap_or(u64::MAX).min(ttl(WAIT));
        match (first, from) {
            (WAIT, HOP) => Some(wait),
            (WAIT, END) => Some(wait + ttl(HOP)),
            (HOP, END) => Some(own_ms.unwrap_or(u64::MAX).min(ttl(HOP))),
            (RULED, END) => Some(RULED_TTL_MS_MIN.min(own_ms.unwrap_or(u64::MAX))),
            (REJECT, END) => Some(0),
            (first, from) if first == from => Some(0),
            _ => None,
        }
    }

    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.queues.iter().position(|queue| queue.name == name)
    }
}
