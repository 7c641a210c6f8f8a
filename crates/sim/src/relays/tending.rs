//! The care of nodes for relays, tick by tick.

use crate::relays::ends::{RelayEvent, Side};
use crate::relays::relay::Relay;
use crate::world::World;

impl World {
    /// Octets arrive at a node, or at a client.
    pub(crate) fn relayed(&mut self, event: RelayEvent) {
        match event {
            RelayEvent::Piece(stream, way, node) => self.piece_arrives(stream, way, node),
            RelayEvent::FromClient(relay, node) => self.client_octets_arrive(relay, node),
            RelayEvent::ToClient(relay) => self.hear_relay(relay),
        }
    }

    /// The faults are over: all clients read, and must be served soon.
    pub(crate) fn heal_relays(&mut self) {
        self.relays.is_healed = true;
        self.relays.idle_since_us.clear();
        self.relays.all.values_mut().for_each(|relay| relay.client_reads_from_us = 0);
    }

    /// A node looks after the clients that it passes on, and that others pass on to it.
    pub(crate) fn tend_relays(&mut self, node: usize) {
        if !self.relays.is_on {
            return;
        }
        self.relays.look(node, &mut self.network, self.now_us);
        let of_node = |relay: &Relay| relay.entry.node == node;
        let all = self.relays.all.iter().filter(|(_, relay)| of_node(relay));
        for relay in all.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.tend_entry(relay);
            self.hear_relay(relay);
        }
        let led = self.relays.streams.iter().filter(|(_, stream)| stream.leader.node == node);
        for stream in led.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.tend_leader(stream);
        }
        self.release_held(node);
        self.check_service();
    }

    /// True if this process runs.
    pub(super) fn runs(&self, side: Side) -> bool {
        let process = self.nodes[side.node].process.as_ref();
        process.is_some_and(|process| process.run == side.run)
    }
}
