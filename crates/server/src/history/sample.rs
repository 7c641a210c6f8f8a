//! Samples of one moment, taken under the vhosts' locks.

use broker::{ChannelNumber, ExchangeId, QueueId, QueueNumber, Vhost};

use crate::snapshot::client::{ClientOf, Traffic};
use crate::snapshot::fields::{
    self, ChannelNumbers, ConnectionNumbers, ExchangeNumbers, NodeNumbers, QueueNumbers, QueueSums,
    VhostNumbers,
};
use crate::snapshot::node::{NodeSnapshot, ProcessSnapshot};

/// A channel: the number of its client, and its own number.
pub type ChannelKey = (u64, ChannelNumber);

/// Samples of everything at one moment.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(super) node: NodeNumbers,
    pub(super) vhosts: Vec<VhostSample>,
    /// Connections by number of the client.
    pub(super) connections: Vec<(u64, ConnectionNumbers)>,
}

/// Samples of a vhost and its contents.
#[derive(Debug)]
pub(crate) struct VhostSample {
    pub(super) name: String,
    pub(super) totals: VhostNumbers,
    pub(super) queues: Vec<(QueueNumber, QueueNumbers)>,
    pub(super) exchanges: Vec<(ExchangeId, ExchangeNumbers)>,
    pub(super) channels: Vec<(ChannelKey, ChannelNumbers)>,
}

impl Sample {
    /// Samples the node, which has that many open sockets of clients.
    pub(crate) fn new(node: &NodeSnapshot, process: &ProcessSnapshot, sockets: u64) -> Self {
        let numbers = fields::of_node(node, process, sockets);
        Self { node: numbers, vhosts: Vec::new(), connections: Vec::new() }
    }

    /// Adds a connection.
    pub(crate) fn add_connection(&mut self, client: u64, traffic: &Traffic) {
        self.connections.push((client, fields::of_connection(traffic)));
    }

    /// Adds a vhost.
    pub(crate) fn add_vhost(&mut self, vhost: VhostSample) {
        self.vhosts.push(vhost);
    }
}

/// Samples a vhost, a slice of queues at a time, so that clients do not wait for all queues.
#[derive(Debug)]
pub(crate) struct Sampling {
    queues: Vec<(QueueNumber, QueueNumbers)>,
    sums: QueueSums,
}

impl Sampling {
    /// Starts a sample of so many queues, with room for all: a buffer that doubles leaves the allocator twice as much.
    pub(crate) fn of(queues: usize) -> Self {
        Self { queues: Vec::with_capacity(queues), sums: QueueSums::default() }
    }

    /// Adds some queues. Deleted queues are left out.
    pub(crate) fn add_queues(&mut self, vhost: &Vhost, queues: &[QueueId]) {
        for queue in queues.iter().filter_map(|id| vhost.queue_of(*id)) {
            self.queues.push((queue.number, fields::of_queue(queue)));
            self.sums.add(queue);
        }
    }

    /// Adds everything else. `traffic` is the sum over the sockets of the vhost's clients.
    pub(crate) fn finish(
        self,
        vhost: &Vhost,
        client_of: ClientOf<'_>,
        traffic: &Traffic,
    ) -> VhostSample {
        let Self { queues, sums } = self;
        let exchanges = vhost.exchanges();
        let exchanges = exchanges.map(|(id, one)| (id, fields::of_exchange(&one.counters)));
        let clients = vhost.connections();
        let clients = clients.filter_map(|(id, on)| Some((client_of(id)?.pid.number(), on)));
        let channels = clients.flat_map(|(client, connection)| {
            let open = connection.open_channels();
            open.map(move |(n, channel)| ((client, n), fields::of_channel(&channel.counters)))
        });
        let data = fields::of_connection(traffic);
        VhostSample {
            name: vhost.name().to_string(),
            totals: fields::of_vhost(vhost, &sums.with_deleted(vhost), data),
            exchanges: exchanges.collect(),
            channels: channels.collect(),
            queues,
        }
    }
}
