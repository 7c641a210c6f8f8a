//! All relays of a run.

use std::collections::BTreeMap;

use broker::time::Time;
use simdisk::Random;

use crate::cluster::network::Network;
use crate::faults::sabotage::Sabotage;
use crate::plan::Plan;
use crate::relays::relay::Relay;
use crate::relays::stream::Stream;

/// Most that a node has run from one tick to the next, in microseconds: it was paused otherwise.
const TICK_US_MAX: u64 = 100_000;

/// The time that a node has run, and the nodes that it does not hear.
#[derive(Clone, Default, Debug)]
pub(super) struct Own {
    pub(super) us: u64,
    looked_us: u64,
    /// Since when there is no link to each other node, by the time that this node has run.
    apart_since_us: Vec<Option<u64>>,
}

/// All relays of a run.
#[derive(Debug)]
pub(crate) struct Relays {
    /// True in a run whose clients connect to any node.
    pub(crate) is_on: bool,
    /// True from the end of the faults on.
    pub(super) is_healed: bool,
    pub(super) random: Random,
    next: u64,
    pub(super) all: BTreeMap<u64, Box<Relay>>,
    pub(super) streams: BTreeMap<u64, Stream>,
    pub(super) own: Vec<Own>,
    /// Since when each client is without service.
    pub(super) idle_since_us: Vec<Option<u64>>,
    /// Clients that were adopted.
    pub(crate) adopted: u64,
    sabotage: Option<Sabotage>,
}

impl Relays {
    /// No relays yet. They are drawn by a sequence of their own: a run without them is as it was before there were any.
    pub(crate) fn new(plan: &Plan) -> Self {
        let nodes = plan.nodes + plan.spares;
        let own = Own { apart_since_us: vec![None; nodes], ..Own::default() };
        Self {
            is_on: plan.any_node,
            is_healed: false,
            random: Random(plan.seed ^ 0x4E1A),
            next: 0,
            all: BTreeMap::new(),
            streams: BTreeMap::new(),
            own: vec![own; nodes],
            idle_since_us: Vec::new(),
            adopted: 0,
            sabotage: plan.sabotage,
        }
    }

    pub(super) fn new_id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Notes that a node runs, and which others it hears.
    pub(super) fn look(&mut self, node: usize, network: &mut Network, now_us: u64) {
        let own = &mut self.own[node];
        own.us += (now_us - own.looked_us).min(TICK_US_MAX);
        own.looked_us = now_us;
        for (other, since_us) in own.apart_since_us.iter_mut().enumerate() {
            match other == node || network.is_up(node, other) {
                true => *since_us = None,
                false => *since_us = since_us.or(Some(own.us)),
            }
        }
    }

    /// The time that a node has run.
    pub(super) fn own_time(&self, node: usize, now_us: u64) -> Time {
        let own = &self.own[node];
        Time::from_micros(own.us + (now_us - own.looked_us).min(TICK_US_MAX))
    }

    /// Microseconds for which a node has not heard another one.
    pub(super) fn apart_us(&self, node: usize, other: usize) -> u64 {
        let own = &self.own[node];
        own.apart_since_us[other].map_or(0, |since_us| own.us - since_us)
    }

    pub(super) fn has(&self, sabotage: Sabotage) -> bool {
        self.sabotage == Some(sabotage)
    }
}
