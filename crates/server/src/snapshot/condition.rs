//! The condition of the node and its vhosts at one moment: the numbers from which findings are made.

use std::net::IpAddr;

use broker::time::{Now, Time};
use broker::{DeadLetterStrategy, Overflow};
use broker::{Name, Queue, QueueId, QueueNumber, Vhost};

/// The condition of the node, beyond its memory and disk space.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct NodeCondition {
    /// Duration of the slowest write to a log within the last minutes, in microseconds.
    pub slowest_write_us: u64,
    /// Duration of the write to a log that is running, in microseconds; 0 if none is.
    pub running_write_us: u64,
    /// The last step of the wall clock; none since the start.
    pub clock_step: Option<ClockStep>,
    /// Vhosts whose log finds no room on the disk.
    pub vhosts_without_room: Vec<String>,
    /// Vhosts with pages that the disk did not take, and the number of these pages.
    pub unwritten_pages: Vec<(String, u64)>,
    /// Vhosts that are down because their files cannot be read, and the reasons.
    pub vhosts_down: Vec<(String, String)>,
    /// Vhosts whose log was damaged at the last start, and the number of damages.
    pub damaged_vhosts: Vec<(String, u64)>,
    /// Logins refused within the last minutes.
    pub refused_logins: Vec<RefusedLogins>,
    /// Connections refused within the last minutes.
    pub refused_connections: Vec<RefusedConnections>,
    /// True while no AMQP clients are accepted.
    pub are_listeners_suspended: bool,
    /// True while the node leads only what no other node can.
    pub is_drained: bool,
}

/// Refused logins of one user from one address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedLogins {
    /// Address of the client.
    pub source: IpAddr,
    /// Name that the client gave.
    pub user: String,
    /// Number of logins.
    pub count: u64,
}

/// Connections refused for one reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedConnections {
    /// The reason.
    pub reason: ConnectionRefusal,
    /// The vhost or the user of the limit, or the listener; empty for a limit of the node.
    pub of: String,
    /// Number of connections.
    pub count: u64,
}

/// The reason why a connection is refused or has to wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ConnectionRefusal {
    /// No file descriptor is left.
    Descriptors,
    /// `connection_max` is reached.
    NodeLimit,
    /// `max-connections` of a vhost is reached.
    VhostLimit,
    /// `max-connections` of a user is reached.
    UserLimit,
}

/// A step of the wall clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockStep {
    /// Length of the step in milliseconds, negative if the clock was set back.
    pub step_ms: i64,
    /// Time since the step, in milliseconds.
    pub ago_ms: u64,
}

/// The condition of a vhost.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct VhostCondition {
    /// The queues.
    pub queues: Vec<QueueCondition>,
}

/// The condition of a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct QueueCondition {
    /// The name.
    pub name: Name,
    /// The number.
    pub number: QueueNumber,
    /// Messages in any state.
    pub messages: u64,
    /// Ready messages.
    pub ready: u64,
    /// Dead letters that wait in the queue until another queue has taken them.
    pub pending: u64,
    /// Number of consumers.
    pub consumers: u32,
    /// Share of the recent past in which a consumer could have taken a message, in parts per million.
    pub consumer_capacity_ppm: u64,
    /// True if no further message fits under the length limit.
    pub is_full: bool,
    /// The effect of a full queue on a publish.
    pub overflow: Overflow,
    /// True if the queue has a dead-letter exchange.
    pub has_dead_letter_exchange: bool,
    /// True if the queue keeps dead letters that it cannot deliver.
    pub keeps_dead_letters: bool,
    /// True if messages of the queue expire without a consumer.
    pub has_ttl: bool,
    /// Time since the first deadline that has passed without an expiry, in microseconds.
    pub overdue_us: u64,
}

impl VhostCondition {
    /// The queues to copy.
    pub fn queues(vhost: &Vhost) -> Vec<QueueId> {
        vhost.queues().map(|(id, _)| id).collect()
    }

    /// Copies some queues. Deleted queues are left out.
    pub fn add_queues(&mut self, vhost: &mut Vhost, now: Now, queues: &[QueueId]) {
        for id in queues {
            vhost.forget_gone_deadlines(*id);
            self.queues
                .extend(vhost.queue_of(*id).map(|queue| QueueCondition::of(queue, now.time)));
        }
    }
}

impl QueueCondition {
    fn of(queue: &Queue, now: Time) -> Self {
        let settings = &queue.settings;
        let overdue = queue.first_deadline().map(|deadline| now.micros_since(deadline));
        Self {
            name: queue.name.clone(),
            number: queue.number,
            messages: queue.message_count(),
            ready: queue.ready_count(),
            pending: queue.pending_count(),
            consumers: queue.consumer_count(),
            consumer_capacity_ppm: queue.consumer_capacity_ppm(now),
            is_full: is_full(queue),
            overflow: settings.overflow,
            has_dead_letter_exchange: settings.dead_letter.is_some(),
            keeps_dead_letters: settings.dead_letter_strategy == DeadLetterStrategy::AtLeastOnce,
            has_ttl: settings.message_ttl_ms.is_some(),
            overdue_us: overdue.unwrap_or_default(),
        }
    }
}

/// True if a message of the mean size would exceed a length limit.
fn is_full(queue: &Queue) -> bool {
    let settings = &queue.settings;
    let messages = queue.ready_count() + queue.delayed_count() + queue.pending_count();
    let bytes = queue.ready_bytes() + queue.delayed_bytes() + queue.pending_bytes();
    let mean = bytes.checked_div(messages).unwrap_or_default();
    settings.max_length.is_some_and(|max| messages >= max)
        || settings.max_length_bytes.is_some_and(|max| messages > 0 && bytes + mean > max)
}
