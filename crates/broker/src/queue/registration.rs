//! The traces of a queue outside of it: its record in the log, its bindings, and its share of the vhost's
//! memory.

use crate::collections::SmallSet;
use crate::entry::meter::{Meter, MeterShare};
use crate::exchange::Binding;
use crate::ids::{ExchangeId, Lsn};

/// The entries that the vhost has for a queue.
#[derive(Debug)]
pub(crate) struct Registration {
    /// The record that declared the queue; 0 if the queue does not outlive a restart.
    pub(crate) lsn: Lsn,
    /// The bindings that lead to the queue, with the exchanges they lead from.
    pub(crate) bindings: SmallSet<(ExchangeId, Binding)>,
    /// Memory that the declaration takes.
    memory: MeterShare,
}

impl Default for Registration {
    fn default() -> Self {
        Self { lsn: Lsn(0), bindings: SmallSet::default(), memory: MeterShare::default() }
    }
}

impl Registration {
    /// Counts the memory of the declaration for as long as the queue exists.
    pub(super) fn count_memory(&mut self, bytes: u64, topology: &Meter) {
        self.memory = topology.share(bytes);
    }
}
