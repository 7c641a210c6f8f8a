//! Sums over a vhost at one moment.

use broker::Vhost;
use broker::statistics::VhostCounters;

use crate::snapshot::client::Traffic;
use crate::snapshot::fields::{QueueSums, VHOST, VhostNumbers, of_connection, of_vhost};

/// The sums of a vhost at one moment.
#[derive(Clone, Debug)]
pub struct VhostTotals {
    /// Its name.
    pub name: String,
    /// Connections to it.
    pub connections: u64,
    /// Channels of these.
    pub channels: u64,
    /// Exchanges, the predeclared ones included.
    pub exchanges: u64,
    /// Queues.
    pub queues: u64,
    /// Consumers.
    pub consumers: u64,
    /// Messages in its queues.
    pub messages: u64,
    /// Those of them that are ready for delivery.
    pub messages_ready: u64,
    /// Those of them that were delivered and are not acknowledged.
    pub messages_unacknowledged: u64,
    /// What it has counted.
    pub counters: VhostCounters,
    /// A queue that others may use does not survive a restart.
    pub(crate) has_transient_queue: bool,
    /// A channel limits the deliveries of all its consumers together.
    pub(crate) has_global_prefetch: bool,
    /// Bytes of memory that the waiting messages take.
    pub resident_bytes: u64,
    /// What is sampled of it.
    pub(crate) numbers: VhostNumbers,
}

impl VhostTotals {
    /// Adds up what is the case in `vhost`; with a user, of connections and channels only his.
    /// `traffic` is what went over the sockets of its clients.
    pub fn of(vhost: &Vhost, user: Option<&str>, traffic: &Traffic) -> Self {
        let mut sums = QueueSums::default();
        let mut totals = Self {
            name: vhost.name().to_string(),
            connections: 0,
            channels: 0,
            exchanges: vhost.exchanges().count() as u64,
            queues: 0,
            consumers: 0,
            messages: 0,
            messages_ready: 0,
            messages_unacknowledged: 0,
            counters: *vhost.counters(),
            has_transient_queue: false,
            has_global_prefetch: false,
            resident_bytes: vhost.resident_bytes(),
            numbers: [0; VHOST.len()],
        };
        for (_, connection) in vhost.connections() {
            if user.is_none_or(|user| *connection.access.user == *user) {
                totals.connections += 1;
                totals.channels += connection.open_channels().count() as u64;
            }
        }
        let channels = vhost.connections().flat_map(|(_, connection)| connection.open_channels());
        totals.has_global_prefetch =
            channels.into_iter().any(|(_, channel)| channel.global_prefetch_count() > 0);
        for (_, queue) in vhost.queues() {
            totals.queues += 1;
            totals.has_transient_queue |=
                !queue.ownership.durable && queue.ownership.exclusive_owner.is_none();
            totals.consumers += u64::from(queue.consumer_count());
            totals.messages += queue.message_count();
            totals.messages_ready += queue.ready_count();
            totals.messages_unacknowledged += queue.unacked_count();
            sums.add(queue);
        }
        let data = of_connection(traffic);
        totals.numbers = of_vhost(vhost, &sums.with_deleted(vhost), data);
        totals
    }
}
