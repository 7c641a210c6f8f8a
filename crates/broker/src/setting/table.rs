//! The table of settings: queue arguments and policy keys, one row for each.
//!
//! A row has the names, the kind of value, the check of the argument and its place in RabbitMQ's order of
//! checks, RabbitMQ's complaint about a policy's value, the merge rules, the types of queues, and the texts
//! for documentation and web page. A new setting is a row here, a list of words in `words` if its values
//! are words, and a field of `queue::Settings`.
//!
//! Policy keys stand in the order in which definitions are checked and stored; new keys go to the end, with the
//! version of the log's format (`since`) below which builds do not know the key.
//! `x-queue-type` is no row: the type decides which other arguments there are.

use super::argument_checks::{
    any, boolean, dead_letter_routing_key, delayed_retry_order, in_range, leader_locator, max_age,
    max_priority, not_negative, one_of, positive, queue_version, ratio, retry_schedule,
    segment_size,
};
use super::merge::Merge;
use super::ratio::Ratio;
use super::row::{ArgumentRule, Fallback, Group, Setting};
use super::value::{PolicyValue, SettingValue, Unit, ValueKind};
use super::words::{
    DeadLetterStrategy, DelayedRetryOrder, DelayedRetryType, DeliveryCount, DeliveryLimitAction,
    ExpiryOrder, Overflow, Word,
};
use crate::limits::TTL_MS_MAX;
use crate::queue_type::QueueType;

const CLASSIC: &[QueueType] = &[QueueType::Classic];
const QUORUM: &[QueueType] = &[QueueType::Quorum];
const NONE: &[QueueType] = &[];

const fn ms(min: i64) -> ValueKind {
    ValueKind::number(min, Unit::Milliseconds)
}

const fn bytes(min: i64) -> ValueKind {
    ValueKind::number(min, Unit::Bytes)
}

const fn count(min: i64) -> ValueKind {
    ValueKind::number(min, Unit::Count)
}

const fn at_least(min: u32) -> ValueKind {
    ValueKind::Ratio { min, max: Ratio::MAX }
}

const fn within(min: i64, max: i64, unit: Unit) -> ValueKind {
    ValueKind::Number { min, max, unit }
}

macro_rules! policy_keys {
    ($($(#[$doc:meta])* $key:ident = $name:literal, $group:ident, $value:expr
        $(, $column:ident ($($argument:tt)*))*;)+) => {
        /// The keys of a policy definition.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum PolicyKey {
            $($(#[$doc])* $key,)+
        }

        impl PolicyKey {
            /// All keys.
            pub const ALL: &'static [Self] = &[$(Self::$key,)+];
        }

        static POLICY_KEYS: [Setting; PolicyKey::ALL.len()] = [
            $(Setting::new($name, concat!("x-", $name), Group::$group, $value)
                $(.$column($($argument)*))*,)+
        ];
    };
}

macro_rules! arguments_alone {
    ($($name:literal, $group:ident, $value:expr $(, $column:ident ($($argument:tt)*))*;)+) => {
        /// Arguments without a policy key.
        static ARGUMENTS_ALONE: &[Setting] = &[
            $(Setting::new($name, concat!("x-", $name), Group::$group, $value)
                $(.$column($($argument)*))*,)+
        ];
    };
}

policy_keys! {
    /// `message-ttl`, milliseconds.
    MessageTtl = "message-ttl", Expiry, ms(0),
        argument(2, |value, _| in_range(value, 0, TTL_MS_MAX)), button("Message TTL (ms)"),
        policy("message TTL"), operator(Merge::Lower), with_argument(Merge::Lower),
        with_hint("Time after which a message expires.");
    /// `expires`, milliseconds.
    Expires = "expires", Expiry, ms(1),
        argument(1, |value, _| in_range(value, 1, TTL_MS_MAX)), button("Delete when unused (ms)"),
        policy("queue expiry"), operator(Merge::Lower), with_argument(Merge::Lower),
        with_hint("Time after which an unused queue is deleted.");
    /// `max-length`, messages.
    MaxLength = "max-length", Length, count(0),
        argument(6, not_negative), button("Max length"),
        policy("maximum length"), operator(Merge::Lower), with_argument(Merge::Lower),
        with_hint("Limit of ready messages.");
    /// `max-length-bytes`, bytes of message bodies.
    MaxLengthBytes = "max-length-bytes", Length, bytes(0),
        argument(7, not_negative), button("Max length (bytes)"),
        policy("maximum length in bytes"), operator(Merge::Lower), with_argument(Merge::Lower),
        with_hint("Limit of the bodies of ready messages, in bytes.");
    /// `overflow`, a word such as `drop-head`.
    Overflow = "overflow", Length, ValueKind::Word(Overflow::LIST),
        argument(11, |value, _| one_of(value, Overflow::LIST, "invalid_overflow")),
        button("Overflow"), example("\"reject-publish\""),
        policy("overflow value"), operator(Merge::Second), with_argument_of_overflow(),
        or(Fallback::Word(Word::Overflow(Overflow::DropHead))),
        with_hint("What happens at the limit: drop-head removes the oldest message, reject-publish refuses the new one.");
    /// `dead-letter-exchange`. The argument is checked before all others, and before permissions.
    DeadLetterExchange = "dead-letter-exchange", DeadLetters, ValueKind::ExchangeName,
        argument(3, any), button("Dead-letter exchange"),
        policy("dead letter exchange name"), with_argument(Merge::Second),
        with_hint("Exchange for messages that expire, are rejected or exceed a limit. Empty: the default exchange, where the routing key is the name of a queue.");
    /// `dead-letter-routing-key`, replaces the routing keys.
    DeadLetterRoutingKey = "dead-letter-routing-key", DeadLetters, ValueKind::RoutingKey,
        argument(4, dead_letter_routing_key), button("Dead-letter routing key"),
        policy("dead letter routing key"), with_argument(Merge::Second),
        with_hint("Routing key of dead letters. Without it, dead letters keep their routing keys.");
    /// `dead-letter-strategy` of quorum queues.
    DeadLetterStrategy = "dead-letter-strategy", DeadLetters, ValueKind::Word(DeadLetterStrategy::LIST),
        only(QUORUM),
        argument(5, |value, _| one_of(value, DeadLetterStrategy::LIST, "invalid_dlx_strategy")),
        button("Dead-letter strategy"), example("\"at-least-once\""),
        policy("dead letter strategy"), strict(), with_argument(Merge::Second),
        with_hint("at-least-once: a dead letter is kept until another queue has it.");
    /// `delivery-limit`; negative is unlimited.
    DeliveryLimit = "delivery-limit", Delivery, count(i64::MIN),
        argument(15, any), button("Delivery limit"),
        policy("delivery limit"), strict_for(QUORUM), operator(Merge::DeliveryLimit),
        with_argument(Merge::DeliveryLimit), or(Fallback::DeliveryLimit),
        with_hint("A message that fails more often than this dies. Negative: no limit.");
    /// `consumer-timeout`, milliseconds.
    ConsumerTimeout = "consumer-timeout", Delivery, ms(0), only(QUORUM),
        argument(16, not_negative), button("Consumer timeout (ms)"),
        policy("consumer timeout"), with_argument(Merge::Lower), or(Fallback::ConsumerTimeout),
        with_hint("Time within which a consumer must acknowledge a message.");
    /// `consumer-disconnected-timeout`, milliseconds; has no effect on one node.
    ConsumerDisconnectedTimeout = "consumer-disconnected-timeout", WithoutEffect, ms(0), only(QUORUM),
        argument(17, not_negative), policy("consumer disconnected timeout");
    /// `delayed-retry-type`: the returned messages that wait.
    DelayedRetryType = "delayed-retry-type", Delivery, ValueKind::Word(DelayedRetryType::LIST),
        argument(18, any),
        policy("delayed retry type. Must be one of: all, failed, returned, disabled"),
        operator(Merge::Second), with_argument(Merge::First),
        with_hint("Which returned messages wait before the next delivery.");
    /// `delayed-retry-min`, milliseconds.
    DelayedRetryMin = "delayed-retry-min", Delivery, ms(1), argument(19, any),
        policy("delayed retry minimum delay. Must be a positive integer"),
        operator(Merge::Higher), with_argument(Merge::Lower),
        with_hint("Wait after the first failed delivery.");
    /// `delayed-retry-max`, milliseconds.
    DelayedRetryMax = "delayed-retry-max", Delivery, ms(1), argument(20, any),
        policy("delayed retry maximum delay. Must be a positive integer"),
        operator(Merge::Lower), with_argument(Merge::Lower),
        with_hint("Longest wait.");
    /// `target-group-size`; has no effect on one node.
    TargetGroupSize = "target-group-size", WithoutEffect, count(1), only(QUORUM),
        policy("qq target count value"), strict(), operator(Merge::Higher);
    /// `max-in-memory-length`; has no effect.
    MaxInMemoryLength = "max-in-memory-length", WithoutEffect, count(0), only(QUORUM),
        argument(8, not_negative), policy("maximum memory in bytes"), strict(), operator(Merge::Lower);
    /// `max-in-memory-bytes`; has no effect.
    MaxInMemoryBytes = "max-in-memory-bytes", WithoutEffect, bytes(0), only(QUORUM),
        argument(9, not_negative), policy("maximum memory in bytes"), strict(), operator(Merge::Lower);
    /// `queue-version`; has no effect.
    QueueVersion = "queue-version", WithoutEffect, within(1, 2, Unit::Count), only(CLASSIC),
        argument(13, queue_version), policy("queue-version value"), operator(Merge::Second);
    /// `queue-mode`; has no effect.
    QueueMode = "queue-mode", WithoutEffect, ValueKind::OneOf(&["default", "lazy"]), only(CLASSIC),
        argument(12, any), policy("queue-mode value"), strict();
    /// `queue-leader-locator`; has no effect on one node.
    QueueLeaderLocator = "queue-leader-locator", WithoutEffect,
        ValueKind::OneOf(&["client-local", "balanced", "random", "least-leaders"]),
        argument(26, leader_locator), policy("queue leader locator value");
    /// `max-age` of streams.
    MaxAge = "max-age", Streams, ValueKind::Age, only(NONE),
        argument(22, max_age), not_compared(), policy("max age"), strict();
    /// `stream-max-segment-size-bytes` of streams.
    StreamMaxSegmentSizeBytes = "stream-max-segment-size-bytes", Streams,
        within(0, 3_000_000_000, Unit::Bytes), only(NONE),
        argument(23, segment_size), not_compared(), policy("segment size"), strict();
    /// `stream-filter-size-bytes` of streams.
    StreamFilterSizeBytes = "stream-filter-size-bytes", Streams, within(16, 255, Unit::Bytes), only(NONE),
        argument(24, not_negative), not_compared(), policy("filter size. Valid range is 16-255");
    /// `initial-cluster-size` of streams.
    InitialClusterSize = "initial-cluster-size", Streams, count(0), only(NONE),
        argument(25, positive), not_compared(), policy("cluster size"), strict();
    /// `alternate-exchange` of exchanges, which have an argument of the same name.
    AlternateExchange = "alternate-exchange", Exchanges, ValueKind::ExchangeName,
        policy("alternate exchange name"), with_argument(Merge::Second),
        with_hint("Exchange for messages that match no binding.");
    /// `expiry-order`, Leveret's own.
    ExpiryOrder = "expiry-order", Expiry, ValueKind::Word(ExpiryOrder::LIST),
        argument(27, |value, _| one_of(value, ExpiryOrder::LIST, "invalid_expiry_order")),
        button("Expiry order"), example("\"head\""),
        policy("expiry order"), operator(Merge::Second), with_argument(Merge::Second),
        or(Fallback::Word(Word::ExpiryOrder(ExpiryOrder::Deadline))),
        with_hint("deadline: each message expires at its own time. head: only at the front of the queue, as in RabbitMQ.");
    /// `delayed-retry-multiplier`, Leveret's own: the growth of the wait.
    DelayedRetryMultiplier = "delayed-retry-multiplier", Delivery, at_least(1),
        argument(29, |value, _| ratio(value, 1, Ratio::MAX)),
        policy("delayed retry multiplier. Must be a number from 1"),
        since(2), operator(Merge::Lower), with_argument(Merge::Lower),
        with_hint("Each wait is so many times the one before. 1: all waits are the same.");
    /// `delayed-retry-jitter`, Leveret's own: the part of the wait that varies.
    DelayedRetryJitter = "delayed-retry-jitter", Delivery, ValueKind::Ratio { min: 0, max: 1 },
        argument(30, |value, _| ratio(value, 0, 1)),
        policy("delayed retry jitter. Must be a number from 0 to 1"),
        since(2), operator(Merge::Second), with_argument(Merge::Second),
        with_hint("Part of the wait by which it varies from message to message: 0.2 for 80 to 120 %.");
    /// `delayed-retry-schedule`, Leveret's own: each wait by itself.
    DelayedRetrySchedule = "delayed-retry-schedule", Delivery, ValueKind::Schedule,
        argument(31, retry_schedule),
        policy("delayed retry schedule. Must be delays such as 1s,10s,5m"),
        since(2), operator(Merge::Second), with_argument(Merge::Second),
        with_hint("The waits one by one, such as 1s,10s,5m; the last one repeats.");
    /// `delayed-retry-count`, Leveret's own: the deliveries by which the wait grows.
    DelayedRetryCount = "delayed-retry-count", Delivery, ValueKind::Word(DeliveryCount::LIST),
        argument(32, |value, _| one_of(value, DeliveryCount::LIST, "invalid_delayed_retry_count")),
        policy("delayed retry count. Must be one of: delivery, acquired"),
        since(2), operator(Merge::Second), with_argument(Merge::Second),
        with_hint("delivery: failed deliveries lengthen the wait. acquired: all deliveries do, those that basic.nack ends, too.");
    /// `delivery-limit-count`, Leveret's own: the deliveries that count against the delivery limit.
    DeliveryLimitCount = "delivery-limit-count", Delivery, ValueKind::Word(DeliveryCount::LIST),
        argument(33, |value, _| one_of(value, DeliveryCount::LIST, "invalid_delivery_limit_count")),
        policy("delivery limit count. Must be one of: delivery, acquired"),
        since(2), operator(Merge::Second), with_argument(Merge::Second),
        or(Fallback::Word(Word::DeliveryCount(DeliveryCount::Delivery))),
        with_hint("delivery: failed deliveries count against the limit. acquired: all deliveries do.");
    /// `delayed-retry-order`, Leveret's own: the order of messages around one that waits.
    DelayedRetryOrder = "delayed-retry-order", Delivery, ValueKind::Word(DelayedRetryOrder::LIST),
        argument(34, delayed_retry_order),
        policy("delayed retry order. Must be one of: due, strict"),
        since(2), operator(Merge::Second), with_argument(Merge::Second),
        or(Fallback::Word(Word::DelayedRetryOrder(DelayedRetryOrder::Due))),
        with_hint("due: other messages pass one that waits for its next delivery. strict: with a single active consumer, the queue delivers nothing until the wait is over.");
    /// `delivery-limit-action`, Leveret's own: what happens at the delivery limit to a message without a target.
    DeliveryLimitAction = "delivery-limit-action", Delivery, ValueKind::Word(DeliveryLimitAction::LIST),
        argument(35, |value, _| one_of(value, DeliveryLimitAction::LIST, "invalid_delivery_limit_action")),
        policy("delivery limit action. Must be one of: drop, keep"),
        since(2), operator(Merge::Second), with_argument(Merge::Second),
        or(Fallback::Word(Word::DeliveryLimitAction(DeliveryLimitAction::Drop))),
        with_hint("What happens at the delivery limit to a message that no dead-letter exchange takes. drop: it is lost. keep: the queue keeps it, to be seen, redriven or purged.");
}

arguments_alone! {
    "max-priority", Delivery, within(0, 255, Unit::Count), only(CLASSIC),
        argument(10, max_priority), button("Max priority"), example("5");
    "single-active-consumer", Delivery, ValueKind::Flag,
        argument(14, boolean), button("Single active consumer"), example("true");
    // RabbitMQ checks the value late and refuses the argument early.
    "quorum-initial-group-size", WithoutEffect, count(1), only(QUORUM),
        argument(21, positive), refused_at(14);
    "queue-master-locator", WithoutEffect, ValueKind::OneOf(&[]), only(CLASSIC),
        argument(28, any), not_compared();
}

/// Writes the keys of settings that have an effect on queues to `found`, group by group, and returns their number.
const fn find_queue_keys(found: &mut [PolicyKey]) -> usize {
    let (mut group, mut count) = (0, 0);
    while group < Group::OF_QUEUES.len() {
        let mut at = 0;
        while at < PolicyKey::ALL.len() {
            if POLICY_KEYS[at].group() as u8 == Group::OF_QUEUES[group] as u8 {
                found[count] = PolicyKey::ALL[at];
                count += 1;
            }
            at += 1;
        }
        group += 1;
    }
    count
}

const QUEUE_KEYS_COUNT: usize = find_queue_keys(&mut [PolicyKey::MessageTtl; PolicyKey::ALL.len()]);

static QUEUE_KEYS: [PolicyKey; QUEUE_KEYS_COUNT] = {
    let mut keys = [PolicyKey::MessageTtl; QUEUE_KEYS_COUNT];
    find_queue_keys(&mut keys);
    keys
};

impl PolicyKey {
    /// The row of the key.
    pub fn setting(self) -> &'static Setting {
        &POLICY_KEYS[self as usize]
    }

    /// The name of the key.
    pub fn as_str(self) -> &'static str {
        self.setting().policy_key().expect("a row of `policy_keys` has the column `policy`")
    }

    /// The key of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|key| key.as_str() == name)
    }

    /// The number of keys of settings that have an effect on queues.
    pub(crate) const OF_QUEUES_COUNT: usize = QUEUE_KEYS_COUNT;

    /// The keys of settings that have an effect on queues, in the order in which they are shown.
    pub(crate) fn of_queues() -> impl ExactSizeIterator<Item = Self> {
        QUEUE_KEYS.iter().copied()
    }

    /// Checks the value that a policy gives.
    ///
    /// # Errors
    /// RabbitMQ's complaint about a value that is not valid.
    pub(crate) fn check(self, value: &PolicyValue) -> Result<SettingValue, String> {
        let setting = self.setting();
        let complaint = || format!("{value} is not a valid {}", setting.complaint());
        setting.value().parse_policy_value(value).ok_or_else(complaint)
    }
}

/// All rows: settings with a policy key, then arguments without one.
pub fn settings() -> impl Iterator<Item = &'static Setting> {
    POLICY_KEYS.iter().chain(ARGUMENTS_ALONE)
}

/// The queue arguments of the table, with the key of the setting if there is one.
pub(crate) fn arguments()
-> impl Iterator<Item = (Option<PolicyKey>, &'static Setting, &'static ArgumentRule)> {
    let keys = PolicyKey::ALL.iter().copied().map(|key| (Some(key), key.setting()));
    let all = keys.chain(ARGUMENTS_ALONE.iter().map(|setting| (None, setting)));
    all.filter_map(|(key, setting)| Some((key, setting, setting.argument_if_any()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_orders_are_unambiguous() {
        let mut orders: Vec<u8> = arguments().map(|(_, _, rule)| rule.order).collect();
        orders.sort_unstable();
        assert!(orders.windows(2).all(|pair| pair[0] < pair[1]), "{orders:?}");
        for queue_type in QueueType::ALL {
            let refused = arguments().filter(|(_, setting, _)| !setting.is_of(queue_type));
            let mut orders: Vec<u8> = refused.map(|(.., rule)| rule.refusal_order).collect();
            orders.sort_unstable();
            assert!(orders.windows(2).all(|pair| pair[0] < pair[1]), "{queue_type:?} {orders:?}");
        }
    }

    #[test]
    fn keys_of_newer_formats_are_in_the_guide() {
        let guide = include_str!("../../../../docs/guides/upgrade.md");
        let (_, list) = guide.split_once("Policy keys of format 2:").unwrap();
        let (list, _) = list.split_once('.').unwrap();
        let names: Vec<_> = list.split('`').skip(1).step_by(2).collect();
        let newer = PolicyKey::ALL.iter().filter(|key| key.setting().format_version() > 1);
        assert_eq!(names, newer.map(|key| key.as_str()).collect::<Vec<_>>());
    }

    #[test]
    fn keys_of_queues_are_those_with_an_effect() {
        let names: Vec<_> = PolicyKey::of_queues().map(PolicyKey::as_str).collect();
        assert_eq!(names[..3], ["message-ttl", "expires", "expiry-order"]);
        assert!(PolicyKey::of_queues().all(|key| !key.setting().hint().is_empty()));
    }
}
