//! Sums over a vhost at one moment.

use broker::Vhost;
use broker::statistics::VhostCounters;

use crate::snapshot::client::Traffic;
use crate::snapshot::fields::{QueueSums, VHOST, VhostNumbers, of_connection, of_vhost};

/// Sums over a vhost.
#[derive(Clone, Debug)]
pub struct VhostTotals {
    /// Name of the vhost.
    pub name: String,
    /// Number of connections.
    pub connections: u64,
    /// Number of channels of these connections.
    pub channels: u64,
    /// Number of exchanges, with the predeclared ones.
    pub exchanges: u64,
    /// Number of queues.
    pub queues: u64,
    /// Number of consumers.
    pub consumers: u64,
    /// Counters since the start.
    pub counters: VhostCounters,
    /// True if a shared queue does not survive a restart.
    pub has_transient_queue: bool,
    /// True if a channel has a prefetch limit over all its consumers.
    pub has_global_prefetch: bool,
    /// Bytes of memory held by waiting messages.
    pub resident_bytes: u64,
    /// The sampled numbers, in the order of [`VHOST`].
    pub numbers: VhostNumbers,
}

impl VhostTotals {
    /// Sums over `vhost`. With `user`, connections and channels count for this user only. `traffic` is the
    /// sum over the sockets of its clients.
    pub(crate) fn of(vhost: &Vhost, user: Option<&str>, traffic: &Traffic) -> Self {
        let mut sums = QueueSums::default();
        let mut totals = Self {
            name: vhost.name().to_string(),
            connections: 0,
            channels: 0,
            exchanges: vhost.exchanges().count() as u64,
            queues: 0,
            consumers: 0,
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
            sums.add(queue);
        }
        let data = of_connection(traffic);
        totals.numbers = of_vhost(vhost, &sums.with_deleted(vhost), data);
        totals
    }
}
