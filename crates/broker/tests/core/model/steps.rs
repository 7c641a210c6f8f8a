//! The steps of a history.

use broker::ScheduleMode;
use proptest::prelude::*;

/// The behaviour of a full queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Overflow {
    DropHead,
    Reject,
    RejectDlx,
}

/// Delayed retry of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Retry {
    /// Only deliveries that failed are delayed.
    pub(crate) failed_only: bool,
    pub(crate) min_ms: u64,
    pub(crate) max_ms: u64,
    /// The queue has a single active consumer and the order `strict`.
    pub(crate) is_strict: bool,
}

impl Retry {
    fn any() -> impl Strategy<Value = Self> {
        (any::<bool>(), 1_u64..60, 0_u64..120, prop::bool::weighted(0.6)).prop_map(
            |(failed_only, min_ms, more_ms, is_strict)| Self {
                failed_only,
                min_ms,
                max_ms: min_ms + more_ms,
                is_strict,
            },
        )
    }
}

/// The declaration of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct QueueSpec {
    pub(crate) quorum: bool,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) overflow: Overflow,
    pub(crate) max_priority: Option<u8>,
    /// The queue that dead letters go to.
    pub(crate) dead_letters_to: Option<usize>,
    /// Of a quorum queue.
    pub(crate) delivery_limit: i64,
    /// Messages at the delivery limit are kept.
    pub(crate) keeps: bool,
    pub(crate) head_only: bool,
    pub(crate) retry: Option<Retry>,
}

impl QueueSpec {
    /// A classic queue without arguments.
    pub(crate) const PLAIN: Self = Self {
        quorum: false,
        ttl_ms: None,
        max_length: None,
        overflow: Overflow::DropHead,
        max_priority: None,
        dead_letters_to: None,
        delivery_limit: 0,
        keeps: false,
        head_only: false,
        retry: None,
    };

    /// True if messages stay in their order while one of them waits for its next delivery.
    pub(crate) fn is_strict(&self) -> bool {
        self.retry.is_some_and(|retry| retry.is_strict)
    }

    /// True if the queue refuses `basic.get`.
    pub(crate) fn refuses_get(&self) -> bool {
        self.quorum && self.is_strict()
    }

    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let overflow = prop_oneof![
            Just(Overflow::DropHead),
            Just(Overflow::Reject),
            Just(Overflow::RejectDlx)
        ];
        (
            any::<bool>(),
            prop::option::of(prop_oneof![Just(0_u64), 1_u64..200]),
            prop::option::weighted(0.4, 0_u64..6),
            overflow,
            prop::option::weighted(0.4, 1_u8..4),
            prop::option::weighted(0.7, 0_usize..3),
            (-1_i64..3, any::<bool>()),
            prop::bool::weighted(0.2),
            prop::option::weighted(0.5, Retry::any()),
        )
            .prop_map(
                |(quorum, ttl_ms, max_length, overflow, priority, to, limit, head_only, retry)| {
                    Self {
                        quorum,
                        ttl_ms,
                        max_length,
                        overflow,
                        max_priority: priority.filter(|_| !quorum),
                        dead_letters_to: to,
                        delivery_limit: limit.0,
                        keeps: limit.1 && to.is_none(),
                        head_only,
                        retry,
                    }
                },
            )
    }
}

/// The message counts of a queue.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Counts {
    pub(crate) ready: u64,
    /// Messages before their delivery time, and returned ones before their next delivery.
    pub(crate) delayed: u64,
    pub(crate) unacked: u64,
    /// Messages that the queue keeps at the delivery limit.
    pub(crate) kept: u64,
    /// Messages that outlive a restart, and in a classic queue their bytes.
    pub(crate) persistent: u64,
    pub(crate) persistent_bytes: Option<u64>,
}

/// A delay, sometimes so long that the message may wait on disk.
fn delay_ms() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..200, 1000_u64..4000]
}

/// An operation on scheduled messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    Cancel,
    Reschedule { delay_ms: u64 },
    Deliver,
}

impl Operation {
    fn any() -> impl Strategy<Value = Self> {
        prop_oneof![
            Just(Self::Cancel),
            delay_ms().prop_map(|delay_ms| Self::Reschedule { delay_ms }),
            Just(Self::Deliver),
        ]
    }
}

/// The settlement that a publish to `amq.settle` makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Settlement {
    Requeue,
    DeadLetter,
}

/// One step of a history.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Publish {
        queue: usize,
        expiration_ms: Option<u64>,
        priority: Option<u8>,
        persistent: bool,
        /// The header `x-opt-delivery-delay`.
        delay_ms: Option<u64>,
        /// The headers `x-schedule-id` and `x-schedule-mode`.
        schedule: Option<(u8, ScheduleMode)>,
    },
    /// Publishes to `amq.schedule`.
    Operate {
        queue: usize,
        name: u8,
        operation: Operation,
    },
    Consume {
        queue: usize,
        prefetch: u16,
        no_ack: bool,
    },
    Cancel {
        queue: usize,
    },
    Get {
        queue: usize,
        no_ack: bool,
    },
    /// Settles the outstanding delivery that stands at this place.
    Ack {
        which: usize,
    },
    AckMultiple {
        which: usize,
    },
    Nack {
        which: usize,
        requeue: bool,
    },
    Reject {
        which: usize,
        requeue: bool,
    },
    /// Publishes to `amq.settle` about the outstanding delivery that stands at this place, with the headers `x-reason`
    /// and `x-opt-delivery-delay`.
    Annotate {
        which: usize,
        reason: Option<u8>,
        delay_ms: Option<u64>,
        settlement: Option<Settlement>,
    },
    Recover,
    Purge {
        queue: usize,
    },
    /// Sends what waits in a queue to another, or back to where each died last.
    Redrive {
        queue: usize,
        to: Option<usize>,
    },
    /// Closes the channel and opens another.
    CloseChannel,
    Sleep {
        millis: u64,
    },
    /// Sets a message-ttl policy on all queues, or clears it.
    /// A replica takes over, as planned or because the leader is lost.
    FailOver {
        is_planned: bool,
    },
    Policy {
        ttl_ms: Option<u64>,
    },
}

impl Step {
    /// The same, on that queue.
    pub(crate) fn on(mut self, only: usize) -> Self {
        if let Self::Redrive { to: Some(to), .. } = &mut self {
            *to = only;
        }
        if let Self::Publish { queue, .. }
        | Self::Consume { queue, .. }
        | Self::Cancel { queue }
        | Self::Get { queue, .. }
        | Self::Purge { queue }
        | Self::Operate { queue, .. }
        | Self::Redrive { queue, .. } = &mut self
        {
            *queue = only;
        }
        self
    }

    /// Steps of a replicated vhost.
    pub(crate) fn any_or_failover() -> impl Strategy<Value = Self> {
        let failover = any::<bool>().prop_map(|is_planned| Self::FailOver { is_planned });
        prop_oneof![14 => Self::any(), 1 => failover]
    }

    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let queue = 0_usize..3;
        let which = 0_usize..6;
        prop_oneof![
            12 => (
                queue.clone(),
                prop::option::weighted(0.6, prop_oneof![Just(0_u64), 1_u64..300]),
                prop::option::of(0_u8..6),
                any::<bool>(),
                prop::option::weighted(0.4, delay_ms()),
                prop::option::of((0_u8..2, prop_oneof![
                    Just(ScheduleMode::Replace),
                    Just(ScheduleMode::Keep),
                    Just(ScheduleMode::Add),
                ])),
            ).prop_map(|(queue, expiration_ms, priority, persistent, delay_ms, schedule)| {
                Self::Publish { queue, expiration_ms, priority, persistent, delay_ms, schedule }
            }),
            3 => (queue.clone(), 0_u8..2, Operation::any())
                .prop_map(|(queue, name, operation)| Self::Operate { queue, name, operation }),
            3 => (queue.clone(), 0_u16..3, prop::bool::weighted(0.3)).prop_map(
                |(queue, prefetch, no_ack)| Self::Consume { queue, prefetch, no_ack }
            ),
            1 => queue.clone().prop_map(|queue| Self::Cancel { queue }),
            3 => (queue.clone(), any::<bool>())
                .prop_map(|(queue, no_ack)| Self::Get { queue, no_ack }),
            3 => which.clone().prop_map(|which| Self::Ack { which }),
            1 => which.clone().prop_map(|which| Self::AckMultiple { which }),
            4 => (which.clone(), any::<bool>())
                .prop_map(|(which, requeue)| Self::Nack { which, requeue }),
            4 => (which.clone(), any::<bool>())
                .prop_map(|(which, requeue)| Self::Reject { which, requeue }),
            4 => (
                which,
                prop::option::weighted(0.8, 0_u8..4),
                prop::option::weighted(0.4, 0_u64..200),
                prop::option::of(prop_oneof![
                    Just(Settlement::Requeue),
                    Just(Settlement::DeadLetter),
                ]),
            ).prop_map(|(which, reason, delay_ms, settlement)| {
                Self::Annotate { which, reason, delay_ms, settlement }
            }),
            1 => Just(Self::Recover),
            1 => queue.clone().prop_map(|queue| Self::Purge { queue }),
            3 => (queue, prop::option::of(0_usize..3))
                .prop_map(|(queue, to)| Self::Redrive { queue, to }),
            1 => Just(Self::CloseChannel),
            8 => (1_u64..120).prop_map(|millis| Self::Sleep { millis }),
            2 => (1_u64..2000).prop_map(|millis| Self::Sleep { millis }),
            1 => prop::option::of(0_u64..150).prop_map(|ttl_ms| Self::Policy { ttl_ms }),
        ]
    }
}
