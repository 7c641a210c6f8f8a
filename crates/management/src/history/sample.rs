//! Samples of one moment, as they are taken under the vhosts' locks.

use broker::{ChannelNumber, ExchangeId, QueueId, QueueNumber, Vhost};

use crate::snapshot::client::{ClientOf, Traffic};
use crate::snapshot::fields::{
    self, ChannelNumbers, ConnectionNumbers, ExchangeNumbers, NodeNumbers, QueueNumbers, QueueSums,
    VhostNumbers,
};
use crate::snapshot::node::{NodeSnapshot, ProcessSnapshot};

/// Samples of everything at one moment.
#[derive(Debug)]
pub struct Taken {
    pub(super) node: NodeNumbers,
    pub(super) vhosts: Vec<VhostTaken>,
    /// By number of the client.
    pub(super) connections: Vec<(u64, ConnectionNumbers)>,
}

/// Samples of a vhost and of what is in it.
#[derive(Debug)]
pub struct VhostTaken {
    pub(super) name: String,
    pub(super) totals: VhostNumbers,
    pub(super) queues: Vec<(QueueNumber, QueueNumbers)>,
    pub(super) exchanges: Vec<(ExchangeId, ExchangeNumbers)>,
    pub(super) channels: Vec<((u64, ChannelNumber), ChannelNumbers)>,
}

impl Taken {
    /// Samples of the node, in which that many sockets of clients are open.
    pub fn new(node: &NodeSnapshot, process: &ProcessSnapshot, sockets: u64) -> Self {
        let numbers = fields::of_node(node, process, sockets);
        Self { node: numbers, vhosts: Vec::new(), connections: Vec::new() }
    }

    /// Adds those of a connection.
    pub fn connection(&mut self, client: u64, traffic: &Traffic) {
        self.connections.push((client, fields::of_connection(traffic)));
    }

    /// Adds those of a vhost.
    pub fn vhost(&mut self, vhost: VhostTaken) {
        self.vhosts.push(vhost);
    }
}

/// Samples of a vhost that are being taken, a slice at a time, so that its clients need not wait for all
/// of its queues.
#[derive(Debug)]
pub struct Taking {
    queues: Vec<(QueueNumber, QueueNumbers)>,
    sums: QueueSums,
}

impl VhostTaken {
    /// The queues to take samples of.
    pub fn queues(vhost: &Vhost) -> Vec<QueueId> {
        vhost.queues().map(|(id, _)| id).collect()
    }

    /// Begins with no queue.
    pub fn begin() -> Taking {
        Taking { queues: Vec::new(), sums: QueueSums::default() }
    }
}

impl Taking {
    /// Adds some queues; those that have gone since are left out.
    pub fn slice(&mut self, vhost: &Vhost, queues: &[QueueId]) {
        for queue in queues.iter().filter_map(|id| vhost.queue_of(*id)) {
            self.queues.push((queue.number, fields::of_queue(queue)));
            self.sums.add(queue);
        }
    }

    /// Adds everything else; `traffic` is what went over the sockets of its clients.
    pub fn end(self, vhost: &Vhost, client_of: ClientOf<'_>, traffic: &Traffic) -> VhostTaken {
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
        VhostTaken {
            name: vhost.name().to_string(),
            totals: fields::of_vhost(vhost, &sums.and_gone(vhost), data),
            exchanges: exchanges.collect(),
            channels: channels.collect(),
            queues,
        }
    }
}
