//! The rows.

use broker::DropCause::NoDeadLetterExchange;
use broker::dead_letter::DeathReason::{DeliveryLimit, Expired, Maxlen, Rejected};
use broker::{DeathCounters, Deliveries, Queue};

use super::Level::{Millionths, Missing, Whole};
use super::PageGroup::{Bytes, Deaths, Messages, Overview, Rates};
use super::QueueGroup as Group;
use super::Source::{Counter, Death, Delivery, Length};
use super::{QueueField, Source, Unit};

macro_rules! queue_fields {
    ($($name:literal, $unit:ident, $meaning:literal, $source:expr
        $(, $column:ident ($($argument:tt)*))*;)+) => {
        /// All numbers of a queue, in the order of the API's answers and of the families in a group.
        pub const QUEUE_FIELDS: &[QueueField] = &[
            $(QueueField::new($name, Unit::$unit, $meaning, $source)
                $(.$column($($argument)*))*,)+
        ];
    };
}

queue_fields! {
    "messages", Messages, "Messages in the queue, in whichever state",
        Length(Queue::message_count, |q| q.total().messages),
        family(Group::Coarse, "queue_messages"), listed(),
        page(4, Messages, "total", "Total"), on_phone(3);
    "messages_ready", Messages, "Messages that wait for a consumer",
        Length(Queue::ready_count, |q| q.ready.messages),
        family(Group::Coarse, "queue_messages_ready"), listed(),
        page(2, Messages, "ready", "Ready"), on_phone(1);
    "messages_unacknowledged", Messages, "Messages delivered and not acknowledged",
        Length(Queue::unacked_count, |q| q.unacked.messages),
        family(Group::Coarse, "queue_messages_unacked"), listed(),
        page(3, Messages, "unacked", "Unacked"), on_phone(2);

    "consumers", Consumers, "Consumers of the queue",
        Source::Level(|q| Whole(q.consumers)),
        family(Group::ConsumerCount, "queue_consumers"), listed(),
        page(1, Overview, "consumers", "Consumers");
    "consumer_capacity", Share, "Share of time in which a consumer could take a message",
        Source::Level(|q| Millionths(q.consumer_capacity_ppm)),
        family(Group::Queue, "queue_consumer_capacity"), listed(),
        page(8, Overview, "capacity", "Capacity"), named("Consumer capacity"),
        hint("Share of time in which a consumer could take a message");
    "consumer_utilisation", Share, "The same as queue_consumer_capacity",
        Source::Level(|q| Millionths(q.consumer_capacity_ppm)),
        family(Group::Queue, "queue_consumer_utilisation"), listed();
    // RabbitMQ's family is without messages that are delayed or kept as dead ones, which its field has.
    "", Messages, "Ready and unacknowledged messages in memory",
        Source::Level(|q| Whole(q.ready_in_memory().messages + q.unacked.messages)),
        family(Group::Queue, "queue_messages_ram");
    "", Bytes, "Bytes of ready and unacknowledged messages in memory",
        Source::Level(|q| Whole(q.ready_in_memory().bytes + q.unacked.bytes)),
        family(Group::Queue, "queue_messages_ram_bytes");
    "messages_ram", Messages, "Messages in memory",
        Source::Level(|q| Whole(q.in_memory().messages)), listed(),
        page(11, Messages, "in_memory", "In memory"), hint("Messages held in memory");
    "message_bytes_ram", Bytes, "Bytes of messages in memory",
        Source::Level(|q| Whole(q.in_memory().bytes)), listed(),
        page(15, Bytes, "bytes_in_memory", "Bytes in memory");
    "memory", Bytes, "Bytes of memory: bodies only; the rest depends on the headers",
        Source::Level(|q| Whole(q.in_memory().bytes)), listed(),
        page(7, Bytes, "memory", "Memory"), hint("Memory of the queue with its messages");
    "messages_ready_ram", Messages, "Ready messages in memory",
        Source::Level(|q| Whole(q.ready_in_memory().messages)),
        family(Group::Queue, "queue_messages_ready_ram"), listed();
    "messages_unacknowledged_ram", Messages, "Unacknowledged messages, which are all in memory",
        Source::Level(|q| Whole(q.unacked.messages)),
        family(Group::Queue, "queue_messages_unacked_ram"), listed();
    "messages_persistent", Messages, "Messages that outlive a restart",
        Source::Level(|q| Whole(q.persistent.messages)),
        family(Group::Queue, "queue_messages_persistent"), listed(),
        page(10, Messages, "persistent", "Persistent"), hint("Messages that survive a restart");
    "message_bytes_persistent", Bytes, "Bytes of messages that outlive a restart",
        Source::Level(|q| Whole(q.persistent.bytes)),
        family(Group::Queue, "queue_messages_persistent_bytes"), listed(),
        page(14, Bytes, "bytes_persistent", "Bytes persistent");
    "message_bytes", Bytes, "Bytes of all messages in the queue",
        Source::Level(|q| Whole(q.total().bytes)),
        family(Group::Queue, "queue_messages_bytes"), listed(),
        page(6, Bytes, "bytes", "Bytes");
    "message_bytes_ready", Bytes, "Bytes of ready messages",
        Source::Level(|q| Whole(q.ready.bytes)),
        family(Group::Queue, "queue_messages_ready_bytes"), listed(),
        page(12, Bytes, "bytes_ready", "Bytes ready");
    "message_bytes_unacknowledged", Bytes, "Bytes of unacknowledged messages",
        Source::Level(|q| Whole(q.unacked.bytes)),
        family(Group::Queue, "queue_messages_unacked_bytes"), listed(),
        page(13, Bytes, "bytes_unacked", "Bytes unacked");
    "messages_paged_out", Messages, "Ready messages that wait on disk",
        Source::Level(|q| Whole(q.paged_out.messages)),
        family(Group::Queue, "queue_messages_paged_out"), listed(),
        page(5, Messages, "paged_out", "On disk"),
        hint("Messages that are on disk only, not in memory");
    "message_bytes_paged_out", Bytes, "Bytes of ready messages that wait on disk",
        Source::Level(|q| Whole(q.paged_out.bytes)),
        family(Group::Queue, "queue_messages_paged_out_bytes"), listed();
    "head_message_timestamp", EpochSeconds,
        "The timestamp property of the message that is delivered next, in seconds of the epoch",
        Source::Level(|q| q.head_timestamp_s.map_or(Missing, Whole)),
        family(Group::Queue, "queue_head_message_timestamp"), listed();
    "messages_delayed", Messages, "Messages that wait before they are ready",
        Source::Level(|q| Whole(q.delayed.messages)),
        family(Group::Queue, "queue_messages_delayed"), listed(),
        page(9, Messages, "delayed", "Delayed"),
        hint("Messages that wait: returned ones, and those with a delivery time");
    "messages_dlx", Messages, "Dead messages that are kept",
        Source::Level(|q| Whole(q.pending.messages)),
        family(Group::Queue, "queue_messages_dlx_pending"), listed();
    "message_bytes_dlx", Bytes, "Bytes of dead messages that are kept",
        Source::Level(|q| Whole(q.pending.bytes)),
        family(Group::Queue, "queue_messages_dlx_pending_bytes");

    "", Seconds, "Age of the oldest ready message",
        Source::Level(|q| q.oldest_age_us.map_or(Missing, Millionths)),
        family(Group::Time, "queue_oldest_message_age_seconds");
    "", EpochSeconds, "When the next waiting message expires, in seconds of the epoch",
        Source::Level(|q| q.first_deadline_us.map_or(Missing, Millionths)),
        family(Group::Time, "queue_next_deadline_timestamp_seconds");
    "", EpochSeconds, "When the next scheduled message is ready, in seconds of the epoch",
        Source::Level(|q| q.next_delivery_us.map_or(Missing, Millionths)),
        family(Group::Time, "queue_next_delivery_timestamp_seconds");
    "", EpochSeconds, "When the unused queue expires, in seconds of the epoch",
        Source::Level(|q| q.lease_ends_us.map_or(Missing, Millionths)),
        family(Group::Time, "queue_lease_ends_timestamp_seconds");

    "publish", Messages, "Messages that arrived: publishes and dead letters, including refused ones",
        Counter(|q| q.entered + q.refused), listed(),
        page(23, Rates, "in", "In"), on_phone(4),
        hint("Messages that arrive per second, including refused ones");
    "", Messages, "Publishes that were routed to the queue",
        Counter(|q| q.published),
        family(Group::Published, "queue_messages_published_total");
    "deliver", Messages, "Messages delivered to consumers that acknowledge",
        Delivery(Deliveries::delivered),
        family(Group::Delivery, "queue_messages_delivered_ack_total"),
        page(16, Rates, "deliver_manual", "Deliver (manual ack)");
    "deliver_no_ack", Messages, "Messages delivered to consumers that need not acknowledge",
        Delivery(Deliveries::delivered_no_ack),
        family(Group::Delivery, "queue_messages_delivered_total"),
        page(17, Rates, "deliver_auto", "Deliver (auto ack)");
    "get", Messages, "Answers to gets that are to be acknowledged",
        Delivery(Deliveries::got),
        family(Group::Delivery, "queue_get_ack_total"),
        page(18, Rates, "get_manual", "Get (manual ack)");
    "get_no_ack", Messages, "Answers to gets that need no acknowledgement",
        Delivery(Deliveries::got_no_ack),
        family(Group::Delivery, "queue_get_total"),
        page(19, Rates, "get_auto", "Get (auto ack)");
    "get_empty", Messages, "Gets that found nothing",
        Delivery(|d| d.got_nothing),
        family(Group::Delivery, "queue_get_empty_total"),
        page(20, Rates, "get_empty", "Get (empty)");
    "deliver_get", Messages, "Deliveries to consumers and answers to gets, in all",
        Delivery(Deliveries::all), listed(),
        page(25, Rates, "out", "Out"), on_phone(5),
        hint("Messages delivered or fetched per second");
    "redeliver", Messages, "Deliveries of messages that had been delivered before",
        Delivery(|d| d.redelivered),
        family(Group::Delivery, "queue_messages_redelivered_total"),
        page(27, Rates, "redeliver", "Redeliver");
    "ack", Messages, "Messages acknowledged",
        Delivery(|d| d.acknowledged),
        family(Group::Delivery, "queue_messages_acked_total"), listed(),
        page(26, Rates, "ack", "Ack"), shown();

    // Counts that are 0 for most queues come last: trailing zeros take no memory in a sample.
    "expired", Messages, "Messages that expired, dead-lettered or not",
        Death(|d| d.dead_lettered.get(Expired) + d.dropped.get(Expired).total()), listed(),
        page(28, Deaths, "expired", "Expired"), shown();
    "dead_lettered", Messages, "Messages that died and became dead letters",
        Death(dead_lettered), listed(),
        page(29, Deaths, "dead_lettered", "Dead-lettered"), shown();
    "dropped", Messages, "Messages that died and left nothing",
        Death(dropped), listed(),
        page(30, Deaths, "dropped", "Dropped"),
        hint("Died, and removed without a dead letter: without a dead-letter exchange, or lost");
    "dead_lettered_rejected", Messages, "Messages that were rejected and became dead letters",
        Death(|d| d.dead_lettered.get(Rejected));
    "dead_lettered_expired", Messages, "Messages that expired and became dead letters",
        Death(|d| d.dead_lettered.get(Expired));
    "dead_lettered_maxlen", Messages, "Messages beyond the length limit that became dead letters",
        Death(|d| d.dead_lettered.get(Maxlen));
    "dead_lettered_delivery_limit", Messages,
        "Messages beyond the delivery limit that became dead letters",
        Death(|d| d.dead_lettered.get(DeliveryLimit));
    "dropped_rejected", Messages, "Messages that were rejected and left nothing",
        Death(|d| d.dropped.get(Rejected).total());
    "dropped_expired", Messages, "Messages that expired and left nothing",
        Death(|d| d.dropped.get(Expired).total());
    "dropped_maxlen", Messages, "Messages beyond the length limit that left nothing",
        Death(|d| d.dropped.get(Maxlen).total());
    "dropped_delivery_limit", Messages, "Messages beyond the delivery limit that left nothing",
        Death(|d| d.dropped.get(DeliveryLimit).total());
    "dropped_without_dlx", Messages, "Messages that died in a queue without a dead-letter exchange",
        Death(dropped_without_exchange), listed(),
        page(21, Deaths, "dropped_without_dlx", "Dropped (no DLX)"),
        hint("Messages per second that died in a queue without a dead-letter exchange");
    "dead_letters_lost", Messages, "Messages whose dead letter no queue took",
        Death(|d| dropped(d) - dropped_without_exchange(d)), listed(),
        page(22, Deaths, "lost", "Lost"), named("Lost (no target queue)"),
        hint("Dead letters per second that no queue accepted");
    "dead_letter_copies_dropped", Messages,
        "Dead letters that one of several targets did not take, and refused messages without a dead letter",
        Death(|d| d.copies_dropped.total());
    "redriven", Messages, "Messages that were redriven from a queue",
        Death(|d| d.redriven);
    "refused", Messages, "Messages that a full queue refused",
        Counter(|q| q.refused), listed(),
        page(24, Rates, "refused", "Refused"), on_phone(6),
        hint("Messages refused per second, because the queue is full");
}

/// All messages that died and became dead letters.
fn dead_lettered(deaths: &DeathCounters) -> u64 {
    deaths.dead_lettered.iter().map(|(_, count)| count).sum()
}

/// All messages that died and left nothing.
fn dropped(deaths: &DeathCounters) -> u64 {
    deaths.dropped.iter().map(|(_, by_cause)| by_cause.total()).sum()
}

/// The messages among them that died in a queue without a dead-letter exchange.
fn dropped_without_exchange(deaths: &DeathCounters) -> u64 {
    deaths.dropped.iter().map(|(_, by_cause)| by_cause.get(NoDeadLetterExchange)).sum()
}
