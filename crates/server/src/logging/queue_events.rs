//! Log lines of the category `queue`: events reported by the core.

use broker::Event;

/// The target of these lines.
pub(super) const TARGET: &str = module_path!();

/// Logs an event of a vhost.
pub(crate) fn write(vhost: &str, event: &Event) {
    match event {
        Event::DroppedDeadLetters { queue, reason, cause } => {
            let (queue, reason, cause) = (&**queue, reason.as_str(), cause.as_str());
            tracing::warn!(vhost, queue, reason, cause, "dead messages dropped");
        }
        Event::DeadLetterCycle { queues } => {
            let cycle = queues.join(" <- ");
            tracing::warn!(vhost, cycle, "dead-letter cycle: messages dropped");
        }
        Event::DelayedTypeIgnored { exchange, current, received } => {
            let (exchange, current, received) = (&**exchange, &**current, &**received);
            tracing::warn!(
                vhost,
                exchange,
                current,
                received,
                "x-delayed-type of a redeclaration ignored: the exchange keeps its own"
            );
        }
        Event::QueueExpired { queue, message_count } => {
            let queue = &**queue;
            tracing::info!(vhost, queue, message_count, "queue expired with messages in it");
        }
        Event::DeliveriesWait { connection, channel, unacked_bytes } => {
            let (connection, channel) = (&**connection, channel.0);
            tracing::warn!(
                vhost,
                connection,
                channel,
                unacked_bytes,
                "deliveries wait: too much is unacknowledged"
            );
        }
        Event::ConsumerTimedOut { queue, consumer_tag } => {
            let (queue, consumer_tag) = (&**queue, consumer_tag.as_deref().unwrap_or("basic.get"));
            tracing::warn!(vhost, queue, consumer_tag, "delivery acknowledgement timed out");
        }
    }
}
